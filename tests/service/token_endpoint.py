"""A tiny endpoint that gives out tokens for SASL OAUTHBEARER: unsecured JWTs, which a broker takes by default.

Kafka's documentation, "Authentication using SASL/OAUTHBEARER": the built-in validator takes tokens of algorithm `none`.
"""

import base64
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import parse_qs

_LIFE_S = 3600
CLIENT, SECRET = "reconciler", "t0ken-s3cret"


@dataclass
class Endpoint:
    """What it was asked, and how it answers."""

    url: str = ""
    scope: str = "kafka"
    status: int = 200
    scopes: list[str] = field(default_factory=list)

    def settings(self, secret: str = SECRET) -> dict[str, object]:
        """The properties of a client of its."""
        values = {"method": "oidc", "client.id": CLIENT, "client.secret": secret, "token.endpoint.url": self.url}
        return {f"sasl.oauthbearer.{name}": value for name, value in values.items()} | {
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.scope": "kafka",
        }


def token(scope: str) -> str:
    """An unsecured JWT."""
    now = int(time.time())
    parts = ({"alg": "none"}, {"sub": CLIENT, "iat": now - 10, "exp": now + _LIFE_S, "scope": scope})
    return ".".join(base64.urlsafe_b64encode(json.dumps(p).encode()).decode().rstrip("=") for p in parts) + "."


@contextmanager
def token_endpoint() -> Iterator[Endpoint]:
    """Serves until left."""
    endpoint = Endpoint()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
            wanted = base64.b64encode(f"{CLIENT}:{SECRET}".encode()).decode()
            known = self.headers["Authorization"] == f"Basic {wanted}" and form["grant_type"] == ["client_credentials"]
            endpoint.scopes += form.get("scope", [])
            answer = {"access_token": token(endpoint.scope), "expires_in": _LIFE_S, "token_type": "Bearer"}
            body = json.dumps(answer if known else {"error": "invalid_client"}).encode()
            self.send_response(endpoint.status if known else 401)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        endpoint.url = f"http://127.0.0.1:{server.server_address[1]}/token"
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield endpoint
        server.shutdown()

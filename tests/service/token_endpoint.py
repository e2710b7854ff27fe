"""A tiny endpoint that gives out tokens for SASL OAUTHBEARER: unsecured JWTs, which a broker takes by default.

Kafka's documentation, "Authentication using SASL/OAUTHBEARER": the built-in validator takes tokens of algorithm `none`.
"""

import base64
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import parse_qs

from tests.http_answers import Answer, Asked, answering

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

    def answer(asked: Asked) -> Answer:
        form = parse_qs(asked.body.decode())
        wanted = base64.b64encode(f"{CLIENT}:{SECRET}".encode()).decode()
        known = asked.login == f"Basic {wanted}" and form["grant_type"] == ["client_credentials"]
        endpoint.scopes += form.get("scope", [])
        told = {"access_token": token(endpoint.scope), "expires_in": _LIFE_S, "token_type": "Bearer"}
        body = json.dumps(told if known else {"error": "invalid_client"}).encode()
        return endpoint.status if known else 401, {"Content-Type": "application/json"}, body

    with answering(answer) as url:
        endpoint.url = f"{url}/token"
        yield endpoint

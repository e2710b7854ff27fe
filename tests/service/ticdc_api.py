"""A small server that stands for TiCDC's Open API v2: it answers about one changefeed, as a test says."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread


@dataclass
class TicdcApi:
    """How it answers, and what it was asked: paths and logins."""

    url: str = ""
    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    logins: list[str | None] = field(default_factory=list)

    def at(self, checkpoint_ts: object, **changes: object) -> None:
        """Answer with this checkpoint from now on."""
        told = {"id": "orders", "keyspace": "default", "state": "normal", "checkpoint_ts": checkpoint_ts}
        self.body = json.dumps({**told, **changes}).encode()


@contextmanager
def ticdc_api() -> Iterator[TicdcApi]:
    """Serves until left."""
    api = TicdcApi()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            api.asked.append(self.path)
            api.logins.append(self.headers["Authorization"])
            self.send_response(api.status)
            for name, value in {"Content-Length": str(len(api.body)), **api.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(api.body)

        def log_message(self, *_: object) -> None:
            """Not to stderr."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    api.url = f"http://127.0.0.1:{server.server_port}"
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield api
    finally:
        server.shutdown()
        server.server_close()
        thread.join()

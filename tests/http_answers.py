"""A small HTTP server whose answers a function gives, in a thread of its own."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import NamedTuple


class Asked(NamedTuple):
    """A request: GET or POST."""

    path: str
    login: str | None
    """Its header `Authorization`."""
    body: bytes


Answer = tuple[int, Mapping[str, str], bytes]
"""Status, headers, body; Content-Length need not be among the headers."""


@contextmanager
def answering(answer: Callable[[Asked], Answer]) -> Iterator[str]:
    """Its address, without a path; it serves until left."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            sent = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            status, headers, body = answer(Asked(self.path, self.headers.get("Authorization"), sent))
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self) -> None:
            self.do_GET()

        def log_message(self, *_: object) -> None:
            """Not to stderr."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()

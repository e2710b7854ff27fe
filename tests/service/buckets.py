"""An object store for tests: serves a directory as S3 does, to whoever signs the request."""

import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import unquote


class Bucket:
    """Objects by `bucket/key`; a context."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory / "buckets"
        self.refuse = False
        self.authorizations: list[str] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}"

    def put(self, name: str, content: bytes) -> None:
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()


def _handler(bucket: Bucket) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            bucket.authorizations.append(self.headers.get("Authorization", ""))
            path = bucket.directory / unquote(self.path).lstrip("/")
            if bucket.refuse or not bucket.authorizations[-1].startswith("AWS4-HMAC-SHA256"):
                self._answer(HTTPStatus.FORBIDDEN, b"<Error><Code>AccessDenied</Code></Error>")
            elif path.is_file():
                self._answer(HTTPStatus.OK, path.read_bytes())
            else:
                self._answer(HTTPStatus.NOT_FOUND, b"<Error><Code>NoSuchKey</Code></Error>")

        def _answer(self, status: HTTPStatus, content: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.send_header("Last-Modified", "Thu, 01 Jan 2026 00:00:00 GMT")
            self.send_header("ETag", '"1"')
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    return Handler

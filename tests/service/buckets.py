"""An object store for tests: serves a directory as S3 does, to whoever signs the request."""

import threading
from datetime import UTC, datetime
from email.utils import formatdate
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape


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


def listing(bucket: Path, prefix: str) -> bytes:
    """What S3 answers to ListObjectsV2, in one page."""
    found = ""
    for path in sorted(one for one in bucket.rglob("*") if one.is_file()):
        key, stat = str(path.relative_to(bucket)), path.stat()
        if key.startswith(prefix):
            written = datetime.fromtimestamp(stat.st_mtime, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
            told = f"<Key>{escape(key)}</Key><LastModified>{written}</LastModified><Size>{stat.st_size}</Size>"
            found += f'<Contents>{told}<ETag>"1"</ETag></Contents>'
    return f"<ListBucketResult><IsTruncated>false</IsTruncated>{found}</ListBucketResult>".encode()


def _handler(bucket: Bucket) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            bucket.authorizations.append(self.headers.get("Authorization", ""))
            address = urlsplit(self.path)
            path, query = bucket.directory / unquote(address.path).lstrip("/"), parse_qs(address.query)
            if bucket.refuse or not bucket.authorizations[-1].startswith("AWS4-HMAC-SHA256"):
                self._answer(HTTPStatus.FORBIDDEN, b"<Error><Code>AccessDenied</Code></Error>")
            elif "list-type" in query:
                self._answer(HTTPStatus.OK, listing(path, query.get("prefix", [""])[0]))
            elif path.is_file():
                self._answer(HTTPStatus.OK, path.read_bytes(), path.stat().st_mtime)
            else:
                self._answer(HTTPStatus.NOT_FOUND, b"<Error><Code>NoSuchKey</Code></Error>")

        def _answer(self, status: HTTPStatus, content: bytes, written: float = 0.0) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.send_header("Last-Modified", formatdate(written, usegmt=True))
            self.send_header("ETag", '"1"')
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    return Handler

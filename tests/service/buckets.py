"""An object store for tests: serves a directory as S3 does, to whoever signs the request."""

import re
import threading
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import formatdate
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Literal, Self
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape, unescape

Fault = Literal["refuse", "busy", "hang", "cut", "late cut"]
"""403; 503; no answer until the server ends; half an answer, or a request that is not obeyed; one that is, with its
answer lost."""


PAGE = 1_000
"""Keys of a page."""
_TOKEN = re.compile("<NextContinuationToken>.*</NextContinuationToken>")


class Bucket:
    """Objects by `bucket/key`; a context. `fault`: what is to happen to a request, by its method and path."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory / "buckets"
        self.refuse = self.loses_tokens = False
        self.fault: Callable[[str, str], Fault | None] = lambda _method, _path: None
        self.ended = threading.Event()
        self.requests: list[tuple[str, str]] = []
        self.authorizations: list[str] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"bucket": self}))
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}"

    def put(self, name: str, content: bytes) -> None:
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.ended.set()
        self._server.shutdown()
        self._server.server_close()


def listing(bucket: Path, prefix: str, after: str) -> str:
    """What S3 answers to ListObjectsV2: the first page of the keys behind one, whose last is the token of the next."""
    keys = sorted(str(one.relative_to(bucket)) for one in bucket.rglob("*") if one.is_file())
    keys = [key for key in keys if key.startswith(prefix) and key > after]
    found = ""
    for key in keys[:PAGE]:
        stat = (bucket / key).stat()
        written = datetime.fromtimestamp(stat.st_mtime, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
        told = f"<Key>{escape(key)}</Key><LastModified>{written}</LastModified><Size>{stat.st_size}</Size>"
        found += f'<Contents>{told}<ETag>"1"</ETag></Contents>'
    token = f"<NextContinuationToken>{escape(keys[PAGE - 1])}</NextContinuationToken>" if len(keys) > PAGE else ""
    is_cut = "true" if token else "false"
    return f"<ListBucketResult><IsTruncated>{is_cut}</IsTruncated>{token}{found}</ListBucketResult>"


class _Handler(BaseHTTPRequestHandler):
    bucket: Bucket

    def do_GET(self) -> None:
        self._serve(self._found)

    def do_HEAD(self) -> None:
        self._serve(self._found)

    def do_PUT(self) -> None:
        content = self.rfile.read(int(self.headers["Content-Length"]))
        self._serve(lambda: self._stored(content))

    def do_DELETE(self) -> None:
        """One object: obstore's older releases ask so."""
        self._serve(self._removed)

    def do_POST(self) -> None:
        """DeleteObjects, the only POST that is asked for."""
        content = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self._serve(lambda: self._deleted(content))

    @property
    def path_on_disk(self) -> Path:
        return self.bucket.directory / unquote(urlsplit(self.path).path).lstrip("/")

    def _serve(self, obey: Callable[[], None]) -> None:
        self.bucket.authorizations.append(self.headers.get("Authorization", ""))
        self.bucket.requests.append((self.command, self.path))
        fault = self.bucket.fault(self.command, self.path)
        signed = self.bucket.authorizations[-1].startswith("AWS4-HMAC-SHA256")
        if self.bucket.refuse or fault == "refuse" or not signed:
            self._answer(HTTPStatus.FORBIDDEN, b"<Error><Code>AccessDenied</Code></Error>")
        elif fault == "busy":
            self._answer(HTTPStatus.SERVICE_UNAVAILABLE, b"<Error><Code>SlowDown</Code></Error>")
        elif fault == "hang":
            self.bucket.ended.wait()
        elif fault == "cut":
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
            self.close_connection = True
        elif fault == "late cut":
            self.wfile = BytesIO()  # type: ignore[assignment]
            obey()
            self.close_connection = True
        else:
            obey()

    def _found(self) -> None:
        query, path = parse_qs(urlsplit(self.path).query), self.path_on_disk
        if "list-type" in query:
            after = query.get("continuation-token") or query.get("start-after") or [""]
            told = listing(path, query.get("prefix", [""])[0], after[0])
            self._answer(HTTPStatus.OK, (_TOKEN.sub("", told) if self.bucket.loses_tokens else told).encode())
        elif path.is_file():
            self._answer_with(path)
        else:
            self._answer(HTTPStatus.NOT_FOUND, b"<Error><Code>NoSuchKey</Code></Error>")

    def _answer_with(self, path: Path) -> None:
        content, asked = path.read_bytes(), self.headers.get("Range")
        if asked is None:
            self._answer(HTTPStatus.OK, content, path.stat().st_mtime)
            return
        first, _, last = asked.removeprefix("bytes=").partition("-")
        start, end = int(first), min(int(last or len(content)), len(content) - 1)
        headers = {"Content-Range": f"bytes {start}-{end}/{len(content)}"}
        self._answer(HTTPStatus.PARTIAL_CONTENT, content[start : end + 1], path.stat().st_mtime, headers)

    def _stored(self, content: bytes) -> None:
        path = self.path_on_disk
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        self._answer(HTTPStatus.OK, b"")

    def _removed(self) -> None:
        self.path_on_disk.unlink(missing_ok=True)
        self._answer(HTTPStatus.NO_CONTENT, b"")

    def _deleted(self, request: str) -> None:
        keys = re.findall("<Key>([^<]+)</Key>", request)
        for key in map(unescape, keys):
            (self.path_on_disk / key).unlink(missing_ok=True)
        told = "".join(f"<Deleted><Key>{key}</Key></Deleted>" for key in keys)
        self._answer(HTTPStatus.OK, f"<DeleteResult>{told}</DeleteResult>".encode())

    def _answer(
        self,
        status: HTTPStatus,
        content: bytes,
        written: float = 0.0,
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Last-Modified", formatdate(written, usegmt=True))
        self.send_header("ETag", '"1"')
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Say nothing."""

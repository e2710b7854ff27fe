"""Objects whose server answers otherwise than a store, and files that are none: what is asked for is held, no more."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from consumer.codec.row_images import TableKeys
from consumer.large_messages.claim_check import Claims
from consumer.large_messages.reference import BodyReference
from consumer.storage import place
from consumer.storage.place import StorageRoot
from ordering.errors import BodyMissingError, InputError, ReconcilerError, SourceUnreachableError
from ordering.events import Position, TableName

HERE = Position("t", 1, 42)
LIMIT = 1000
PIECES, PIECE = 2_000, b"x" * 65_536


@contextmanager
def rogue(headers: Mapping[str, str], body: bytes, pieces: int = 0) -> Iterator[tuple[Mapping[str, str], list[int]]]:
    """A server's options, and how many pieces of a body it could send that is longer than it said."""
    sent = list[int]()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.send_response(HTTPStatus.OK)
            for name, value in {"Last-Modified": "Thu, 01 Jan 2026 00:00:00 GMT", "ETag": '"1"', **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)
            try:
                for number in range(pieces):
                    self.wfile.write(b"%x\r\n%b\r\n" % (len(PIECE), PIECE))
                    sent.append(number)
                self.wfile.write(b"0\r\n\r\n" if pieces else b"")
            except OSError:  # whoever read has gone
                self.close_connection = True

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        login = {"access-key-id": "a", "secret-access-key": "b", "region": "r"}
        yield {"endpoint": f"http://127.0.0.1:{server.server_port}", "allow-http": "true", **login}, sent
        server.shutdown()


def claimed(location: str, options: Mapping[str, str]) -> bytes:
    claims = Claims((location,), {}, options, LIMIT)
    return claims.image(BodyReference(f"{location}/x", *HERE), TableKeys(TableName("d", "t"), ["id"]), b"", 1)


def read_as_row(options: Mapping[str, str]) -> None:
    claimed("s3://b/p", options)


def read_as_metadata(options: Mapping[str, str]) -> None:
    StorageRoot("s3://b/p", options).vouched()


def read_as_file(options: Mapping[str, str]) -> None:
    StorageRoot("s3://b/p", options).read("d/t/1/CDC1.csv")


READERS = [read_as_row, read_as_metadata, read_as_file]


@pytest.mark.parametrize("read", READERS)
def test_more_than_its_length_is_not_held(
    read: Callable[[Mapping[str, str]], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that said ten bytes and never ended took all memory, and with it the process."""
    monkeypatch.setattr(place, "MOST_DATA", LIMIT)
    lying = {"Content-Length": "10", "Transfer-Encoding": "chunked"}
    with rogue(lying, b"", PIECES) as (options, sent), pytest.raises(InputError, match="holds more than"):
        read(options)
    assert len(sent) < PIECES


@pytest.mark.parametrize("read", [read_as_row, read_as_metadata])
def test_a_length_beyond_the_limit_is_not_waited_for(read: Callable[[Mapping[str, str]], None]) -> None:
    with rogue({"Content-Length": str(1 << 50)}, b"x") as (options, _), pytest.raises(InputError, match="more than"):
        read(options)


def test_a_listing_without_an_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server may always say that there is more."""
    monkeypatch.setattr(place, "MOST_OBJECTS", 100)
    about = "<LastModified>2026-01-01T00:00:00Z</LastModified><Size>1</Size>"
    one = f"<Contents><Key>p/d/t/1/CDC1.csv</Key>{about}</Contents>"
    more = "<IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken>"
    page = f"<ListBucketResult><Name>b</Name>{more}{one}</ListBucketResult>".encode()
    with rogue({"Content-Length": str(len(page))}, page) as (options, _), pytest.raises(InputError, match="more than"):
        StorageRoot("s3://b/p", options).listing()


def test_what_is_no_metadata_is_not_shown() -> None:
    """A store may lead on to another server, and what that says is nobody's business here."""
    with rogue({"Content-Length": "9"}, b"a secret!") as (options, _), pytest.raises(SourceUnreachableError) as caught:
        read_as_metadata(options)
    assert "secret" not in str(caught.value)


def linked_file(root: Path, outside: Path) -> None:
    (root / "x").symlink_to(outside)


def linked_directory(root: Path, outside: Path) -> None:
    root.rmdir()
    (root.parent / "other").mkdir()
    (root.parent / "other" / "x").write_bytes(outside.read_bytes())
    root.symlink_to(root.parent / "other")


def pipe(root: Path, _: Path) -> None:
    os.mkfifo(root / "x")


def directory(root: Path, _: Path) -> None:
    (root / "x").mkdir()


@pytest.mark.parametrize(
    ("made", "error", "told"),
    [
        (linked_file, InputError, "symbolic link"),
        (linked_directory, InputError, "symbolic link"),
        (pipe, InputError, "a file was expected"),
        (directory, BodyMissingError, "directory"),
    ],
)
def test_claim_checks_are_files(
    made: Callable[[Path, Path], None], error: type[ReconcilerError], told: str, tmp_path: Path
) -> None:
    """A link leads out of the configured place, and a pipe without a writer would be waited for without an end."""
    outside = tmp_path / "outside"
    outside.write_text("secret")
    root = tmp_path / "claims" / "orders"
    root.mkdir(parents=True)
    made(root, outside)
    claims = Claims((f"file://{tmp_path}/claims",), {}, {}, LIMIT)
    reference = BodyReference(f"file://{root}/x", *HERE)
    with pytest.raises(error, match=told) as caught:
        claims.image(reference, TableKeys(TableName("d", "t"), ["id"]), b"", 1)
    assert str(HERE) in caught.value.where
    assert "secret" not in str(caught.value)

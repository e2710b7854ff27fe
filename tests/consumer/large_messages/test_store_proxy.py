"""A server in the place of a store leads elsewhere: neither a request nor a login goes there."""

import base64
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Self

import pytest

from consumer.large_messages import store, store_proxy
from consumer.large_messages.locations import place_of
from consumer.large_messages.store import check_opens, read_object
from consumer.large_messages.store_proxy import NOT_FOLLOWED, allowed_for, has_proxy
from consumer.storage.place import StorageRoot
from ordering.errors import SourceError
from tests.certificates import Authority

S3 = {"access-key-id": "AK", "secret-access-key": "SK", "session-token": "SESSION", "region": "r"}
ACCOUNT = {"account-name": "acc"}
STORES = {
    "s3": ("s3://b/p", S3),
    "azure-key": ("azure://c/p", {**ACCOUNT, "account-key": base64.b64encode(b"k" * 32).decode()}),
    "azure-sas": ("azure://c/p", {**ACCOUNT, "sas-key": "sv=1&sig=SIGNATURE"}),
    "azure-bearer": ("azure://c/p", {**ACCOUNT, "bearer-token": "BEARER"}),
}
CONTENT = b"content"


class Answering:
    """A server that keeps what it was asked. `leads`: paths' ends and where they lead."""

    def __init__(self, host: str, tls: ssl.SSLContext | None = None) -> None:
        self.asked, self.leads, self.endless = list[str](), dict[str, tuple[int, str]](), False
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                outer.asked.append(f"{self.path}\n{self.headers}")
                code, to = outer.leads.get(self.path.partition("?")[0].rpartition("/")[2], (HTTPStatus.OK, ""))
                self.send_response(HTTPStatus.CONFLICT if outer.endless else code)
                headers = {"Location": to} if to else {"Last-Modified": "Thu, 01 Jan 2026 00:00:00 GMT", "ETag": '"1"'}
                body = b"" if to else CONTENT
                for name, value in headers.items():
                    self.send_header(name, value)
                if not outer.endless:
                    self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                try:
                    self.wfile.write(body)
                    while outer.endless:
                        self.wfile.write(bytes(1 << 16))
                except OSError:  # whoever read has gone
                    self.close_connection = True

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer((host, 0), Handler)
        self.server.daemon_threads = True
        if tls is not None:
            self.server.socket = tls.wrap_socket(self.server.socket, server_side=True)
        self.uri = f"http{'s' if tls else ''}://{host}:{self.server.server_port}"

    def __enter__(self) -> Self:
        Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()


@contextmanager
def both(tls: ssl.SSLContext | None = None) -> Iterator[tuple[Answering, Answering]]:
    """The store, and another server."""
    with ExitStack() as stack:
        yield stack.enter_context(Answering("127.0.0.1", tls)), stack.enter_context(Answering("127.0.0.2", tls))


def reached(store: Answering, options: Mapping[str, str]) -> dict[str, str]:
    return {**options, "endpoint": store.uri, "allow-http": "true"}


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.mark.cells("kind", "code")
@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("kind", STORES)
def test_no_request_leaves(kind: str, code: int) -> None:
    """AWS's session token went along as a header, Azure's signature in `Referer`."""
    uri, options = STORES[kind]
    with both() as (store, other):
        store.leads["x"] = (code, f"{other.uri}/latest/meta-data/")
        with pytest.raises(SourceError, match=NOT_FOLLOWED):
            StorageRoot(uri, reached(store, options)).read("x")
        assert (len(store.asked), other.asked) == (1, [])


@pytest.mark.parametrize(
    "to", ["file:///etc/passwd", "ftp://127.0.0.2/x", "http://[::1", "//\0", "http://127.0.0.1:0/"]
)
def test_odd_places_are_not_followed(to: str) -> None:
    with both() as (store, _):
        store.leads["x"] = (302, to)
        with pytest.raises(SourceError):
            StorageRoot("s3://b/p", reached(store, S3)).read("x")


def test_within_the_store_all_goes_on() -> None:
    with both() as (store, _):
        store.leads["x"] = (307, f"{store.uri}/b/p/y")
        assert StorageRoot("s3://b/p", reached(store, S3)).read("x") == CONTENT


def test_within_tls(tmp_path: Path) -> None:
    """The proxy sees the host alone."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(Authority(tmp_path).issue("store", ["127.0.0.1", "127.0.0.2"]).both)
    with both(tls) as (store, other):
        options = {**S3, "endpoint": store.uri, "allow-invalid-certificates": "true"}
        assert read_object(place_of("s3://b/p"), "y", options, 100).content == CONTENT
        store.leads["x"] = (302, f"{other.uri}/x")
        with pytest.raises(SourceError):
            StorageRoot("s3://b/p", options).read("x")
        assert other.asked == []


def test_an_error_without_an_end_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library holds the text of an error whole."""
    monkeypatch.setattr(store_proxy, "_MOST_ANSWER", 1 << 20)
    with both() as (store, _):
        store.endless = True
        with pytest.raises(SourceError):
            StorageRoot("s3://b/p", reached(store, S3)).read("x")


@pytest.mark.parametrize(
    ("uri", "options", "host", "is_allowed"),
    [
        ("s3://b/p", {"region": "eu-1"}, "s3.eu-1.amazonaws.com:443", True),
        ("s3://b/p", {"region": "eu-1"}, "s3.eu-1.amazonaws.com:22", False),
        ("s3://b/p", {"region": "eu-1"}, "amazonaws.com.evil.example:443", False),
        ("s3://b/p", {"region": "eu-1"}, "evilamazonaws.com:443", False),
        ("s3://b/p", {}, "169.254.169.254:80", True),
        ("s3://b/p", {"access_key_id": "a"}, "169.254.169.254:80", False),
        ("s3://b/p", {"access_key_id": "a", "endpoint": "http://minio:9000"}, "MINIO:9000", True),
        ("s3://b/p", {"access_key_id": "a", "endpoint": "http://minio:9000"}, "minio:9001", False),
        ("s3://b/p", {"access_key_id": "a", "endpoint": "http://minio:9000"}, "s3.eu-1.amazonaws.com:443", False),
        ("s3://b/p", {"bucket": "https://evil"}, "evil:443", False),
        ("s3://b/p", {"access_key_id": "https://evil"}, "evil:443", False),
        ("azure://c/p", {"account_name": "http://evil:80/"}, "evil:80", False),
        ("azure://c/p", {"account_name": "a"}, "a.blob.core.windows.net:443", True),
        ("azure://c/p", {"client_secret": "a"}, "login.microsoftonline.com:443", True),
        ("azure://c/p", {"authority_host": "https://login.example"}, "login.example:443", True),
        ("azure://c/p", {"use_emulator": "true"}, "127.0.0.1:10000", True),
        ("gs://b/p", {}, "metadata.google.internal:80", True),
        ("gs://b/p", {}, "storage.googleapis.com:443", True),
        ("gs://b/p", {"service_account_key": '{"gcs_base_url": "http://fake:4443"}'}, "fake:4443", True),
        ("gs://b/p", {"service_account_key": "[" * 100_000}, "fake:4443", False),
        ("http://files:8080/p", {}, "files:8080", True),
        ("http://files:8080/p", {"skip_signature": "true"}, "storage.googleapis.com:443", False),
        ("https://b.s3.eu-1.amazonaws.com/p", {}, "s3.eu-1.amazonaws.com:443", True),
    ],
)
def test_what_is_allowed(uri: str, options: dict[str, str], host: str, is_allowed: bool) -> None:
    name, _, port = host.rpartition(":")
    assert allowed_for(place_of(uri), options)(name, int(port)) == is_allowed


@pytest.mark.parametrize("path", ["a/%2e%2e", "a/.%2E/b", "%2e", "a%2Fb"])
def test_no_place_leads_out_once_it_is_decoded(path: str) -> None:
    with pytest.raises(ValueError, match="leads out"):
        check_opens(place_of(f"s3://b/{path}"), {"region": "r"})


def test_checks_of_configs_start_no_proxy_each() -> None:
    """Whoever may check configs could else use up the process's threads and files."""
    before = threading.active_count()
    for number in range(50):
        check_opens(
            place_of("s3://b/p"), {"region": f"r{number}", "access-key-id": f"key{number}", "secret-access-key": "s"}
        )
    assert threading.active_count() - before <= 1


@pytest.mark.by_turns
def test_stores_are_not_kept_for_ever() -> None:
    for number in range(200):
        check_opens(place_of("s3://b/p"), {"region": f"s{number}"})
    assert store._made.cache_info().currsize <= store.MOST_STORES < 200


def test_an_operators_own_proxy_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not has_proxy({})
    assert has_proxy({"proxy_url": "http://proxy:3128"})
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:3128")
    assert has_proxy({})

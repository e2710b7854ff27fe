"""What a token endpoint may answer: it gets the login, nobody else does, and no answer is a bug."""

import json
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from threading import Event, Thread

import pytest
from kafka.errors import KafkaConnectionError, KafkaError, SaslAuthenticationFailedError

from consumer.kafka import oauth
from consumer.kafka.oauth import TokenEndpoint
from tests.http_answers import Answer, Asked, answering
from tests.service.token_endpoint import Endpoint


@contextmanager
def endpoint(status: int, body: bytes, headers: Mapping[str, str]) -> Iterator[tuple[TokenEndpoint, list[str]]]:
    """An endpoint, and the logins that it was asked with."""
    logins = list[str]()

    def answer(asked: Asked) -> Answer:
        logins.append(asked.login or "")
        return status, headers, body

    with answering(answer) as url:
        yield TokenEndpoint(Endpoint(f"{url}/token").settings()), logins


GOOD = json.dumps({"access_token": "x", "expires_in": 60}).encode()


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_the_login_goes_nowhere_else(status: int) -> None:
    with (
        endpoint(200, GOOD, {}) as (elsewhere, stolen),
        endpoint(status, b"", {"Location": elsewhere.url}) as (at, _),
    ):
        with pytest.raises(SaslAuthenticationFailedError, match=str(status)):
            at.token()
        assert stolen == []
        assert at.refusal


ANSWERS = [
    b"", b"[]", b"null", b"1", b'"x"', b"{}", b"[" * 500_000, b'{"a":' * 100_000, b"\xff", b'{"access_token": "x"',
    b'{"access_token": "x", "expires_in": NaN}', b'{"access_token": "x", "expires_in": 1e999}',
    b'{"access_token": "x", "expires_in": -1}', b'{"access_token": "x", "expires_in": ' + b"9" * 4000 + b"}",
    b'{"access_token": "x", "expires_in": ' + b"9" * 400_000 + b"}", b'{"access_token": "x", "expires_in": {"a": 1}}',
    b'{"access_token": "x", "expires_in": "soon"}', b"x" * (2 << 20),
]  # fmt: skip


@pytest.mark.parametrize("body", ANSWERS, ids=range(len(ANSWERS)))
def test_what_is_no_token_is_refused(body: bytes) -> None:
    began = time.thread_time()
    with endpoint(200, body, {}) as (at, _), pytest.raises(KafkaError) as caught:
        at.token()
    assert type(caught.value) in (SaslAuthenticationFailedError, KafkaConnectionError)
    assert time.thread_time() - began < 2
    assert "t0ken-s3cret" not in str(caught.value)


def test_a_token_is_kept_while_it_is_good() -> None:
    with endpoint(200, GOOD, {}) as (at, logins):
        assert [at.token(), at.token()] == ["x", "x"]
    assert len(logins) == 1


class Dripping:
    """An endpoint that sends a byte now and then, for ever."""

    def __init__(self, begin: bytes) -> None:
        self._begin, self._ended = begin, Event()

    def __enter__(self) -> TokenEndpoint:
        self._server = socket.create_server(("127.0.0.1", 0))
        self._thread = Thread(target=self._serve)
        self._thread.start()
        return TokenEndpoint(Endpoint(f"http://127.0.0.1:{self._server.getsockname()[1]}/token").settings())

    def _serve(self) -> None:
        connection, _ = self._server.accept()
        with connection, suppress(OSError):
            connection.sendall(self._begin)
            while not self._ended.wait(0.05):
                connection.sendall(b"x")

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        self._server.close()


@pytest.mark.parametrize(
    "begin",
    [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\nX: ", b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n"],
    ids=["status line", "headers", "body"],
)
def test_an_endless_answer_ends_in_time(begin: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oauth, "_WHOLE_S", 0.5)
    began = time.monotonic()
    with Dripping(begin) as at:
        with pytest.raises(KafkaConnectionError, match="not whole after"):
            at.token()
        assert at.silence
    assert time.monotonic() - began < 20

"""Clients that send half a request, read half an answer, or leave: they cost others nothing."""

import asyncio
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
import uvicorn
from starlette.responses import Response
from starlette.types import Message

from consumer.serve import connections
from consumer.serve.access import MOST_AT_WORK, Access, Guard
from consumer.serve.metrics import SharedPage
from tests.certificates import Authority
from tests.service.lab import eventually
from tests.serving.lab import HEADERS, TOKEN, Serving

MANY = 500
HALF = {
    "nothing": b"",
    "a line": b"GET /healthz HTT",
    "headers": b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ",
    "a body without a token": b"POST /api/v2/changefeeds HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 999\r\n\r\nx",
    "a body": (
        b"POST /api/v2/changefeeds HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer "
        + TOKEN.encode()
        + b"\r\nContent-Length: 999\r\n\r\nx"
    ),
    "a request after another": b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\nGET /hea",
}


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """A server without changefeeds."""
    with Serving(tmp_path_factory.mktemp("connections")) as found:
        yield found


def connected(serving: Serving) -> socket.socket:
    place = urlsplit(serving.url)
    return socket.create_connection((place.hostname or "", place.port or 0), timeout=30)


def ended(one: socket.socket) -> bool:
    """Whether the server has closed it; reads what there is."""
    one.setblocking(False)
    try:
        while one.recv(65536):
            pass
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def test_half_a_body_takes_nobodys_place(serving: Serving) -> None:
    """Fewer connections than are closed for others, and more than requests may be worked on."""
    with ExitStack() as held:
        for _ in range(MOST_AT_WORK + 50):
            held.enter_context(closing(connected(serving))).sendall(HALF["a body"])
        assert httpx.get(f"{serving.url}api/v2/changefeeds", headers=HEADERS, timeout=10).status_code == 200


@pytest.mark.parametrize("half", HALF.values(), ids=HALF)
def test_half_requests_leave_health_and_the_api_free(serving: Serving, half: bytes) -> None:
    with ExitStack() as held:
        for _ in range(MANY):
            held.enter_context(closing(connected(serving))).sendall(half)
        for _ in range(3):
            answer = httpx.get(f"{serving.url}healthz", timeout=connections.REQUEST_S - 2)  # they are held until then
            assert answer.status_code == 200, answer.text
        assert httpx.get(f"{serving.url}api/v2/changefeeds", headers=HEADERS, timeout=10).status_code == 200


def test_of_too_many_that_wait_the_oldest_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a deadline that would close them anyway."""
    monkeypatch.setattr(connections, "MOST", 5)
    monkeypatch.setattr(connections, "REQUEST_S", 3600.0)

    async def app(_scope: object, _receive: object, _send: object) -> None:
        raise AssertionError

    server = uvicorn.Server(
        uvicorn.Config(app, port=0, http=connections.BoundedProtocol, lifespan="off", log_config=None)
    )
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        eventually("it listens", lambda: server.started)
        place = server.servers[0].sockets[0].getsockname()
        with ExitStack() as held:
            clients = []
            for _ in range(20):
                clients.append(held.enter_context(closing(socket.create_connection(place, timeout=30))))
                clients[-1].sendall(HALF["headers"])
            eventually("the oldest are closed", lambda: all(map(ended, clients[:15])))
            assert not any(map(ended, clients[15:]))
    finally:
        server.should_exit = server.force_exit = True
        thread.join()


@pytest.mark.by_turns
def test_a_byte_now_and_then_does_not_keep_a_connection(serving: Serving) -> None:
    begun = time.monotonic()

    def is_closed(one: socket.socket) -> bool:
        one.setblocking(True)
        try:
            one.sendall(b"x")
        except OSError:
            return True
        return ended(one)

    with ExitStack() as held:
        left = {name: held.enter_context(closing(connected(serving))) for name in HALF}
        for name, one in left.items():
            one.sendall(HALF[name])

        def all_are_closed() -> bool:
            for name in [name for name, one in left.items() if is_closed(one)]:
                del left[name]
            return not left

        eventually("the server closes them", all_are_closed, 30)
    assert time.monotonic() - begun < connections.REQUEST_S + 8


@pytest.mark.by_turns
def test_who_does_not_read_is_closed(serving: Serving) -> None:
    """Requests in one go whose answers nobody takes, until all buffers are full."""
    ask = b"GET /openapi.json HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    with closing(connected(serving)) as one:
        one.setblocking(False)
        left = True
        while left:
            try:
                left = one.send(ask * 100) > 0
            except BlockingIOError:
                left = False

        def is_closed() -> bool:
            try:
                one.send(b"x")
            except BlockingIOError:
                return False
            except OSError:
                return True
            return False

        eventually("the server closes it", is_closed, connections.ANSWER_S + 30)
    assert httpx.get(f"{serving.url}healthz", timeout=10).status_code == 200


def test_unread_answers_take_nobodys_place() -> None:
    """Of clients that send many requests in one go and read nothing: each answer waits for the one before it."""
    asyncio.run(unread_answers())


async def unread_answers() -> None:
    scope = {"type": "http", "method": "GET", "path": "/", "headers": [(b"host", b"127.0.0.1")]}
    are_read, told = asyncio.Event(), list[Message]()

    async def asked() -> Message:
        return {"type": "http.request", "body": b""}

    async def unread(_: Message) -> None:
        await are_read.wait()

    async def read(message: Message) -> None:
        told.append(message)

    guard = Guard(Response("a page"), Access(TOKEN, loopback=True))
    held = [asyncio.create_task(guard(scope, asked, unread)) for _ in range(MOST_AT_WORK + 50)]
    await asyncio.sleep(0)
    await guard(scope, asked, read)
    assert not any(one.done() for one in held)
    assert told[0]["status"] == 200, told
    are_read.set()
    await asyncio.gather(*held)


def test_metrics_are_made_once_for_all_who_ask_meanwhile_and_hold_nobody() -> None:
    asyncio.run(metrics_for_many())


async def metrics_for_many() -> None:
    has_begun, may_end, made = threading.Event(), threading.Event(), list[int]()

    def slow() -> bytes:
        made.append(threading.get_ident())
        has_begun.set()
        assert may_end.wait(60)
        return b"page %d" % len(made)

    page = SharedPage(slow)
    asked = [asyncio.create_task(page.text()) for _ in range(50)]
    assert await asyncio.to_thread(has_begun.wait, 60), "the loop goes on meanwhile"
    asked[0].cancel()  # who leaves takes it from nobody
    may_end.set()
    assert await asyncio.gather(*asked[1:]) == [b"page 1"] * 49
    assert await page.text() == b"page 2"
    assert threading.get_ident() not in made


@pytest.mark.by_turns
def test_handshakes_end_in_time(tmp_path: Path) -> None:
    folder = tmp_path / "changefeeds"
    folder.mkdir()
    authority = Authority(tmp_path)
    ours = authority.issue("server", ["127.0.0.1"])
    with (
        Serving(folder, "--tls-cert", str(ours.certificate), "--tls-key", str(ours.key)) as serving,
        closing(connected(serving)) as one,
    ):
        eventually("the server closes it", lambda: ended(one), connections.HANDSHAKE_S + 20)
        trusting = ssl.create_default_context(cafile=str(authority.file))
        assert httpx.get(f"{serving.url}healthz", verify=trusting, timeout=10).status_code == 200


@pytest.mark.parametrize("kind", ["application/json", "application/toml"])
@pytest.mark.parametrize("method", ["POST", "PUT"])
def test_a_client_that_leaves_is_no_bug(serving: Serving, kind: str, method: str) -> None:
    path = "" if method == "POST" else "/x"
    ask = (
        f"{method} /api/v2/changefeeds{path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {TOKEN}\r\n"
        f"Content-Type: {kind}\r\nContent-Length: 999\r\n\r\nchange"
    )
    before = len(serving.raw)
    for _ in range(5):
        with closing(connected(serving)) as one:
            one.sendall(ask.encode())
    assert serving.client.get("/api/v2/changefeeds").status_code == 200
    assert serving.raw[before:] == []

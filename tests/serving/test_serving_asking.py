"""A target that takes a login and never answers again: who asks it waits, nobody else does."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread

import httpx
import pytest

from consumer.serve.access import Access
from consumer.serve.api.asking import MOST_AT_ONCE, MOST_HELD, ServerRequests
from consumer.serve.api.errors import BusyError, NoAnswerError
from consumer.serve.app import application
from consumer.serve.changefeed import Feed
from consumer.serve.fleet import Fleet
from tests.service.lab import DEADLINE_S
from tests.serving.lab import HEADERS, TOKEN
from tests.sinks.hostile_servers import OK, greeting, packet

MANY = 60
"""More than the threads that requests share (40)."""
TEXT = """
changefeed = "{name}"
[source]
bootstrap-servers = "127.0.0.1:1"
topics = ["t"]
[target]
uri = "{uri}"
"""


@pytest.fixture
def silent() -> Iterator[int]:
    """The port of a MySQL that lets everybody in and takes settings, and says nothing to a question."""
    held: list[socket.socket] = []

    def let_in(line: socket.socket) -> None:
        with suppress(OSError):
            line.sendall(packet(0, greeting()))
            line.recv(1 << 16)
            line.sendall(packet(2, OK))
            while line.recv(1 << 16)[5:8] == b"SET":
                line.sendall(packet(1, OK))

    def serve(listening: socket.socket) -> None:
        with suppress(OSError):
            while True:
                held.append(listening.accept()[0])
                Thread(target=let_in, args=(held[-1],), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        Thread(target=serve, args=(listening,), daemon=True).start()
        yield int(listening.getsockname()[1])
        listening.shutdown(socket.SHUT_RDWR)
    for line in held:
        line.close()


def added(fleet: Fleet, name: str, uri: str) -> Feed:
    path = fleet.folder / f"{name}.toml"
    path.write_text(TEXT.format(name=name, uri=uri))
    feed = fleet.add(path)
    assert feed.config is not None, feed.fault
    return feed


async def statuses(client: httpx.AsyncClient, *paths: str) -> list[int]:
    answers = await asyncio.gather(*(client.get(f"/api/v2/changefeeds/{path}") for path in paths))
    return [answer.status_code for answer in answers]


def test_a_target_that_never_answers_holds_nobody_else(fleet: Fleet, silent: int, tmp_path: Path) -> None:
    frozen = added(fleet, "frozen", f"mysql://u:p@127.0.0.1:{silent}")
    added(fleet, "good", f"sqlite:///{tmp_path / 'good'}")
    frozen.questions = ServerRequests(1.0)
    transport = httpx.ASGITransport(application(fleet, Access(TOKEN, loopback=True)))

    async def ask() -> None:
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", headers=HEADERS) as client:
            asked = asyncio.create_task(statuses(client, *["frozen/ddls", "frozen/quarantine"] * (MANY // 2)))
            await asyncio.sleep(0)
            async with asyncio.timeout(DEADLINE_S):
                assert await statuses(client, *["good/ddls", "good/config"] * 3) == [200] * 6
                assert (await client.post("/api/v2/changefeeds/frozen/pause")).status_code == 200
                found = await asked
            assert sorted(set(found)) == [503, 504]
            assert found.count(504) == MOST_AT_ONCE

    asyncio.run(ask())


def test_threads_that_a_server_holds_are_few() -> None:
    release, asking = Event(), ServerRequests(0.0)

    async def ask() -> None:
        for _ in range(MOST_HELD):
            with pytest.raises(NoAnswerError, match="no server answered"):
                await asking.ask("here", release.wait)
        with pytest.raises(BusyError):
            await asking.ask("here", release.wait)
        release.set()
        for thread in asking._threads:
            thread.join()
        assert await ServerRequests().ask("here", release.wait) is True

    try:
        asyncio.run(ask())
    finally:
        release.set()


def test_what_work_raises_is_raised() -> None:
    def fail() -> None:
        raise ConnectionRefusedError

    with pytest.raises(ConnectionRefusedError):
        asyncio.run(ServerRequests().ask("here", fail))

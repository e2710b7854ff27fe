"""Who waits for his write: thousands cost one look at the target; nobody is told of a state from before he asked."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from consumer.config.model import config_from
from consumer.embedded import KafkaBroker
from consumer.library import wait as library
from consumer.serve.api.errors import NotFoundError
from consumer.serve.waiting import Waiters
from consumer.wiring import target_of
from ordering.errors import ConfigError, TargetUnreachableError
from tests.service.lab import DEADLINE_S, Feed
from tests.service.messages import at, begun, watermarks
from tests.serving.lab import HEADERS, Serving, config_of, feed_into
from tests.serving.test_serving_live import more

MANY = 3_000


class ScriptedTarget:
    """A target that answers what it is told to, when it is told to."""

    def __init__(self) -> None:
        self.answers: list[int | Exception | None] = []
        self.last: int | Exception | None = None
        self.asked = 0
        self.may = threading.Semaphore(0)
        self.hangs = False

    def applied(self, _changefeed: str) -> int | None:
        self.asked += 1
        if self.hangs:
            self.may.acquire()
        self.last = self.answers.pop(0) if self.answers else self.last
        if isinstance(self.last, Exception):
            raise self.last
        return self.last

    def close(self) -> None:
        """Nothing is open."""


@pytest.fixture
def target(monkeypatch: pytest.MonkeyPatch) -> ScriptedTarget:
    found = ScriptedTarget()
    monkeypatch.setattr(library, "target_of", lambda _config: found)
    return found


@pytest.fixture
def waiters() -> Waiters:
    least = {"source": {"bootstrap-servers": "x", "topics": ["x"]}, "target": {"uri": "sqlite:////x"}}
    return Waiters(config_from({"changefeed": "w", **least}, "the test's config"))


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while not true():  # noqa: ASYNC110 of another thread
            await asyncio.sleep(0.01)


def test_thousands_are_answered_by_a_look(target: ScriptedTarget, waiters: Waiters) -> None:
    async def story() -> None:
        target.last = at(0)
        waiting = [asyncio.create_task(waiters.wait(at(1 + i % 7), 60)) for i in range(MANY)]
        await until(lambda: target.asked > 2)
        target.last = at(7)
        waiters.told(at(7))
        asked = target.asked
        found = await asyncio.gather(*waiting)
        assert all(one.covered and one.checkpoint_ts == at(7) for one in found)
        assert target.asked - asked <= 3
        seen = target.asked
        await asyncio.sleep(1.5)
        assert target.asked <= seen + 1, "nobody waits, nothing is asked"

    asyncio.run(story())


def test_a_look_that_began_before_the_question_is_no_answer(target: ScriptedTarget, waiters: Waiters) -> None:
    """The progress is reset while a look is under way: its answer is of before."""

    async def story() -> None:
        target.hangs, target.answers = True, [at(9), at(2), at(2)]
        first = asyncio.create_task(waiters.wait(at(100), 20))
        await until(lambda: target.asked == 1)
        asked_later = asyncio.create_task(waiters.wait(at(5), 20))
        await asyncio.sleep(0)
        target.may.release()
        await until(lambda: target.asked == 2)
        assert not asked_later.done()
        target.may.release()
        for one in (first, asked_later):
            with pytest.raises(NotFoundError, match="was reset"):
                await one
        target.may.release(9)

    asyncio.run(story())


def test_time_that_is_over_and_clients_that_leave(target: ScriptedTarget, waiters: Waiters) -> None:
    async def story() -> None:
        target.last = at(4)
        found = await waiters.wait(at(5), 0.5)
        assert (found.covered, found.checkpoint_ts) == (False, at(4))
        gone = [asyncio.create_task(waiters.wait(at(5 + i), 60)) for i in range(200)]
        stays = asyncio.create_task(waiters.wait(at(5), 60))
        await asyncio.sleep(0)
        for one in gone:
            one.cancel()
        await asyncio.gather(*gone, return_exceptions=True)
        assert len(waiters._heap) <= 2, "who left is forgotten"
        target.answers = [TargetUnreachableError("away"), TargetUnreachableError("away"), at(5)]
        assert (await stays).covered, "a target that is away for a while may still answer in time"
        with pytest.raises(ConfigError):
            await waiters.wait(1767225600000, 1)

    asyncio.run(story())


def test_a_changefeed_that_goes_away_answers_all(target: ScriptedTarget, waiters: Waiters) -> None:
    async def story() -> None:
        target.last = at(1)
        waiting = [asyncio.create_task(waiters.wait(at(5), 60)) for _ in range(10)]
        await until(lambda: target.asked > 0)
        waiters.end(NotFoundError("it is not here any more"))
        found = await asyncio.gather(*waiting, return_exceptions=True)
        assert [type(one) for one in found] == [NotFoundError] * 10
        with pytest.raises(NotFoundError):
            await waiters.wait(at(5), 60)

    asyncio.run(story())


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    folder = tmp_path_factory.mktemp("waiting") / "changefeeds"
    folder.mkdir()
    (folder / "_serve.toml").write_text('[spark]\nmaster = "local[1]"\n')
    with Serving(folder) as found:
        yield found


@pytest.fixture
def running(serving: Serving, kafka_broker: KafkaBroker, topic_name: str, tmp_path: Path) -> Feed:
    feed = feed_into(tmp_path, kafka_broker.bootstrap, topic_name)
    feed.send([*begun(), *watermarks(3)])
    serving.ask("POST", "", 201, json=config_of(feed))
    serving.reached(feed.name, at(3))
    return feed


@pytest.mark.by_turns
@pytest.mark.service
@pytest.mark.spark
def test_waiters_of_a_changefeed_that_runs(serving: Serving, running: Feed) -> None:
    """More connections than may wait for their client; health and API answer meanwhile; then it is deleted."""
    path = f"{serving.url}api/v2/changefeeds/{running.name}"

    async def asked(client: httpx.AsyncClient, tso: int) -> tuple[int, Any]:
        try:
            answer = await client.get(f"{path}/wait", params={"tso": tso, "timeout": 60})
        except (httpx.RemoteProtocolError, httpx.NetworkError):  # of many that connect at once and have not sent yet
            # some are closed; what is on its way to one then makes it a reset
            return await asked(client, tso)
        return answer.status_code, answer.json()

    async def story() -> None:
        # a connection that is kept may be closed by the server at the very moment when it is used again
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=0)
        async with httpx.AsyncClient(headers=HEADERS, timeout=90, limits=limits) as client, AsyncExitStack() as held:
            waiting = [asyncio.create_task(asked(client, at(6))) for _ in range(400)]
            place = urlsplit(serving.url)
            for _ in range(100):  # these leave at once
                _, writer = await asyncio.open_connection(place.hostname, place.port)
                writer.write(f"GET {urlsplit(path).path}/wait?tso={at(6)} HTTP/1.1\r\nHost: 127.0.0.1\r\n".encode())
                held.callback(writer.close)
            await held.aclose()
            for _ in range(3):
                assert (await client.get(f"{serving.url}healthz", timeout=30)).status_code == 200
                assert (await client.get(path, timeout=30)).status_code == 200
            await asyncio.to_thread(more, running, 6)
            found = await asyncio.gather(*waiting)
            assert {code for code, _ in found} == {200}
            assert all(told["covered"] and told["checkpoint_ts"] >= at(6) for _, told in found)
            with closing(target_of(running.config)) as target:
                assert target.applied(running.name) == at(7)
            late = [asyncio.create_task(asked(client, at(99))) for _ in range(5)]
            assert (await client.get(f"{path}/wait", params={"tso": at(99), "timeout": 1})).json()["covered"] is False
            assert (await client.get(f"{path}/wait", params={"tso": 1, "timeout": 1})).status_code == 400
            assert (await client.delete(path)).status_code == 200
            assert {code for code, _ in await asyncio.gather(*late)} == {404}

    asyncio.run(story())

"""The target fails over: a name that leads to a second server, which has replicated all, or lags behind."""

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from structlog.testing import capture_logs

from sinks.steps import Step
from tests.bench.measure import mysql_connection
from tests.embedded import MariaDbServer
from tests.service.cells import MariaDbCells, differences, oracle
from tests.service.lab import Feed, eventually, is_row, recorded
from tests.service.messages import at, begun, insert, update, watermarks
from tests.service.proxy import Proxy

pytestmark = [pytest.mark.service, pytest.mark.kafka]
RECORDING = "split.index-value.raw"
PATIENT = {"retry-seconds": 60, "window-rows": 20}


def _asked(uri: str, sql: str) -> list[Any]:
    with closing(mysql_connection(uri)) as line, line.cursor() as cursor:
        cursor.execute(sql)
        return list(cursor.fetchall())


@dataclass
class Pair:
    """Two servers, the second a replica of the first, and a place that leads to one of them."""

    first: MariaDbServer
    second: MariaDbServer
    door: Proxy

    @property
    def uri(self) -> str:
        return f"mysql://root:root@127.0.0.1:{self.door.port}"

    def lead_to(self, server: MariaDbServer) -> None:
        """Let new connections reach this one, and end those that are open."""
        self.door.to = ("127.0.0.1", server.port)
        self.door.cut()

    def replicate(self) -> None:
        """Let the second follow the first from now on."""
        ((file, position, *_),) = _asked(self.first.uri, "SHOW MASTER STATUS")
        place = urlsplit(self.first.uri)
        _asked(
            self.second.uri,
            f"CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = {place.port}, MASTER_CONNECT_RETRY = 1,"
            f" MASTER_USER = 'root', MASTER_PASSWORD = 'root', MASTER_LOG_FILE = '{file}', MASTER_LOG_POS = {position},"
            " MASTER_SSL = 0",  # which 11.4 wants by itself, and the servers here have none
        )
        _asked(self.second.uri, "START SLAVE")

    def caught_up(self) -> None:
        """Return once the second has done all that the first has done."""
        ((file, position, *_),) = _asked(self.first.uri, "SHOW MASTER STATUS")
        ((done,),) = _asked(self.second.uri, f"SELECT MASTER_POS_WAIT('{file}', {position}, 60)")
        why = [] if done is not None and done >= 0 else _asked(self.second.uri, "SHOW SLAVE STATUS")
        assert not why, why

    def fail_over(self) -> None:
        """The first one dies when the second has all; it leads from now on."""
        self.caught_up()
        self.first.kill()
        _asked(self.second.uri, "STOP SLAVE")
        self.lead_to(self.second)


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    def server(number: int) -> MariaDbServer:
        extra = {"log-bin": "bin", "server-id": str(number), "binlog-format": "MIXED"}
        return MariaDbServer(tmp_path / f"server-{number}", flush_at_commit=2, extra=extra)

    with server(1) as first, server(2) as second, Proxy("127.0.0.1", first.port) as door:
        found = Pair(first, second, door)
        found.replicate()
        yield found


@pytest.fixture
def feed(sqlite_feed: Feed, pair: Pair) -> Iterator[Feed]:
    """A changefeed into whatever the place leads to; looked at in the second server."""
    cells = MariaDbCells(pair.second.uri)
    yield replace(sqlite_feed, uri=pair.uri, cells=cells, settings={}).with_(limits=PATIENT)
    cells.close()


def _at_the_nth(step: Step, nth: int, do: Callable[[], None]) -> Callable[[Step], None]:
    seen = [0]

    def observe(now: Step) -> None:
        seen[0] += now is step
        if now is step and seen[0] == nth:
            do()

    return observe


@pytest.mark.by_turns
@pytest.mark.parametrize("step", [Step.ROWS_WRITTEN, pytest.param(Step.COMMITTED, marks=pytest.mark.soak)])
def test_a_replica_that_has_all_takes_over_in_mid_way(feed: Feed, pair: Pair, step: Step) -> None:
    messages = recorded(RECORDING)
    feed.send(messages)
    with capture_logs() as logs:
        counts = feed.once(_at_the_nth(step, 2, pair.fail_over)).counts
    assert [line for line in logs if line["event"] == "trying again"]
    assert differences(oracle("split"), feed.cells) == []
    assert counts.events == sum(map(is_row, messages))


@pytest.mark.by_turns
@pytest.mark.spark
def test_a_replica_that_lags_is_brought_up_again(feed: Feed, pair: Pair) -> None:
    """What it lacks is applied once more, in the same run: rows and progress are of one moment there."""
    feed.send(begun())
    feed.once()
    pair.caught_up()
    old = feed.checkpoint()
    _asked(pair.second.uri, "STOP SLAVE")
    feed.send([update("d.t", 8, {"v": 1}, id=1, v=8, s="one"), insert("d.t", 8, 1, id=8, v=8, s="x"), *watermarks(9)])
    with feed.running() as process:
        mine = replace(feed, cells=MariaDbCells(pair.first.uri))
        eventually("the first has it", lambda: mine.reached(at(9)))
        mine.cells.close()
        pair.first.kill()
        assert feed.checkpoint() == old
        pair.lead_to(pair.second)
        feed.send(watermarks(10))  # as TiCDC does every second: who has nothing to do does not look at the target
        eventually("the second has it too", lambda: feed.reached(at(10)))
        feed.send([insert("d.t", 11, 2, id=10, v=10, s="x"), *watermarks(12)])
        eventually("it goes on there", lambda: feed.reached(at(12)))
        assert process.poll() is None
    rows = feed.cells.tables(["d"])["d.t"][1]
    assert sorted((int(row["id"]), int(row["v"])) for row in rows) == [(1, 8), (8, 8), (10, 10)]
    assert process.returncode == 0

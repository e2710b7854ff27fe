"""Rows that a target lost, and rows that nobody sent, are found by what its driver counts, in each write path."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from consumer.demo.fake_ticdc.changefeed import Message
from consumer.wiring import target_of
from ordering.errors import DriftError
from tests.embedded import MariaDbServer, PostgresServer, TidbServer
from tests.service.cells import MariaDbCells, SqliteCells, emptied
from tests.service.local import LocalFeed
from tests.service.messages import at, delete, insert, update, watermarks
from tests.service.postgres_cells import PostgresCells

pytestmark = pytest.mark.service
SERVERS = {"mariadb": MariaDbCells, "tidb": MariaDbCells, "postgres": PostgresCells}
TABLES = ("d.t", "d.u")
MANY = 1_100
"""More than the bulk paths of every target begin with."""


@pytest.fixture(params=["sqlite", "mariadb", "postgres", "tidb"])
def feed(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LocalFeed]:
    """A changefeed into each kind of target, in each consistency by tasks where that is how it writes."""
    if request.param == "sqlite":
        place = tmp_path / "target"
        yield LocalFeed(None, "nowhere:1", "topic", f"sqlite:///{place}", SqliteCells(place), tmp_path).by_tasks()  # type: ignore[arg-type]
        return
    server: MariaDbServer | PostgresServer | TidbServer = request.getfixturevalue(f"{request.param}_server")
    with emptied(SERVERS[request.param](server.uri)) as cells:
        yield LocalFeed.into(server.uri, cells, tmp_path).by_tasks()


def drift(feed: LocalFeed) -> dict[str, tuple[int, int]]:
    """What the target's progress holds: missing and unexpected rows by table."""
    with closing(target_of(feed.config)) as target:
        stored = target.stored(feed.name)
    assert stored is not None
    return {str(table): tuple(found) for table, found in stored.progress.drift.items()}


def tables_with(feed: LocalFeed, rows: int) -> None:
    """A table whose rows are written over, and one whose rows are deleted first; `rows` rows in both, checkpoint 9."""
    feed.make_database(
        "d", "CREATE TABLE t (id INT PRIMARY KEY, v INT); CREATE TABLE u (id INT PRIMARY KEY, v INT UNIQUE)"
    )
    feed.send([insert(table, 1, i % 3, id=i, v=i) for table in TABLES for i in range(rows)])
    feed.send(watermarks(9))
    feed.apply()
    assert drift(feed) == {}


def changed(rows: range, number: int) -> list[Message]:
    return [update(table, number, {"v": i}, i % 3, id=i, v=10_000_000 + i) for table in TABLES for i in rows]


@pytest.mark.cells(("feed", "consistency"), ("feed", "rows"))
@pytest.mark.parametrize("rows", [5, MANY])
@pytest.mark.parametrize("consistency", ["snapshot", "transaction", "row"])
def test_each_write_path_tells_what_it_met(feed: LocalFeed, consistency: str, rows: int) -> None:
    feed.with_(target={"consistency": consistency})
    tables_with(feed, rows)
    feed.cells.run("d", "DELETE FROM t WHERE id < 2; DELETE FROM u WHERE id < 2")
    feed.send([delete(table, 11, id=1, v=1) for table in TABLES])
    feed.send([*changed(range(2, rows), 12), *changed(range(1), 12), *watermarks(19)])
    feed.apply()
    over = 2 if feed.uri.startswith(("sqlite", "postgresql")) else 1  # the others don't tell a new row from one updated
    assert drift(feed) == {"d.t": (over, 0), "d.u": (2, 0)}
    feed.cells.run("d", "INSERT INTO t VALUES (1000000, 1); INSERT INTO u VALUES (1000000, 1)")
    fresh = range(1_000_000, 1_000_000 + rows)
    feed.send([insert(table, 21, i % 3, id=i, v=i) for table in TABLES for i in fresh])
    feed.send(watermarks(29))
    feed.apply()
    loaded = rows == MANY and feed.uri.startswith("tidb")  # whose LOAD DATA counts all alike
    assert drift(feed) == {"d.t": (over, 0 if loaded else 1), "d.u": (2, 1)}


def test_what_is_repeated_or_taken_back_is_no_drift(feed: LocalFeed) -> None:
    tables_with(feed, 5)
    for table in TABLES:
        messages = [
            *(insert(table, 11, id=7, v=7), delete(table, 12, id=7, v=7)),
            *(delete(table, 11, id=1, v=1), insert(table, 12, id=1, v=1)),
            *(update(table, 11, {"id": 2}, id=8, v=2), insert(table, 12, id=2, v=22)),
            *(delete(table, 11, id=3, v=3), insert(table, 11, id=3, v=33)),
            *(update(table, 11, {"v": 4}, id=4, v=5), update(table, 12, {"v": 5}, id=4, v=4)),
        ]
        feed.send([*messages, *messages[:3]])
    feed.send(watermarks(19))
    feed.apply()
    assert drift(feed) == {}
    assert sorted(row["id"] for row in feed.cells.tables(["d"])["d.t"][1]) == [0, 1, 2, 3, 4, 8]


def test_it_may_stop_with_nothing_committed(feed: LocalFeed) -> None:
    feed.with_(target={"on-drift": "stop", "consistency": "snapshot"})
    tables_with(feed, 5)
    feed.cells.run("d", "DELETE FROM u WHERE id = 1")
    feed.send([delete("d.u", 11, id=1, v=1), insert("d.u", 11, id=9, v=9), *watermarks(19)])
    with pytest.raises(DriftError, match=r"d\.u: 1 rows missing, 0 rows that should not be there"):
        feed.apply()
    assert feed.checkpoint() == at(9)
    assert len(feed.cells.tables(["d"])["d.u"][1]) == 4
    feed.cells.run("d", "INSERT INTO u VALUES (1, 1)")
    feed.apply()
    assert (feed.checkpoint(), drift(feed)) == (at(19), {})

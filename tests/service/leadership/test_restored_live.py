"""A target restored from a backup while its leader lives or is frozen: it knows another progress than the target.

The backup is of the same leadership, or as many took over since as before: the epoch alone does not show it.
"""

from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

from consumer.pipeline.round import Round
from consumer.wiring import target_of
from ordering.errors import LeadershipLostError
from sinks.target import Target
from tests.service.lab import Feed, eventually
from tests.service.local import LocalFeed
from tests.service.messages import at, ddl, insert, watermarks

pytestmark = pytest.mark.service
CONSISTENCIES = ("snapshot", "transaction", "row")
_TABLE = "CREATE TABLE t (id INT PRIMARY KEY, v INT)"
_COLUMNS = ("checkpoint_ts", "offsets", "state", "epoch", "updated_at")


@pytest.fixture(params=["sqlite", "mariadb", "postgres", "tidb"])
def any_feed(request: pytest.FixtureRequest) -> LocalFeed:
    found: LocalFeed = request.getfixturevalue(f"{request.param}_feed")
    return found


def in_target(feed: Feed, work: Callable[[Target], Any]) -> Any:
    """What a DBA's own connection does."""
    with closing(target_of(feed.config)) as target:
        return work(target)


def backup(feed: Feed) -> tuple[Any, ...]:
    """The row of the progress; the rows of the table are known."""

    def read(target: Target) -> Any:
        book = target.session.book
        look = f"SELECT {', '.join(_COLUMNS)} FROM {book.place('checkpoint')} WHERE changefeed = ?"
        return book.query(look, (feed.name,))[0]

    return tuple(in_target(feed, read))


def restore(feed: Feed, row: tuple[Any, ...], *, above: int) -> None:
    """Progress and rows as they were: without the rows whose id is higher."""

    def write(target: Target) -> None:
        book = target.session.book
        assignments = ", ".join(f"{column} = ?" for column in _COLUMNS)
        book.run(f"UPDATE {book.place('checkpoint')} SET {assignments} WHERE changefeed = ?", (*row, feed.name))

    in_target(feed, write)
    feed.cells.run("d", f"DELETE FROM t WHERE id > {above}")


def ids(feed: Feed) -> list[int]:
    return sorted(int(row["id"]) for row in feed.cells.tables(["d"])["d.t"][1])


def rounds(session: Any) -> None:
    while Round(session).run(to_end=True):
        pass


@pytest.mark.parametrize("consistency", CONSISTENCIES)
def test_under_a_leader_that_lives(any_feed: LocalFeed, consistency: str) -> None:
    feed = any_feed.with_(target={"consistency": consistency}).by_tasks()
    feed.make_database("d", _TABLE)
    with feed.leading() as session:
        feed.send([insert("d.t", 1, id=1, v=1), *watermarks(2)])
        rounds(session)
        then = backup(feed)
        feed.send([insert("d.t", 3, id=2, v=2), *watermarks(4)])
        rounds(session)
        restore(feed, then, above=1)
        feed.send([insert("d.t", 5, id=3, v=3), *watermarks(6)])
        with pytest.raises(LeadershipLostError, match="restored"):
            rounds(session)
    assert ids(feed) == [1]
    feed.once()
    assert ids(feed) == [1, 2, 3]


def test_under_a_frozen_leader_whose_epoch_comes_again(sqlite_feed: LocalFeed) -> None:
    """SQLite ends no connection: nothing but the row of the progress keeps the frozen one out."""
    feed = sqlite_feed
    feed.make_database("d", _TABLE)
    feed.send([insert("d.t", 1, id=1, v=1), *watermarks(2)])
    feed.once()
    then = backup(feed)
    with feed.leading() as frozen:
        feed.send([insert("d.t", 3, id=2, v=2), *watermarks(4)])
        rounds(frozen)
        restore(feed, then, above=1)
        with feed.leading() as successor:
            assert successor.lease == frozen.lease
            feed.send([insert("d.t", 5, id=3, v=3), *watermarks(6)])
            with pytest.raises(LeadershipLostError, match="restored"):
                rounds(frozen)
            rounds(successor)
    assert ids(feed) == [1, 2, 3]


def test_a_ddl_is_not_executed_on_what_was_restored(any_feed: LocalFeed) -> None:
    feed = any_feed
    feed.make_database("d", _TABLE)
    with feed.leading() as session:
        feed.send([insert("d.t", 1, id=1, v=1), *watermarks(2)])
        rounds(session)
        then = backup(feed)
        feed.send([insert("d.t", 3, id=2, v=2), *watermarks(4)])
        rounds(session)
        restore(feed, then, above=1)
        feed.send([ddl("d.t", 5, "TRUNCATE TABLE d.t", "TRUNCATE"), *watermarks(6)])
        with pytest.raises(LeadershipLostError, match="restored"):
            rounds(session)
    assert ids(feed) == [1]
    feed.once()
    assert ids(feed) == []


@pytest.mark.by_turns
@pytest.mark.spark
def test_an_instance_that_runs_goes_on_from_what_was_restored(mariadb_feed: Feed) -> None:
    feed = mariadb_feed
    feed.make_database("d", _TABLE)
    feed.send([insert("d.t", 1, id=1, v=1), *watermarks(2)])
    with feed.running() as process:
        eventually("row 1 is there", lambda: feed.reached(at(2)))
        then = backup(feed)
        feed.send([insert("d.t", 3, id=2, v=2), *watermarks(4)])
        eventually("row 2 is there", lambda: feed.reached(at(4)))
        restore(feed, then, above=1)
        feed.send([insert("d.t", 5, id=3, v=3), *watermarks(6)])
        eventually("all is applied", lambda: feed.reached(at(6)))
        assert ids(feed) == [1, 2, 3]
        assert process.poll() is None
    assert "restored from a backup" in feed.log()

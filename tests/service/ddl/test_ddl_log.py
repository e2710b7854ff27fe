"""The DDL log where later lines have lower ids: each server of a TiDB behind a load balancer counts by itself."""

import sqlite3
from contextlib import closing

import pytest

from consumer.operate.decisions import ddl_log
from ordering.errors import TargetError
from sinks.bookkeeping import ddl_log as log_module
from tests.service.lab import Feed
from tests.service.messages import at, begun, ddl, watermarks

pytestmark = pytest.mark.service
DESCENDING = (
    "CREATE TRIGGER descending AFTER INSERT ON ddl BEGIN"
    " UPDATE ddl SET id = (SELECT min(id) - 1 FROM ddl) WHERE id = NEW.id; END"
)
REFUSED = "ALTER TABLE `t` ADD COLUMN `s` BIGINT"
TRUNCATE = "TRUNCATE TABLE `t`"


def lines(feed: Feed) -> list[tuple[int, str]]:
    """CommitTs and state of each DDL, newest first."""
    return [(line.commit_ts, line.state) for line in ddl_log(feed.config, 100)]


@pytest.fixture
def descending(sqlite_feed: Feed) -> Feed:
    """A changefeed whose lines get ids below all others."""
    sqlite_feed.send(begun())
    sqlite_feed.once()
    file = sqlite_feed.cells.directory / "ticdc_reconciler.sqlite"  # type: ignore[union-attr]
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute(DESCENDING)
    return sqlite_feed


def test_a_line_is_not_taken_for_another_ddls(descending: Feed) -> None:
    """The TRUNCATE's line was set to failed, and a rewind across it was accepted."""
    feed = descending
    feed.send([ddl("d.t", 4, TRUNCATE, kind="TRUNCATE"), ddl("d.t", 5, REFUSED, kind="ALTER"), *watermarks(9)])
    for _ in range(2):
        feed.failing(TargetError)
        assert lines(feed) == [(at(5), "failed"), (at(4), "done"), (at(2), "done"), (at(1), "done")]


@pytest.mark.parametrize("kept", [1, 3, 5])
def test_the_lines_of_the_highest_commit_ts_are_kept(
    descending: Feed, monkeypatch: pytest.MonkeyPatch, kept: int
) -> None:
    feed = descending
    monkeypatch.setattr(log_module, "KEPT", kept)
    feed.send([*(ddl("d.t", at, TRUNCATE, kind="TRUNCATE") for at in (4, 5, 6, 7)), *watermarks(9)])
    feed.once()
    assert lines(feed) == [(at(ts), "done") for ts in (7, 6, 5, 4, 2, 1)[:kept]]


def test_of_one_commit_ts_as_many_are_kept(descending: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    """All tables of a dump are made at one."""
    feed = descending
    monkeypatch.setattr(log_module, "KEPT", 3)
    feed.send([
        *(ddl(f"d.{name}", 4, f"CREATE TABLE `{name}` (`id` INT PRIMARY KEY)") for name in "abcde"), *watermarks(9)
    ])  # fmt: skip
    feed.once()
    assert lines(feed) == [(at(4), "done")] * 4  # the last one too, until the next comes: nothing above it is gone

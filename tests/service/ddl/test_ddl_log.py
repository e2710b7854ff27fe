"""The DDL log where later lines have lower ids: each server of a TiDB behind a load balancer counts by itself."""

import sqlite3
from contextlib import closing

import pytest

from consumer.cli.status_text import verdict
from consumer.operate.decisions import ddl_log
from consumer.operate.progress import reset_progress
from consumer.operate.status import status_of
from ordering.errors import TargetError
from sinks.bookkeeping import ddl_log as log_module
from tests.service.ddl.test_ddl import made
from tests.service.lab import Feed
from tests.service.local import LocalFeed
from tests.service.messages import at, begun, ddl, watermarks

__all__ = ["made"]
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


@pytest.mark.parametrize("made", ["sqlite"], indirect=True)
def test_the_ddl_that_stops_it_is_told_first_after_a_reset(made: LocalFeed) -> None:
    """There are more lines of later commitTs, of before the reset, than are told."""
    feed = made
    later = [ddl("d.t", 4 + n, TRUNCATE, kind="TRUNCATE") for n in range(25)]
    feed.send([*begun(), *later, *watermarks(40)])
    feed.apply()
    reset_progress(feed.config)
    with pytest.raises(TargetError):
        feed.apply()  # the table is still there
    found = status_of(feed.config)
    first = ddl_log(feed.config, 5)
    assert (first[0].commit_ts, first[0].state, first[1].commit_ts) == (at(2), "failed", at(28))
    assert len(first) == 5
    assert found["ddl_history"][0]["commit_ts"] == at(2)
    assert f"stopped by the DDL at {at(2)}" in verdict(found, 6.0)
    feed.cells.run("d", "DROP TABLE t")
    feed.apply()
    assert "stopped by" not in verdict(status_of(feed.config), 6.0)

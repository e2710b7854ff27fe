"""What a target refuses ends with exit code 4 and the table's name, and nothing of it is applied."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest

import sinks.sqlite.session
from consumer.demo.fake_ticdc.changefeed import Message
from ordering.errors import ConfigError, InputError, TargetError
from tests.service.lab import Feed
from tests.service.messages import at, begun, ddl, delete, insert, typed, watermarks

pytestmark = pytest.mark.service
Values = dict[str, object]
GOOD: Values = {"v": 1, "s": "x"}


@pytest.fixture(params=["snapshot", "transaction"])
def consistent(request: pytest.FixtureRequest, feed: Feed) -> Feed:
    return feed.with_(target={"consistency": request.param})


SENT = {"BYTEA": "varbinary", "JSONB": "json"}


def sent(columns: str, number: int, partition: int = 0, **row: Any) -> Message:
    """An INSERT into such columns, whose `s` is of upstream's own type."""
    kind = columns.partition(" s ")[2].partition("(")[0].partition(",")[0].partition(" ")[0]
    upstream = "enum" if "CHECK" in columns else SENT.get(kind, kind.lower())
    return typed(insert("d.t", number, partition, **row), s=upstream)


def refused(feed: Feed, columns: str, bad: Values, count: int, *, alone: bool = False) -> TargetError:
    """Apply a row; then try good ones with a bad one among them: the error, once it is sure that none was applied.

    `alone`: the rows are all that their transaction writes, so that no savepoint is set at first.
    """
    feed.make_database(
        "d", f"CREATE TABLE t (id INT PRIMARY KEY, {columns}); CREATE TABLE u (id INT PRIMARY KEY, v INT)"
    )
    feed.send([sent(columns, 1, id=1, **{**bad, **GOOD}), *watermarks(1)])
    feed.once()
    before = contents(feed)
    rows = [sent(columns, 2, n % 3, id=n, **(bad if n == count else {**bad, **GOOD})) for n in range(2, count + 1)]
    beside = [] if alone else [insert("d.u", 2, id=1, v=1), delete("d.t", 2, id=1)]
    feed.send([*beside, *rows, *watermarks(2)])
    error = feed.failing()
    assert isinstance(error, TargetError), error
    assert error.exit_code == 4
    assert contents(feed) == before
    assert f"table d.t, key id='{count}', commitTs {at(2)} " in error.where
    assert f"topic={feed.topic} partition={count % 3} offset=" in error.where
    return error


def contents(feed: Feed) -> tuple[Any, int]:
    return feed.cells.tables(["d"]), feed.checkpoint()


MARIADB = {
    "too-long": ("v INT, s VARCHAR(3)", {"v": 1, "s": "too long"}, "'s'"),
    "out-of-range": ("v TINYINT, s VARCHAR(3)", {"v": 300, "s": "x"}, "'v'"),
    "no-number": ("v INT, s VARCHAR(3)", {"v": "abc", "s": "x"}, "'v'"),
    "not-null": ("v INT NOT NULL, s VARCHAR(3)", {"v": None, "s": "x"}, "'v'"),
    "no-bytes": ("v INT, s VARBINARY(9)", {"v": 1, "s": "日本"}, "'s'"),
}


@pytest.mark.cells("case", "count")
@pytest.mark.parametrize("count", [5, 400])
@pytest.mark.parametrize("case", sorted(MARIADB))
def test_values_that_mariadb_refuses(mariadb_feed: Feed, case: str, count: int) -> None:
    columns, bad, column = MARIADB[case]
    error = refused(mariadb_feed, columns, bad, count)
    assert "d.t" in str(error)
    assert column in error.fact


POSTGRES = {
    "too-long": ("v INT, s VARCHAR(3)", {"v": 1, "s": "too long"}, "'s'"),
    "spaces-too-many": ("v INT, s VARCHAR(3)", {"v": 1, "s": "abc "}, "'s'"),
    "out-of-range": ("v SMALLINT, s VARCHAR(3)", {"v": 40_000, "s": "x"}, "column v"),
    "no-number": ("v INT, s VARCHAR(3)", {"v": "abc", "s": "x"}, "'v'"),
    "not-null": ("v INT NOT NULL, s VARCHAR(3)", {"v": None, "s": "x"}, '"v"'),
    "no-bytes": ("v INT, s BYTEA", {"v": 1, "s": "日本"}, "'s'"),
    "nul": ("v INT, s TEXT", {"v": 1, "s": "a\0b"}, "U+0000"),
    "no-json": ("v INT, s JSONB", {"v": 1, "s": "{"}, "column s"),
    "nul-in-json": ("v INT, s JSONB", {"v": 1, "s": '"\\u0000"'}, "column s"),
    "no-member": ("v INT, s TEXT, CHECK (array_position(ARRAY['a'::text], s) > 0)", {"v": 1, "s": "2"}, "'s'"),
    "no-date": ("v INT, s DATE", {"v": 1, "s": "0000-00-00"}, "invalid-dates"),
}
FITTING = {"no-json": '"x"', "nul-in-json": '"x"', "no-member": "1", "no-date": "2026-01-02"}


@pytest.mark.parametrize("case", sorted(POSTGRES))
def test_values_that_postgres_refuses(postgres_feed: Feed, monkeypatch: pytest.MonkeyPatch, case: str) -> None:
    columns, bad, told = POSTGRES[case]
    monkeypatch.setitem(GOOD, "s", FITTING.get(case, "x"))
    error = refused(postgres_feed, columns, bad, 5)
    assert told in (error.hint if case == "no-date" else error.fact)


SQLITE = {
    "no-number": ("v INTEGER, s TEXT", {"v": "abc", "s": "x"}, "'v'"),
    "not-null": ("v INTEGER NOT NULL, s TEXT", {"v": None, "s": "x"}, "t.v"),
    "no-bytes": ("v INTEGER, s BLOB", {"v": 1, "s": "日本"}, "'s'"),
}


@pytest.mark.parametrize("case", sorted(SQLITE))
def test_values_that_sqlite_refuses(sqlite_feed: Feed, case: str) -> None:
    columns, bad, column = SQLITE[case]
    error = refused(sqlite_feed, columns, bad, 5)
    assert "d.t" in str(error)
    assert column in error.fact


@pytest.mark.parametrize("consistency", ["snapshot", "transaction"])
def test_a_row_that_is_refused_in_a_small_unit(every_feed: Feed, consistency: str) -> None:
    feed = every_feed.with_(target={"consistency": consistency})
    bad = {"v": None, "s": "x"}
    error = refused(feed, "v INT NOT NULL, s VARCHAR(3)", bad, 3, alone=True)
    feed.with_(quarantine={"enabled": True})
    feed.once()
    assert [row["id"] for row in feed.cells.tables(["d"])["d.t"][1]] == [1, 2], error
    assert feed.status()["quarantine"]["held"] == 1


def test_a_table_that_is_missing(consistent: Feed) -> None:
    consistent.send(begun())
    consistent.once()
    before = contents(consistent)
    consistent.send([insert("d.t", 4, id=4, **GOOD), insert("d.gone", 4, 2, id=1), *watermarks(5)])
    error = consistent.failing(TargetError)
    assert "d.gone" in error.fact
    assert f"topic={consistent.topic} partition=2 offset=1" in error.where
    assert contents(consistent) == before


def test_a_column_that_is_missing(consistent: Feed) -> None:
    consistent.send(begun())
    consistent.once()
    before = contents(consistent)
    consistent.send([insert("d.t", 4, id=4, extra="?", **GOOD), *watermarks(5)])
    error = consistent.failing(TargetError)
    assert "d.t" in error.fact
    assert "'extra'" in error.fact
    assert contents(consistent) == before


def test_a_table_with_another_key(every_feed: Feed) -> None:
    feed = every_feed
    feed.make_database("d", "CREATE TABLE t (id INT, v INT, s VARCHAR(10), PRIMARY KEY (id, v))")
    feed.send([insert("d.t", 1, id=1, **GOOD), *watermarks(1)])
    error = feed.failing(TargetError)
    assert "d.t" in error.fact
    assert contents(feed)[1] == 0


@pytest.mark.parametrize(
    "sql",
    [
        "ALTER TABLE `t` MODIFY COLUMN `v` GEOMETRY, ADD COLUMN `w` INT",
        "ALTER TABLE `t` TRUNCATE PARTITION `p`",
        "RECOVER TABLE `t`",
        "ALTER TABLE `t` EXCHANGE PARTITION `p` WITH TABLE `u`",
        "ALTER TABLE `t` ADD COLUMN `w` INT, ADD COLUMN `v` INT",
    ],
)
def test_ddl_that_sqlite_can_not_do(sqlite_feed: Feed, sql: str) -> None:
    feed = sqlite_feed
    feed.send(begun())
    feed.once()
    feed.send([insert("d.t", 4, id=4, **GOOD), ddl("d.t", 5, sql, kind="ALTER"), *watermarks(6)])
    error = feed.failing(TargetError)
    assert error.exit_code == 4
    assert sql in str(error)
    assert f"topic={feed.topic} partition=0 offset=5" in str(error).splitlines()[0]
    columns, rows = feed.cells.tables(["d"])["d.t"]
    assert (columns, len(rows), feed.checkpoint()) == (["id", "v", "s"], 2, at(5))  # the rows before it, not the DDL


def test_filter_rules_that_were_changed(feed: Feed) -> None:
    feed.send(begun())
    feed.once()
    error = feed.with_(filter={"rules": ["d.*", "!d.u"]}).failing(InputError)
    assert error.exit_code == 3
    assert "filter.rules" in error.fact
    assert feed.name in error.where


def test_filter_rules_that_are_none(sqlite_feed: Feed) -> None:
    sqlite_feed.make_topic()
    assert "filter.rules" in sqlite_feed.with_(filter={"rules": ["nonsense"]}).failing(ConfigError).fact


@contextmanager
def holding(feed: Feed, database: str) -> Iterator[None]:
    """Another process in the middle of a transaction."""
    assert feed.uri.startswith("sqlite")
    with closing(sqlite3.connect(feed.cells.directory / f"{database}.sqlite", isolation_level=None)) as connection:  # type: ignore[union-attr]
        connection.execute("BEGIN EXCLUSIVE")
        yield


@pytest.mark.parametrize("database", ["d", "ticdc_reconciler"])
def test_sqlite_that_someone_holds(sqlite_feed: Feed, monkeypatch: pytest.MonkeyPatch, database: str) -> None:
    feed = sqlite_feed
    feed.send(begun())
    feed.once()
    feed.send([insert("d.t", 4, id=4, **GOOD), *watermarks(5)])
    monkeypatch.setattr(sinks.sqlite.session, "BUSY_TIMEOUT_S", 0.2)
    with holding(feed, database):
        error = feed.failing(TargetError)
    assert error.exit_code == 4
    assert "locked" in error.fact
    assert error.hint
    assert feed.once().checkpoint_ts == at(5)
    assert len(feed.cells.tables(["d"])["d.t"][1]) == 2

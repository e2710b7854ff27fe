"""SQLite tables that others made: collations, affinities, clauses and triggers that would merge or drop rows."""

from pathlib import Path

import pytest

from ordering.errors import RowCountError, TargetError
from sinks.sqlite import catalog
from tests.service.cells import SqliteCells
from tests.service.local import LocalFeed
from tests.service.messages import delete, insert, keyed, watermarks

pytestmark = pytest.mark.service


@pytest.fixture(params=["snapshot", "transaction", "row"])
def feed(request: pytest.FixtureRequest, tmp_path: Path) -> LocalFeed:
    target = tmp_path / "target"
    made = LocalFeed(None, "nowhere:1", "topic", f"sqlite:///{target}", SqliteCells(target), tmp_path)  # type: ignore[arg-type]
    return made.with_(target={"consistency": request.param})


def found(feed: LocalFeed) -> list[tuple[object, ...]]:
    return sorted((tuple(row.values()) for row in feed.cells.tables(["d"])["d.t"][1]), key=repr)


def sent(feed: LocalFeed, number: int, key: str, v: int, kind: object = insert) -> None:
    feed.send([keyed(kind("d.t", number, k=key, v=v), "k"), *watermarks(number)])  # type: ignore[operator]


FOLDED = {
    "k TEXT COLLATE NOCASE PRIMARY KEY, v INT": ("a", "A"),
    "k TEXT COLLATE RTRIM PRIMARY KEY, v INT": ("a", "a "),
    "k TEXT COLLATE NOCASE, v INT, PRIMARY KEY (k COLLATE NOCASE)": ("a", "A"),
    "k TEXT PRIMARY KEY ON CONFLICT REPLACE, v INT, UNIQUE (k COLLATE NOCASE) ON CONFLICT REPLACE": ("a", "A"),
    "k TEXT PRIMARY KEY, v INT, UNIQUE (k COLLATE NOCASE) ON CONFLICT IGNORE": ("a", "A"),
    "k INTEGER PRIMARY KEY, v INT": ("7", "007"),
    "k INT PRIMARY KEY, v INT": ("7", "\u0667"),
    "k REAL PRIMARY KEY, v INT": ("1234567890123456800", "1234567890123456801"),
    "k DECIMAL(20) PRIMARY KEY, v INT": ("7", "07"),
}


@pytest.mark.cells("columns", ("feed", "tail"))
@pytest.mark.parametrize("tail", ["", " WITHOUT ROWID"])
@pytest.mark.parametrize("columns", sorted(FOLDED))
def test_what_the_target_folds_is_refused(feed: LocalFeed, columns: str, tail: str) -> None:
    feed.make_database("d", f"CREATE TABLE t ({columns}){tail}")
    one, other = FOLDED[columns]
    sent(feed, 1, one, 1)
    feed.apply()
    sent(feed, 2, other, 2)
    assert feed.failing(TargetError).exit_code == 4
    assert [row[1] for row in found(feed)] == [1]


@pytest.mark.parametrize(
    "columns",
    [
        "k TEXT COLLATE NOCASE NOT NULL, v INT, PRIMARY KEY (k COLLATE BINARY)",
        "k TEXT COLLATE NOCASE PRIMARY KEY, v INT",
    ],
)
def test_a_folded_neighbour_is_not_deleted(feed: LocalFeed, columns: str) -> None:
    feed.make_database("d", f"CREATE TABLE t ({columns}); INSERT INTO t VALUES ('A', 1)")
    sent(feed, 1, "a", 1, delete)
    feed.apply()
    assert found(feed) == [("A", 1)]


@pytest.mark.cells("columns", ("feed", "tail"))
@pytest.mark.parametrize("columns", ["k INT PRIMARY KEY, v INT", "k TEXT PRIMARY KEY, v INT"])
@pytest.mark.parametrize("tail", ["", " STRICT", " WITHOUT ROWID", " STRICT, WITHOUT ROWID"])
def test_rows_are_found_in_any_kind_of_table(feed: LocalFeed, columns: str, tail: str) -> None:
    feed.make_database("d", f"CREATE TABLE t ({columns}){tail}")
    rows = [keyed(insert("d.t", 1, k=k, v=k), "k") for k in range(50)]
    feed.send([*rows, *watermarks(1)])
    feed.apply()
    feed.send([*(keyed(delete("d.t", 2, k=k, v=k), "k") for k in range(0, 50, 2)), *watermarks(2)])
    feed.apply()
    assert sorted(int(str(row[0])) for row in found(feed)) == list(range(1, 50, 2))


def test_a_trigger_that_passes_rows_over_is_refused(feed: LocalFeed) -> None:
    trigger = "CREATE TRIGGER g BEFORE DELETE ON t BEGIN SELECT RAISE(IGNORE); END"
    feed.make_database("d", f"CREATE TABLE t (k TEXT PRIMARY KEY, v INT); INSERT INTO t VALUES ('a', 1); {trigger}")
    sent(feed, 1, "a", 1, delete)
    error = feed.failing(TargetError)
    assert "RAISE(IGNORE)" in error.fact
    assert 'DROP TRIGGER "g"' in error.hint


def test_rows_that_were_not_written_are_noticed(feed: LocalFeed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog, "_passing", lambda *_: None)
    trigger = "CREATE TRIGGER g BEFORE INSERT ON t BEGIN SELECT RAISE(IGNORE); END"
    feed.make_database("d", f"CREATE TABLE t (k TEXT PRIMARY KEY, v INT); {trigger}")
    sent(feed, 1, "a", 1)
    assert "changed 0" in feed.failing(RowCountError).fact

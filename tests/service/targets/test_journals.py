"""SQLite files in journal modes in which a commit over several files is not atomic (a file may be in WAL mode)."""

import resource
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from ordering.errors import ReconcilerError, TargetError
from sinks.sqlite import journal
from sinks.steps import Step
from tests.service.cells import SqliteCells
from tests.service.lab import Feed
from tests.service.local import LocalFeed
from tests.service.messages import at, begun, insert, watermarks

pytestmark = pytest.mark.service
FILES = ("d", "ticdc_reconciler")
ROOM = 256 << 10
ROWS = 400


@pytest.fixture
def feed(tmp_path: Path) -> LocalFeed:
    target = tmp_path / "target"
    return LocalFeed(None, "nowhere:1", "topic", f"sqlite:///{target}", SqliteCells(target), tmp_path)  # type: ignore[arg-type]


def file_of(feed: Feed, name: str) -> Path:
    assert isinstance(feed.cells, SqliteCells)
    return feed.cells.directory / f"{name}.sqlite"


def set_mode(feed: Feed, name: str, mode: str = "WAL") -> None:
    with closing(sqlite3.connect(file_of(feed, name))) as connection:
        assert connection.execute(f"PRAGMA journal_mode = {mode}").fetchone() == (mode.lower(),)


@contextmanager
def opened(feed: Feed, name: str) -> Iterator[sqlite3.Connection]:
    """Another program that has the file open in WAL mode."""
    with closing(sqlite3.connect(file_of(feed, name))) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("SELECT count(*) FROM sqlite_master").fetchall()
        yield connection


def rows(feed: Feed) -> int:
    return len(feed.cells.tables(["d"])["d.t"][1])


def at_step(step: Step, do: Callable[[], None]) -> Callable[[Step], None]:
    def observe(now: Step) -> None:
        if now is step:
            do()

    return observe


def more(first: int = 10, number: int = 4) -> list:  # type: ignore[type-arg]
    return [insert("d.t", number, id=n, v=n, s="x" * 2_000) for n in range(first, first + ROWS)]


@pytest.mark.cells("name", "mode")
@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("mode", ["WAL", "PERSIST", "TRUNCATE"])
def test_a_file_is_set_back(feed: LocalFeed, name: str, mode: str) -> None:
    feed.send(begun())
    feed.apply()
    set_mode(feed, name, mode)
    feed.send([insert("d.t", 4, id=2, v=2, s="x"), *watermarks(4)])
    feed.apply()
    assert rows(feed) == 2
    assert not any(journal.in_wal_mode(file_of(feed, name)) for name in FILES)


@pytest.mark.cells("name", "consistency")
@pytest.mark.parametrize("consistency", ["snapshot", "transaction", "row"])
@pytest.mark.parametrize("name", FILES)
def test_a_file_that_others_have_open_is_refused(feed: LocalFeed, name: str, consistency: str) -> None:
    feed.with_(target={"consistency": consistency})
    feed.send(begun())
    feed.apply()
    feed.send([*more(), *watermarks(4)])
    with opened(feed, name):
        error = feed.failing(TargetError)
        assert error.exit_code == 4
        assert "journal mode wal" in error.fact
        assert str(file_of(feed, name)) in error.where
        assert "PRAGMA journal_mode = DELETE" in error.hint
        assert feed.checkpoint() == at(3)
        assert rows(feed) == 1
    feed.apply()
    assert rows(feed) == ROWS + 1


@pytest.mark.parametrize("consistency", ["snapshot", "transaction"])
@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_switched_while_we_run(feed: LocalFeed, name: str, consistency: str) -> None:
    feed.with_(target={"consistency": consistency})
    feed.send(begun())
    feed.apply()
    feed.send([*more(), *watermarks(4)])
    feed.lives(at_step(Step.PLANNED, lambda: set_mode(feed, name)))
    assert (rows(feed), feed.checkpoint()) == (ROWS + 1, at(4))
    assert not any(journal.in_wal_mode(file_of(feed, name)) for name in FILES)


@pytest.mark.cells("names", "room", "consistency")
@pytest.mark.parametrize("consistency", ["snapshot", "transaction"])
@pytest.mark.parametrize("names", [("d",), ("ticdc_reconciler",), FILES])
@pytest.mark.parametrize("room", [48 << 10, ROOM, 1 << 20])
def test_a_full_disk_leaves_rows_and_progress_as_one(
    feed: LocalFeed, names: tuple[str, ...], consistency: str, room: int
) -> None:
    feed.with_(target={"consistency": consistency})
    feed.send(begun())
    feed.apply()
    feed.send([*more(), *watermarks(4)])
    for name in names:
        set_mode(feed, name)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        feed.lives(at_step(Step.PLANNED, lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (room, before[1]))))
    except ReconcilerError:
        assert (rows(feed), feed.checkpoint()) == (1, at(3))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    feed.apply()
    assert (rows(feed), feed.checkpoint()) == (ROWS + 1, at(4))


def test_check_names_a_file_in_wal_mode(feed: LocalFeed) -> None:
    feed.send(begun())
    feed.apply()
    set_mode(feed, "d")
    before = file_of(feed, "d").read_bytes()
    assert any("d.sqlite is in WAL mode" in line for line in feed.check())
    assert file_of(feed, "d").read_bytes() == before


@pytest.mark.kafka
def test_a_real_run(sqlite_feed: Feed) -> None:
    sqlite_feed.send(begun())
    sqlite_feed.once()
    sqlite_feed.send([*more(), *watermarks(4)])
    with opened(sqlite_feed, "d"):
        assert "journal mode wal" in sqlite_feed.failing(TargetError).fact
        assert (rows(sqlite_feed), sqlite_feed.checkpoint()) == (1, at(3))
    sqlite_feed.once()
    assert (rows(sqlite_feed), sqlite_feed.checkpoint()) == (ROWS + 1, at(4))

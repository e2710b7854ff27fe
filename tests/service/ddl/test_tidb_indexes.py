"""An index of TiDB's is added while rows go on; the table's next DDL waits for it, also after a restart."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from consumer.operate.decisions import ddl_log
from sinks.tidb import ddl as tidb_ddl
from tests.embedded import TidbServer
from tests.service.cells import MariaDbCells, emptied
from tests.service.lab import eventually
from tests.service.local import LocalFeed
from tests.service.messages import at, begun, ddl, insert, watermarks

pytestmark = pytest.mark.service
INDEX = "ALTER TABLE `t` ADD INDEX `i`(`v`)"
ENDED = "('synced', 'cancelled', 'rollback done', 'done')"


@pytest.fixture
def feed(tidb_server: TidbServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalFeed]:
    monkeypatch.setattr(tidb_ddl, "ASYNC_AFTER_S", 0.1)
    with emptied(MariaDbCells(tidb_server.uri)) as cells:
        feed = LocalFeed.into(tidb_server.uri, cells, tmp_path)
        feed.send(begun())
        feed.once()
        yield feed


@contextmanager
def reader(feed: LocalFeed) -> Iterator[None]:
    """A transaction that has read the table: no DDL of it can end before the transaction does."""
    other = MariaDbCells(feed.uri)
    other.query("BEGIN")
    other.query("SELECT * FROM d.t")
    yield
    other.query("COMMIT")
    other.close()


def states(feed: LocalFeed) -> list[str]:
    return [line.state for line in reversed(ddl_log(feed.config, 9))][2:]


def columns(feed: LocalFeed) -> list[str]:
    return [str(row["Column_name"]) for row in feed.cells.query("SHOW INDEX FROM d.t WHERE Key_name = 'i'")]  # type: ignore[union-attr]


def jobs(feed: LocalFeed) -> list[str]:
    """What is under way; a job that was cancelled is until all of it has been taken back."""
    look = "SELECT JOB_ID FROM information_schema.DDL_JOBS WHERE TABLE_NAME = 't' AND STATE NOT IN " + ENDED
    return [str(row["JOB_ID"]) for row in feed.cells.query(look)]  # type: ignore[union-attr]


def test_rows_go_on_and_the_next_ddl_waits(feed: LocalFeed) -> None:
    with ThreadPoolExecutor(1) as pool:
        with reader(feed):
            feed.send([ddl("d.t", 4, INDEX, kind="ALTER"), insert("d.t", 5, id=2, v=2, s="two"), *watermarks(5)])
            feed.once()
            assert feed.checkpoint() == at(5)
            assert (states(feed), columns(feed)) == (["running"], [])
            feed.send([insert("d.t", 6, id=3, v=3, s="three"), *watermarks(6)])
            feed.once()  # another run: all that it knows is in the target
            assert (feed.checkpoint(), states(feed)) == (at(6), ["running"])
            feed.send([ddl("d.t", 7, "ALTER TABLE `t` ADD COLUMN `w` INT", kind="ALTER"), *watermarks(8)])
            next_one = pool.submit(feed.once)
            eventually("the checkpoint is before the DDL", lambda: feed.checkpoint() == at(7))
            assert states(feed) == ["running"]
            assert not next_one.done()
        next_one.result(60)
    assert (states(feed), columns(feed)) == (["done", "done"], ["v"])
    assert all(line.duration_ms is not None for line in ddl_log(feed.config, 2))
    assert len(feed.cells.tables(["d"])["d.t"][1]) == 3


def test_a_job_that_was_cancelled_is_begun_anew_by_the_next_run(feed: LocalFeed) -> None:
    with reader(feed):
        feed.send([ddl("d.t", 4, INDEX, kind="ALTER"), *watermarks(5)])
        feed.once()
        (job,) = jobs(feed)
        feed.cells.query(f"ADMIN CANCEL DDL JOBS {job}")  # type: ignore[union-attr]
    eventually("the job is over", lambda: not jobs(feed))
    assert (states(feed), columns(feed)) == (["running"], [])
    feed.once()
    eventually("the index is there", lambda: columns(feed) == ["v"])
    feed.once()
    assert states(feed) == ["done"]


def test_an_index_that_cannot_be_added_any_more_stops_nothing(feed: LocalFeed) -> None:
    with reader(feed):
        feed.send([ddl("d.t", 4, INDEX, kind="ALTER"), *watermarks(5)])
        feed.once()
        (job,) = jobs(feed)
        feed.cells.query(f"ADMIN CANCEL DDL JOBS {job}")  # type: ignore[union-attr]
    eventually("the job is over", lambda: not jobs(feed))
    feed.cells.query("ALTER TABLE d.t DROP COLUMN v")  # type: ignore[union-attr]
    feed.once()
    (line, *_) = ddl_log(feed.config, 1)
    assert (line.state, "1072" in line.reason) == ("failed", True)


def test_a_unique_index_is_waited_for(feed: LocalFeed) -> None:
    feed.send([ddl("d.t", 4, "CREATE UNIQUE INDEX `i` ON `t` (`v`)", kind="CINDEX"), *watermarks(5)])
    feed.once()
    assert (states(feed), columns(feed)) == (["done"], ["v"])

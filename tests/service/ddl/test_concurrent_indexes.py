"""PostgreSQL's CREATE INDEX CONCURRENTLY: what a kill leaves is INVALID, and is built again."""

import threading
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from consumer.operate.decisions import ddl_log
from ordering.errors import TargetError, TargetUnreachableError
from tests.embedded import PostgresServer
from tests.service.cells import emptied
from tests.service.lab import eventually
from tests.service.local import LocalFeed
from tests.service.messages import begun, ddl, insert, watermarks
from tests.service.postgres_cells import PostgresCells

pytestmark = pytest.mark.service
INDEX = "CREATE INDEX `i` ON `t` (`v`)"
FOUND = """
SELECT c.relname AS name, i.indisvalid AS valid FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'd' AND NOT i.indisprimary"""
BUILDER = "SELECT pid FROM pg_stat_activity WHERE query LIKE 'CREATE%INDEX CONCURRENTLY%' AND pid <> pg_backend_pid()"


@pytest.fixture
def feed(postgres_server: PostgresServer, tmp_path: Path) -> Iterator[LocalFeed]:
    with emptied(PostgresCells(postgres_server.uri)) as cells:
        feed = LocalFeed.into(postgres_server.uri, cells, tmp_path).with_(target={"concurrent-indexes": True})
        feed.send(begun())
        feed.once()
        yield feed


def found(feed: LocalFeed) -> list[bool]:
    """Whether each index is valid."""
    assert isinstance(feed.cells, PostgresCells)
    return [bool(row["valid"]) for row in feed.cells.query(FOUND)]


def test_an_index_that_a_kill_cut_is_built_again(feed: LocalFeed) -> None:
    feed.send([ddl("d.t", 4, INDEX, kind="CINDEX"), insert("d.t", 5, id=2, v=2, s="two"), *watermarks(6)])
    errors: list[BaseException] = []

    def run() -> None:
        try:
            feed.once()
        except TargetUnreachableError as error:
            errors.append(error)

    assert isinstance(feed.cells, PostgresCells)
    with psycopg.connect(feed.uri) as other:
        other.execute("UPDATE d.t SET v = v")  # what CONCURRENTLY waits for
        thread = threading.Thread(target=run)
        thread.start()
        eventually("the index is begun", lambda: found(feed) == [False])
        ((pid,),) = [tuple(row.values()) for row in feed.cells.query(BUILDER)]
        feed.cells.query(f"SELECT pg_terminate_backend({pid})")
        thread.join(60)
        other.rollback()
    assert len(errors) == 1
    assert found(feed) == [False]
    assert ddl_log(feed.config, 1)[0].state == "intent"
    feed.once()
    assert found(feed) == [True]
    (line,) = ddl_log(feed.config, 1)
    assert line.state == "done"
    assert "CONCURRENTLY" in line.executed
    assert len(feed.cells.tables(["d"])["d.t"][1]) == 2


def test_an_index_that_is_refused_leaves_nothing(feed: LocalFeed) -> None:
    feed.send(
        [insert("d.t", 4, id=2, v=1, s="two"), ddl("d.t", 5, "CREATE UNIQUE INDEX `u` ON `t` (`v`)", kind="CINDEX")]
    )
    feed.send(watermarks(6))
    for _ in "ab":
        with pytest.raises(TargetError):
            feed.once()
        assert found(feed) == []
        assert ddl_log(feed.config, 1)[0].state == "failed"

"""A lake whose catalog is in PostgreSQL: who leads, other writers, expiry, rights, and a copy in the same database."""

import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from consumer.operate.expiry import expire_snapshots
from consumer.wiring import target_of
from ordering.errors import TargetBusyError, TargetError, TargetUnreachableError
from tests.service.local import LocalFeed
from tests.service.messages import at, begun, ddl, insert, update, watermarks
from tests.service.postgres_cells import PostgresCells
from tests.service.targets.test_earlier_versions import EARLIER
from tests.sinks.iceberg_cells import IcebergCells, lake_in
from tests.sinks.iceberg_moments import files_of, while_files_are_written

pytestmark = pytest.mark.service

MORE = [insert("d.t", 4, id=2, v=2, s="two"), *watermarks(5)]


@pytest.fixture
def feed(request: pytest.FixtureRequest, tmp_path: Path) -> LocalFeed:
    uri, cells = lake_in("postgresql", tmp_path, request)
    return LocalFeed.into(uri, cells, tmp_path)


def database_of(feed: LocalFeed) -> str:
    """The URI of the catalog's database."""
    assert isinstance(feed.cells, IcebergCells)
    assert isinstance(feed.cells.catalog, str)
    return feed.cells.catalog


def execute(uri: str, *statements: str) -> None:
    with psycopg.connect(uri, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


def ids(feed: LocalFeed) -> list[int]:
    return sorted(row["id"] for row in feed.cells.tables(["d"])["d.t"][1])


def test_who_takes_over_ends_the_leader_that_still_writes_files(
    feed: LocalFeed, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed.send(begun())
    feed.once()
    feed.send(MORE)

    def take_over() -> None:
        with closing(target_of(feed.config)) as other:
            other.connect()
            stored = other.stored(feed.name)
            assert stored is not None
            assert not other.try_lead(feed.name), "the leader lives"
            other.claim(feed.name, stored.progress)

    while_files_are_written(monkeypatch, take_over)
    feed.failing(TargetUnreachableError)
    assert ids(feed) == [1]
    feed.once()
    assert ids(feed) == [1, 2]


def test_another_writer_of_a_table_is_noticed_and_loses_nothing(
    feed: LocalFeed, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed.send(begun())
    feed.once()
    feed.send(MORE)
    change = "UPDATE ticdc_reconciler.iceberg_tables SET metadata_location = "
    while_files_are_written(monkeypatch, lambda: execute(database_of(feed), f"{change} metadata_location || '.moved'"))
    assert "another writer has changed table d.t" in feed.failing(TargetBusyError).fact
    execute(database_of(feed), f"{change} replace(metadata_location, '.moved', '')")
    assert ids(feed) == [1]
    feed.once()
    assert ids(feed) == [1, 2]


def test_a_session_that_an_operator_ends_leaves_no_files(feed: LocalFeed, monkeypatch: pytest.MonkeyPatch) -> None:
    feed.send(begun())
    feed.once()
    before = files_of(feed)
    feed.send(MORE)
    end = (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
        " AND application_name = 'ticdc-reconciler'"
    )
    while_files_are_written(monkeypatch, lambda: execute(database_of(feed), end))
    feed.failing(TargetUnreachableError)
    assert sorted(files_of(feed)) == sorted(before)
    feed.once()
    assert ids(feed) == [1, 2]


def test_expiry_beside_a_leader(feed: LocalFeed, monkeypatch: pytest.MonkeyPatch) -> None:
    feed.send(begun())
    feed.once()
    for number in range(4, 10):
        feed.send([update("d.t", number, {"v": 0}, id=1, v=number, s="one"), *watermarks(number)])
        feed.once()
    feed.send([insert("d.t", 10, id=2, v=2, s="two"), *watermarks(10)])
    while_files_are_written(monkeypatch, lambda: expire_snapshots(feed.config, 0))
    assert "another writer has changed table d.t" in feed.failing(TargetBusyError).fact
    feed.once()
    for path in files_of(feed):
        os.utime(path, (0, 0))
    assert expire_snapshots(feed.config, 0).files > 0
    assert ids(feed) == [1, 2]
    assert [ts for ts, _ in feed.cells.history("d.t")] == [at(10)]  # type: ignore[attr-defined]


def test_a_copy_in_the_same_database(feed: LocalFeed, tmp_path: Path) -> None:
    """Its changefeed has its own line of everything; the lake's tables are none of the copy's."""
    uri = database_of(feed)
    copy = LocalFeed.into(uri, PostgresCells(uri), tmp_path / "copy")
    for one in (feed, copy, feed, copy):
        one.send([*begun(), *MORE])
        one.once()
    assert ids(feed) == [1, 2]
    assert sorted(row["id"] for row in copy.cells.tables(["d"])["d.t"][1]) == [1, 2]
    assert set(copy.cells.databases()) == {"d"}


def test_instances_that_begin_at_once_make_the_tables_once(feed: LocalFeed) -> None:
    def connect(_: int) -> None:
        with closing(target_of(feed.config)) as target:
            target.connect()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(connect, range(8)))
    feed.send([*begun(), *MORE])
    feed.once()
    assert ids(feed) == [1, 2]


def test_the_least_rights_are_enough(feed: LocalFeed, tmp_path: Path) -> None:
    """Those of docs/iceberg.md; without them `check` says what is missing."""
    uri = database_of(feed)
    role, name = f"lake_{feed.name[-8:]}".replace("-", "_"), urlsplit(uri).path[1:]
    execute(uri, f"CREATE ROLE {role} LOGIN PASSWORD 'lake'")
    parts = urlsplit(uri)
    own = parts._replace(netloc=f"{role}:lake@{parts.hostname}:{parts.port}").geturl()
    lake = LocalFeed.into(f"iceberg+{own}?warehouse={tmp_path / 'warehouse'}", IcebergCells(uri), tmp_path)
    with closing(target_of(lake.config)) as target, pytest.raises(TargetError, match="may not create schemas"):
        target.check()
    execute(uri, f"GRANT CREATE ON DATABASE {name} TO {role}")
    with closing(target_of(lake.config)) as target:
        assert target.check()
    lake.send([*begun(), *MORE])
    lake.once()
    assert ids(lake) == [1, 2]
    with closing(target_of(lake.config)) as target:
        assert "1 tables" in target.check()[0]


def of_one_name(feed: LocalFeed, place: Path) -> LocalFeed:
    """A changefeed of the same name, that copies the same topic into tables of the catalog's database."""
    uri = database_of(feed)
    return replace(feed, uri=uri, cells=PostgresCells(uri), directory=place)


@pytest.mark.parametrize("lake_first", [True, False])
def test_a_copy_of_the_same_name_in_the_same_database_is_refused(
    feed: LocalFeed, tmp_path: Path, lake_first: bool
) -> None:
    copy = of_one_name(feed, tmp_path / "copy")
    first, other = (feed, copy) if lake_first else (copy, feed)
    first.send([*begun(), ddl("d.gone", 4, "CREATE TABLE gone (id INT PRIMARY KEY)"), *watermarks(5)])
    first.once()
    first.send([ddl("d.gone", 6, "DROP TABLE IF EXISTS gone", "QUERY"), *watermarks(7)])
    assert "the progress of changefeed" in other.failing(TargetError).fact
    with closing(target_of(other.config)) as stand_by:
        stand_by.connect()
        with pytest.raises(TargetError, match="the progress of changefeed"):
            stand_by.try_lead(other.name)
    first.once()
    assert set(first.cells.tables(["d"])) == {"d.t"}


@pytest.mark.parametrize("lake_first", [True, False])
def test_a_name_without_progress_is_anybodys(feed: LocalFeed, tmp_path: Path, lake_first: bool) -> None:
    copy = of_one_name(feed, tmp_path / "copy")
    first, other = (feed, copy) if lake_first else (copy, feed)
    first.send([*begun(), *MORE])
    first.once()
    execute(database_of(feed), "DELETE FROM ticdc_reconciler.checkpoint", "DELETE FROM ticdc_reconciler.window_start")
    for _ in range(2):
        other.once()
    assert [*other.cells.tables(["d"])] == ["d.t"]


def test_a_schema_that_an_earlier_version_made(feed: LocalFeed, tmp_path: Path) -> None:
    """It had copied into tables of the database."""
    uri = database_of(feed)
    copy = LocalFeed.into(uri, PostgresCells(uri), tmp_path / "copy")
    copy.send(begun())
    copy.once()
    execute(uri, *EARLIER, "DROP TABLE ticdc_reconciler.definition")
    feed.send([*begun(), *MORE])
    feed.once()
    assert ids(feed) == [1, 2]
    execute(uri, EARLIER[0])
    feed.send([insert("d.t", 6, id=3, v=3, s="three"), *watermarks(7)])
    feed.once()
    assert ids(feed) == [1, 2, 3]


def test_a_copy_that_is_behind_holds_back_no_expiry(feed: LocalFeed, tmp_path: Path) -> None:
    uri = database_of(feed)
    copy = LocalFeed.into(uri, PostgresCells(uri), tmp_path / "copy")
    copy.send(begun())
    copy.once()
    feed.send(begun())
    feed.once()
    for number in range(4, 7):
        feed.send([update("d.t", number, {"v": 0}, id=1, v=number, s="one"), *watermarks(number)])
        feed.once()
    assert expire_snapshots(feed.config, 0).snapshots == 3

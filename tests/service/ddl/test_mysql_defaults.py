"""What a MySQL-family server does by itself: engines without transactions, ON UPDATE, small packets, other defaults."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark import SparkContext

from consumer.embedded import KafkaBroker
from ordering.errors import TableMismatchError, TargetError
from tests.embedded import MariaDbServer
from tests.service.cells import MariaDbCells, emptied
from tests.service.lab import Feed
from tests.service.messages import ddl, delete, insert, keyed, update, watermarks

pytestmark = [pytest.mark.service, pytest.mark.kafka]
OWN = {
    "default-storage-engine": "MyISAM",
    "local-infile": "0",
    "max-allowed-packet": "1M",
    "completion-type": "CHAIN",
}


@pytest.fixture(scope="module")
def odd_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MariaDbServer]:
    """A server whose administrator likes other defaults."""
    with MariaDbServer(tmp_path_factory.mktemp("odd"), flush_at_commit=2, extra=OWN) as server:
        yield server


@pytest.fixture
def odd_feed(
    spark: SparkContext, kafka_broker: KafkaBroker, topic_name: str, tmp_path: Path, odd_server: MariaDbServer
) -> Iterator[Feed]:
    cells = MariaDbCells(odd_server.uri)
    cells.query("SET SESSION default_storage_engine = InnoDB, sql_select_limit = 1000000")
    cells.query("SET GLOBAL sql_select_limit = 1")
    with emptied(cells):
        yield Feed(spark, kafka_broker.bootstrap, topic_name, odd_server.uri, cells, tmp_path)


def engines(feed: Feed, database: str) -> set[str]:
    tables = "information_schema.TABLES WHERE TABLE_TYPE = 'BASE TABLE'"
    look = f"SELECT DISTINCT ENGINE AS e FROM {tables} AND TABLE_SCHEMA = %s"
    return {str(row["e"]) for row in feed.cells.query(look, (database,))}  # type: ignore[union-attr]


@pytest.mark.parametrize("engine", ["MyISAM", "MEMORY", "Aria"])
def test_a_table_without_transactions_takes_no_rows(mariadb_feed: Feed, engine: str) -> None:
    feed = mariadb_feed
    feed.make_database("d", f"CREATE TABLE t (id INT PRIMARY KEY, v INT) ENGINE = {engine}")
    feed.send([insert("d.t", 1, id=1, v=1), *watermarks(1)])
    error = feed.failing(TableMismatchError)
    assert f"storage engine is {engine}" in error.fact
    assert error.hint.startswith("ALTER TABLE `d`.`t` ENGINE = InnoDB")
    assert feed.cells.tables(["d"])["d.t"][1] == []
    checked = feed.command("check", str(feed.file()))
    assert "ALTER TABLE `d`.`t` ENGINE = InnoDB;" in checked.stdout + checked.stderr
    feed.cells.run("d", error.hint)
    feed.once()
    assert len(feed.cells.tables(["d"])["d.t"][1]) == 1


def test_ddl_makes_tables_of_innodb(odd_feed: Feed) -> None:
    tail = "(`id` INT PRIMARY KEY,`v` INT,`s` TEXT)"
    parted = "(`id` INT PRIMARY KEY) PARTITION BY RANGE (`id`) (PARTITION `p` VALUES LESS THAN (9) ENGINE = MyISAM)"
    feed = odd_feed
    feed.send(
        [
            ddl("d.", 1, "CREATE DATABASE `d`"),
            ddl("d.a", 2, f"CREATE TABLE `a` {tail} ENGINE = MyISAM ROW_FORMAT = FIXED"),
            ddl("d.b", 3, f"CREATE TABLE `b` {tail}"),
            ddl("d.c", 4, "CREATE TABLE `c` LIKE `a`"),
            ddl("d.e", 5, f"CREATE TABLE `e` {parted}"),
            ddl("d.b", 6, "ALTER TABLE `b` ENGINE = 'Aria', COMMENT = 'x'", "ALTER"),
            *(insert("d.a", 7, id=i, v=i, s="x") for i in range(3)),
            *watermarks(7),
        ]
    )
    feed.once()
    assert engines(feed, "d") == {"InnoDB"}
    assert engines(feed, "ticdc_reconciler") == {"InnoDB"}
    assert len(feed.cells.tables(["d"])["d.a"][1]) == 3


def test_a_progress_table_without_transactions_is_refused(odd_feed: Feed) -> None:
    feed = odd_feed
    feed.send(watermarks(1))
    feed.once()
    feed.cells.run("ticdc_reconciler", "ALTER TABLE checkpoint ENGINE = MyISAM")
    error = feed.failing(TargetError)
    feed.cells.run("ticdc_reconciler", error.hint)
    assert "storage engine is MyISAM" in error.fact
    feed.once()


def test_statements_stay_below_the_packet(odd_feed: Feed) -> None:
    feed = odd_feed
    feed.make_database("d", "CREATE TABLE t (id INT PRIMARY KEY, v INT, s LONGTEXT)")
    feed.send([*(insert("d.t", 1, i % 3, id=i, v=i, s="'\\" * 40_000) for i in range(100)), *watermarks(1)])
    feed.once()
    feed.send([*(delete("d.t", 2, i % 3, id=i, v=i, s="") for i in range(50)), *watermarks(2)])
    feed.once()
    assert {len(str(row["s"])) for row in feed.cells.tables(["d"])["d.t"][1]} == {80_000}
    assert len(feed.cells.tables(["d"])["d.t"][1]) == 50


def test_a_row_above_the_packet_is_named(odd_feed: Feed) -> None:
    feed = odd_feed
    feed.make_database("d", "CREATE TABLE t (id INT PRIMARY KEY, v INT, s LONGTEXT)")
    feed.send([insert("d.t", 1, 1, id=1, v=1, s="x"), insert("d.t", 1, 2, id=2, v=1, s="'" * 530_000), *watermarks(1)])
    error = feed.failing(TargetError)
    assert "max_allowed_packet" in error.hint
    assert f"topic={feed.topic} partition=2 offset=0" in str(error)


@pytest.mark.parametrize("target", ["mariadb", "tidb"])
def test_a_helper_update_moves_no_timestamp(target: str, request: pytest.FixtureRequest) -> None:
    feed: Feed = request.getfixturevalue(f"{target}_feed")
    moving = "`ts` TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3) ON UPDATE CURRENT_TIMESTAMP(3)"
    columns = f"`id` INT PRIMARY KEY,`v` INT,`s` VARCHAR(9),`m` DATETIME(3),{moving}"
    row = {"v": 1, "s": "2.5", "m": "2026-01-01 00:00:00.500", "ts": "2020-02-02 02:02:02.222"}
    feed.send(
        [
            ddl("d.", 1, "CREATE DATABASE `d`"),
            ddl("d.t", 2, f"CREATE TABLE `t` ({columns})"),
            insert("d.t", 3, id=1, **row),
            ddl("d.t", 4, "ALTER TABLE `t` MODIFY COLUMN `s` INT, MODIFY COLUMN `m` BIGINT", "ALTER"),
            *watermarks(5),
        ]
    )
    feed.once()
    (found,) = feed.cells.tables(["d"])["d.t"][1]
    assert found["ts"] == row["ts"]


def test_a_key_that_an_update_would_move_stays(mariadb_feed: Feed) -> None:
    """A column of the target's own keeps its value by an UPDATE, which must not touch the key."""
    feed = mariadb_feed
    key = "ts TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP"
    feed.make_database("d", f"CREATE TABLE t (id INT, {key}, v INT, own INT DEFAULT 7, PRIMARY KEY (id, ts))")
    at = "2020-02-02 02:02:02"
    feed.send([keyed(insert("d.t", 1, id=1, ts=at, v=1), "id", "ts"), *watermarks(1)])
    feed.once()
    feed.send([keyed(update("d.t", 2, {"v": 1}, id=1, ts=at, v=2), "id", "ts"), *watermarks(2)])
    feed.once()
    (found,) = feed.cells.tables(["d"])["d.t"][1]
    assert (found["ts"], found["v"]) == (at, feed.cells.expected("int", "2"))

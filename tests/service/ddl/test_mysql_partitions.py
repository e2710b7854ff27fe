"""TRUNCATE PARTITION and EXCHANGE PARTITION on the MySQL family: of the rows that upstream has in the partition."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ordering.errors import TargetError
from sinks.mysql.ddl.global_indexes import plain_globals
from sinks.steps import Step
from tests.embedded import MariaDbServer
from tests.service.cells import MariaDbCells, emptied
from tests.service.local import Killed, LocalFeed
from tests.service.messages import ddl, insert, keyed, watermarks

pytestmark = pytest.mark.service
ROWS = range(40)


@pytest.fixture
def feed(mariadb_server: MariaDbServer, tmp_path: Path) -> Iterator[LocalFeed]:
    with emptied(MariaDbCells(mariadb_server.uri)) as cells:
        yield LocalFeed.into(mariadb_server.uri, cells, tmp_path)


def left(feed: LocalFeed, table: str = "x.t") -> list[int]:
    return sorted(int(str(row["id"])) for row in feed.cells.tables({"x"})[table][1])


def begin(feed: LocalFeed, make: str) -> None:
    rows = [insert("x.t", 3, id=i) for i in ROWS]
    feed.send([ddl("x.", 1, "CREATE DATABASE `x`"), ddl("x.t", 2, make), *rows, *watermarks(3)])


TRUNCATE = "ALTER TABLE `t` TRUNCATE PARTITION `p1`"


@pytest.mark.parametrize("how", ["HASH", "LINEAR HASH"])
def test_a_linear_partition_loses_the_rows_that_a_plain_one_loses(feed: LocalFeed, how: str) -> None:
    """MariaDB has 1, 5, 9, ... in p1 of five LINEAR HASH partitions."""
    begin(feed, f"CREATE TABLE `t` (`id` INT PRIMARY KEY) PARTITION BY {how} (`id`) PARTITIONS 5")
    feed.send([ddl("x.t", 4, TRUNCATE), *watermarks(4)])
    feed.apply()
    assert left(feed) == [i for i in ROWS if i % 5 != 1]


@pytest.mark.parametrize("sql", [TRUNCATE, "ALTER TABLE `t` EXCHANGE PARTITION `p1` WITH TABLE `u`"])
def test_a_linear_partition_of_the_target_s_own_is_refused(feed: LocalFeed, sql: str) -> None:
    make = "CREATE TABLE `t` (`id` INT PRIMARY KEY)"
    begin(feed, make)
    feed.send([ddl("x.u", 4, make.replace("`t`", "`u`")), *watermarks(4)])
    feed.apply()
    assert isinstance(feed.cells, MariaDbCells)
    feed.cells.query("ALTER TABLE x.t PARTITION BY LINEAR HASH (id) PARTITIONS 5")
    feed.send([ddl("x.t", 5, sql), *watermarks(5)])
    with pytest.raises(TargetError, match=r"x\.t is partitioned by LINEAR HASH"):
        feed.apply()
    assert (left(feed), left(feed, "x.u")) == (list(ROWS), [])


BY_YEAR = "PARTITION BY RANGE (`y`) (PARTITION `p0` VALUES LESS THAN (2025),PARTITION `p1` VALUES LESS THAN (2026))"
GLOBAL = "/*T![global_index] GLOBAL */"
COLUMNS = "`id` INT NOT NULL,`y` INT NOT NULL,`n` INT"
OF_TABLE = [f"CREATE TABLE `t` ({COLUMNS},PRIMARY KEY(`id`, `y`),UNIQUE `u`(`n`) {GLOBAL}) {BY_YEAR}"]
PLAIN = f"CREATE TABLE `t` ({COLUMNS},PRIMARY KEY(`id`, `y`)) {BY_YEAR}"
OF_COLUMN = [f"CREATE TABLE `t` ({COLUMNS} UNIQUE KEY GLOBAL,PRIMARY KEY(`id`, `y`)) {BY_YEAR}"]
ADDED = [PLAIN, f"ALTER TABLE `t` ADD UNIQUE `u`(`n`) {GLOBAL},ADD INDEX `i`(`y`)"]
CREATED = [PLAIN, f"CREATE UNIQUE INDEX `u` ON `t` (`n`) {GLOBAL}"]


@pytest.mark.parametrize("step", [None, Step.DDL_RECORDED, Step.DDL_EXECUTED])
@pytest.mark.parametrize("ddls", [OF_TABLE, ADDED, CREATED], ids=["table", "alter", "create"])
def test_a_unique_index_over_all_partitions_is_a_plain_one(feed: LocalFeed, ddls: list[str], step: Step | None) -> None:
    """The server has none; the primary key tells rows apart. A crash at a step, each time, changes nothing."""
    at = len(ddls) + 1
    feed.send([ddl("x.", 1, "CREATE DATABASE `x`"), *(ddl("x.t", 2 + i, sql) for i, sql in enumerate(ddls))])
    rows = [(at + 1, 1, 2024, 7), (at + 2, 2, 2025, 8), (at + 4, 3, 2025, 7)]
    feed.send(keyed(insert("x.t", number, id=i, y=y, n=n), "id", "y") for number, i, y, n in rows)
    feed.send([ddl("x.t", at + 3, "ALTER TABLE `t` DROP PARTITION `p0`")])
    feed.send(watermarks(at + 4))
    seen: list[Step] = []

    def observe(now: Step) -> None:
        seen.append(now)
        if now is step and seen.count(now) <= len(ddls) + 1:
            raise Killed

    while not feed.lives(observe):
        pass
    assert left(feed) == [2, 3]
    assert isinstance(feed.cells, MariaDbCells)
    assert [str(row["Non_unique"]) for row in feed.cells.query("SHOW INDEX FROM x.t WHERE Key_name = 'u'")] == ["1"]
    feed.send([ddl("x.t", at + 5, "ALTER TABLE `t` DROP INDEX `u`"), *watermarks(at + 5)])
    feed.apply()
    assert not feed.cells.query("SHOW INDEX FROM x.t WHERE Key_name = 'u'")


@pytest.mark.parametrize(
    "keys",
    [
        f"PRIMARY KEY(`id`) {GLOBAL}",
        f"PRIMARY KEY(`id`) {GLOBAL},UNIQUE `u`(`n`) {GLOBAL}",
        f"UNIQUE `u`(`id`) {GLOBAL}",
    ],
)
def test_it_is_refused_where_no_primary_key_tells_rows_apart(feed: LocalFeed, keys: str) -> None:
    make = f"CREATE TABLE `t` ({COLUMNS},{keys}) {BY_YEAR}"
    feed.send([ddl("x.", 1, "CREATE DATABASE `x`"), ddl("x.t", 2, make), *watermarks(2)])
    with pytest.raises(TargetError, match=r"1503 .* must include all columns"):
        feed.apply()


def test_an_index_of_one_partition_each_stays_unique() -> None:
    """Also beside one over all partitions, whatever their comments say."""
    local = "UNIQUE INDEX `v`(`y`, `n`) COMMENT 'GLOBAL'"
    made, notes = plain_globals(f"ALTER TABLE `t` ADD {local},ADD UNIQUE KEY `u`((`n`+1)) {GLOBAL}", lambda: True)
    assert made == f"ALTER TABLE `t` ADD {local},ADD  KEY `u`((`n`+1)) {GLOBAL}"
    assert notes == ["index 'u' is not unique here: the server has no indexes over all partitions"]


def test_an_index_over_all_partitions_that_a_column_names_is_a_plain_one(feed: LocalFeed) -> None:
    """Upstream gives it the column's name; the words are no comment there."""
    feed.send([ddl("x.", 1, "CREATE DATABASE `x`"), *(ddl("x.t", 2, sql) for sql in OF_COLUMN), *watermarks(2)])
    feed.apply()
    assert isinstance(feed.cells, MariaDbCells)
    assert [str(row["Non_unique"]) for row in feed.cells.query("SHOW INDEX FROM x.t WHERE Key_name = 'n'")] == ["1"]
    feed.send([ddl("x.t", 3, "ALTER TABLE `t` DROP INDEX `n`"), *watermarks(3)])
    feed.apply()
    assert not feed.cells.query("SHOW INDEX FROM x.t WHERE Key_name = 'n'")

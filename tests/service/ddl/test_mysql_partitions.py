"""TRUNCATE PARTITION and EXCHANGE PARTITION on the MySQL family: of the rows that upstream has in the partition."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ordering.errors import TargetError
from tests.embedded import MariaDbServer
from tests.service.cells import MariaDbCells, emptied
from tests.service.local import LocalFeed
from tests.service.messages import ddl, insert, watermarks

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

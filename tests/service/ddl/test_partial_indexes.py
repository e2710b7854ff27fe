"""Indexes over a part of a table's rows: `UNIQUE INDEX ... WHERE`, as TiDB has them since 8.5."""

import pytest

from ordering.errors import TargetError
from sinks.tidb.async_indexes import adds_plain_indexes
from tests.service.lab import Feed
from tests.service.local import LocalFeed
from tests.service.messages import ddl, insert, keyed, watermarks

pytestmark = pytest.mark.service
MADE = ddl("d.", 1, "CREATE DATABASE `d`")
OF_TABLE = [ddl("d.t", 2, "CREATE TABLE `t` (`id` INT PRIMARY KEY,`b` INT,`c` INT,UNIQUE `u`(`b`) WHERE `c` IS NULL)")]
PLAIN = ddl("d.t", 2, "CREATE TABLE `t` (`id` INT PRIMARY KEY,`b` INT,`c` INT)")
ALTERED = [PLAIN, ddl("d.t", 3, "ALTER TABLE `t` ADD UNIQUE `u`(`b`) WHERE `c` IS NULL,ADD INDEX `p`(`c`)", "ALTER")]
CREATED = [PLAIN, ddl("d.t", 3, "CREATE UNIQUE INDEX `u` ON `t` (`b`) WHERE `c` IS NULL", "CINDEX")]
ROWS = [insert("d.t", n, id=n, b=1, c=n) for n in (4, 5, 6)]
AS_WANTED = ["CREATE UNIQUE INDEX `u` ON `t` (`b`) WHERE `c`=1", "ALTER TABLE `t` ADD UNIQUE `u`(`b`) WHERE `c`=1"]
HIDDEN = ddl("d.t", 7, "ALTER TABLE `t` ALTER INDEX `u` INVISIBLE", "ALTER")
DROPPED = ddl("d.t", 8, "DROP INDEX `u` ON `t`", "DINDEX")


@pytest.mark.parametrize("ddls", [OF_TABLE, ALTERED, CREATED], ids=["table", "alter", "create"])
def test_rows_outside_the_condition_may_be_equal(every_feed: Feed, ddls: list[object]) -> None:
    """To an index that is unique for all rows, the second of them would be a violation."""
    every_feed.send([MADE, *ddls, *ROWS, HIDDEN, DROPPED, *watermarks(9)])
    every_feed.once()
    assert len(every_feed.cells.tables(["d"])["d.t"][1]) == len(ROWS)


def test_such_an_index_tells_no_rows_apart(sqlite_feed: LocalFeed) -> None:
    """TiCDC sends the rows of such a table, for it takes the index for a valid one: they are refused, not merged."""
    sqlite_feed.send([
        MADE,
        ddl("d.k", 2, "CREATE TABLE `k` (`a` INT NOT NULL,`b` INT NOT NULL,UNIQUE `u`(`a`) WHERE `b`=1)"),
        *[keyed(insert("d.k", n, a=1, b=n)) for n in (4, 5, 6)],
        *watermarks(9),
    ])  # fmt: skip
    with pytest.raises(TargetError, match=r"table d\.k is missing in the target"):
        sqlite_feed.once()


def test_tidb_tells_no_rows_apart_by_such_an_index(tidb_feed: Feed) -> None:
    """The narrower index is upstream's handle key, but rows outside its condition are equal in it."""
    tidb_feed.send([
        MADE,
        ddl("d.k", 2, "CREATE TABLE `k` (a INT NOT NULL, b INT NOT NULL, UNIQUE (a, b), UNIQUE `u`(`a`) WHERE `b`=1)"),
        *[keyed(insert("d.k", n, a=1, b=n)) for n in (4, 5, 6)],
        *watermarks(9),
    ])  # fmt: skip
    tidb_feed.once()
    assert len(tidb_feed.cells.tables(["d"])["d.k"][1]) == len(ROWS)


@pytest.mark.parametrize(("there", "told"), [("`b`", "1061 Duplicate key name 'u'"), ("`c`", "another one .*over c")])
@pytest.mark.parametrize("sql", AS_WANTED)
def test_tidb_judges_one_over_the_same_columns(tidb_feed: Feed, sql: str, there: str, told: str) -> None:
    """What the server refuses is compared with the whole definition, for which this one can't add such an index."""
    tidb_feed.send([MADE, PLAIN, *watermarks(2)])
    tidb_feed.once()
    table = f"CREATE TABLE `t` (`id` INT PRIMARY KEY,`b` INT,`c` INT,UNIQUE `u`({there}) WHERE `c`=1)"
    tidb_feed.cells.run("d", f"DROP TABLE `t`; {table}")
    tidb_feed.send([ddl("d.t", 3, sql), *watermarks(9)])
    with pytest.raises(TargetError, match=told):
        tidb_feed.once()


@pytest.mark.parametrize("sql", AS_WANTED)
def test_another_server_does_not_take_one_over_all_rows_for_it(mariadb_feed: Feed, sql: str) -> None:
    """The statement is left out there, so nothing else would say that rows may be equal in the index."""
    mariadb_feed.send([MADE, PLAIN, *watermarks(2)])
    mariadb_feed.once()
    mariadb_feed.cells.run("d", "ALTER TABLE `t` ADD UNIQUE `u`(`b`)")
    mariadb_feed.send([ddl("d.t", 3, sql), *watermarks(9)])
    with pytest.raises(TargetError, match="another one of that name, over b"):
        mariadb_feed.once()


def test_tidb_waits_for_none_that_is_not_unique() -> None:
    assert adds_plain_indexes("CREATE INDEX `p` ON `t` (`b`) WHERE `c`=1")
    assert not adds_plain_indexes(AS_WANTED[0])

"""Merged tables: clauses of a shard's DDL that mean nothing there, or more than they say; dispatchers that differ."""

import pytest

from tests.service.cells import MariaDbCells
from tests.service.lab import Feed
from tests.service.messages import ddl, insert, typed
from tests.service.rows.test_merging import MERGED, begun, ran, refused, rows

pytestmark = pytest.mark.service


def test_a_column_of_another_shard_is_no_reason_to_leave_a_clause_out(sqlite_feed: Feed) -> None:
    """TiCDC sends IF NOT EXISTS as upstream had it, where the column was new to this shard."""
    feed = begun(sqlite_feed, "s1.t_a", "s1.t_b")
    added = ddl("s1.t_a", 5, "ALTER TABLE `t_a` ADD COLUMN `a` INT DEFAULT 5", kind="ALTER")
    ran(feed, 6, insert("s1.t_b", 4, id=1, v=1, s="x"), added)
    both = "ALTER TABLE `t_b` ADD COLUMN IF NOT EXISTS `a` INT DEFAULT 7, ADD COLUMN `x` INT"
    assert "the column a is int NULL DEFAULT '7' there" in refused(feed, 8, ddl("s1.t_b", 7, both, kind="ALTER"))


def test_a_column_that_a_shard_never_had_may_still_come(every_feed: Feed) -> None:
    feed = begun(every_feed, "s1.t_a", "s1.t_b")
    ran(feed, 5, ddl("s1.t_a", 5, "ALTER TABLE `t_a` ADD COLUMN `a` INT DEFAULT 5", kind="ALTER"))
    ran(feed, 7, ddl("s1.t_b", 6, "ALTER TABLE `t_b` DROP COLUMN IF EXISTS `a`, COMMENT 'x'", kind="ALTER"))
    ran(feed, 9, ddl("s1.t_b", 8, "ALTER TABLE `t_b` ADD COLUMN `a` INT DEFAULT 5", kind="ALTER"))
    ran(feed, 11, ddl("s1.t_a", 10, "ALTER TABLE `t_a` DROP COLUMN `a`", kind="ALTER"))
    ran(feed, 13, insert("s1.t_b", 12, id=1, v=1, s="x", a=2))
    assert rows(feed) == [("2", "1", "1", "x", "b", "1")]


def test_an_index_goes_with_its_only_column(every_feed: Feed) -> None:
    feed = begun(every_feed, "s1.t_a", "s1.t_b")
    number = 10
    for clause in (
        "ADD INDEX `i`(`v`)", "DROP COLUMN `v`", "ADD INDEX `i`(`s`)", "DROP INDEX `i`", "ADD COLUMN `v` INT",
        "ADD INDEX `i`(`v` DESC)", "DROP INDEX `i`",
    ):  # fmt: skip
        for name in "ab":
            ran(feed, number + 1, ddl(f"s1.t_{name}", number, f"ALTER TABLE `t_{name}` {clause}", kind="ALTER"))
            number += 2
    ran(feed, number, insert("s1.t_b", number, id=1, v=1, s="x"))
    assert rows(feed) == [("1", "1", "x", "b", "1")]


def test_shards_of_one_table_are_told_apart_by_the_same_columns(every_feed: Feed) -> None:
    """Else what deletes one shard's rows would find the other's, whose columns say the same and more."""
    (rule,) = MERGED["dispatchers"]
    bare = {name: value for name, value in rule.items() if name != "extract-schema"}
    feed = every_feed.with_(sink={"dispatchers": [{**bare, "matcher": ["s1.*"]}, {**rule, "matcher": ["s2.*"]}]})
    name = "VARCHAR(64) COLLATE utf8mb4_bin" if isinstance(feed.cells, MariaDbCells) else "VARCHAR(64)"
    made = f"id INT NOT NULL, v INT, s VARCHAR(10), db {name} DEFAULT '' NOT NULL, shard {name} NOT NULL"
    feed.make_database("m", f"CREATE TABLE t ({made}, PRIMARY KEY (id, db, shard))")
    ran(feed, 4, insert("s2.t_a", 3, id=1, v=1, s="x"))
    fact = refused(feed, 6, ddl("s1.t_a", 5, "TRUNCATE TABLE `s1`.`t_a`", kind="TRUNCATE"))
    assert "tell their rows apart by other columns" in fact
    assert len(rows(feed)) == 1


def test_a_rename_changes_nothing_but_the_origin(every_feed: Feed) -> None:
    """Columns with ON UPDATE would be set to the present."""
    feed = every_feed.with_(sink=MERGED)
    now = "CURRENT_TIMESTAMP"
    times = f"`at` TIMESTAMP NOT NULL DEFAULT {now} ON UPDATE {now}, `to` DATETIME(3) NULL ON UPDATE {now}(3)"
    feed.send([ddl("m.", 1, "CREATE DATABASE `m`", kind="QUERY")])
    feed.send(ddl(f"s1.t_{name}", 2, f"CREATE TABLE `t_{name}` (`id` INT PRIMARY KEY, {times})") for name in "ab")
    row = insert("s1.t_a", 3, id=1, at="2020-01-01 00:00:00", to="2020-01-01 00:00:00.123")
    ran(feed, 4, typed(row, at="timestamp", to="datetime"))
    (before,) = rows(feed)
    ran(feed, 6, ddl("s1.t_c", 5, "RENAME TABLE `s1`.`t_a` TO `s1`.`t_c`", kind="RENAME"))
    assert rows(feed) == [tuple("c" if value == "a" else value for value in before)]

"""Merged tables: rows and DDLs of shards that come after a DDL which the target has nothing of."""

import pytest

from ordering.errors import TableMismatchError
from sinks.bookkeeping.ddl_log import DdlState
from tests.service.lab import Feed
from tests.service.messages import ddl, insert, update, watermarks
from tests.service.rows.test_merged_by_hand import altered, decided, of_two
from tests.service.rows.test_merging import COLUMNS, MERGED, prove, ran, refused, rows

pytestmark = pytest.mark.service
TWO = [("1", "1", "x", "a", "1"), ("1", "1", "x", "b", "1")]


def leaving_out(feed: Feed, event: str) -> Feed:
    """Two shards, of which the second one's DDLs of a kind are ignored."""
    feed = of_two(feed)
    feed.with_(filter={"event-filters": [{"matcher": ["s1.t_b"], "ignore-event": [event]}]})
    return feed


def mismatched(feed: Feed, number: int, *messages: object) -> str:
    feed.send([*messages, *watermarks(number)])  # type: ignore[list-item]
    error = feed.failing(TableMismatchError)
    assert "partition=0 offset=" in error.where
    return error.fact


def test_a_row_with_a_column_that_no_ddl_gave_its_shard_ends_the_run(every_feed: Feed) -> None:
    feed = of_two(every_feed)
    ran(feed, 11, altered("a", 11, "ADD COLUMN `c` INT DEFAULT 1"))
    fact = mismatched(feed, 14, insert("s1.t_b", 12, id=2, v=1, s="x", c=77), altered("a", 14, "DROP COLUMN `c`"))
    assert "s1.t_b has the column 'c', which only other tables merged in m.t have" in fact


def test_a_row_with_such_a_column_ends_the_run_where_other_definitions_are_unknown(sqlite_feed: Feed) -> None:
    feed = of_two(sqlite_feed)
    ran(feed, 11, altered("a", 11, "ADD COLUMN `c` INT DEFAULT 1"))
    refused(feed, 12, altered("a", 12, "MODIFY COLUMN `v` BIGINT"))
    decided(feed, 12, DdlState.TAKE)
    assert "has the column 'c'" in mismatched(feed, 13, insert("s1.t_b", 13, id=2, v=1, s="x", c=77))


@pytest.mark.parametrize("made", [f"CREATE TABLE `t_b` {COLUMNS}", "CREATE TABLE `t_b` LIKE `t_a`"])
def test_a_shard_is_not_made_again_among_its_old_rows(every_feed: Feed, made: str) -> None:
    feed = leaving_out(every_feed, "drop table")
    ran(feed, 12, ddl("s1.t_b", 12, "DROP TABLE `s1`.`t_b`", kind="ERASE"))
    assert "holds rows of a table of that name" in refused(feed, 13, ddl("s1.t_b", 13, made))
    feed.cells.run("m", "DELETE FROM t WHERE shard = 'b'")
    ran(feed, 14, insert("s1.t_b", 14, id=2, v=2, s="y"))
    assert rows(feed) == [("1", "1", "x", "a", "1"), ("1", "2", "y", "b", "2")]


def test_rows_of_a_name_whose_rename_was_left_out_end_the_run(every_feed: Feed) -> None:
    feed = leaving_out(every_feed, "rename table")
    ran(feed, 12, ddl("s1.t_c", 12, "RENAME TABLE `s1`.`t_b` TO `s1`.`t_c`", kind="RENAME"))
    changed = update("s1.t_c", 14, {"v": 1}, id=1, v=3, s="z")
    assert "s1.t_c has the column 'id', 'v', 's', which only other tables" in mismatched(feed, 14, changed)
    assert rows(feed) == TWO


def test_a_name_whose_rename_was_left_out_counts_again_once_it_is_made_again(sqlite_feed: Feed) -> None:
    feed = leaving_out(sqlite_feed, "rename table")
    ran(feed, 12, ddl("s1.t_c", 12, "RENAME TABLE `s1`.`t_b` TO `s1`.`t_c`", kind="RENAME"))
    ran(feed, 13, ddl("s1.t_c", 13, "DROP TABLE `s1`.`t_c`", kind="ERASE"))
    ran(feed, 15, ddl("s1.t_c", 14, f"CREATE TABLE `t_c` {COLUMNS}"), insert("s1.t_c", 15, id=1, v=1, s="x"))
    assert rows(feed) == [*TWO, ("1", "1", "x", "c", "1")]


def test_shards_that_are_spelled_in_other_case_are_one_table(every_feed: Feed) -> None:
    """TiDB tells names apart regardless of case, and keeps the spelling of each CREATE TABLE."""
    (merging,) = MERGED["dispatchers"]
    feed = every_feed
    merging = {key: value for key, value in merging.items() if key != "extract-table"}
    feed.with_(sink={"dispatchers": [{**merging, "matcher": ["s*.*"], "target-table": "{table}"}]})
    feed.send([ddl("m.", 1, "CREATE DATABASE `m`", kind="QUERY")])
    ran(feed, 3, ddl("s1.T", 2, f"CREATE TABLE `T` {COLUMNS}"), ddl("s2.t", 3, f"CREATE TABLE `t` {COLUMNS}"))
    for number, name in ((4, "s1.T"), (5, "s2.t")):
        added = f"ALTER TABLE `{name[3:]}` ADD COLUMN `c` INT"
        ran(feed, number, ddl(name, number, added, kind="ALTER"))
    ran(feed, 8, *(insert(name, 8, id=1, v=1, s="x", c=7) for name in ("s1.T", "s2.t")))
    prove(feed)
    ran(feed, 9, ddl("s1.T", 9, "ALTER TABLE `T` DROP COLUMN `c`", kind="ALTER"))
    assert rows(feed, "m.T") == [("7", "1", "1", "x", "1"), ("7", "2", "1", "x", "1")]
    ran(feed, 10, ddl("s1.T", 10, "DROP TABLE `s1`.`T`", kind="ERASE"))
    assert rows(feed, "m.T") == [("7", "2", "1", "x", "1")]

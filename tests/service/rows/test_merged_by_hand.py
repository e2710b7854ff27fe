"""Merged tables: what a shard counts as having after its DDL was left out, or made by hand."""

import pytest

from consumer.operate.decisions import decide_ddl
from sinks.bookkeeping.ddl_log import DdlState
from tests.service.lab import Feed
from tests.service.messages import at, ddl, insert
from tests.service.rows.test_merging import begun, prove, ran, refused, rows

pytestmark = pytest.mark.service
UNKNOWN = "is in the merged table is not known"


def altered(shard: str, number: int, clause: str) -> object:
    return ddl(f"s1.t_{shard}", number, f"ALTER TABLE `t_{shard}` {clause}", kind="ALTER")


def of_two(feed: Feed) -> Feed:
    begun(feed, "s1.t_a", "s1.t_b")
    ran(feed, 10, *(insert(f"s1.t_{name}", 10, id=1, v=1, s="x") for name in "ab"))
    return feed


def decided(feed: Feed, number: int, how: DdlState) -> None:
    decide_ddl(feed.config, at(number), how, "a test")
    feed.once()


@pytest.mark.parametrize("how", [DdlState.TAKE, DdlState.SKIP])
def test_a_column_that_came_by_hand_or_is_passed_over_keeps_its_values(sqlite_feed: Feed, how: DdlState) -> None:
    feed = of_two(sqlite_feed)
    ran(feed, 11, altered("a", 11, "ADD COLUMN `c` INT DEFAULT 1"))
    refused(feed, 12, altered("b", 12, "ADD COLUMN `c` INT DEFAULT 5"))
    decided(feed, 12, how)
    ran(feed, 13, insert("s1.t_b", 13, id=2, v=1, s="x", c=77))
    dropped = altered("a", 15, "DROP COLUMN `c`")
    if how is DdlState.TAKE:
        assert UNKNOWN in refused(feed, 16, dropped)
    else:
        ran(feed, 16, dropped)
    assert ("77", "1", "2", "x", "b", "1") in rows(feed)


def test_the_proof_sees_a_column_that_came_by_hand(sqlite_feed: Feed) -> None:
    feed = of_two(sqlite_feed)
    ran(feed, 11, altered("a", 11, "ADD COLUMN `c` INT DEFAULT 1"))
    refused(feed, 12, altered("b", 12, "ADD COLUMN `c` INT DEFAULT 5"))
    feed.cells.run("m", "UPDATE t SET c = 5 WHERE shard = 'b'")
    decided(feed, 12, DdlState.TAKE)
    prove(feed)
    ran(feed, 13, insert("s1.t_b", 13, id=2, v=1, s="x", c=77))
    assert prove(feed) == {"s1.t_a": "equal", "s1.t_b": "equal"}
    feed.cells.run("m", "UPDATE t SET c = 666 WHERE id = 2")
    ran(feed, 14, insert("s1.t_b", 14, id=3, v=1, s="x", c=78))
    assert prove(feed)["s1.t_b"] == "different"


def test_a_column_that_comes_back_by_hand_keeps_its_values(sqlite_feed: Feed) -> None:
    feed = of_two(sqlite_feed)
    ran(feed, 11, altered("a", 11, "DROP COLUMN `s`"))
    assert "comes back" in refused(feed, 12, altered("a", 12, "ADD COLUMN `s` VARCHAR(10)"))
    feed.cells.run("m", "UPDATE t SET s = NULL WHERE shard = 'a'")
    decided(feed, 12, DdlState.TAKE)
    ran(feed, 13, insert("s1.t_a", 13, id=2, v=1, s="y"))
    assert UNKNOWN in refused(feed, 14, altered("b", 14, "DROP COLUMN `s`"))
    assert ("1", "2", "y", "a", "1") in rows(feed)


@pytest.mark.parametrize("first", "ab")
def test_a_column_whose_ddl_a_filter_ignores_keeps_its_values(sqlite_feed: Feed, first: str) -> None:
    feed = of_two(sqlite_feed)
    feed.with_(filter={"event-filters": [{"matcher": ["s1.t_b"], "ignore-event": ["add column"]}]})
    if first == "b":
        ran(feed, 12, altered("b", 12, "ADD COLUMN `c` INT"))
        assert UNKNOWN in refused(feed, 13, altered("a", 13, "ADD COLUMN `c` INT"))
        return
    ran(feed, 12, altered("a", 11, "ADD COLUMN `c` INT"), altered("b", 12, "ADD COLUMN `c` INT"))
    ran(feed, 13, insert("s1.t_b", 13, id=2, v=1, s="x", c=77))
    ran(feed, 15, altered("a", 14, "DROP COLUMN `c`"))
    assert ("77", "1", "2", "x", "b", "1") in rows(feed)


def test_a_column_whose_drop_is_passed_over_does_not_come_back_with_its_values(sqlite_feed: Feed) -> None:
    feed = of_two(sqlite_feed)
    feed.with_(filter={"event-filters": [{"matcher": ["s1.t_a"], "ignore-event": ["drop column"]}]})
    ran(feed, 11, altered("a", 11, "DROP COLUMN `s`"))
    assert "comes back" in refused(feed, 12, altered("a", 12, "ADD COLUMN `s` VARCHAR(10)"))


def test_what_a_column_holds_is_not_known_after_it_was_changed_by_hand(sqlite_feed: Feed) -> None:
    feed = of_two(sqlite_feed)
    ran(feed, 11, altered("a", 11, "ADD COLUMN `c` INT DEFAULT 1"))
    refused(feed, 12, altered("a", 12, "MODIFY COLUMN `c` BIGINT DEFAULT 2"))
    decided(feed, 12, DdlState.TAKE)
    assert UNKNOWN in refused(feed, 13, altered("b", 13, "ADD COLUMN `c` INT DEFAULT 5"))


def test_another_column_is_known_as_before_after_one_was_changed_by_hand(sqlite_feed: Feed) -> None:
    feed = of_two(sqlite_feed)
    ran(feed, 11, altered("a", 11, "ADD COLUMN `c` INT DEFAULT 1"))
    refused(feed, 12, altered("a", 12, "MODIFY COLUMN `v` BIGINT"))
    decided(feed, 12, DdlState.TAKE)
    assert "is int NULL DEFAULT '5' there" in refused(feed, 13, altered("b", 13, "ADD COLUMN `c` INT DEFAULT 5"))


def test_a_column_that_was_renamed_by_hand_comes_again_by_hand(sqlite_feed: Feed) -> None:
    feed = of_two(sqlite_feed)
    refused(feed, 11, altered("a", 11, "RENAME COLUMN `s` TO `d`"))
    feed.cells.run("m", "ALTER TABLE t RENAME COLUMN s TO d")
    decided(feed, 11, DdlState.TAKE)
    assert UNKNOWN in refused(feed, 12, altered("a", 12, "ADD COLUMN `s` VARCHAR(10)"))


def test_a_column_that_the_target_has_lost_by_hand_is_no_others(sqlite_feed: Feed) -> None:
    feed = of_two(sqlite_feed)
    ran(feed, 11, altered("a", 11, "ADD COLUMN `c` INT"))
    feed.cells.run("m", "ALTER TABLE t DROP COLUMN c")
    assert "has no column of that name" in refused(feed, 12, altered("b", 12, "ADD COLUMN `c` INT"))


def test_a_ddl_of_no_column_changes_nothing_of_what_a_shard_lacks(sqlite_feed: Feed) -> None:
    feed = of_two(sqlite_feed)
    feed.with_(filter={"event-filters": [{"matcher": ["s1.t_b"], "ignore-event": ["truncate table"]}]})
    ran(feed, 11, altered("a", 11, "ADD COLUMN `c` INT"))
    refused(feed, 13, altered("b", 13, "CONVERT TO CHARACTER SET utf8mb4"))
    decided(feed, 13, DdlState.SKIP)
    ran(feed, 14, ddl("s1.t_b", 14, "TRUNCATE TABLE `s1`.`t_b`", kind="TRUNCATE"))
    ran(feed, 15, altered("a", 15, "DROP COLUMN `c`"))
    assert rows(feed) == [("1", "1", "x", "a", "1"), ("1", "1", "x", "b", "1")]


def test_a_shard_is_not_made_with_a_column_that_no_ddl_has_given_the_target(sqlite_feed: Feed) -> None:
    feed = of_two(sqlite_feed)
    feed.with_(filter={"event-filters": [{"matcher": ["s1.t_b"], "ignore-event": ["add column"]}]})
    ran(feed, 12, altered("b", 12, "ADD COLUMN `c` INT"))
    made = "CREATE TABLE `t_d` (`id` INT PRIMARY KEY,`v` INT,`s` VARCHAR(10),`c` INT)"
    assert UNKNOWN in refused(feed, 13, ddl("s1.t_d", 13, made))


def test_a_column_goes_that_shards_which_came_by_hand_may_have(sqlite_feed: Feed) -> None:
    feed = of_two(sqlite_feed)
    made = "CREATE TABLE `t_c` (`id` INT PRIMARY KEY,`v` INT,`s` VARCHAR(10),`c` INT)"
    assert "it has the column c, which" in refused(feed, 11, ddl("s1.t_c", 11, made))
    feed.cells.run("m", "ALTER TABLE t ADD COLUMN c INT")
    decided(feed, 11, DdlState.TAKE)
    ran(feed, 12, insert("s1.t_c", 12, id=1, v=1, s="x", c=77))
    assert UNKNOWN in refused(feed, 13, altered("a", 13, "ADD COLUMN `c` INT"))
    decided(feed, 13, DdlState.TAKE)
    assert UNKNOWN in refused(feed, 14, altered("a", 14, "DROP COLUMN `c`"))
    assert ("77", "1", "1", "x", "c", "1") in rows(feed)


def test_a_column_that_was_there_before_its_ddl_by_hand_may_be_others(sqlite_feed: Feed) -> None:
    feed = of_two(sqlite_feed)
    feed.cells.run("m", "ALTER TABLE t ADD COLUMN c INT")
    assert "has a column 'c' already" in refused(feed, 11, altered("a", 11, "ADD COLUMN `c` INT"))
    decided(feed, 11, DdlState.TAKE)
    ran(feed, 13, insert("s1.t_b", 12, id=2, v=1, s="x", c=77), altered("a", 13, "DROP COLUMN `c`"))
    assert ("77", "1", "2", "x", "b", "1") in rows(feed)

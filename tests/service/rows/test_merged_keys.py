"""Merged tables with keys of kinds that targets compare in their own ways, equal over shards, moved and swapped."""

import pytest

from consumer.demo.fake_ticdc.changefeed import Message
from consumer.operate.decisions import decide_ddl
from ordering.errors import InputError, TableMismatchError
from sinks.bookkeeping.ddl_log import DdlState
from tests.service.lab import Feed
from tests.service.local import LocalFeed
from tests.service.messages import at, ddl, delete, insert, keyed, typed, update, watermarks
from tests.service.rows.test_merging import MERGED, prove, ran

pytestmark = pytest.mark.service
KEYS = {
    "BIGINT UNSIGNED": ("18446744073709551615", "9223372036854775808", "0"),
    "ENUM('x','y','z')": ("1", "2", "3"),
    "VARCHAR(10) COLLATE utf8mb4_0900_bin": ("a", "A", "b"),
    "VARCHAR(10) COLLATE utf8mb4_general_ci": ("a", "b", "c"),
    "DECIMAL(10,2)": ("1.50", "1.05", "0.00"),
    "VARBINARY(9)": ("a\0", "a", "\u00ff"),
    "DATETIME(3)": ("2024-01-01 00:00:00.100", "2024-01-01 00:00:00.010", "1000-01-01 00:00:00.000"),
}


@pytest.mark.cells("kind", ("every_feed", "consistency"))
@pytest.mark.parametrize("consistency", ["snapshot", "transaction", "row"])
@pytest.mark.parametrize("kind", KEYS)
def test_keys(every_feed: Feed, kind: str, consistency: str) -> None:
    feed, keys = every_feed.with_(sink=MERGED, target={"consistency": consistency}), KEYS[kind]
    if consistency == "row":
        assert isinstance(feed, LocalFeed)
        feed.by_tasks()
    told = kind.partition("(")[0].partition(" COLLATE")[0].lower()

    def sent(message: Message) -> Message:
        return keyed(typed(message, k=told), "k")

    feed.send([ddl("m.", 1, "CREATE DATABASE `m`", kind="QUERY")])
    columns = f"(`k` {kind} PRIMARY KEY, `v` INT UNIQUE KEY)"
    feed.send(ddl(f"s1.t_{name}", 2, f"CREATE TABLE `t_{name}` {columns}") for name in "abc")
    ran(
        feed,
        4,
        *(sent(insert(f"s1.t_{name}", 3, p, k=key, v=n)) for p, name in enumerate("abc") for n, key in enumerate(keys)),
    )
    before = landed(feed)
    assert len(before) == 9
    first, second, third = (before["c", n] for n in range(3))
    ran(
        feed,
        6,
        *(sent(update("s1.t_a", 5, {"k": keys[n]}, n, k=keys[(n + 1) % 3], v=n)) for n in range(3)),
        sent(update("s1.t_b", 5, {"v": 0}, 0, k=keys[0], v=1)),
        sent(update("s1.t_b", 5, {"v": 1}, 1, k=keys[1], v=0)),
        sent(delete("s1.t_c", 5, 2, k=keys[1], v=1)),
    )
    moved = {("a", 0): second, ("a", 1): third, ("a", 2): first}
    swapped = {("b", 0): second, ("b", 1): first, ("b", 2): third}
    assert landed(feed) == {**moved, **swapped, ("c", 0): first, ("c", 2): third}
    emptied = ddl("s1.t_a", 7, "TRUNCATE TABLE `s1`.`t_a`", kind="TRUNCATE")
    ran(feed, 8, emptied, ddl("s1.t_d", 7, "RENAME TABLE `s1`.`t_b` TO `s1`.`t_d`", kind="RENAME"))
    renamed = {("d", n): key for (_, n), key in swapped.items()}
    assert landed(feed) == {**renamed, ("c", 0): first, ("c", 2): third}
    assert "different" not in prove(feed).values()


def landed(feed: Feed) -> dict[tuple[str, int], object]:
    """The keys of the merged table's rows by shard and `v`."""
    return {(row["shard"], int(row["v"])): row["k"] for row in feed.cells.tables(["m"])["m.t"][1]}


LEFT_OUT = {**MERGED, "column-selectors": [{"matcher": ["s*.*"], "columns": ["!s"]}]}
UNIQUE = "(`id` INT PRIMARY KEY, `v` INT UNIQUE KEY, `s` VARCHAR(10))"


def with_other_unique_key(feed: LocalFeed, consistency: str = "snapshot") -> LocalFeed:
    feed.with_(sink=MERGED, target={"consistency": consistency})
    if consistency == "row":
        feed.by_tasks()
    feed.send([ddl("m.", 1, "CREATE DATABASE `m`", kind="QUERY")])
    feed.send(ddl(f"s1.t_{name}", 2, f"CREATE TABLE `t_{name}` {UNIQUE}") for name in "ab")
    ran(feed, 4, *(insert(f"s1.t_{name}", 3, id=1, v=1, s="x") for name in "ab"))
    return feed


@pytest.mark.parametrize("consistency", ["snapshot", "transaction", "row"])
def test_the_targets_own_column_is_not_lost_where_another_unique_key_is(
    sqlite_feed: LocalFeed, consistency: str
) -> None:
    feed = with_other_unique_key(sqlite_feed, consistency)
    feed.cells.run("m", "ALTER TABLE t ADD COLUMN note TEXT")
    feed.cells.run("m", "UPDATE t SET note = 'own'")
    feed.send([update("s1.t_a", 5, {"v": 1}, id=1, v=2, s="x"), *watermarks(6)])
    assert "'note'" in feed.failing(TableMismatchError).fact
    assert {row["note"] for row in feed.cells.tables(["m"])["m.t"][1]} == {"own"}


def test_a_column_that_is_left_out_is_refused_where_another_unique_key_is(sqlite_feed: LocalFeed) -> None:
    feed = sqlite_feed.with_(sink=LEFT_OUT)
    feed.send([ddl("m.", 1, "CREATE DATABASE `m`", kind="QUERY"), ddl("s1.t_a", 2, f"CREATE TABLE `t_a` {UNIQUE}")])
    feed.send([insert("s1.t_a", 3, id=1, v=1, s="x"), *watermarks(4)])
    assert "'s'" in feed.failing(TableMismatchError).fact


@pytest.mark.parametrize("consistency", ["snapshot", "transaction", "row"])
def test_columns_of_other_shards_stop_no_shard(sqlite_feed: LocalFeed, consistency: str) -> None:
    """One that it lost, one that it never had, and one that was made by hand, of which nobody knows whose it is."""
    feed = with_other_unique_key(sqlite_feed, consistency)
    lost = ddl("s1.t_a", 5, "ALTER TABLE `t_a` DROP COLUMN `s`", kind="ALTER")
    added = ddl("s1.t_b", 5, "ALTER TABLE `t_b` ADD COLUMN `N` INT DEFAULT 5", kind="ALTER")
    ran(feed, 7, lost, added, update("S1.T_a", 6, {"v": 1}, id=1, v=2))
    ran(feed, 9, update("s1.t_a", 8, {"v": 2}, id=1, v=3), update("s1.t_b", 8, {"v": 1}, id=1, v=4, s="y", N=6))
    assert {(row["shard"], row["v"], row["s"], row["N"]) for row in feed.cells.tables(["m"])["m.t"][1]} == {
        ("a", 3, None, 5), ("b", 4, "y", 6)
    }  # fmt: skip
    feed.send([ddl("s1.t_b", 10, "ALTER TABLE `t_b` MODIFY COLUMN `N` BIGINT", kind="ALTER"), *watermarks(10)])
    feed.failing(InputError)
    decide_ddl(feed.config, at(10), DdlState.TAKE, "made by hand")
    ran(feed, 12, update("s1.t_a", 11, {"v": 3}, id=1, v=5))
    assert {int(row["v"]) for row in feed.cells.tables(["m"])["m.t"][1]} == {4, 5}

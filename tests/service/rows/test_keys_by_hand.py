"""Unique keys of tables that were made by hand, or that stay where a filter leaves out what becomes of their tables."""

import re

import pytest

from ordering.errors import TableMismatchError, TargetError
from tests.service.lab import Feed
from tests.service.messages import ddl, watermarks
from tests.service.messages import insert as with_key
from tests.service.rows.test_promoted_keys import BY_A, insert

pytestmark = pytest.mark.service
DROPS = {
    "at once": ["ALTER TABLE `t` DROP INDEX `u`, ADD UNIQUE `w`(`b`)"],
    "later": ["ALTER TABLE `t` ADD UNIQUE `w`(`b`)", "ALTER TABLE `t` DROP INDEX `u`"],
    "with DROP INDEX": ["ALTER TABLE `t` ADD UNIQUE `w`(`b`)", "DROP INDEX `u` ON `t`"],
    "the primary key": ["ALTER TABLE `t` ADD UNIQUE `w`(`b`)", "ALTER TABLE `t` DROP PRIMARY KEY"],
}


@pytest.mark.parametrize("dropped", DROPS)
@pytest.mark.cells("every_feed", by_turns=("dropped",))
def test_a_key_made_by_hand_does_not_outlive_upstreams(every_feed: Feed, dropped: str) -> None:
    """No DDL found it by upstream's name, which no target minds: rows that are equal in it replaced each other."""
    every_feed.make_database("d", "CREATE TABLE t (a INT NOT NULL, b INT NOT NULL, CONSTRAINT mine UNIQUE (a))")
    every_feed.send([insert(2, a=1, b=1), *(ddl("d.t", number, sql) for number, sql in enumerate(DROPS[dropped], 3))])
    every_feed.send([insert(17, a=1, b=2), insert(18, a=1, b=3), *watermarks(19)])
    with pytest.raises(TargetError, match=r"index '(u|PRIMARY)' of d\.t, and the target's unique index over a may be"):
        every_feed.once()
    assert len(every_feed.cells.tables(["d"])["d.t"][1]) == 1


def test_beside_a_primary_key_an_index_may_be_missing(every_feed: Feed) -> None:
    every_feed.make_database("d", "CREATE TABLE t (id INT PRIMARY KEY, b INT NOT NULL, CONSTRAINT mine UNIQUE (b))")
    every_feed.send([ddl("d.t", 3, "DROP INDEX `gone` ON `t`"), with_key("d.t", 17, id=1, b=2), *watermarks(19)])
    every_feed.once()
    assert len(every_feed.cells.tables(["d"])["d.t"][1]) == 1


BY_B = BY_A.replace("`t`", "`s`").replace("`u`(`a`)", "`w`(`b`)")
GONE = "DROP TABLE `d`.`t`"
MOVES: dict[str, tuple[list[tuple[str, str]], list[tuple[str, str]]]] = {
    "like another": ([("s", BY_B)], [("t", GONE), ("t", "CREATE TABLE `t` LIKE `s`")]),
    "like one with a primary key": (
        [("s", BY_B.replace("UNIQUE `w`", "PRIMARY KEY"))],
        [("t", GONE), ("t", "CREATE TABLE `t` LIKE `s`")],
    ),
    "another under its name": ([("s", BY_B)], [("t", GONE), ("t", "RENAME TABLE `s` TO `t`")]),
    "another under its name, with ALTER": ([("s", BY_B)], [("t", GONE), ("t", "ALTER TABLE `s` RENAME `t`")]),
    "another, and it under a third name": (
        [("s", BY_B)],
        [("x", "RENAME TABLE `t` TO `x`"), ("t", "RENAME TABLE `s` TO `t`")],
    ),
    "made again, its key under another name": (
        [],
        [
            ("t", GONE),
            ("t", BY_A.replace("`u`(`a`)", "`x`(`a`),UNIQUE `w`(`b`)")),
            ("t", "ALTER TABLE `t` DROP INDEX `x`"),
        ],
    ),
}
"""Statements that are executed behind `BY_A`, and those that a filter leaves out: upstream's key is `b` then."""


@pytest.mark.parametrize("moved", MOVES)
@pytest.mark.cells("every_feed", by_turns=("moved",))
def test_a_key_does_not_outlive_its_table_upstream(every_feed: Feed, moved: str) -> None:
    """It was known of a CREATE TABLE with a list alone: rows that are equal in it replaced each other."""
    executed, left_out = MOVES[moved]
    texts = [f"^{re.escape(sql)}$" for _, sql in left_out]
    every_feed.with_(filter={"event-filters": [{"matcher": ["d.*"], "ignore-sql": texts}], "rules": ["*.*"]})
    statements = enumerate([("t", BY_A), *executed, *left_out], 2)
    ddls = [ddl(f"d.{name}", number, sql) for number, (name, sql) in statements]
    every_feed.send([ddl("d.", 1, "CREATE DATABASE `d`"), *ddls])
    every_feed.send([insert(17, a=1, b=2), insert(18, a=1, b=3), *watermarks(19)])
    with pytest.raises(TableMismatchError, match=r"upstream has dropped the key of table d\.t over a,"):
        every_feed.once()

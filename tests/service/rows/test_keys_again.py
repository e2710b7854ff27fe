"""Keys that a filter has kept, and that upstream makes again under some name: once that is dropped, they are lost."""

import re

import pytest

from ordering.errors import TableMismatchError, TargetError
from tests.service.lab import Feed
from tests.service.messages import ddl, watermarks
from tests.service.rows.test_promoted_keys import BOTH, BY_A, DROP_U, _dropping, insert

pytestmark = pytest.mark.service
ADD_V, DROP_V, DROP_Y = (
    "ALTER TABLE `t` ADD UNIQUE `v`(`a`)",
    "ALTER TABLE `t` DROP INDEX `v`",
    "DROP INDEX `y` ON `t`",
)
AGAIN: dict[str, tuple[list[str], set[int]]] = {
    "left out": ([f"{DROP_U}, ADD UNIQUE `v`(`a`)", DROP_V], {0, 1}),
    "made": ([DROP_U, ADD_V, DROP_V], {0}),
    "made, and its drop left out": ([DROP_U, ADD_V, DROP_V], {0, 2}),
    "not made, and its drop comes": ([DROP_U, ADD_V, DROP_V], {0, 1}),
    "renamed": ([DROP_U, ADD_V, "ALTER TABLE `t` RENAME INDEX `v` TO `y`", DROP_Y], {0}),
    "the primary key": (
        [DROP_U, "ALTER TABLE `t` ADD PRIMARY KEY(`a`)", "ALTER TABLE `t` DROP PRIMARY KEY"],
        {0},
    ),
    "twice": ([DROP_U, ADD_V, "ALTER TABLE `t` ADD UNIQUE `y`(`a`)", DROP_V, DROP_Y], {0}),
    "another of its new name": (
        [
            "ALTER TABLE `t` RENAME INDEX `u` TO `x`",
            "ALTER TABLE `t` DROP INDEX `x`",
            "ALTER TABLE `t` ADD UNIQUE `x`(`b`)",
        ],
        {0, 1},
    ),
    "without a name, which has a number upstream": (
        [DROP_U, "ALTER TABLE `t` ADD UNIQUE(`a`)", "DROP INDEX `a_2` ON `t`"],
        {0, 1},
    ),
    "without a name": ([DROP_U, "ALTER TABLE `t` ADD UNIQUE(`a`)", "DROP INDEX `a` ON `t`"], {0}),
}
"""DDLs behind those of `BOTH`, and the places of those that a filter leaves out; upstream's key is `b` then."""


@pytest.mark.parametrize("again", AGAIN)
@pytest.mark.cells("every_feed", by_turns=("again",))
def test_a_kept_key_is_lost_once_more(every_feed: Feed, again: str) -> None:
    """It was forgotten when upstream had such a key again: rows that are equal in it replaced each other."""
    statements, left_out = AGAIN[again]
    texts = [f"^{re.escape(statements[place])}$" for place in left_out]
    every_feed.with_(filter={"event-filters": [{"matcher": ["d.*"], "ignore-sql": texts}], "rules": ["*.*"]})
    ddls = [ddl("d.t", number, sql) for number, sql in enumerate(statements, 4)]
    every_feed.send([ddl("d.", 1, "CREATE DATABASE `d`"), ddl("d.t", 2, BOTH), insert(3, a=1, b=1), *ddls])
    every_feed.send([insert(17, a=1, b=2), insert(18, a=1, b=3), *watermarks(19)])
    told = r"(has dropped the key of table d\.t|unique index) over a"
    with pytest.raises((TableMismatchError, TargetError), match=told):
        every_feed.once()
    assert len(every_feed.cells.tables(["d"])["d.t"][1]) == 1


def test_a_key_that_was_made_by_hand_is_kept_like_another(every_feed: Feed) -> None:
    """The operator does as the error advises, and a filter leaves out what becomes of that key, too."""
    ignored = {"matcher": ["d.*"], "ignore-sql": ["DROP INDEX"]}
    every_feed.with_(filter={"event-filters": [ignored], "rules": ["*.*"]})
    once, again = (f"ALTER TABLE `t` DROP INDEX `u`,ADD UNIQUE `u`({columns})" for columns in ("`b`", "`a`,`b`"))
    made = [ddl("d.", 1, "CREATE DATABASE `d`"), ddl("d.t", 2, BY_A), insert(3, a=1, b=1), ddl("d.t", 4, once)]
    every_feed.send([*made, insert(5, a=1, b=2), *watermarks(6)])
    with pytest.raises(TableMismatchError, match=r"upstream has dropped the key of table d\.t over a,"):
        every_feed.once()
    every_feed.cells.run("d", _dropping(every_feed))
    every_feed.cells.run("d", "CREATE UNIQUE INDEX u ON t (b)")
    assert every_feed.once().counts.rows_written == 2
    every_feed.send([ddl("d.t", 7, again), insert(8, a=3, b=3), insert(9, a=4, b=3), *watermarks(10)])
    with pytest.raises(TableMismatchError, match=r"upstream has dropped the key of table d\.t over b,"):
        every_feed.once()

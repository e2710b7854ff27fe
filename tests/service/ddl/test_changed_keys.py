"""A DDL and rows behind it in one window: the rows are told apart by the key that the DDL leaves."""

import pytest

from tests.service.local import LocalFeed
from tests.service.messages import ddl, insert, keyed, watermarks

pytestmark = pytest.mark.service
CREATED = [
    ddl("d.", 1, "CREATE DATABASE `d`"),
    ddl("d.t", 2, "CREATE TABLE `t` (`a` INT NOT NULL,`b` INT NOT NULL,UNIQUE `ua`(`a`),UNIQUE `ub`(`b`))"),
    *watermarks(3),
]
BEFORE = keyed(insert("d.t", 4, a=9, b=9))
DROPPED = ddl("d.t", 5, "ALTER TABLE `t` DROP INDEX `ua`", "ALTER")
BEHIND = [keyed(insert("d.t", n, a=1, b=n)) for n in (6, 7, 8)]


def rows(feed: LocalFeed) -> list[tuple[object, ...]]:
    return sorted(tuple(row.values()) for row in feed.cells.tables(["d"])["d.t"][1])


@pytest.mark.parametrize("consistency", ["snapshot", "transaction", "row"])
def test_rows_that_were_read_by_another_key_are_read_again(sqlite_feed: LocalFeed, consistency: str) -> None:
    """They are read before the DDL is executed, all three as one row."""
    feed = sqlite_feed
    feed.with_(target={"consistency": consistency})
    feed.send(CREATED)
    feed.once()
    feed.send([BEFORE, DROPPED, *BEHIND, *watermarks(9)])
    feed.once()
    assert rows(feed) == [(1, 6), (1, 7), (1, 8), (9, 9)]

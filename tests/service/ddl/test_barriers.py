"""DDLs at the edges, through real Kafka: at the watermark, behind it, several at one commitTs, a slow partition."""

import pytest

from tests.service.lab import Feed
from tests.service.messages import at, begun, ddl, insert, watermark, watermarks

pytestmark = pytest.mark.service


def test_barriers_at_the_edges(mariadb_feed: Feed) -> None:
    feed = mariadb_feed
    feed.send([*begun(), *watermarks(5)])
    feed.once()
    # every partition's watermark equals the DDL's commitTs and comes before it; rows at that commitTs belong before it
    feed.send([insert("d.t", 7, 1, id=2, v=2, s="two"), *watermarks(7)])
    feed.send([ddl("d.t", 7, "ALTER TABLE `t` ADD COLUMN `w` INT DEFAULT 5", kind="ALTER")])
    assert feed.once().checkpoint_ts == at(7)
    assert columns(feed) == ["id", "v", "s", "w"]
    # two more of that commitTs come later still, one of them twice; then one that a lagging partition holds back
    for _ in "ab":
        feed.send([ddl("d.t", 7, "ALTER TABLE `t` ADD COLUMN `x` INT DEFAULT 6", kind="ALTER")])
    feed.send([ddl("d.t", 7, "ALTER TABLE `t` DROP COLUMN `s`", kind="ALTER")])
    feed.send([ddl("d.t", 9, "TRUNCATE TABLE `t`"), insert("d.t", 10, 2, id=3, v=3, w=3, x=3)])
    feed.send([watermark(12, 0), watermark(12, 2)])
    feed.once()
    assert columns(feed) == ["id", "v", "w", "x"]
    assert ids(feed) == ["1", "2"]
    assert feed.checkpoint() == at(7)
    feed.send([insert("d.t", 9, 1, id=4, v=4, w=4, x=4), watermark(12, 1)])  # before the TRUNCATE, at its commitTs
    feed.once()
    assert ids(feed) == ["3"]
    assert [line["state"] for line in feed.status()["ddl_history"]] == ["done"] * 6


def columns(feed: Feed) -> list[str]:
    return feed.cells.tables(["d"])["d.t"][0]


def ids(feed: Feed) -> list[str]:
    return sorted(str(row["id"]) for row in feed.cells.tables(["d"])["d.t"][1])

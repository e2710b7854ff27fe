"""Tables whose key in the target is not upstream's: somebody made it there, or upstream has dropped it."""

import re
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from consumer.demo.fake_ticdc.changefeed import Message
from consumer.operate.decisions import decide_ddl
from consumer.operate.quarantine import listed, replay
from consumer.wiring import target_of
from ordering.errors import TableMismatchError, TargetError
from ordering.events import TableName
from ordering.kept_keys import KeptKey, lost_by
from ordering.quarantine import QuarantineState
from sinks.bookkeeping.ddl_log import DdlState
from tests.service.cells import MariaDbCells, SqliteCells
from tests.service.lab import Feed
from tests.service.local import LocalFeed
from tests.service.messages import TOPIC, at, ddl, encoded, row_value, watermarks

pytestmark = pytest.mark.service
HAND_MADE = "CREATE TABLE t (a INT NOT NULL PRIMARY KEY, b INT NOT NULL)"


def insert(number: int, **row: Any) -> Message:
    return Message(TOPIC, 0, encoded(row_value("INSERT", "d.t", at(number), row, None, ())))


def fed(feed: Feed, sql: str, **given: Any) -> Feed:
    """A feed of two rows that are equal in `a`, without the name of a key."""
    feed.make_database("d", sql)
    feed.send([insert(1, a=1, b=1), insert(2, a=1, b=2), *watermarks(9)])
    return feed.with_(filter={"rules": ["*.*"], **given})


@pytest.mark.parametrize("force", [True, False])
@pytest.mark.parametrize("consistency", ["snapshot", "transaction", "row"])
def test_rows_that_are_equal_there_do_not_replace_each_other(feed: Feed, consistency: str, *, force: bool) -> None:
    refused = fed(feed, HAND_MADE, **{"force-replicate": force}).with_(target={"consistency": consistency})
    with pytest.raises(TableMismatchError, match=r"d\.t has no primary key upstream.* over a: ") as caught:
        refused.once()
    assert "promoted-keys" in caught.value.hint
    assert refused.cells.tables(["d"])["d.t"][1] == []


def test_a_unique_key_within_it_tells_rows_apart(feed: Feed) -> None:
    both = fed(feed, "CREATE TABLE t (a INT NOT NULL, b INT NOT NULL, PRIMARY KEY (a, b), UNIQUE (b))")
    assert both.once().counts.rows_written == 2


def test_an_operators_word_counts(feed: Feed) -> None:
    promoted = fed(feed, "CREATE TABLE t (a INT NOT NULL, b INT NOT NULL, PRIMARY KEY (a, b))")
    with pytest.raises(TableMismatchError):
        promoted.once()
    told = promoted.with_(filter={"rules": ["*.*"], "promoted-keys": ["D.*"]})
    assert told.once().counts.rows_written == 2


def test_a_row_that_was_held_is_not_replayed_over_another(tmp_path: Path) -> None:
    """Its table got the primary key after it was held."""
    feed = LocalFeed.into(f"sqlite:///{tmp_path}/target", SqliteCells(tmp_path / "target"), tmp_path)
    feed.make_database("d", "CREATE TABLE t (a INT NOT NULL, b INT NOT NULL, c INT NOT NULL, UNIQUE (a))")
    feed.with_(quarantine={"enabled": True})
    feed.send([insert(1, a=1, b=5, c=1), insert(2, a=2, b=5, c=None), *watermarks(9)])
    feed.apply()
    rows = "SELECT * FROM t"
    feed.make_database(
        "d", f"CREATE TABLE u (a INT, b INT NOT NULL PRIMARY KEY, c INT); INSERT INTO u {rows}; DROP TABLE t"
    )
    feed.make_database("d", "ALTER TABLE u RENAME TO t")
    (verdict,) = replay(feed.config, [])
    assert (verdict.state, "no primary key upstream" in verdict.why) == (QuarantineState.HELD, True)
    assert [row["a"] for row in feed.cells.tables(["d"])["d.t"][1]] == [1]


def test_a_row_that_was_held_deletes_no_other_row_by_a_new_key(tmp_path: Path) -> None:
    """It was held by `b`, as 5. By `a`, that was another row: it was deleted, and the held one written beside it."""
    feed = LocalFeed.into(f"sqlite:///{tmp_path}/target", SqliteCells(tmp_path / "target"), tmp_path)
    feed.make_database("d", "CREATE TABLE t (a INT NOT NULL, b INT NOT NULL, c INT NOT NULL, UNIQUE (b))")
    feed.with_(quarantine={"enabled": True}, filter={"rules": ["*.*"], "promoted-keys": ["d.t"]})
    feed.send([insert(1, a=5, b=9, c=1), insert(2, a=1, b=5, c=None), *watermarks(9)])
    feed.apply()
    feed.make_database(
        "d", "CREATE TABLE u (a INT PRIMARY KEY, b INT NOT NULL, c INT); INSERT INTO u SELECT * FROM t; DROP TABLE t"
    )
    feed.make_database("d", "ALTER TABLE u RENAME TO t")
    (verdict,) = replay(feed.config, [])
    assert (verdict.state, "apart by a now" in verdict.why) == (QuarantineState.HELD, True)
    assert [row["a"] for row in feed.cells.tables(["d"])["d.t"][1]] == [5]


def test_a_row_that_was_held_is_not_superseded_by_another_row(tmp_path: Path) -> None:
    """The other row has in the new key what the held one had in the one before: nothing was missing, it said."""
    feed = LocalFeed.into(f"sqlite:///{tmp_path}/target", SqliteCells(tmp_path / "target"), tmp_path)
    feed.make_database("d", "CREATE TABLE t (a INT NOT NULL, b INT NOT NULL, c INT NOT NULL, UNIQUE (b))")
    feed.with_(quarantine={"enabled": True}, filter={"rules": ["*.*"], "promoted-keys": ["d.t"]})
    feed.send([insert(1, a=5, b=9, c=1), insert(2, a=1, b=5, c=None), insert(3, a=2, b=7, c=None), *watermarks(4)])
    feed.apply()
    feed.send([insert(5, a=2, b=7, c=4), *watermarks(5)])
    feed.apply()
    feed.make_database(
        "d", "CREATE TABLE u (a INT PRIMARY KEY, b INT NOT NULL, c INT); INSERT INTO u SELECT * FROM t; DROP TABLE t"
    )
    feed.make_database("d", "ALTER TABLE u RENAME TO t")
    feed.send([insert(6, a=5, b=9, c=8), *watermarks(9)])
    feed.apply()
    assert [one.state for one in listed(feed.config)] == [QuarantineState.HELD, QuarantineState.SUPERSEDED]


LOST = [
    ddl("d.", 1, "CREATE DATABASE `d`"),
    ddl("d.t", 2, "CREATE TABLE `t` (`a` INT NOT NULL,`b` INT,UNIQUE `u`(`a`),UNIQUE `w`(`b`))"),
    insert(3, a=1, b=1),
    ddl("d.t", 4, "ALTER TABLE `t` DROP INDEX `u`"),
    ddl("d.t", 5, "ALTER TABLE `t` MODIFY COLUMN `b` INT NOT NULL"),
]
WITHOUT_IT = [{"matcher": ["d.*"], "ignore-event": ["modify column"]}]


@pytest.mark.parametrize("consistency", ["snapshot", "transaction", "row"])
def test_rows_are_not_told_apart_by_a_key_that_upstream_has_dropped(every_feed: Feed, consistency: str) -> None:
    """A filter leaves out the DDL that makes upstream's new key, with which the kept one would have gone."""
    every_feed.with_(target={"consistency": consistency}, filter={"event-filters": WITHOUT_IT})
    every_feed.send([*LOST, insert(6, a=1, b=2), insert(7, a=1, b=3), *watermarks(9)])
    for _ in range(2):
        with pytest.raises(TableMismatchError, match=r"upstream has dropped the key of table d\.t over a,") as caught:
            every_feed.once()
        assert "promoted-keys" in caught.value.hint
    assert len(every_feed.cells.tables(["d"])["d.t"][1]) == 1


BY_A = "CREATE TABLE `t` (`a` INT NOT NULL,`b` INT NOT NULL,UNIQUE `u`(`a`))"
BOTH = BY_A.replace("UNIQUE `u`(`a`)", "UNIQUE `u`(`a`),UNIQUE `w`(`b`)")
DROP_U, ADD_W = "ALTER TABLE `t` DROP INDEX `u`", "ALTER TABLE `t` ADD UNIQUE `w`(`b`)"
REPLACED: dict[str, tuple[str, list[str], list[str]]] = {
    "at once": (BY_A, [], [f"{DROP_U}, ADD UNIQUE `w`(`b`)"]),
    "by another that was there": (BOTH, [], [DROP_U]),
    "by another that was there, with DROP INDEX": (BOTH, [], ["DROP INDEX `u` ON `t`"]),
    "by one of its name, once it was kept": (BY_A, [DROP_U], ["ALTER TABLE `t` ADD UNIQUE `u`(`b`)"]),
    "by CREATE INDEX of its name": (BY_A, [DROP_U], ["CREATE UNIQUE INDEX `u` ON `t` (`b`)"]),
    "behind a plain one of its name": (BY_A, [DROP_U], ["ALTER TABLE `t` ADD INDEX `u`(`b`)", ADD_W]),
    "with its table": (BY_A, [], ["DROP TABLE `t`", BY_A.replace("`u`(`a`)", "`u`(`b`)")]),
}
"""The table, DDLs that are executed, those that a filter leaves out: upstream's key is `b` then, the target's `a`."""


def _dropping(feed: Feed) -> str:
    """What drops the index `u` in the target."""
    if isinstance(feed.cells, MariaDbCells):
        return DROP_U
    with closing(target_of(feed.config)) as target:
        return f'DROP INDEX "{target.catalog().index_name(TableName("d", "t"), "u")}"'


@pytest.mark.parametrize("replaced", REPLACED)
def test_a_key_that_a_filter_keeps_does_not_tell_rows_apart(every_feed: Feed, replaced: str) -> None:
    """Rows that are equal in it replaced each other, and nothing told of it."""
    table, executed, left_out = REPLACED[replaced]
    texts = [f"^{re.escape(sql)}$" for sql in left_out]
    every_feed.with_(filter={"event-filters": [{"matcher": ["d.*"], "ignore-sql": texts}], "rules": ["*.*"]})
    ddls = [ddl("d.t", number, sql) for number, sql in enumerate([*executed, *left_out], 4)]
    every_feed.send([ddl("d.", 1, "CREATE DATABASE `d`"), ddl("d.t", 2, table), insert(3, a=1, b=1), *ddls])
    every_feed.send([insert(7, a=1, b=2), insert(8, a=1, b=3), *watermarks(9)])
    for _ in range(2):
        with pytest.raises(TableMismatchError, match=r"upstream has dropped the key of table d\.t over a,"):
            every_feed.once()
    assert len(every_feed.cells.tables(["d"])["d.t"][1]) == 1
    every_feed.cells.run("d", _dropping(every_feed))
    every_feed.cells.run("d", "CREATE UNIQUE INDEX w2 ON t (b)")
    assert every_feed.once().counts.rows_written == 3


@pytest.mark.parametrize("made", ["sqlite", "postgres"])
def test_a_key_that_a_filter_did_not_rename_does_not_tell_rows_apart(made: str, request: Any) -> None:
    """These targets do not mind to drop an index that they lack by that name; others refuse it."""
    feed: Feed = request.getfixturevalue(f"{made}_feed")
    renamed = "ALTER TABLE `t` RENAME INDEX `u` TO `x`"
    feed.with_(filter={"event-filters": [{"matcher": ["d.*"], "ignore-event": ["rename index"]}], "rules": ["*.*"]})
    dropped = "ALTER TABLE `t` DROP INDEX `x`, ADD UNIQUE `w`(`b`)"
    feed.send([ddl("d.", 1, "CREATE DATABASE `d`"), ddl("d.t", 2, BY_A), insert(3, a=1, b=1), ddl("d.t", 4, renamed)])
    feed.send([insert(5, a=2, b=2), *watermarks(5)])
    assert feed.once().counts.rows_written == 2
    feed.send([ddl("d.t", 6, dropped), insert(7, a=1, b=3), insert(8, a=1, b=4), *watermarks(9)])
    with pytest.raises(TableMismatchError, match=r"upstream has dropped the key of table d\.t over a,"):
        feed.once()


def test_a_key_that_upstream_has_again_tells_rows_apart(every_feed: Feed) -> None:
    texts = [f"^{re.escape(sql)}$" for sql in (DROP_U, "ALTER TABLE `t` ADD UNIQUE `v`(`a`)")]
    every_feed.with_(filter={"event-filters": [{"matcher": ["d.*"], "ignore-sql": texts}], "rules": ["*.*"]})
    again = [ddl("d.t", 4, DROP_U), ddl("d.t", 5, "ALTER TABLE `t` ADD UNIQUE `v`(`a`)")]
    every_feed.send([ddl("d.", 1, "CREATE DATABASE `d`"), ddl("d.t", 2, BOTH), insert(3, a=1, b=1), *again])
    every_feed.send([insert(7, a=2, b=2), *watermarks(9)])
    assert every_feed.once().counts.rows_written == 2


def test_a_key_that_an_operator_keeps_does_not_tell_rows_apart(every_feed: Feed) -> None:
    every_feed.send([ddl("d.", 1, "CREATE DATABASE `d`"), ddl("d.t", 2, BY_A), *watermarks(3)])
    every_feed.once()
    every_feed.cells.run("d", "INSERT INTO t VALUES (7, 7), (8, 7)")
    every_feed.send([ddl("d.t", 4, f"{DROP_U}, ADD UNIQUE `w`(`b`)"), *watermarks(5)])
    with pytest.raises(TargetError):
        every_feed.once()
    decide_ddl(every_feed.config, at(4), DdlState.SKIP, "a test")
    every_feed.send([insert(7, a=1, b=2), insert(8, a=1, b=3), *watermarks(9)])
    with pytest.raises(TableMismatchError, match=r"upstream has dropped the key of table d\.t over a,"):
        every_feed.once()


def test_upstreams_key_over_a_part_of_the_rows_tells_none_apart(every_feed: Feed) -> None:
    """TiCDC takes it for a whole one, and sends what it sends of no other table without a key."""
    partial = "CREATE TABLE `t` (`a` INT NOT NULL,`b` INT NOT NULL,UNIQUE `w`(`a`,`b`),UNIQUE `u`(`a`) WHERE `b`=1)"
    every_feed.send([ddl("d.", 1, "CREATE DATABASE `d`"), ddl("d.t", 2, partial), insert(3, a=1, b=2)])
    every_feed.send([ddl("d.t", 4, "ALTER TABLE `t` DROP INDEX `w`"), *watermarks(4)])
    every_feed.once()
    every_feed.send([insert(5, a=1, b=5), insert(6, a=1, b=5), *watermarks(9)])
    with pytest.raises(TableMismatchError, match="over a, b, which the target has kept"):
        every_feed.once()


def test_an_operators_word_counts_for_a_kept_key_too(feed: Feed) -> None:
    feed.with_(filter={"event-filters": WITHOUT_IT, "promoted-keys": ["d.t"], "rules": ["*.*"]})
    feed.send([*LOST, insert(6, a=2, b=2), insert(7, a=3, b=3), *watermarks(9)])
    assert feed.once().counts.rows_written == 3


def test_rows_from_before_the_drop_are_told_apart_by_what_was_the_key() -> None:
    """They come again after a rewind."""
    kept = {TableName("d", "t"): {"u": KeptKey(frozenset("a"), 4)}}
    assert (lost_by(kept, 3), lost_by(kept, 4)) == ({}, kept)

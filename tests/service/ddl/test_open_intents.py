"""What becomes of a statement that was begun, while errors come that say nothing about it."""

from collections.abc import Callable

import pytest

from consumer.operate.decisions import ddl_log
from ordering.errors import TargetError
from sinks.steps import Step
from tests.service.local import Killed, LocalFeed
from tests.service.messages import ddl, insert, keyed, watermarks

pytestmark = pytest.mark.service
RANGES = "PARTITION BY RANGE (`id`) (PARTITION `p0` VALUES LESS THAN (100))"
BEGIN = [
    ddl("d", 1, "CREATE DATABASE `d`"),
    ddl("d.t", 2, "CREATE TABLE `t` (`id` INT PRIMARY KEY)"),
    ddl("d.p", 3, f"CREATE TABLE `p` (`id` INT PRIMARY KEY) {RANGES}"),
    insert("d.t", 4, id=1),
    insert("d.p", 4, id=2),
    *watermarks(5),
]
EXCHANGE = ddl("d.p", 10, "ALTER TABLE `d`.`p` EXCHANGE PARTITION `p0` WITH TABLE `d`.`t`", kind="QUERY")


BAGS = [
    ddl("d", 1, "CREATE DATABASE `d`"),
    ddl("d.t", 2, "CREATE TABLE `t` (`id` INT)"),
    ddl("d.p", 3, f"CREATE TABLE `p` (`id` INT) {RANGES}"),
    *(keyed(insert(f"d.{table}", at, id=row)) for at in (4, 5) for table, row in (("t", 1), ("p", 2))),
    *watermarks(6),
]
"""Two tables without a key, of two equal rows each."""


def ids(feed: LocalFeed) -> tuple[list[int], list[int]]:
    tables = feed.cells.tables(["d"])
    t, p = (sorted(row["id"] for row in tables[name][1]) for name in ("d.t", "d.p"))
    return t, p


def killed_at(step: Step) -> Callable[[Step], None]:
    def observe(found: Step) -> None:
        if found is step:
            raise Killed

    return observe


def begun(feed: LocalFeed) -> None:
    """A driver that died behind the statement."""
    feed.send(BEGIN)
    feed.once()
    feed.send([EXCHANGE, *watermarks(20)])
    assert not feed.lives(killed_at(Step.DDL_EXECUTED))
    assert ids(feed) == ([2], [1])


@pytest.mark.parametrize("feed", ["mariadb", "tidb"], indirect=True)
def test_what_may_have_run_stays_begun_whatever_comes_between(feed: LocalFeed) -> None:
    """A service manager starts it again and again: the second try must not know less than the first one."""
    begun(feed)
    feed.cells.run("d", "ALTER TABLE p ADD KEY by_hand (id)")
    for _ in range(3):
        with pytest.raises(TargetError, match="can't be told"):
            feed.once()
        assert ids(feed) == ([2], [1])
    line = ddl_log(feed.config, 1)[0]
    assert (line.state, "can't be told" in line.reason) == ("intent", True)
    feed.cells.run("d", "ALTER TABLE p DROP KEY by_hand")
    feed.once()
    assert ids(feed) == ([2], [1])


@pytest.mark.parametrize("feed", ["mariadb", "tidb"], indirect=True)
def test_equal_rows_tell_the_sides_of_an_exchange_apart(feed: LocalFeed) -> None:
    """Each row is there twice: sums in which equal rows take each other away are those of both sides."""
    feed.with_(filter={"rules": ["*.*"], "force-replicate": True})
    feed.send(BAGS)
    feed.once()
    assert ids(feed) == ([1, 1], [2, 2])
    feed.send([EXCHANGE, *watermarks(20)])
    assert not feed.lives(killed_at(Step.DDL_EXECUTED))
    assert ids(feed) == ([2, 2], [1, 1])
    feed.once()
    assert ids(feed) == ([2, 2], [1, 1])


@pytest.mark.parametrize("feed", ["mariadb"], indirect=True)
def test_what_has_run_stays_begun_if_its_progress_can_not_be_saved(feed: LocalFeed) -> None:
    feed.send(BEGIN)
    feed.once()
    feed.send([EXCHANGE, *watermarks(20)])
    refusing = "CREATE TRIGGER ticdc_reconciler.refuses BEFORE UPDATE ON ticdc_reconciler.ddl FOR EACH ROW"
    message = "BEGIN IF NEW.state = 'done' THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'refused'; END IF; END"
    feed.cells.query(f"{refusing} {message}")
    try:
        for _ in range(2):
            with pytest.raises(TargetError, match="refused"):
                feed.once()
            assert ids(feed) == ([2], [1])
    finally:
        feed.cells.run("d", "DROP TRIGGER ticdc_reconciler.refuses")
    feed.once()
    assert ids(feed) == ([2], [1])

"""What is missing is told from what a DDL took away: tables, columns and keys, from the first proof on."""

from collections.abc import Iterable
from typing import Any

import pytest
from click.testing import CliRunner

from consumer.cli import verify
from consumer.demo.fake_ticdc.changefeed import Message
from consumer.operate.progress import reset_progress
from consumer.proof import expectation, present
from consumer.proof.run import Proving
from ordering.events import Partition, TableName
from tests.service.commands.test_prove import T, every, feed, prove, reason, verdicts
from tests.service.commands.test_scrub import Clock, rounds, scrub_of
from tests.service.lab import PARTITIONS
from tests.service.local import LocalFeed
from tests.service.messages import at, begun, ddl, insert, watermarks
from tests.service.rows.test_keyless import FORCED, event
from tests.simulation.log import FakeLog

__all__ = ["every", "feed"]
pytestmark = pytest.mark.service
DROPPED, UNKNOWN = "no DDL has dropped it", "whether a DDL has dropped it is not known"


def filled(feed: LocalFeed) -> None:
    feed.send([*begun(), ddl("d.u", 3, "CREATE TABLE `u` (id INT PRIMARY KEY)"), insert("d.u", 4, id=1)])
    feed.send([*(insert("d.t", 4, id=n, v=n, s="x") for n in (2, 3)), *watermarks(4)])
    feed.apply()


def follows(feed: LocalFeed, commit_ts: int, *statements: str, table: str = "t") -> None:
    for place, sql in enumerate(statements):
        feed.send([ddl("d.z" if "`z`" in sql else f"d.{table}", commit_ts + place, sql, kind="QUERY")])
    feed.send(watermarks(commit_ts + len(statements)))
    feed.apply()


def test_tables_that_are_lost_before_the_first_proof_differ(feed: LocalFeed) -> None:
    filled(feed)
    feed.cells.run("d", "DROP TABLE t")
    for _ in range(2):
        found = prove(feed)
        assert verdicts(found) == {"t": "different", "u": "equal"}
        assert DROPPED in reason(found)
    feed.cells.run("d", "DROP TABLE u")
    assert verdicts(prove(feed)) == {"t": "different", "u": "different"}


@pytest.mark.parametrize(
    ("statements", "lost"),
    [
        (["ALTER TABLE `t` ADD COLUMN `x` INT"], "t"),
        (["TRUNCATE TABLE `d`.`t`"], "t"),
        (["CREATE INDEX `i` ON `t` (`v`)"], "t"),
        (["RENAME TABLE `d`.`t` TO `d`.`z`"], "z"),
        (["DROP TABLE `d`.`t`", "CREATE TABLE `t` (id INT PRIMARY KEY)"], "t"),
        (["RENAME TABLE `d`.`t` TO `d`.`z`", "ALTER TABLE `z` ADD COLUMN `x` INT"], "z"),
    ],
)
@pytest.mark.parametrize("is_scrub", [False, True], ids=["prove", "scrub"])
def test_a_ddl_that_leaves_a_table_does_not_excuse_that_it_is_gone(
    feed: LocalFeed, statements: list[str], lost: str, *, is_scrub: bool
) -> None:
    filled(feed)
    clock = Clock()
    scrub = scrub_of(feed, clock)
    assert set(verdicts(rounds(scrub) if is_scrub else prove(feed)).values()) == {"equal"}
    follows(feed, 5, *statements)
    feed.cells.run("d", f"DROP TABLE {lost}")
    found = scrub.round() if is_scrub else prove(feed)
    assert verdicts(found)[lost] == "different"
    assert "t" not in {*verdicts(found)} - {lost}
    assert verdicts(prove(feed))[lost] == "different", "it stays so"


@pytest.mark.parametrize(
    "statements",
    [
        ["DROP TABLE `d`.`t`"],
        ["DROP TABLE `t`, `u`"],
        ["ALTER TABLE `t` ADD COLUMN `x` INT", "DROP TABLE IF EXISTS `T`"],
        ["RENAME TABLE `t` TO `z`", "DROP TABLE `z`"],
    ],
)
def test_what_a_ddl_has_dropped_at_last_is_not_expected(feed: LocalFeed, statements: list[str]) -> None:
    filled(feed)
    prove(feed)
    follows(feed, 5, *statements)
    assert set(verdicts(prove(feed))) <= {"u"}
    assert set(verdicts(prove(feed)).values()) <= {"equal"}


@pytest.mark.parametrize("is_scrub", [False, True], ids=["prove", "scrub"])
def test_a_table_that_was_gone_after_a_reset_is_proven_once_it_is_made_anew(feed: LocalFeed, *, is_scrub: bool) -> None:
    """A proof between the reset and the run that makes the tables left them unproven for good."""
    filled(feed)
    follows(feed, 5, "ALTER TABLE `t` ADD COLUMN `x` INT")
    assert verdicts(prove(feed)) == {"t": "base", "u": "equal"}
    reset_progress(feed.config)
    for table in ("t", "u"):
        feed.cells.run("d", f"DROP TABLE {table}")
    assert verdicts(prove(feed)) == {"t": "unproven", "u": "unproven"}
    feed.apply()
    found = rounds(scrub_of(feed, Clock())) if is_scrub else prove(feed)
    assert verdicts(found) == {"t": "base", "u": "equal"}
    feed.cells.run("d", "DELETE FROM u")
    last = prove(feed)
    assert verdicts(last) == {"t": "equal", "u": "different"}, last


def test_before_the_first_proof_a_reset_to_a_later_dump_makes_no_table_missing(feed: LocalFeed) -> None:
    """What upstream has dropped before the dump was made is in no log: the DDLs of before say nothing of it."""
    filled(feed)
    feed.cells.run("d", "DROP TABLE t")
    assert verdicts(prove(feed))["t"] == "different"
    feed.cells.run("ticdc_reconciler", "DELETE FROM proof")
    source = feed.config.source.model_copy(update={"start_ts": at(20)})
    reset_progress(feed.config.model_copy(update={"source": source}))
    assert verdicts(prove(feed)) == {"u": "base"}
    assert verdicts(prove(feed)) == {"u": "equal"}


def test_a_table_that_came_back_by_hand_after_a_reset_is_not_taken_for_one_made_anew(feed: LocalFeed) -> None:
    filled(feed)
    prove(feed)
    reset_progress(feed.config)
    feed.cells.run("d", "ALTER TABLE u RENAME TO kept")
    assert verdicts(prove(feed))["u"] == "unproven"
    feed.cells.run("d", "ALTER TABLE kept RENAME TO u")
    assert verdicts(prove(feed))["u"] == "base"
    assert verdicts(prove(feed))["u"] == "unproven"


def test_where_ddls_may_be_lost_a_missing_table_is_not_forgotten(
    feed: LocalFeed, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(feed)
    prove(feed)
    feed.cells.run("d", "DROP TABLE t")
    monkeypatch.setattr(expectation, "KEPT", 3)
    for n in range(3):
        follows(feed, 5 + 2 * n, f"CREATE TABLE `w{n}` (id INT PRIMARY KEY)", table=f"w{n}")
    monkeypatch.setattr(present, "KEPT", 3)
    for _ in range(2):
        found = prove(feed)
        assert verdicts(found)["t"] == "unproven"
        assert UNKNOWN in reason(found)
    assert "t" not in verdicts(prove(feed, "d.t"))
    assert "t" not in verdicts(prove(feed)), "that was right"


@pytest.mark.parametrize(("start_ts", "exits"), [(0, 0), (at(1), 7)])
def test_no_table_at_all_is_no_proof_where_it_is_not_known_that_there_should_be_none(
    feed: LocalFeed, start_ts: int, exits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed.with_(source={"start-ts": start_ts})
    feed.send(watermarks(4))
    feed.apply()
    proof = prove(feed)
    assert verdicts(proof) == {}
    assert ("whether it should have some is not known" in "\n".join(proof.lines())) == bool(exits)
    monkeypatch.setattr(verify, "load_config", lambda _: feed.config)
    monkeypatch.setattr(Proving, "run", lambda _: proof)
    assert CliRunner().invoke(verify.prove, ["orders.toml"]).exit_code == exits


def test_a_column_that_is_lost_before_the_first_proof_differs(feed: LocalFeed) -> None:
    filled(feed)
    feed.cells.run("d", "ALTER TABLE t DROP COLUMN v")
    for _ in range(2):
        found = prove(feed)
        assert verdicts(found) == {"t": "different", "u": "equal"}
        assert "the column v is gone, and no DDL has dropped it" in reason(found)
    feed.cells.run("d", "ALTER TABLE t ADD COLUMN v INT")
    assert verdicts(prove(feed))["t"] == "base"
    assert verdicts(prove(feed))["t"] == "unproven", "nobody has compared it"
    prove(feed, "d.t")
    assert verdicts(prove(feed))["t"] == "equal"


def test_the_scrub_finds_a_lost_column_and_keeps_to_it(feed: LocalFeed) -> None:
    filled(feed)
    clock = Clock()
    scrub = scrub_of(feed, clock)
    rounds(scrub)
    feed.cells.run("d", "ALTER TABLE t DROP COLUMN s")
    for number in range(3):
        clock.later()
        found = verdicts(scrub.round())
        assert found.get("t", "") == ("different" if number else ""), "it has to read the table by its columns of now"
    assert verdicts(prove(feed))["t"] == "different"


def test_columns_that_are_left_out_on_the_way_are_not_missed(feed: LocalFeed) -> None:
    feed.with_(sink={"column-selectors": [{"matcher": ["d.t"], "columns": ["*", "!s"]}]})
    filled(feed)
    feed.cells.run("d", "ALTER TABLE t DROP COLUMN s")
    assert verdicts(prove(feed)) == {"t": "equal", "u": "equal"}


def test_columns_that_change_by_hand_do_not_make_changed_rows_right(feed: LocalFeed) -> None:
    filled(feed)
    prove(feed)
    feed.cells.run("d", "ALTER TABLE t ADD COLUMN own INT")
    feed.cells.run("d", "UPDATE t SET v = 99")
    assert verdicts(prove(feed))["t"] == "base"
    for _ in range(2):
        found = prove(feed)
        assert (verdicts(found)["t"], "without a DDL" in reason(found)) == ("unproven", True)
    prove(feed, "d.t")
    assert verdicts(prove(feed))["t"] == "equal"


def test_an_index_that_becomes_the_key_changes_no_row_that_anybody_doubts(feed: LocalFeed) -> None:
    """Its sums are made by another key, which is no change of its columns by hand."""
    feed.with_(filter=FORCED)
    feed.send([ddl("d.", 1, "CREATE DATABASE `d`", kind="QUERY"), ddl("d.t", 2, "CREATE TABLE `t` (a INT NOT NULL)")])
    feed.send([event("INSERT", 3, a=1), *watermarks(4)])
    feed.apply()
    assert verdicts(prove(feed)) == {"t": "equal"}
    follows(feed, 5, "CREATE UNIQUE INDEX `u` ON `t` (`a`)")
    assert [verdicts(prove(feed))["t"] for _ in range(2)] == ["base", "equal"]


@pytest.mark.parametrize("is_lost", [False, True])
def test_rows_that_came_before_the_index_that_is_now_the_key_are_not_told_by_it(
    feed: LocalFeed, *, is_lost: bool
) -> None:
    """Two equal rows came, one went: by the key that came later they are one row, which was deleted."""
    feed.with_(filter=FORCED, source={"equal-rows": "count"})
    feed.send([ddl("d.", 1, "CREATE DATABASE `d`", kind="QUERY")])
    feed.send([ddl("d.t", 2, "CREATE TABLE `t` (a INT NOT NULL, b VARCHAR(10))"), *watermarks(3)])
    feed.send([*[event("INSERT", 11, a=1, b="x")] * 2, *watermarks(11), event("DELETE", 12, a=1, b="x")])
    feed.send([*watermarks(19), ddl("d.t", 20, "CREATE UNIQUE INDEX `u` ON `t` (`a`)", kind="QUERY"), *watermarks(21)])
    feed.apply()
    if is_lost:
        feed.cells.run("d", "DELETE FROM t")
    assert verdicts(prove(feed)) == {"t": "base"}


class Log(FakeLog):
    """A log that refuses to tell of what is not there, as Kafka does."""

    def begins(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        asked = list(partitions)
        assert self.held.keys() >= set(asked), "UNKNOWN_TOPIC_OR_PARTITION"
        return super().begins(asked)


@pytest.mark.parametrize("is_read", [False, True])
def test_a_topic_that_has_ended_and_is_deleted_does_not_stop_proofs(feed: LocalFeed, *, is_read: bool) -> None:
    log = feed.log_of_messages = Log(partitions=PARTITIONS)
    feed.with_(source={"topics": [f"~{feed.topic}.*"]})

    def ended(*messages: Message) -> list[Message]:
        return [message._replace(topic="a") for message in messages]

    feed.send([*begun("d.u"), *ended(ddl("d.t", 3, "CREATE TABLE `t` (id INT PRIMARY KEY, v INT)"))])
    feed.send([*ended(insert("d.t", 4, id=1, v=1), *watermarks(5)), *watermarks(5)])
    feed.apply()
    assert verdicts(prove(feed)) == {"t": "equal", "u": "equal"}
    feed.send([*ended(ddl("d.t", 6, "DROP TABLE `d`.`t`")), *watermarks(8)])
    feed.apply()
    if is_read:
        assert verdicts(prove(feed)) == {"u": "equal"}
    for partition in [one for one in log.held if one.topic.endswith(".a")]:
        del log.held[partition]
    feed.send([insert("d.u", 10, id=2, v=1, s="x"), *watermarks(12)])
    feed.apply()
    found = prove(feed)
    assert verdicts(found) == {"u": "equal" if is_read else "base"}
    assert ("a topic was deleted" in reason(found, TableName("d", "u"))) is not is_read
    assert verdicts(prove(feed)) == {"u": "equal"}


@pytest.mark.by_turns
@pytest.mark.parametrize("way", ["prove", "scrub"])
def test_a_column_that_only_the_target_has_is_left_out_once_events_show_it(every: LocalFeed, way: str) -> None:
    """Else its table would never be proven."""
    sql = "CREATE TABLE t (id INT PRIMARY KEY, v INT, s VARCHAR(20), own INT DEFAULT 7)"
    every.make_database("d", sql)
    every.send(watermarks(3))
    every.apply()
    clock = Clock()
    scrub = scrub_of(every, clock)

    numbers = iter(range(5, 1000, 2))

    def looked(**more: Any) -> str:
        number = next(numbers)
        every.send([insert("d.t", number, id=number, v=1, s="x", **more), *watermarks(number + 1)])
        every.apply()
        clock.later()
        return verdicts(prove(every) if way == "prove" else scrub.round()).get("t", "")

    def soon(verdict: str, **more: Any) -> None:
        """Some rounds later, and never otherwise before."""
        found = [looked(**more) for _ in range(8)]
        assert set(found) <= {"base", "unproven", "", verdict}, found
        assert found[-2:] == [verdict, verdict] or way == "scrub", found
        assert verdict in found[-3:], found

    soon("equal")
    every.cells.run("d", "UPDATE t SET own = 8")
    soon("equal")
    every.cells.run("d", "UPDATE t SET v = 8 WHERE id = 5")
    soon("different")
    every.cells.run("d", "UPDATE t SET v = 1 WHERE id = 5")
    assert looked() in {"equal", ""}
    assert looked() in {"equal", ""}
    number = next(numbers)
    every.send([ddl("d.t", number, "ALTER TABLE `t` ADD COLUMN `x` INT", kind="ALTER"), *watermarks(number + 1)])
    every.apply()
    soon("equal", x=2)
    assert list(prove(every).tables[T][0]) == ["own"]
    every.cells.run("d", "UPDATE t SET own = 9")
    soon("equal", x=2, own=9)
    assert not prove(every).tables[T][0], "upstream has it by now"


@pytest.mark.parametrize("way", ["prove", "scrub"])
def test_a_column_of_the_targets_own_may_go_again(every: LocalFeed, way: str) -> None:
    """No DDL of upstream's can drop it, and what is in the sums stays the same."""
    every.make_database("d", "CREATE TABLE t (id INT PRIMARY KEY, v INT, own INT DEFAULT 7)")
    every.send(watermarks(3))
    every.apply()
    clock = Clock()
    scrub = scrub_of(every, clock)
    numbers = iter(range(5, 1000, 2))

    def soon(verdict: str) -> None:
        """Some rounds later, and no other verdict that tells something before."""
        found = []
        for number in (next(numbers) for _ in range(6)):
            every.send([insert("d.t", number, id=number, v=1), *watermarks(number + 1)])
            every.apply()
            clock.later()
            found.append(verdicts(prove(every) if way == "prove" else scrub.round()).get("t", ""))
        assert set(found) <= {"base", "unproven", "", verdict}, found
        assert verdict in found[-3:], found

    soon("equal")
    every.cells.run("d", "ALTER TABLE t DROP COLUMN own")
    soon("equal")
    every.cells.run("d", "UPDATE t SET v = 8 WHERE id = 5")
    soon("different")
    every.cells.run("d", "UPDATE t SET v = 1 WHERE id = 5")
    clock.later()
    assert verdicts(prove(every)) == {"t": "equal"}
    every.cells.run("d", "ALTER TABLE t DROP COLUMN v")
    found = []
    for _ in range(3):
        clock.later()
        found.append(verdicts(prove(every) if way == "prove" else scrub.round()))
    assert {"t": "different"} in found

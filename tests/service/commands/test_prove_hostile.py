"""What must never pass as proven: tables and columns that are gone, differences before a DDL, events skipped."""

import json
from contextlib import closing
from typing import Any

import pytest

from consumer.proof import run
from consumer.proof import scrub as scrubbing
from consumer.wiring import target_of
from ordering.errors import InputError
from tests.service.cells import OURS, MariaDbCells, SqliteCells
from tests.service.commands.test_prove import changes, every, feed, prove, reason, verdicts
from tests.service.commands.test_scrub import Clock, filled, rounds, scrub_of
from tests.service.local import LocalFeed
from tests.service.messages import at, begun, ddl, delete, insert, keyed, typed, watermarks

__all__ = ["every", "feed"]
pytestmark = pytest.mark.service
DROPPED = "no DDL has dropped it"


def proven(feed: LocalFeed) -> None:
    feed.send([*begun(), ddl("d.other", 3, "CREATE TABLE `other` (id INT PRIMARY KEY)"), *watermarks(3)])
    feed.apply()
    assert set(verdicts(prove(feed)).values()) == {"equal"}


def test_a_table_that_is_gone_without_a_ddl_differs_until_it_is_back_and_taken_as_right(every: LocalFeed) -> None:
    proven(every)
    every.cells.run("d", "DROP TABLE t")
    for _ in range(2):
        found = prove(every)
        assert verdicts(found) == {"t": "different", "other": "equal"}
        assert DROPPED in reason(found)
    every.cells.run("d", "CREATE TABLE t (id INT PRIMARY KEY, v INT, s VARCHAR(10))")
    for _ in range(2):
        assert verdicts(prove(every))["t"] != "equal", "nobody has compared its rows"
    prove(every, "d.t")
    assert verdicts(prove(every))["t"] == "equal"


def test_the_scrub_finds_a_table_that_is_gone_once(feed: LocalFeed) -> None:
    clock = Clock()
    scrub = scrub_of(filled(feed), clock)
    rounds(scrub)
    feed.cells.run("d", "DROP TABLE t")
    clock.later()
    found = rounds(scrub, 1)
    assert (verdicts(found), DROPPED in reason(found)) == ({"t": "different"}, True)
    assert verdicts(scrub.round()) == {}, "that is known"
    assert verdicts(prove(feed)) == {"t": "different"}


@pytest.mark.parametrize(
    "sql", ["DROP TABLE `d`.`t`", "RENAME TABLE `d`.`t` TO `d`.`z`", "DROP DATABASE `d`", "TRUNCATE TABLE `d`.`t`"]
)
def test_what_a_ddl_takes_away_is_no_difference(feed: LocalFeed, sql: str) -> None:
    proven(feed)
    feed.send([ddl("d.t", 5, sql, kind="QUERY"), *watermarks(9)])
    feed.apply()
    assert "different" not in verdicts(prove(feed)).values()
    assert "different" not in verdicts(prove(feed)).values()


def test_a_column_that_is_gone_without_a_ddl_differs(every: LocalFeed) -> None:
    proven(every)
    every.cells.run("d", "ALTER TABLE t DROP COLUMN s")
    for _ in range(2):
        found = prove(every)
        assert verdicts(found)["t"] == "different"
        assert "the column s is gone" in reason(found)


def test_a_column_of_the_targets_own_is_no_difference(feed: LocalFeed) -> None:
    proven(feed)
    feed.cells.run("d", "ALTER TABLE t ADD COLUMN own INT")
    assert verdicts(prove(feed))["t"] == "base"


def test_a_difference_that_a_ddl_covers_is_never_equal_again_by_itself(feed: LocalFeed) -> None:
    proven(feed)
    feed.cells.run("d", "UPDATE t SET v = 9")
    assert verdicts(prove(feed))["t"] == "different"
    feed.send([ddl("d.t", 5, "ALTER TABLE `t` ADD COLUMN `x` INT", kind="ALTER"), *watermarks(9)])
    feed.apply()
    assert verdicts(prove(feed))["t"] == "base"
    for _ in range(2):
        found = prove(feed)
        assert verdicts(found)["t"] == "unproven"
        assert "it differed" in reason(found)
    feed.cells.run("d", "UPDATE t SET v = 8")
    assert verdicts(prove(feed))["t"] == "different"
    prove(feed, "d.t")
    assert verdicts(prove(feed))["t"] == "equal"


def test_the_scrub_does_not_forget_a_difference_at_a_ddl_either(feed: LocalFeed) -> None:
    clock = Clock()
    scrub = scrub_of(filled(feed), clock)
    feed.cells.run("d", "DELETE FROM t WHERE id = 100")
    assert verdicts(rounds(scrub)) == {"t": "different"}
    feed.send([ddl("d.t", 15, "ALTER TABLE `t` ADD COLUMN `x` INT", kind="ALTER"), *watermarks(19)])
    feed.apply()
    for _ in range(4):
        clock.later()
        assert set(verdicts(scrub.round()).values()) <= {"unproven", "base"}
    assert verdicts(prove(feed)) == {"t": "unproven"}


def test_events_that_a_run_skips_by_its_offsets_are_found(feed: LocalFeed) -> None:
    """Offsets that go too far hide an event from all later runs; a proof keeps its own."""
    proven(feed)
    feed.send([*changes(4), *watermarks(9), insert("d.t", 12, id=500, v=5, s="x")])
    feed.apply()
    assert verdicts(prove(feed))["t"] == "equal"
    feed.send(watermarks(11))
    feed.apply()
    assert verdicts(prove(feed))["t"] == "equal"
    offsets = json.loads(feed.cells.progress(feed.name)["offsets"])
    for entry in (one for topic in offsets.values() for one in topic.values()):
        entry["offset"] = max(entry["offset"], entry["read_to"])
    feed.cells.run(OURS, f"UPDATE checkpoint SET offsets = '{json.dumps(offsets)}'")
    assert verdicts(prove(feed))["t"] == "equal"
    feed.send(watermarks(19))
    feed.apply()
    assert 500 not in {row["id"] for row in feed.cells.tables(["d"])["d.t"][1]}
    assert verdicts(prove(feed))["t"] == "different"


def test_what_an_operator_takes_as_right_amid_a_round_is_not_lost(
    feed: LocalFeed, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    scrub = scrub_of(filled(feed), clock)
    rounds(scrub)
    feed.cells.run("d", "DELETE FROM t WHERE id = 100")
    clock.later()
    assert verdicts(scrub.round()) == {"t": "different"}
    carry = scrubbing.carried

    def meanwhile(*args: Any) -> Any:
        monkeypatch.setattr(scrubbing, "carried", carry)
        prove(feed, "*.*")
        return carry(*args)

    monkeypatch.setattr(scrubbing, "carried", meanwhile)
    clock.later()
    assert verdicts(scrub.round()) == {}, "what this round has found counts no more"
    assert verdicts(rounds(scrub)) == {"t": "equal"}, "it is read again at once"
    assert verdicts(prove(feed)) == {"t": "equal"}


@pytest.mark.parametrize("every", ["postgres"], indirect=True)
@pytest.mark.parametrize("sql", ["TRUNCATE TABLE `t`", "ALTER TABLE `t` MODIFY COLUMN v BIGINT"])
def test_a_ddl_that_is_executed_amid_a_proof_is_no_difference(
    every: LocalFeed, sql: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PostgreSQL shows such a table as an empty one to a snapshot that is older."""
    proven(every)
    sums = run.whole_sums

    def meanwhile(*args: Any) -> Any:
        monkeypatch.setattr(run, "whole_sums", sums)
        every.send([ddl("d.t", 20, sql, kind=sql.split(maxsplit=1)[0]), *watermarks(21)])
        every.apply()
        return sums(*args)

    monkeypatch.setattr(run, "whole_sums", meanwhile)
    assert verdicts(prove(every)) == {"t": "base", "other": "equal"}
    assert verdicts(prove(every)) == {"t": "base", "other": "equal"}
    assert verdicts(prove(every)) == {"t": "equal", "other": "equal"}


WITHOUT_DELETES = {"matcher": ["d.t"], "ignore-event": ["delete"]}


def test_a_filter_with_which_nothing_has_run_yet_proves_nothing(feed: LocalFeed) -> None:
    """What the old one left out is not in the target, whatever the new one would take in."""
    feed.with_(filter={"rules": ["d.*"], "event-filters": [WITHOUT_DELETES]})
    feed.send([*begun(), insert("d.t", 4, id=2, v=2, s="x"), delete("d.t", 5, id=2, v=2, s="x"), *watermarks(6)])
    feed.send([ddl("e.", 7, "CREATE DATABASE `e`", kind="QUERY")])
    feed.send([ddl("e.u", 8, "CREATE TABLE `u` (id INT PRIMARY KEY)")])
    feed.send([insert("e.u", 9, id=1), *watermarks(10)])
    feed.apply()
    for changed in ({"rules": ["*.*"]}, {"rules": ["d.*"], "event-filters": []}):
        feed.with_(filter={"event-filters": [WITHOUT_DELETES], **changed})
        with pytest.raises(InputError, match="differ from those that this changefeed has run with"):
            prove(feed)
    feed.with_(filter={"rules": ["d.*"], "event-filters": [], "changed-event-filters": "accept"})
    assert "event filters" in reason(prove(feed))
    feed.send([insert("d.t", 11, id=3, v=3, s="y"), *watermarks(12)])
    feed.apply()
    feed.with_(filter={"changed-event-filters": "error"})
    assert verdicts(prove(feed)) == {"t": "base"}
    assert verdicts(prove(feed)) == {"t": "equal"}


def test_a_column_that_a_ddl_has_taken_since_the_last_round_is_no_fault_of_the_server(every: LocalFeed) -> None:
    """The table is read as it was known; that it can't be is the DDL's doing, and a base follows at once."""
    every.send([*begun(), *watermarks(4)])
    every.apply()
    scrub = scrub_of(every, clock := Clock())
    rounds(scrub)
    every.send([ddl("d.t", 5, "ALTER TABLE `t` DROP COLUMN `s`", kind="ALTER"), *watermarks(6)])
    every.apply()
    clock.later()
    told = reason(scrub.round())
    assert told.startswith("a DDL may have changed its rows"), told
    assert verdicts(scrub.round()) == {"t": "base"}
    clock.later()
    assert verdicts(scrub.round()) == {"t": "equal"}


@pytest.mark.parametrize("change", ["ALTER TABLE t DROP COLUMN v", "UPDATE t SET v = 5", "DROP TABLE t"])
def test_a_filter_that_leaves_out_more_tables_forgets_nothing_of_the_others(feed: LocalFeed, change: str) -> None:
    feed.send([*begun(), *watermarks(3)])
    feed.apply()
    assert verdicts(prove(feed)) == {"t": "equal"}
    feed.with_(filter={"rules": ["*.*", "!d.z"]})
    feed.send([insert("d.t", 5, id=5, v=1, s="x"), *watermarks(6)])
    feed.apply()
    assert verdicts(prove(feed)) == {"t": "equal"}
    feed.with_(filter={"rules": ["*.*", "!d.z", "!d.y"]})
    feed.cells.run("d", change)
    feed.send(watermarks(8))
    feed.apply()
    assert verdicts(prove(feed)) == {"t": "different"}


def test_the_state_of_an_earlier_version_goes_on_under_the_same_filter(feed: LocalFeed) -> None:
    feed.send([*begun(), *watermarks(3)])
    feed.apply()
    prove(feed)
    with closing(target_of(feed.config)) as target:
        target.connect()
        found = json.loads(target.proofs.state(feed.name))
        stored = target.stored(feed.name)
        assert stored is not None
        ledger, start_ts, _ = found["lineage"].split(" ", 2)
        found["lineage"] = f"{ledger} {start_ts} {stored.progress.filter_digest}"
        target.proofs.add(feed.name, at(3), "", json.dumps(found))
    assert verdicts(prove(feed)) == {"t": "equal"}


@pytest.mark.parametrize("column", ["a\tb", "id\tint", "a\\tb"])
def test_a_column_with_a_tab_in_its_name(feed: LocalFeed, column: str) -> None:
    """What the last proof has left is told in lines with tabs."""
    made = f"CREATE TABLE `t` (id INT PRIMARY KEY, `{column}` INT)"
    feed.send([ddl("d.", 1, "CREATE DATABASE `d`", kind="QUERY"), ddl("d.t", 2, made)])
    for number in (3, 5, 7):
        feed.send([insert("d.t", number, id=number, **{column: number}), *watermarks(number)])
        feed.apply()
        assert verdicts(prove(feed)) == {"t": "equal"}
    feed.cells.run("d", f'UPDATE t SET "{column}" = 9 WHERE id = 3')
    assert verdicts(prove(feed)) == {"t": "different"}
    feed.cells.run("d", f'ALTER TABLE t DROP COLUMN "{column}"')
    assert reason(prove(feed)) == f"the column {column} is gone, and no DDL has dropped it"


def test_a_key_with_a_tab_in_its_name_and_a_column_of_the_targets_own(feed: LocalFeed) -> None:
    made = "CREATE TABLE `t` (`a\tb` INT PRIMARY KEY, v INT)"
    feed.send([ddl("d.", 1, "CREATE DATABASE `d`", kind="QUERY"), ddl("d.t", 2, made), *watermarks(3)])
    feed.apply()
    feed.cells.run("d", 'ALTER TABLE t ADD COLUMN "own\tone" INT')
    for number in (5, 7, 9, 11):
        row = keyed(insert("d.t", number, **{"a\tb": number, "v": number}), "a\tb")
        feed.send([row, *watermarks(number)])
        feed.apply()
        found = verdicts(prove(feed, "d.t") if number == 7 else prove(feed))
    assert found == {"t": "equal"}
    feed.cells.run("d", "UPDATE t SET v = 0")
    assert verdicts(prove(feed)) == {"t": "different"}


@pytest.mark.parametrize("kind", ["INT", "DOUBLE", "JSON"])
def test_a_table_of_a_thousand_columns(every: LocalFeed, kind: str) -> None:
    """SQLite takes no expression of more than 1,000 levels."""
    count = 150 if kind == "JSON" and not isinstance(every.cells, SqliteCells) else 1000
    count = 700 if kind == "DOUBLE" else count  # InnoDB's and PostgreSQL's rows have to fit into a page
    columns = [f"c{number}" for number in range(count)]
    made = ", ".join(f"{name} {kind}" for name in columns)
    every.send([ddl("d.", 1, "CREATE DATABASE `d`", kind="QUERY")])
    every.send([ddl("d.t", 2, f"CREATE TABLE `t` (id INT PRIMARY KEY, {made})")])
    types = dict.fromkeys(columns, kind.lower())
    every.send(typed(insert("d.t", 3, id=n, **dict.fromkeys(columns, n)), **types) for n in (1, 2))
    every.send(watermarks(4))
    every.apply()
    assert verdicts(prove(every)) == {"t": "equal"}
    every.cells.run("d", f"UPDATE t SET c{count - 1} = '7' WHERE id = 1")
    assert verdicts(prove(every)) == {"t": "different"}


def test_a_server_that_answers_with_few_rows_only(every: LocalFeed) -> None:
    """TiDB has `sql_select_limit` as MySQL has: of what is read, the rest is left out without a word."""
    if not isinstance(every.cells, MariaDbCells):
        return
    proven(every)
    every.cells.query("SET SESSION sql_select_limit = DEFAULT")
    every.cells.query("SET GLOBAL sql_select_limit = 1")
    try:
        every.send([*changes(5), *changes(10), *watermarks(20)])
        every.apply()
        assert set(verdicts(prove(every)).values()) == {"equal"}
    finally:
        every.cells.query("SET GLOBAL sql_select_limit = DEFAULT")


@pytest.mark.parametrize(
    ("every", "setting"),
    [("tidb", "tidb_enable_external_ts_read"), ("tidb", "tidb_low_resolution_tso"), ("mariadb", "sql_if_exists")],
    indirect=["every"],
)
def test_a_server_that_reads_the_past_or_takes_if_exists_as_said(every: LocalFeed, setting: str) -> None:
    """A TiDB that readers are to see as of a syncpoint is still written to, and proven as it is."""
    proven(every)
    query = every.cells.query
    if setting == "tidb_enable_external_ts_read":
        query("BEGIN")
        (now,) = query("SELECT @@tidb_current_ts AS ts")
        query("ROLLBACK")
        query(f"SET GLOBAL tidb_external_ts = {now['ts']}")
    query(f"SET GLOBAL {setting} = ON")
    try:
        every.send([*changes(5), *watermarks(20)])
        every.apply()
        assert set(verdicts(prove(every)).values()) == {"equal"}
        every.cells.run("d", "UPDATE t SET s = 'z' WHERE id = 1")
        assert verdicts(prove(every))["t"] == "different"
    finally:
        query(f"SET GLOBAL {setting} = OFF")

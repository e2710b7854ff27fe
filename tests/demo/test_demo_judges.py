"""The demo's judges notice what is wrong: a demo that always says "equal" would show nothing."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from consumer.demo.compare import compared
from consumer.demo.fake_ticdc.bank import Bank
from consumer.demo.fake_ticdc.changefeed import Changefeed
from consumer.demo.fake_ticdc.database import Key, Row
from consumer.demo.invariant_reader import InvariantReader
from consumer.demo.live_upstream import PARTITIONS, Tally
from consumer.demo.verdict import DemoOutcome
from ordering.progress import Counts

UPSTREAM: dict[str, dict[Key, Row]] = {
    "bank.acc0": {("1",): {"id": "1", "bal": "600"}, ("2",): {"id": "2", "bal": "400"}},
    "bank.acc1": {},
}


@pytest.fixture
def target(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """A target that holds what UPSTREAM does."""
    with closing(sqlite3.connect(tmp_path / "bank.sqlite", isolation_level=None)) as connection:
        for table in ("acc0", "acc1"):
            connection.execute(f"CREATE TABLE {table} (bal INTEGER, id INTEGER PRIMARY KEY)")
        connection.execute("INSERT INTO acc0 VALUES (600, 1), (400, 2)")
        yield connection


def differences(tmp_path: Path) -> list[str]:
    return [one.difference() for one in compared(UPSTREAM, tmp_path / "bank.sqlite", "bank") if not one.equal]


@pytest.mark.usefixtures("target")
def test_equal_whatever_the_order_of_columns(tmp_path: Path) -> None:
    assert differences(tmp_path) == []


@pytest.mark.parametrize(
    ("statement", "difference"),
    [
        ("UPDATE acc0 SET bal = 601 WHERE id = 1", 'bank.acc0: only in the upstream: {"bal":"600","id":"1"}'),
        ("UPDATE acc0 SET bal = NULL WHERE id = 2", 'bank.acc0: only in the upstream: {"bal":"400","id":"2"}'),
        ("DELETE FROM acc0 WHERE id = 2", 'bank.acc0: only in the upstream: {"bal":"400","id":"2"}'),
        ("INSERT INTO acc1 VALUES (0, 3)", 'bank.acc1: only in the target: {"bal":"0","id":"3"}'),
        ("CREATE TABLE ghost (id INTEGER)", "bank.ghost: only in the target"),
        ("DROP TABLE acc1", "bank.acc1: only in the upstream"),
    ],
)
def test_differences_are_named(target: sqlite3.Connection, tmp_path: Path, statement: str, difference: str) -> None:
    target.execute(statement)
    assert differences(tmp_path) == [difference]


def looked(tmp_path: Path, expected: int) -> InvariantReader:
    reader = InvariantReader(tmp_path / "bank.sqlite", ["acc0", "acc1"], expected)
    reader._look()
    return reader


def test_the_reader_counts_wrong_totals(target: sqlite3.Connection, tmp_path: Path) -> None:
    assert (looked(tmp_path, 1000).looks, looked(tmp_path, 1000).wrong) == (1, [])
    target.execute("UPDATE acc0 SET bal = bal - 10 WHERE id = 1")  # half of a transfer
    assert looked(tmp_path, 1000).wrong == [990]


def test_repetitions_are_counted_by_content() -> None:
    bank, tally = Bank(3).run(200), Tally()
    feed = Changefeed(partitions=PARTITIONS, duplicates=0.1, restart_every=10, restart_back=2)
    for message in feed.messages(bank.database.log):
        tally.note(message)
    plain = [m for m in Changefeed(partitions=PARTITIONS).messages(bank.database.log) if b'"TIDB_WATER' not in m.value]
    assert tally.rows - tally.repeats == len([m for m in plain if b'"isDdl":true' not in m.value])
    assert tally.restarts == 4


def outcome(**changes: object) -> DemoOutcome:
    tally = Tally()
    tally.rows, tally.repeats = 10, 2
    counts = Counts(events=10, duplicates_proven=1, duplicates_unproven=1)
    facts = {"consistency": "snapshot", "tables": [], "tally": tally, "counts": counts, "looks": 5, "wrong": []}
    return DemoOutcome(**{**facts, "kills": 1, "exit_code": 0, "seconds": 1.0, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"looks": 0}, "the reader never looked"),
        ({"wrong": [999]}, "wrong totals: [999]"),
        ({"counts": Counts(events=9, duplicates_proven=2)}, "10 row messages were sent, 9 taken in"),
        ({"counts": Counts(events=10, duplicates_proven=1)}, "2 repeats were sent, 1 dropped"),
        ({"exit_code": 1}, "ended with code 1"),
    ],
    ids=["no-look", "wrong-total", "lost-event", "uncounted-duplicate", "exit-code"],
)
def test_faults_are_named(changes: dict[str, object], fault: str) -> None:
    assert outcome().faults() == []
    (found,) = outcome(**changes).faults()
    assert fault in found

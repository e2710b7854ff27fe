"""Messages that stay where Kafka's client library has put them: runs, cuts, and that none is looked at later."""

from array import array
from typing import Any

import pytest

from consumer import native
from consumer.native import Core, Joined, Reading, Rows
from consumer.native.kafka_messages import CoreRun
from consumer.tasks.scans.compiled_scan import CompiledReduction, CompiledScan
from ordering.errors import CoreError, InputError
from ordering.events import Position
from tests.consumer.native.building import built
from tests.consumer.native.in_place import END, FakeShelf, Told
from tests.consumer.native.test_core_crash import FATAL, MESSAGES
from tests.consumer.native.test_core_equal import case_of

ERROR = 7


@pytest.fixture
def shelf(core: Core) -> FakeShelf:
    return FakeShelf(core)


def told(*offsets: int, partition: int = 1, topic: str = "t", error: int = 0) -> list[Told]:
    return [(topic, partition, at, None if error else b"%d" % at, error) for at in offsets]


def offsets(run: CoreRun) -> list[int]:
    return [message.offset() for message in run]


@pytest.mark.parametrize(
    ("some", "runs"),
    [
        ([], []),
        (told(4, 5, 6), [[4, 5, 6]]),
        (told(4, 6, 9), [[4, 6, 9]]),
        ([*told(4, 5), *told(6, partition=2)], [[4, 5], [6]]),
        ([*told(4, 5), *told(6, topic="other")], [[4, 5], [6]]),
        (told(4, 5, 5, 6), [[4, 5], [5, 6]]),
        (told(4, 5, 2, 3), [[4, 5], [2, 3]]),
        ([*told(4), *told(5, error=END), *told(6, error=ERROR), *told(7)], [[4], [5], [6], [7]]),
    ],
)
def test_a_run_is_of_one_partition_and_rises(shelf: FakeShelf, some: list[Told], runs: list[list[int]]) -> None:
    assert [offsets(run) for run in shelf.batch(some).runs()] == runs


@pytest.mark.parametrize("low", range(9))
@pytest.mark.parametrize("high", [*range(9), 2**63])
def test_a_run_is_cut_by_offsets(shelf: FakeShelf, low: int, high: int) -> None:
    (run,) = shelf.batch(told(1, 2, 4, 7)).runs()
    assert offsets(run.within(low, high)) == [at for at in (1, 2, 4, 7) if low <= at < high]
    assert offsets(run[1:3]) == [2, 4]
    assert (run[-1].offset(), run[0].offset()) == (7, 1)
    assert len(run[2:2]) == 0
    with pytest.raises(IndexError):
        run[4]
    with pytest.raises(ValueError, match="gaps"):
        run[::2]


def test_what_confluent_kafka_tells_is_told(shelf: FakeShelf) -> None:
    message, nothing, empty = (run[0] for run in shelf.batch([
        *told(4), ("t", 1, 4, None, 0), ("t", 1, 4, b"", 0),
    ]).runs())  # fmt: skip
    assert (message.topic(), message.partition(), message.offset(), message.value()) == ("t", 1, 4, b"4")
    assert (message.error(), message.key(), nothing.value(), empty.value()) == (None, None, None, b"")
    ((end,),) = shelf.batch(told(9, error=END)).runs()
    error: Any = end.error()
    assert (error.code(), error.str(), end.offset()) == (END, "told", 9)


def test_what_was_given_back_is_not_looked_at(shelf: FakeShelf, core: Core) -> None:
    """A run that is kept beyond its turn would read what lies there then."""
    (run,) = shelf.batch(told(1, 2)).runs()
    message, rest = run[0], run[1:]
    shelf.batch(told(5, 6))
    for use in (message.offset, message.value, message.key, message.error, rest[0].value):
        with pytest.raises(ValueError, match="given back"):
            use()
    reading = Reading(core, 0, 1)
    with pytest.raises(ValueError, match="given back"):
        reading.take(Rows(core), run, 0, 9, (0, 9))


def test_all_is_given_back_once(shelf: FakeShelf) -> None:
    """`FakeLibrary` ends the process for a second time."""
    for count in (3, 0, 2_000, 1):
        shelf.batch(told(*range(count)))
    shelf.shelf.clear()
    shelf.shelf.clear()
    assert not shelf.library.given


@pytest.mark.parametrize(("low", "high"), [(0, 3), (0, 2), (1, 2), (2, 9), (5, 9)])
def test_messages_count_as_new_alike(shelf: FakeShelf, core: Core, low: int, high: int) -> None:
    """By their offsets, whether they are copied or not, and wherever the core begins."""
    messages = case_of(MESSAGES[:3]).runs[0]
    (run,) = shelf.batch([("t", 0, m.offset(), m.value(), 0) for m in messages]).runs()
    values = [message.value() for message in messages]
    for source in (run, Joined(messages, values, array("I", map(len, values)))):
        scan = scan_of(core)
        assert scan.take(messages[:1])  # the table is known then
        for begin in range(3):
            taken = scan._reading.take(scan._rows, source, begin, 1 << 20, (low, high))
            assert (taken.messages, taken.events) == (3 - begin, len(range(max(begin, low), min(3, high))))


def scan_of(core: Core) -> CompiledScan:
    case = case_of(MESSAGES)
    scan = CompiledScan(case.spec, case.part, CompiledReduction(case.spec, core))
    scan.take(case.runs[0][:1])
    return scan


def test_a_tombstone_is_told_with_its_position(shelf: FakeShelf, core: Core) -> None:
    scan = scan_of(core)
    rows: list[Told] = [("t", 0, at, value, 0) for at, value in enumerate(MESSAGES[:8])]
    (run,) = shelf.batch([*rows[1:5], ("t", 0, 5, None, 0)]).runs()
    with pytest.raises(InputError) as caught:
        scan.take(run)
    assert caught.value.where == str(Position("t", 0, 5))


def test_a_crash_names_the_message(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native._State, "crashed", False)
    faulty = Core(built(tmp_path, f"-DCORE_FAULT={len(MESSAGES[FATAL])}"))
    scan, shelf = scan_of(faulty), FakeShelf(faulty)
    (run,) = shelf.batch([("t", 0, at, value, 0) for at, value in enumerate(MESSAGES[1:], 1)]).runs()
    with pytest.raises(CoreError) as caught:
        scan.take(run)
    assert caught.value.where == str(Position("t", 0, FATAL))
    shelf.shelf.clear()
    assert not shelf.library.given

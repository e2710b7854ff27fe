"""Copies of rows without a key, against a model: tables as bags, a log that is sent with restarts."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordering.events import RowOp, TableName
from ordering.rows.identity import ordinal
from ordering.rows.keyless_rows import Copies, CopyCounter, EventHalf, Passes, by_commit, merged, net_copies
from ordering.timestamps import CommitTs

T = TableName("d", "t")
Event = tuple[str, RowOp]
"""A content, written or deleted."""


@st.composite
def histories(draw: st.DrawFn) -> list[list[Event]]:
    """Transactions that are possible: what is deleted is there."""
    bag: Counter[str] = Counter()
    found = []
    for _ in range(draw(st.integers(0, 6))):
        events: list[Event] = []
        gone = draw(st.lists(st.sampled_from(sorted(bag.elements())), max_size=3)) if bag.total() else []
        for content in gone:
            if bag[content]:
                bag[content] -= 1
                events.append((content, RowOp.DELETE))
        for content in draw(st.lists(st.sampled_from("ab"), max_size=3)):
            bag[content] += 1
            events.append((content, RowOp.WRITE))
        found.append(events)
    return found


def model(history: list[list[Event]]) -> Counter[str]:
    bag: Counter[str] = Counter()
    for content, half in (event for transaction in history for event in transaction):
        bag[content] += 1 if half else -1
    return +bag


@st.composite
def sendings(draw: st.DrawFn, history: list[list[Event]]) -> list[int | tuple[int, Event]]:
    """How a partition gets them: rows and watermarks (numbers), with restarts at a watermark that was sent."""
    sent: list[int | tuple[int, Event]] = [0]
    at, marks, restarts = 1, [0], draw(st.integers(0, 3))
    while at <= len(history):
        events = history[at - 1]
        cut = draw(st.integers(0, len(events))) if restarts and draw(st.booleans()) else None
        sent += [(at, event) for event in events[:cut]]
        if cut is not None:
            restarts -= 1
            at = draw(st.sampled_from(marks))
            marks = marks[: marks.index(at) + 1]  # another restart before it rose again goes no higher
            sent.append(at)
        elif draw(st.booleans()):
            sent.append(at)
            marks = [mark for mark in marks if mark < at] + [at]
        at += 1
    return [*sent, len(history)]


def counted(sent: list[int | tuple[int, Event]], watermark: int | None = None) -> list[Copies]:
    passes, counter = Passes(watermark), CopyCounter()
    for one in sent:
        if isinstance(one, int):
            passes.watermark(one)
        else:
            at, (content, half) = one
            counter.add(EventHalf(content.encode(), ordinal(CommitTs(at), half), b""), passes.row(T, at))
    return counter.found()


@given(st.data())
def test_whatever_was_sent_again_the_bag_is_the_upstream_s(data: st.DataObject) -> None:
    history = data.draw(histories())
    found = counted(data.draw(sendings(history)))
    assert net_copies(merged(found)) == {content.encode(): n for content, n in model(history).items()}


@given(st.data())
def test_transaction_by_transaction_it_is_the_same(data: st.DataObject) -> None:
    history = data.draw(histories())
    total: Counter[bytes] = Counter()
    for ts, some in by_commit(merged(counted(data.draw(sendings(history))))).items():
        expected = Counter(history[ts - 1])
        for content, n in net_copies(some).items():
            assert n == expected[content.decode(), RowOp.WRITE] - expected[content.decode(), RowOp.DELETE]
            total[content] += n
    assert +total == Counter({content.encode(): n for content, n in model(history).items()})


def rows(*contents: str, ts: int = 5) -> list[int | tuple[int, Event]]:
    return [(ts, (content, RowOp.WRITE)) for content in contents]


def times(sent: list[int | tuple[int, Event]], watermark: int | None = None) -> list[int]:
    return [one.times for one in counted(sent, watermark)]


def test_two_equal_rows_of_a_transaction_are_two() -> None:
    assert times([4, *rows("a", "a"), 5]) == [2]


def test_a_restart_tells_itself_by_a_watermark_that_does_not_rise() -> None:
    assert times([4, *rows("a", "a"), 4, *rows("a", "a"), 5]) == [2]
    assert times([4, *rows("a"), 3, *rows("a", "a"), 5]) == [2]


def test_the_watermark_before_the_range_counts() -> None:
    assert times([*rows("a"), 4, *rows("a")], watermark=4) == [1]
    assert times([*rows("a"), 4, *rows("a")], watermark=3) == [2]


def test_one_table_is_sent_again_alone() -> None:
    assert times([4, *rows("a"), 5, *rows("a"), *rows("b", ts=6), 6]) == [1, 1]
    assert times([*rows("a", ts=5), *rows("b", ts=6), *rows("a", ts=5), *rows("b", ts=6)]) == [1, 1]


def test_a_pass_that_is_cut_short_takes_nothing_back() -> None:
    """What was sent before a watermark need not be sent again in whole before the range ends."""
    assert times([4, *rows("a", "a"), 5, *rows("a"), 6]) == [2]


def test_another_table_going_back_says_nothing_of_this_one() -> None:
    passes = Passes(None)
    other = TableName("d", "other")
    first = passes.row(T, 5)
    passes.row(other, 9)
    passes.row(other, 7)
    assert passes.row(T, 5) == first


def test_row_keys_tell_copies_apart_whatever_the_passes_say() -> None:
    counter = CopyCounter()
    for mark in (b"1", b"2", b"1"):
        counter.add(EventHalf(b"a", 11, mark), (0, 0))
    assert [one.times for one in counter.found()] == [1, 1]
    assert net_copies(counter.found()) == {b"a": 2}


def test_equal_events_in_two_partitions_are_one() -> None:
    one = counted(rows("a", "a"))
    assert [copies.times for copies in merged([*one, *counted(rows("a"))])] == [2]


def marked(*marks: bytes, other: bytes = b"") -> list[Copies]:
    counter = CopyCounter()
    for mark in marks:
        counter.add(EventHalf(b"a", ordinal(CommitTs(5), RowOp.WRITE), mark, other), (0, 0))
    return counter.found()


@pytest.mark.parametrize(
    ("without", "marks", "times"),
    [(1, b"1", 1), (2, b"1", 2), (1, b"12", 2), (2, b"12", 2), (0, b"12", 2), (3, b"", 3)],
)
def test_events_that_came_with_a_row_key_and_without_are_no_more_than_either_tells(
    without: int, marks: bytes, times: int
) -> None:
    """TiCDC was told to send row keys, and sent again what it had sent without: here, or to a new topic."""
    found = merged([*marked(*([b""] * without)), *marked(*(bytes([mark]) for mark in marks))])
    assert net_copies(found) == {b"a": times}
    assert merged(found) == found
    one_event_more = marked(b"1", other=b"b")
    assert net_copies(merged([*found, *one_event_more])) == {b"a": times + 1}


def updates(*moves: str, ts: int = 5, counter: CopyCounter | None = None) -> list[Copies]:
    """What a partition has of UPDATEs in one pass: "ab" turns a row a into b."""
    counter = counter or CopyCounter()
    for before, after in moves:
        one, other = before.encode(), after.encode()
        counter.add(EventHalf(one, ordinal(CommitTs(ts), RowOp.DELETE), b"", other), (0, 0))
        counter.add(EventHalf(other, ordinal(CommitTs(ts), RowOp.WRITE), b"", one), (0, 0))
    return counter.found()


def test_equal_rows_that_updates_leave_in_two_partitions_are_two() -> None:
    expected = {b"a": -2, b"b": 1, b"c": 1}
    assert net_copies(merged(updates("ab", "ac"))) == expected
    assert net_copies(merged([*updates("ab"), *updates("ac")])) == expected
    assert net_copies(merged([*updates("ab", "ac"), *updates("ab"), *updates("ac", "ac")])) == {
        b"a": -3,
        b"b": 1,
        b"c": 2,
    }


def test_a_copy_of_a_row_is_numbered_whatever_event_it_is_of() -> None:
    """Fingerprints hold the number: those in the ledger stay what they were."""
    counter = CopyCounter()
    assert [counter.add(EventHalf(b"a", 10, b"", other), (0, 0)) for other in (b"b", b"c", b"")] == [0, 1, 2]


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from("abcd")), max_size=8), st.data())
def test_whatever_partitions_the_new_rows_choose(moves: list[tuple[str, str]], data: st.DataObject) -> None:
    place = {row: data.draw(st.integers(0, 2)) for row in "abcd"}
    again = data.draw(st.booleans())
    found = [
        updates(*("".join(one) for one in moves if place[one[1]] == p)) for p in range(3) for _ in range(1 + again)
    ]
    expected: Counter[bytes] = Counter()
    for before, after in moves:
        expected[before.encode()] -= 1
        expected[after.encode()] += 1
    assert net_copies(merged(one for some in found for one in some)) == {row: n for row, n in expected.items() if n}

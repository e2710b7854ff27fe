"""Equal rows without a key, against a model: a log in batches, with restarts and requests that are sent again.

Whatever was sent, the count is the upstream's, or it is in doubt. What was sent once in one batch is never in doubt.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence

from hypothesis import event, given
from hypothesis import strategies as st

from ordering.events import Partition, RowOp, TableName
from ordering.rows.equal_rows import Doubt, EqualRowsFinder, doubts
from ordering.rows.identity import ordinal
from ordering.rows.keyless_rows import CopyCounter, EventHalf, Passes, net_copies
from ordering.timestamps import CommitTs

T = TableName("d", "t")
P = Partition("topic", 0)
Row = tuple[int, str]
"""commitTs and content."""
Batch = list[Row]


def in_batches(draw: st.DrawFn, rows: Sequence[Row]) -> list[Batch]:
    cuts = sorted(draw(st.sets(st.integers(1, len(rows) - 1), max_size=3))) if len(rows) > 1 else []
    return [list(rows[a:b]) for a, b in zip([0, *cuts], [*cuts, len(rows)], strict=True)] if rows else []


@st.composite
def logs(draw: st.DrawFn, upstream: list[Row]) -> list[Batch]:
    """Sendings: each ends anywhere, the next begins with any transaction up to there, the last is whole.

    Any batch may be sent again at once.
    """
    sent: list[Batch] = []
    start = 0
    for _ in range(draw(st.integers(0, 2))):
        stop = draw(st.integers(start, len(upstream)))
        sent += in_batches(draw, upstream[start:stop])
        begins = [i for i in range(len(upstream)) if i == 0 or upstream[i][0] != upstream[i - 1][0]]
        start = draw(st.sampled_from([i for i in begins if i <= stop] or [0]))
    sent += in_batches(draw, upstream[start:])
    found: list[Batch] = []
    for batch in sent:
        found += [batch] * draw(st.sampled_from([1, 1, 1, 2]))
    return found


def read(log: Sequence[Batch], asked: list[tuple[int, int]] | None = None) -> tuple[dict[bytes, int], list[Doubt]]:
    passes, counter, finder = Passes(None), CopyCounter(), EqualRowsFinder()
    starts, offset = [], 0
    for batch in log:
        starts.append(offset)
        for ts, content in batch:
            in_pass = passes.row(T, ts)
            counter.add(EventHalf(content.encode(), ordinal(CommitTs(ts), RowOp.WRITE), b""), in_pass)
            finder.add(T, ts, in_pass, offset, hash((ts, content)))
            offset += 1

    def batches(partition: Partition, start: int, stop: int) -> list[int]:
        assert partition == P
        if asked is not None:
            asked.append((start, stop))
        return starts[bisect_right(starts, start) - 1 : bisect_right(starts, stop - 1)]

    return net_copies(counter.found()), list(doubts([(P, one) for one in finder.found()], batches))


@st.composite
def histories(draw: st.DrawFn) -> list[Row]:
    found: list[Row] = []
    for ts in range(1, draw(st.integers(1, 3)) + 1):
        found += [(ts, content) for content in draw(st.lists(st.sampled_from("abc"), min_size=1, max_size=4))]
    return found


@given(st.data())
def test_the_count_is_right_or_in_doubt(data: st.DataObject) -> None:
    upstream = data.draw(histories())
    net, found = read(data.draw(logs(upstream)))
    event(f"in doubt: {bool(found)}")
    assert found or net == {content.encode(): n for content, n in Counter(row[1] for row in upstream).items()}


@given(histories())
def test_what_one_batch_holds_is_never_in_doubt(upstream: list[Row]) -> None:
    net, found = read([upstream])
    assert not found
    assert net == {content.encode(): n for content, n in Counter(row[1] for row in upstream).items()}


def batch(*contents: str, ts: int = 5) -> Batch:
    return [(ts, content) for content in contents]


def offsets(*log: Batch) -> list[int]:
    return [doubt.offset for doubt in read(log)[1]]


def test_a_restart_that_goes_back_nowhere() -> None:
    assert offsets(batch("x", ts=4), batch("a"), batch("a", "b")) == [1]
    assert offsets(batch("a"), batch("a")) == [0]


def test_a_batch_with_a_row_that_does_not_come_again_was_not_sent_again() -> None:
    assert offsets(batch("a", "b"), batch("a", "c"), batch("d")) == []
    assert offsets(batch("b"), batch("a"), batch("a", "c")) == [1]


def test_a_pass_in_one_batch_tells_how_many_there_are() -> None:
    assert offsets(batch("a"), batch("a"), batch("x", ts=9), batch("a", "a")) == []
    assert offsets(batch("a"), batch("a"), batch("x", ts=9), batch("a")) == [0]


def test_a_repetition_that_ends_within_the_transaction() -> None:
    whole = [(1, "a"), *batch("a", "b")]
    assert offsets(whole, batch("a"), whole) == [1]
    assert offsets([(1, "a"), *batch("a", "a")], batch("a"), [(1, "a"), *batch("a", "a")]) == [1]
    assert offsets(whole, batch("a"), batch("x", ts=6), whole, batch("a")) == []


def test_batches_are_asked_for_once_and_only_where_rows_are_equal() -> None:
    asked: list[tuple[int, int]] = []
    assert not read([batch("a", "b"), batch("c", ts=6)], asked)[1]
    assert asked == []
    read([batch("a", "a", ts=5), batch("b", ts=6), batch("c", "c", ts=7)], asked)
    assert asked == [(0, 5)]

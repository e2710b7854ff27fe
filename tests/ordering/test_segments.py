"""Segments against a model: they end where windows would, and count only while rows would be read as they were."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from ordering.events import Partition, TableName
from ordering.planner import Planner, Seen
from ordering.progress import PartitionProgress, Progress
from ordering.rows.bucketing import evenly
from ordering.rows.segments import is_next, segments_of, stands, window_of
from ordering.timestamps import CheckpointTs, ResolvedTs
from ordering.window import Range, Window
from sinks.rows.schema import spelled
from tests.ordering.ddls import ddl
from tests.ordering.test_planner import HERE, RANGES, START, commits, histogram

NAMES = [TableName("d", name) for name in ("a", "A", "b", "B")]
KEYS = st.dictionaries(st.sampled_from(NAMES), st.sampled_from([("id",), ("x",), ()]), max_size=3)


def window(resolved: int) -> Window:
    return Window(CheckpointTs(0), CheckpointTs(0), ResolvedTs(resolved), ResolvedTs(resolved), RANGES)


@given(rows=commits, ddls=st.sets(st.integers(1, 45), max_size=5), resolved=st.integers(1, 40), limit=st.integers(1, 9))
def test_segments_end_at_every_ddl_and_hold_no_more_rows_than_the_limit(
    rows: list[int], ddls: set[int], resolved: int, limit: int
) -> None:
    planner, whole = Planner(limit), window(resolved)
    for ts in ddls:
        planner.met(ddl(ts))
    for _ in range(3):
        ends = planner.ends(whole, START)
        parts = list(zip([0, *ends], ends, strict=False))
        seen = [
            [Seen(HERE, 1000, len(some), histogram(some))]
            for some in ([r for r in rows if a < r <= b] for a, b in parts)
        ]
        if planner.saw_segments(whole, ends, seen, START):
            break
    assert planner.saw_segments(whole, ends, seen, START)
    assert list(ends) == sorted(set(ends))
    assert {*(ts for ts in ddls if ts <= resolved), resolved} <= set(ends)
    for low, end in parts:
        inside = [ts for ts in rows if low < ts <= end]
        assert len(inside) <= limit or len(set(inside)) == 1


def test_a_ddl_that_waits_at_the_checkpoint_leaves_no_segments() -> None:
    planner, progress = Planner(10), START.at(CheckpointTs(5), base_ts=CheckpointTs(5))
    planner.met(ddl(5))
    planner.met(ddl(9))
    at = replace(window(20), low=CheckpointTs(5))
    assert planner.ends(at, progress) == (5,)


@given(read=KEYS, now=KEYS, tables=st.sets(st.sampled_from(NAMES)), own=st.booleans())
def test_rows_that_stand_would_be_read_as_they_were(
    read: dict[TableName, tuple[str, ...]], now: dict[TableName, tuple[str, ...]], tables: set[TableName], own: bool
) -> None:
    """`own`: the messages name their table's key. Where they don't and none was known, the report says so."""

    def as_read(name: TableName, keys: dict[TableName, tuple[str, ...]]) -> tuple[TableName, tuple[str, ...]]:
        found = spelled(name, keys)
        return found, ("own",) if own else keys.get(found, ())

    reported = {as_read(name, read)[0] for name in tables}
    keyless = any(not as_read(name, read)[1] for name in tables)
    if not keyless and stands(reported, read, now):
        assert all(as_read(name, read) == as_read(name, now) for name in tables)


@given(read=KEYS, more=st.sampled_from([TableName("d", "new"), TableName("e", "a")]))
def test_other_tables_may_come_and_go(read: dict[TableName, tuple[str, ...]], more: TableName) -> None:
    """Else a CREATE TABLE would cost a second reading."""
    assert stands(read, read, {**read, more: ("id",)})
    assert stands(read, {**read, more: ("id",)}, read)
    assert stands([more], read, {**read, more: ("id",)})


def test_a_segment_is_next_only_behind_all_ddls_before_it() -> None:
    first, second = segments_of(0, [10, 20], [1, 2])
    at_ten = START.at(CheckpointTs(10), base_ts=CheckpointTs(10))
    assert (first.first, second.first, second.buckets) == (0, 1, 2)
    assert is_next(first, START, [ddl(10)])
    assert not is_next(second, START, [])
    assert is_next(second, at_ten, [ddl(20), ddl(30)])
    assert not is_next(second, at_ten, [ddl(10)])
    assert not is_next(second, at_ten, [ddl(15)])
    assert not is_next(second, replace(at_ten, window=window(20)), [])
    assert not is_next(second, replace(at_ten, base_ts=CheckpointTs(5)), [])


def test_whole_transactions_have_the_buckets_of_their_spread() -> None:
    spread = evenly(0, 10, 3)
    first, second = segments_of(0, [10, 20], [spread, 1])
    assert (first.buckets, first.spread, second.first, second.spread) == (3, spread, 3, None)


def test_a_segment_is_the_window_that_a_new_reading_would_begin_with() -> None:
    other = Partition("t", 1)
    reading = replace(window(20), ranges=(Range(HERE, 0, 100, 40), Range(other, 5, 50, 5)))
    progress = replace(
        Progress.first(CheckpointTs(0), "", "").at(CheckpointTs(10), base_ts=CheckpointTs(10)),
        partitions={HERE: PartitionProgress(30, 100, counted_to=100), other: PartitionProgress(50, 50, counted_to=50)},
    )
    (_, second) = segments_of(0, [10, 20], [1, 1])
    found = window_of(second, progress, reading)
    assert found.ranges == (Range(HERE, 30, 100, 100),)
    assert (found.low, found.base, found.high, found.resolved, found.until) == (10, 10, 20, 20, 20)
    assert replace(found, resolved=ResolvedTs(30)).until == 30  # repetitions behind are its own
    kept = Progress.restored(10, progress.offsets(), replace(progress, window=found).state())
    assert kept.window == found

"""Where windows end and what is read for them."""

from bisect import bisect_right
from itertools import groupby, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordering.errors import WorkerLostError
from ordering.events import Partition
from ordering.timestamps import MAX_TSO, CheckpointTs, CommitTs, ResolvedTs
from ordering.window import Cuts, Range, Window, budget, check_whole, cuts, divided, shares, together, within

ROWS = st.lists(st.lists(st.integers(1, 12), max_size=15), min_size=1, max_size=4)
P = Partition("t", 0)


def histogram(rows: list[int]) -> list[tuple[int, int]]:
    ordered = sorted(rows)
    return [(ts, bisect_right(ordered, ts)) for ts, _ in groupby(ordered)]


@given(st.lists(st.integers(1, 12), max_size=15), st.integers(0, 13), st.integers(0, 13))
def test_a_part_of_a_histogram_counts_its_own_rows(rows: list[int], low: int, high: int) -> None:
    assert within(histogram(rows), low, high) == histogram([ts for ts in rows if low < ts <= high])


@given(ROWS, st.integers(1, 20))
def test_cuts_keep_the_limit_and_never_cut_a_commit_ts(rows: list[list[int]], limit: int) -> None:
    found = cuts([histogram(some) for some in rows], limit)
    everything = [ts for some in rows for ts in some]
    assert found == sorted(set(found))
    assert set(found) < {*everything, 0}
    bounds = [0, *found, max(everything, default=0)]
    windows = [[ts for ts in everything if low < ts <= high] for low, high in pairwise(bounds)]
    assert all(len(window) <= limit or len(set(window)) == 1 for window in windows)
    assert sum(map(len, windows)) == len(everything)
    # no two neighbours would have fitted into one window: they are not cut for nothing
    for left, right in pairwise(windows):
        assert len(left) + sum(ts == min(right) for ts in right) > limit


@given(st.lists(st.integers(1, 20), unique=True).map(sorted), st.integers(0, 20), st.integers(0, 20))
def test_the_first_cut_inside_the_window_counts(at: list[CommitTs], low: int, resolved: int) -> None:
    inside = [ts for ts in at if low < ts < resolved]
    found = Cuts(20, at).within(CheckpointTs(low), ResolvedTs(resolved))
    assert found == (inside[0] if inside else None)


RANGES = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 200)), min_size=1, max_size=4).map(
    lambda spans: [Range(Partition("t", i), a, a + n, a) for i, (a, n) in enumerate(spans)]
)


@given(RANGES, st.integers(1, 12), st.integers(1, 80))
def test_divided_ranges_cover_exactly_the_same(ranges: list[Range], pieces: int, smallest: int) -> None:
    parts = divided(ranges, pieces, smallest)
    for whole in ranges:
        mine = [part for part in parts if part.partition == whole.partition]
        assert [offset for part in mine for offset in range(part.start, part.stop)] == [*range(whole.start, whole.stop)]
        assert {part.counted_to for part in mine} == {whole.counted_to}
        assert all(part.messages for part in mine) or not whole.messages
        assert all(2 * part.messages >= min(smallest, whole.messages) for part in mine[:-1])
    assert len(parts) <= 2 * pieces + len(ranges)


@given(RANGES, st.integers(1, 12), st.integers(1, 80), st.integers(1, 12))
def test_groups_hold_each_part_once_and_a_partition_at_one_place(
    ranges: list[Range], pieces: int, smallest: int, groups: int
) -> None:
    parts = divided(ranges, pieces, smallest)
    found = together(parts, groups)
    assert sorted((p.partition, p.start, p.stop) for group in found for p in group) == sorted(
        (p.partition, p.start, p.stop) for p in parts
    )
    for group in found:
        assert len({part.partition for part in group}) == len(group)
    most_parts = max(sum(part.partition == whole.partition for part in parts) for whole in ranges)
    assert len(found) <= max(most_parts, min(groups, len(parts)))
    sizes = [sum(part.messages for part in group) for group in found]
    if most_parts == 1:  # nothing stands in the way of equal sizes
        assert max(sizes) - min(sizes) <= max(part.messages for part in parts) + len(parts)


@given(
    st.integers(1, 10**6),
    st.integers(1, 2**30),
    st.dictionaries(st.builds(Partition, st.just("t"), st.integers(0, 4)), st.floats(0, 10**5)),
    st.integers(0, 8),
)
def test_a_budget_keeps_rows_and_bytes(rows: int, size: int, average: dict[Partition, float], partitions: int) -> None:
    found = budget(rows, size, average, partitions)
    assert found >= 1
    if found > 1:
        known = [value for value in average.values() if value > 0]
        assert found * max(1, partitions) <= rows
        assert found * max(1, partitions) * (sum(known) / len(known) if known else 1) <= size * 1.001


WAITING = st.dictionaries(st.builds(Partition, st.just("t"), st.integers(0, 4)), st.integers(0, 10**6), min_size=1)


@given(st.integers(1, 10**6), WAITING)
def test_shares_keep_the_limit_and_leave_nobody_out(fair: int, waiting: dict[Partition, int]) -> None:
    limit, found = fair * len(waiting), shares(fair, waiting)
    read = {p: min(found[p], count) for p, count in waiting.items()}
    assert sum(read.values()) <= 1.1 * limit + len(waiting)
    assert all(read[p] > 0 for p, count in waiting.items() if count)
    if sum(waiting.values()) <= limit:
        assert read == waiting
    for p, count in waiting.items():  # nobody gets less than somebody for whom less waits
        assert all(found[p] >= found[other] for other, less in waiting.items() if less < count)


def test_a_window_is_read_up_to_a_watermark_above_it_or_to_the_end() -> None:
    low, high = CheckpointTs(3), ResolvedTs(3)
    some = (Range(P, 2, 7, 2), Range(P, 9, 9, 9))
    assert Window(low, low, high, ResolvedTs(5), some).until == 3
    assert Window(low, low, high, high, some, to_end=True).until == MAX_TSO
    assert Window(low, low, high, high, some).messages == 5


def test_nothing_is_cut_off_before_a_first_large_transaction() -> None:
    assert cuts([[(4, 0), (5, 900), (8, 905)]], 100) == [5]


WHOLES = st.lists(st.tuples(st.integers(0, 50), st.integers(1, 60)), min_size=1, max_size=4).map(
    lambda spans: [Range(Partition("t", p), a, a + n, a) for p, (a, n) in enumerate(spans)]
)


@given(WHOLES, st.integers(1, 9), st.integers(1, 20), st.randoms())
def test_parts_of_ranges_are_whole(ranges: list[Range], pieces: int, smallest: int, chance: object) -> None:
    parts = divided(ranges, pieces, smallest)
    chance.shuffle(parts)  # type: ignore[attr-defined]
    check_whole(ranges, parts)
    for wrong in (parts[1:], [*parts, parts[0]], [*parts, Range(Partition("u", 0), 0, 1, 0)]):
        with pytest.raises(WorkerLostError):
            check_whole(ranges, wrong)

"""The planner against a model: windows follow each other, end at barriers and cuts, and leave nothing out."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from ordering.events import Partition
from ordering.planner import Planner, Seen
from ordering.progress import Progress
from ordering.timestamps import CheckpointTs, CommitTs, ResolvedTs
from ordering.window import Range, Window
from tests.ordering.ddls import ddl

HERE = Partition("t", 0)
RANGES = (Range(HERE, 0, 1000, 0),)
START = Progress.first(CheckpointTs(0), "", "")


def histogram(rows: list[int]) -> list[tuple[int, int]]:
    return [(ts, sum(1 for one in rows if one <= ts)) for ts in sorted(set(rows))]


def planned(planner: Planner, progress: Progress, resolved: int | None) -> Window | None:
    return planner.next_window(progress, None if resolved is None else ResolvedTs(resolved), RANGES)


def expected_ends(rows: list[int], ddls: set[int], resolved: int) -> list[int]:
    """Where windows without a limit end: at a DDL, with which all go that no row lies before, and at the watermark."""
    ends, at, waiting = [], 0, sorted(ts for ts in ddls if ts <= resolved)
    while at < resolved:
        ends.append(at := waiting[0] if waiting else resolved)
        next_row = min((ts for ts in rows if ts > at), default=resolved + 1)
        at = max([at, *(ts for ts in waiting if ts < next_row)])
        waiting = [ts for ts in waiting if ts >= next_row]
    return ends


commits = st.lists(st.integers(1, 40), max_size=60)


@given(rows=commits, ddls=st.sets(st.integers(1, 45), max_size=5), resolved=st.integers(1, 40))
def test_windows_end_at_each_ddl_and_at_the_watermark(rows: list[int], ddls: set[int], resolved: int) -> None:
    assert run(rows, ddls, resolved, limit=10_000) == expected_ends(rows, ddls, resolved)


@given(rows=commits, ddls=st.sets(st.integers(1, 45), max_size=5), resolved=st.integers(1, 40), limit=st.integers(1, 9))
def test_no_window_has_more_rows_than_the_limit_unless_one_commit_has(
    rows: list[int], ddls: set[int], resolved: int, limit: int
) -> None:
    low = 0
    ends = run(rows, ddls, resolved, limit)
    for end in ends:
        inside = [ts for ts in rows if low < ts <= end]
        assert len(inside) <= limit or len(set(inside)) == 1
        low = end


def run(rows: list[int], ddls: set[int], resolved: int, limit: int) -> list[int]:
    """Plan, read and apply until nothing is left, as a round does; the ends of the windows that were applied."""
    planner, progress, ends = Planner(limit), START, list[int]()
    executed: list[int] = []
    while window := planned(planner, progress, resolved):
        while True:
            inside = [ts for ts in rows if window.low < ts <= window.high]
            for ts in sorted(ddls):
                planner.met(ddl(ts))
            nearer = planner.saw(window, [Seen(HERE, 1000, len(inside), histogram(inside))], progress)
            if nearer is None:
                break
            assert window.low < nearer < window.high
            window = replace(window, high=nearer)
        assert window.low == progress.checkpoint_ts
        progress = progress.at(CheckpointTs(window.high), base_ts=CheckpointTs(window.high))
        ends.append(int(window.high))
        next_row = min((CommitTs(ts) for ts in rows if ts > window.high), default=None)
        due, read_to = planner.due(progress, window, next_row, ())
        assert read_to == resolved
        for one in due:  # behind every row up to it, before every row above
            assert {ts for ts in rows if ts <= window.high} == {ts for ts in rows if ts <= one.commit_ts}
        executed += [int(one.commit_ts) for one in due]
        for one in due:
            progress = progress.after_ddl(CheckpointTs(one.commit_ts), one.identity)
            planner.settled(one)
        planner.forget_done(progress)
    assert progress.checkpoint_ts == resolved
    assert executed == sorted(ts for ts in ddls if ts <= resolved)
    return ends


def test_nothing_is_planned_without_news() -> None:
    planner, at_nine = Planner(10), START.at(CheckpointTs(9), base_ts=CheckpointTs(9))
    assert planned(planner, at_nine, None) is None
    assert planned(planner, at_nine, 8) is None
    assert planned(planner, at_nine, 9) is None


def test_the_rest_of_a_torn_window_comes_at_the_same_watermark() -> None:
    torn = START.at(CheckpointTs(9), base_ts=CheckpointTs(5))
    window = planned(Planner(10), torn, 9)
    assert window is not None
    assert (window.low, window.base, window.high) == (9, 5, 9)


def test_a_ddl_is_known_from_when_it_is_met_until_it_is_executed() -> None:
    planner, met = Planner(10), ddl(5)
    assert not planner.knows(met.identity)
    planner.met(met)
    assert planner.knows(met.identity)
    planner.forget_done(START)
    assert planner.knows(met.identity)
    planner.forget_done(START.after_ddl(CheckpointTs(5), met.identity))
    assert not planner.knows(met.identity)


def test_a_recorded_window_comes_again_as_it_was_whatever_was_met_since() -> None:
    recorded = Window(CheckpointTs(0), CheckpointTs(0), ResolvedTs(30), ResolvedTs(30), RANGES)
    progress, planner = replace(START, window=recorded), Planner(1)
    planner.met(ddl(10))
    assert planned(planner, progress, 50) is recorded
    assert planner.saw(recorded, [Seen(HERE, 1000, 500, [(5, 400), (20, 500)])], progress) is None


def test_what_was_looked_through_is_not_looked_through_again_before_a_ddl_of_it_is_settled() -> None:
    planner, behind = Planner(10), ddl(10)
    resolved = ResolvedTs(5)
    found = planner.look_through(START, resolved, RANGES, lambda left: left)
    assert found is not None
    assert found.to_end
    assert found.ranges == RANGES
    planner.saw(found, [Seen(HERE, 600, 0, [])], START)
    again = planner.look_through(START, resolved, RANGES, lambda left: left)
    assert again is not None
    assert [r.start for r in again.ranges] == [600]
    planner.settled(replace(behind, position=replace_partition(behind.position)))
    once_more = planner.look_through(START, resolved, RANGES, lambda left: left)
    assert once_more is not None
    assert once_more.ranges == RANGES


def replace_partition(position: object) -> object:
    return type(position)(HERE.topic, HERE.partition, 600)  # type: ignore[call-arg]


def test_what_is_looked_through_before_the_first_watermark_is_chosen() -> None:
    planner = Planner(10)
    assert planner.look_through(START, None, RANGES, lambda _: ()) is None
    found = planner.look_through(START, None, RANGES, lambda left: left[:1])
    assert found is not None
    assert found.ranges == RANGES[:1]
    assert planner.look_through(START, ResolvedTs(5), RANGES, lambda _: ()) is not None

"""Rewinding: whatever of (W, C] the target holds, one unit that ends at C brings it to the upstream's state there."""

from hypothesis import given
from hypothesis import strategies as st

from ordering.events import Partition, any_ddl_at
from ordering.progress import PartitionProgress, Progress
from ordering.rewind import reached, rewound
from ordering.timestamps import CheckpointTs, ResolvedTs
from ordering.window import Range, Window

A, B = Partition("t", 0), Partition("t", 1)


def progress() -> Progress:
    partitions = {A: PartitionProgress(50, 60, ResolvedTs(90), 55), B: PartitionProgress(7, 9, ResolvedTs(90), 8)}
    return Progress(CheckpointTs(90), CheckpointTs(90), partitions=partitions, executed=frozenset({"x"}), ledger="old")


def test_the_window_holds_all_up_to_the_old_checkpoint() -> None:
    back = rewound(progress(), CheckpointTs(40), {A: (20, 70), B: (7, 12)}, "new")
    assert back.window == Window(
        CheckpointTs(40),
        CheckpointTs(40),
        ResolvedTs(90),
        ResolvedTs(90),
        (Range(A, 20, 70, 55), Range(B, 7, 12, 8)),
        rewound=True,
    )
    assert (back.checkpoint_ts, back.base_ts, back.executed, back.ledger) == (40, 40, {any_ddl_at(40), "x"}, "new")
    assert {p: at.start for p, at in back.partitions.items()} == {A: 20, B: 7}
    assert {p: at.watermark for p, at in back.partitions.items()} == {A: 90, B: 90}
    assert Progress.restored(back.checkpoint_ts, back.offsets(), back.state()) == back


def test_reading_never_begins_later_than_before() -> None:
    back = rewound(progress(), CheckpointTs(40), {A: (58, 70), B: (12, 12)}, "new")
    assert {p: at.start for p, at in back.partitions.items()} == {A: 50, B: 7}


def test_a_window_that_was_begun_belongs_to_what_is_applied_once_more() -> None:
    again = rewound(progress(), CheckpointTs(40), {A: (20, 70)}, "new")
    assert reached(again) == 90
    further = rewound(again, CheckpointTs(30), {A: (10, 75)}, "newer")
    assert further.window is not None
    assert (further.window.low, further.window.high) == (30, 90)


@given(st.data())
def test_any_mixture_of_moments_becomes_the_state_at_the_checkpoint(data: st.DataObject) -> None:
    """The rule itself, on a table of rows with one more unique column, as the unit applies it."""
    keys, values = range(4), range(4)
    history: list[dict[int, int]] = [{}]
    events: list[tuple[int, int, int | None]] = []
    for ts in range(1, data.draw(st.integers(2, 12))):
        state = dict(history[-1])
        for key in data.draw(st.sets(st.sampled_from(keys), min_size=1)):
            state.pop(key, None)
            free = sorted(set(values) - set(state.values()))
            if free and data.draw(st.booleans()):
                state[key] = data.draw(st.sampled_from(free))
        events += [(ts, key, state.get(key)) for key in keys if state.get(key) != history[-1].get(key)]
        history.append(state)
    low = data.draw(st.integers(0, len(history) - 1))
    target = {k: v for k in keys if (v := history[data.draw(st.integers(low, len(history) - 1))].get(k)) is not None}
    net = {key: value for ts, key, value in events if ts > low}
    left = {key: value for key, value in target.items() if key not in net}
    written = {key: value for key, value in net.items() if value is not None}
    assert not set(left.values()) & set(written.values())
    assert left | written == history[-1]

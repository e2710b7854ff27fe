"""What a window tells of the rows before it, whatever happened to its events; and what that is compared with."""

from itertools import chain

from hypothesis import given
from hypothesis import strategies as st

from ordering.drift import FROM_A_ROW, FROM_NOTHING, Drift, Met, drift_of, missed, summed, text_of
from ordering.events import RowOp, TableName
from ordering.rows.identity import ordinal
from ordering.rows.net_effect import KeyChange, net_effect
from ordering.timestamps import CommitTs
from tests.ordering.halves import T, key, scattered

STEPS = st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["write", "remove", "split"])), max_size=12)


def events(start: set[int], steps: list[tuple[int, str]]) -> list[KeyChange]:
    """What upstream sends of these changes, each in a transaction of its own."""
    rows, found = set(start), []
    for at, (number, step) in enumerate(steps, 1):
        gone = (key(number), ordinal(CommitTs(at), RowOp.DELETE), b"", FROM_NOTHING)
        write, there = ordinal(CommitTs(at), RowOp.WRITE), number in rows
        if step == "remove":
            found += [gone] if there else []
            rows.discard(number)
        elif step == "split" and there:
            found += [gone, (key(number), write, b"x", FROM_NOTHING)]
        else:
            found.append((key(number), write, b"x", FROM_A_ROW if there else FROM_NOTHING))
            rows.add(number)
    return found


@given(st.sets(st.integers(0, 3)), STEPS, st.data())
def test_the_rows_that_were_there_are_known_of_each_row_that_a_window_touches(
    start: set[int], steps: list[tuple[int, str]], data: st.DataObject
) -> None:
    groups = data.draw(scattered(events(start, steps)))
    net = net_effect(chain.from_iterable(net_effect(group) for group in groups))
    were = {key(number) for number in start}
    assert {k for k, order, _, back in net if not missed(order, back)} == were & {half[0] for half in net}


def test_only_what_is_certain_is_a_difference() -> None:
    assert drift_of(3, Met(3, 3)) == drift_of(3, Met(0, 5)) == (0, 0)
    assert drift_of(3, Met(1, 1)) == Drift(missing=2, unexpected=0)
    assert drift_of(3, Met(5, 9)) == Drift(missing=0, unexpected=2)


def test_differences_add_up_by_table() -> None:
    other = TableName("d", "other")
    total = summed([(T, Drift(1, 0)), (other, Drift(0, 0)), (T, Drift(0, 2))])
    assert total == {T: Drift(1, 2)}
    assert text_of(total) == "d.t: 1 rows missing, 2 rows that should not be there"

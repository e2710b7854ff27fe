"""Which DDLs are still to be executed, in which order, and where a window ends for them (R6)."""

from hypothesis import given
from hypothesis import strategies as st

from ordering.ddl_barrier import executable, first_barrier, next_of, pending
from ordering.events import DdlEvent, TableName
from ordering.timestamps import BEGINNING, CheckpointTs, CommitTs, ResolvedTs
from tests.ordering.ddls import DDLS, ddl

STAMPS = st.integers(0, 7)
A, B, Z = TableName("d", "a"), TableName("d", "b"), TableName("d", "z")


@given(st.lists(DDLS), STAMPS, STAMPS, st.data())
def test_pending_is_what_is_neither_below_nor_executed_each_once_and_in_order(
    ddls: list[DdlEvent], start: int, checkpoint: int, data: st.DataObject
) -> None:
    at = sorted({d.identity for d in ddls if d.commit_ts == checkpoint})
    executed = frozenset(data.draw(st.lists(st.sampled_from(at)))) if at else frozenset()
    waiting = pending(ddls, CheckpointTs(start), CheckpointTs(checkpoint), executed)
    model = {d.identity for d in ddls if d.commit_ts > start and d.commit_ts >= checkpoint} - executed
    assert [d.identity for d in waiting] == list(dict.fromkeys(d.identity for d in waiting))
    assert {d.identity for d in waiting} == model
    order = [(d.commit_ts, d.position) for d in waiting]
    assert order == sorted(order)
    assert all(d.position == min(e.position for e in ddls if e.identity == d.identity) for d in waiting)


@given(st.lists(DDLS), STAMPS.map(ResolvedTs))
def test_a_window_ends_at_the_first_resolved_ddl(ddls: list[DdlEvent], resolved: ResolvedTs) -> None:
    resolved_ones = [d.commit_ts for d in ddls if d.commit_ts <= resolved]
    assert first_barrier(ddls, resolved) == (min(resolved_ones) if resolved_ones else None)


@given(st.lists(DDLS), STAMPS.map(ResolvedTs), st.none() | STAMPS.map(CommitTs))
def test_no_row_lies_before_a_ddl_that_runs(
    ddls: list[DdlEvent], resolved: ResolvedTs, next_row: CommitTs | None
) -> None:
    waiting = pending(ddls, BEGINNING, BEGINNING, frozenset())
    ready = executable(waiting, resolved, next_row)
    assert ready == waiting[: len(ready)]
    assert all(d.commit_ts <= resolved for d in ready)
    if next_row is not None:
        # rows with the DDL's own commitTs belong before it
        assert all(d.commit_ts < next_row for d in ready)
    for d in waiting[len(ready) :]:
        assert d.commit_ts > resolved or (next_row is not None and d.commit_ts >= next_row)


@given(st.permutations("abz"))
def test_renames_of_one_statement_find_their_order(topics: list[str]) -> None:
    away, over, back = topics  # RENAME TABLE a TO z, b TO a, z TO b
    ready = [
        ddl(5, topic=away, removes=(A,), adds=(Z,)),
        ddl(5, topic=over, removes=(B,), adds=(A,)),
        ddl(5, topic=back, removes=(Z,), adds=(B,)),
    ]
    wanted, there = list(ready), {A, B}
    ready.sort(key=lambda d: d.position)
    while ready:
        found = next_of(ready, there, ResolvedTs(5))
        assert found is wanted.pop(0)
        ready.remove(found)
        there = (there - {*found.removes}) | {*found.adds}


def test_where_none_fits_the_one_goes_first_whose_new_name_no_other_leaves() -> None:
    """Whether a table is there may be unknown: RENAME TABLE b TO z, a TO b."""
    over, away = ddl(5, topic="t", removes=(A,), adds=(B,)), ddl(5, topic="u", removes=(B,), adds=(Z,))
    assert next_of([over, away], set(), ResolvedTs(6)) is away
    assert next_of([over, away], set(), ResolvedTs(5)) is None


def test_within_a_topic_none_is_passed_and_another_commit_ts_waits() -> None:
    first, second = ddl(5, offset=1, removes=(Z,), adds=(B,)), ddl(5, offset=2, removes=(A,), adds=(B,))
    assert next_of([first, second], {A}, ResolvedTs(6)) is first
    assert next_of([first, ddl(6, topic="u", removes=(A,), adds=(B,))], {A}, ResolvedTs(6)) is first


def test_a_rename_that_does_not_fit_waits_while_others_may_come() -> None:
    rename, drop = ddl(5, removes=(A,), adds=(B,)), ddl(5, removes=(A,))
    assert next_of([rename], {A, B}, ResolvedTs(5)) is None
    assert next_of([rename], {Z}, ResolvedTs(5)) is None
    assert next_of([rename], {A}, ResolvedTs(5)) is rename
    assert next_of([rename], {A, B}, ResolvedTs(6)) is rename
    assert next_of([drop], {Z}, ResolvedTs(5)) is drop

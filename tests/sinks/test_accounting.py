"""A statement that changes another number of rows than it may is an error that names table and keys."""

import pytest

from ordering.errors import RowCountError, TargetError
from ordering.events import RowOp, TableName
from sinks.rows.accounting import check_changed
from sinks.rows.bisect_refused import Trial
from sinks.rows.chunk import Chunk
from sinks.rows.spool import Group, Spool
from tests.sinks.test_refusal import ENCODER

TABLE = TableName("d", "t")


@pytest.mark.parametrize(("changed", "at_most", "at_least"), [(0, 3, 0), (3, 3, 0), (3, 3, 3), (4, 6, 3)])
def test_what_it_may_change(changed: int, at_most: int, at_least: int) -> None:
    check_changed(changed, at_most, TABLE, [], "here", at_least=at_least)


@pytest.mark.parametrize(
    ("changed", "at_most", "at_least", "said"),
    [(4, 3, 0, "for at most 3 rows"), (2, 3, 3, "for 3 rows"), (7, 6, 3, "for 3 to 6 rows")],
)
def test_what_it_may_not(changed: int, at_most: int, at_least: int, said: str) -> None:
    with pytest.raises(RowCountError) as caught:
        check_changed(changed, at_most, TABLE, [["1", "a"], ["2", "b"]], "here", at_least=at_least)
    assert f"{said} of d.t changed {changed}" in caught.value.fact
    assert "(1, a); (2, b)" in caught.value.fact
    assert (caught.value.where, caught.value.exit_code) == ("here", 4)


def test_of_many_keys_a_few_are_named() -> None:
    with pytest.raises(RowCountError) as caught:
        check_changed(10_001, 10_000, TABLE, ((i, "x" * 1000) for i in range(10_000)), "here")
    assert "(4, x" in caught.value.fact
    assert caught.value.fact.endswith(" ...")
    assert len(caught.value.fact) < 700


def test_no_row_is_tried_by_itself_for_it() -> None:
    tried = []

    def put(group: Group) -> None:
        tried.append(group.rows)
        raise RowCountError("2 of 1")

    chunk = Chunk(TABLE, RowOp.WRITE, ("id",), 2, b"1\n2\n")
    with Spool() as spool:
        spool.add(chunk)
        group, trial = spool.groups(RowOp.WRITE)[0], Trial(ENCODER, put, lambda: None, lambda: None)
        with pytest.raises(RowCountError):
            trial.refused(group, TargetError("of many"))
    assert tried == [2]

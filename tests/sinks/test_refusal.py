"""Of thousands of rows the one that is refused is found, and everything is as before."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordering.errors import TargetError
from ordering.events import RowOp, TableName
from sinks.mysql.encoder import MysqlEncoder
from sinks.rows.bisect_refused import RowRefusedError, Trial
from sinks.rows.chunk import Chunk
from sinks.rows.schema import Column, Shape
from sinks.rows.spool import Group, Spool
from sinks.rows.tsv import decode_rows
from sinks.rows.values import ValueRules

TABLE = TableName("d", "t")
ENCODER = MysqlEncoder(ValueRules())
COLUMNS = [Column("id", "int", Shape.INTEGER)]


class Unique:
    """A target of numbers that takes each once, and none above 1000."""

    def __init__(self) -> None:
        self.rows: list[int] = []
        self.saved: list[int] = []
        self.tried = 0

    def put(self, group: Group) -> None:
        for payload in group.payloads():
            for (text,) in decode_rows(payload):
                self.tried += 1
                number = int(text or 0)
                if number > 1000 or number in self.rows:
                    raise TargetError(f"refused: {number}", where="here")
                self.rows.append(number)

    def save(self) -> None:
        self.saved = list(self.rows)

    def back(self) -> None:
        self.rows = list(self.saved)


def group_of(numbers: list[int], spool: Spool, size: int = 7) -> Group:
    for start in range(0, len(numbers), size):
        part = [[str(number)] for number in numbers[start : start + size]]
        spool.add(Chunk(TABLE, RowOp.WRITE, ("id",), len(part), ENCODER.encode(COLUMNS, part)))
    return spool.groups(RowOp.WRITE)[0]


@given(st.lists(st.integers(0, 1000), unique=True, max_size=60), st.data())
def test_the_row_that_is_refused(numbers: list[int], data: st.DataObject) -> None:
    bad = data.draw(st.integers(1001, 2000) | (st.sampled_from(numbers) if numbers else st.nothing()))
    at = data.draw(st.integers(numbers.index(bad) + 1 if bad in numbers else 0, len(numbers)))
    target = Unique()
    with Spool() as spool:
        group = group_of([*numbers[:at], bad, *numbers[at:]], spool)
        found = Trial(ENCODER, target.put, target.save, target.back).refused(group, TargetError("of many"))
    assert isinstance(found, RowRefusedError)
    assert (found.fact, found.where) == (f"refused: {bad}", "here")
    assert list(decode_rows(found.row.payload)) == [[str(bad)]]
    assert (found.row.table, found.row.rows) == (TABLE, 1)


def test_a_thousand_rows_are_tried_a_few_times() -> None:
    target = Unique()
    with Spool() as spool:
        group = group_of([*range(700), 2000, *range(700, 999)], spool, size=1000)
        Trial(ENCODER, target.put, target.save, target.back).refused(group, TargetError("of many"))
    assert target.tried < 3000


def test_what_no_row_is_to_blame_for_stays() -> None:
    target, error = Unique(), TargetError("the disk is full")
    with Spool() as spool:
        assert Trial(ENCODER, target.put, target.save, target.back).refused(group_of([1, 2], spool), error) is error


def test_the_row_crosses_a_process_boundary() -> None:
    row = Chunk(TABLE, RowOp.WRITE, ("id",), 1, b"1\n")
    found = pickle.loads(pickle.dumps(RowRefusedError("fact", where="where", hint="hint", row=row)))  # noqa: S301 our own
    assert (found.fact, found.where, found.hint, found.row, found.exit_code) == ("fact", "where", "hint", row, 4)


@pytest.mark.parametrize("rows", [[], [["1"]], [["1"], [None], ["3"]]])
def test_payloads_are_taken_apart_and_joined(rows: list[list[str | None]]) -> None:
    payload = ENCODER.encode(COLUMNS, rows)
    assert ENCODER.joined(ENCODER.split(payload)) == payload
    assert ENCODER.split(payload) == [ENCODER.encode(COLUMNS, [row]) for row in rows]

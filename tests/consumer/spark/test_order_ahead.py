"""Segments ordered ahead: fewer jobs than segments, and never rows that were encoded for another table."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from consumer.spark.order_ahead import OrderAhead, Ordered
from consumer.tasks.order import Answered, Failure, OrderTask
from ordering.errors import TargetError
from ordering.events import RowOp, TableName
from ordering.rows.segments import Segment, segments_of
from sinks.rows.chunk import Chunk
from sinks.rows.schema import TableSchema

HERE, OTHER = TableName("d", "t"), TableName("d", "other")


def schema(name: TableName, key: str = "id") -> TableSchema:
    return TableSchema(name, (), (key,), ())


def task(*tables: TableSchema) -> OrderTask:
    return OrderTask(
        {table.name: table for table in tables}, cast("Any", None), cast("Any", None), whole_transactions=False
    )


@dataclass
class Runs:
    """What Spark would be asked."""

    size: int = 10
    asked: list[list[int]] = field(default_factory=list)

    def __call__(self, order: OrderTask, buckets: list[int]) -> list[Ordered]:
        self.asked.append(buckets)
        return [self.of(order, bucket) for bucket in buckets]

    def of(self, order: OrderTask, bucket: int) -> Ordered:
        if HERE not in order.schemas:
            return [Failure(TargetError("missing"))]
        said = f"{bucket} {order.schemas[HERE].handle_key}".encode().ljust(self.size)
        return [Chunk(HERE, RowOp.WRITE, ("id",), 1, said), Answered(bucket, 1)]


def ahead(runs: Runs, sizes: Sequence[int]) -> tuple[OrderAhead, tuple[Segment, ...]]:
    segments = segments_of(0, range(1, len(sizes) + 1), sizes)
    return OrderAhead(segments, 2, runs), segments


def test_many_segments_cost_few_jobs_and_each_gets_its_own_rows() -> None:
    runs = Runs()
    waiting, segments = ahead(runs, [1] * 100)
    for number, segment in enumerate(segments, 1):
        order = task(schema(HERE), schema(TableName("d", f"other{number}")))  # a CREATE TABLE between any two
        assert waiting.outcomes(segment, order) == [
            Chunk(HERE, RowOp.WRITE, ("id",), 1, f"{number} ('id',)".encode().ljust(10)), Answered(1, 1)
        ]  # fmt: skip
    assert sorted(bucket for asked in runs.asked for bucket in asked) == list(range(1, 101))
    assert len(runs.asked) <= 10


def test_rows_of_a_table_that_a_ddl_changed_are_ordered_again() -> None:
    runs = Runs()
    waiting, segments = ahead(runs, [1] * 12)
    for number, segment in enumerate(segments, 1):
        key = "id" if number <= 6 else "x"
        found = waiting.outcomes(segment, task(schema(HERE, key)))
        assert cast("Chunk", found[0]).payload.strip() == f"{number} ('{key}',)".encode()


def test_what_failed_ahead_is_ordered_again_once_its_table_is_there() -> None:
    runs = Runs()
    waiting, segments = ahead(runs, [1, 1, 1])
    assert isinstance(waiting.outcomes(segments[0], task(schema(OTHER)))[0], Failure)
    assert isinstance(waiting.outcomes(segments[1], task(schema(OTHER), schema(HERE)))[0], Chunk)


def test_large_rows_come_few_at_once_and_large_segments_by_themselves() -> None:
    runs = Runs(size=16 << 20)
    waiting, segments = ahead(runs, [1, 1, 1, 1, 3, 1, 1, 1])
    for segment in segments:
        if segment.buckets == 1:
            assert waiting.outcomes(segment, task(schema(HERE)))[-1] == Answered(1, 1)
    assert all(len(asked) <= 2 for asked in runs.asked)
    assert not {5, 6, 7} & {bucket for asked in runs.asked for bucket in asked}


def test_segments_that_are_passed_over_are_dropped() -> None:
    """Nothing lay in them, and a DDL behind them was executed with the one before."""
    runs = Runs()
    waiting, segments = ahead(runs, [1] * 9)
    for number in (1, 2, 7, 9):
        found = waiting.outcomes(segments[number - 1], task(schema(HERE)))
        assert cast("Chunk", found[0]).payload.split()[0] == str(number).encode()

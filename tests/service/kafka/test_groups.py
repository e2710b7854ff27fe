"""Buckets come to the driver in groups: each bucket once, in order, as many at once as their rows allow."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark import SparkContext

from consumer.spark import jobs
from consumer.spark.jobs import SparkJob, SparkJobs, shuffled
from consumer.tasks.order import OrderTask
from consumer.tasks.read_spec import ReadSpec
from ordering.events import RowOp, TableName
from sinks.rows.chunk import Chunk

BUCKETS = 7
ROWS = b"x" * (1 << 20)


def echo() -> OrderTask:
    """Yields a chunk with what a bucket holds, in place of ordering it; a local class travels to workers as it is."""

    @dataclass(frozen=True)
    class Echo:
        first: int = 0
        whole_transactions: bool = False

        def __call__(self, records: Iterable[tuple[int, Any]]) -> Iterator[Chunk]:
            for bucket, payload in records:
                yield Chunk(TableName("d", "t"), RowOp.WRITE, ("c",), bucket, payload)

    return cast("OrderTask", Echo())


@pytest.mark.parametrize(("held", "most"), [(0, 2), (1 << 20, 2), (4 << 20, 4), (1 << 40, 5)])
def test_each_bucket_comes_once(spark: SparkContext, monkeypatch: pytest.MonkeyPatch, held: int, most: int) -> None:
    monkeypatch.setattr(jobs, "_HELD_BYTES", held)
    groups: list[list[int]] = []
    run_job = spark.runJob

    def noted(rows: Any, function: Any, partitions: list[int]) -> list[Any]:
        groups.append(partitions)
        return run_job(rows, function, partitions)

    monkeypatch.setattr(spark, "runJob", noted)
    records = spark.parallelize([(bucket, ROWS) for bucket in range(BUCKETS, -1, -1)], 3)
    spec = cast("ReadSpec", SimpleNamespace(buckets=BUCKETS))
    work = SparkJob(SparkJobs(spark, {}), (), spec, shuffled(records, BUCKETS + 1))
    found = [one.rows for one in work.outcomes(echo()) if isinstance(one, Chunk)]
    assert found == list(chain.from_iterable(groups)) == list(range(1, BUCKETS + 1))
    assert max(map(len, groups)) == most

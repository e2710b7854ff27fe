"""One Spark job a window: tasks read their own Kafka ranges in parallel; rows are shuffled by row or by commitTs.

A small window takes a short way through the same code: one task, no shuffle.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkContext

from consumer.scan import ReadSpec, Report
from consumer.tasks import Failure, OrderTask, Part, ReadTask
from ordering.errors import ReconcilerError, WorkerLostError
from ordering.window import Range, divided
from sinks.chunk import Chunk

SMALL_WINDOW = 20_000
"""Messages up to which one task without a shuffle is faster than several with one."""

_BUCKET_MESSAGES = 50_000
_SMALLEST_RANGE = 50_000
_MOST_BUCKETS = 512

Outcome = Report | Chunk | Part | Failure


def buckets_for(messages: int, cores: int) -> int:
    """Into how many buckets a window's rows are spread: each small enough for a task's memory."""
    if messages <= SMALL_WINDOW:
        return 1
    return max(cores, min(_MOST_BUCKETS, -(-messages // _BUCKET_MESSAGES)))


def run_window(
    spark: SparkContext, ranges: tuple[Range, ...], spec: ReadSpec, order: OrderTask, kafka: Mapping[str, Any]
) -> Iterator[Outcome]:
    """Run the job; yield all reports, then the rows' chunks.

    Raises what a reading task met, and WorkerLostError; what an ordering task met comes as a Failure.
    """
    read = ReadTask(spec, kafka)
    if spec.buckets == 1:
        records = spark.parallelize([ranges], 1).mapPartitions(read)
    else:
        parts = divided(ranges, 2 * spark.defaultParallelism, _SMALLEST_RANGE)
        records = spark.parallelize([(part,) for part in parts], len(parts)).mapPartitions(read)
        records = records.partitionBy(spec.buckets + 1, _bucket)
    ordered = records.mapPartitions(order)
    try:
        for outcome in ordered.toLocalIterator(prefetchPartitions=True):
            if isinstance(outcome, ReconcilerError):
                raise outcome
            yield outcome
    except (Py4JError, OSError, EOFError) as error:
        raise WorkerLostError(f"a Spark job failed: {_first_lines(error)}") from error


def _bucket(key: int) -> int:
    return key


def _first_lines(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    telling = [line for line in lines if "Exception" in line or "Error" in line]
    return " / ".join((telling or lines)[:3])[:500]

"""One Spark job a window: tasks read their own Kafka ranges in parallel; rows are shuffled by row or by commitTs.

A small window takes a short way through the same code: one task, no shuffle.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

from py4j.protocol import Py4JError
from pyspark import RDD, SparkContext

from consumer.explain import Content, ContentTask
from consumer.reader import KafkaReaders
from consumer.scan import ReadSpec, Report
from consumer.spark import telling_lines
from consumer.tasks import Failure, OrderTask, Part, ReadTask
from ordering.errors import ReconcilerError, WorkerLostError
from ordering.window import Range, divided
from sinks.chunk import Chunk

SMALL_WINDOW = 20_000
"""Messages up to which one task without a shuffle is faster than several with one."""

_BUCKET_MESSAGES = 125_000
_SMALLEST_RANGE = 50_000
_MOST_BUCKETS = 512

Outcome = Report | Chunk | Part | Failure


def buckets_for(messages: int, cores: int) -> int:
    """Into how many buckets a window's rows are spread: each small enough for a task's memory."""
    if messages <= SMALL_WINDOW:
        return 1
    return max(cores, min(_MOST_BUCKETS, -(-messages // _BUCKET_MESSAGES)))


class Jobs(Protocol):
    """What runs a window's tasks. Tests run them in their own process."""

    @property
    def cores(self) -> int:
        """How many tasks run at once."""
        ...

    def run(self, ranges: tuple[Range, ...], spec: ReadSpec, order: OrderTask) -> Iterator[Outcome]:
        """Read, reduce and order a window; yield all reports, then the rows' chunks.

        Raises what a reading task met, and WorkerLostError; what an ordering task met comes as a Failure.
        """
        ...

    def contents(self, ranges: tuple[Range, ...], spec: ReadSpec, wanted: frozenset[int]) -> list[Content]:
        """The contents of the messages with these fingerprints."""
        ...


class SparkJobs:
    """Jobs on Spark."""

    def __init__(self, spark: SparkContext, kafka: Mapping[str, Any]) -> None:
        self._spark, self._kafka = spark, kafka
        with _failures():
            self._cores = int(spark.defaultParallelism)

    @property
    def cores(self) -> int:
        """See `Jobs.cores`."""
        return self._cores

    def run(self, ranges: tuple[Range, ...], spec: ReadSpec, order: OrderTask) -> Iterator[Outcome]:
        """See `Jobs.run`."""
        for outcome in _outcomes(self._spark, ranges, ReadTask(spec, KafkaReaders(self._kafka)), order):
            if isinstance(outcome, Failure) and outcome.row is not None:
                self.contents(ranges, spec, frozenset({outcome.row}))  # finds the message and says where it lies
            yield outcome

    def contents(self, ranges: tuple[Range, ...], spec: ReadSpec, wanted: frozenset[int]) -> list[Content]:
        """See `Jobs.contents`."""
        look = ContentTask(spec, KafkaReaders(self._kafka), wanted)
        with _failures():
            found = self._spark.parallelize(ranges, len(ranges)).mapPartitions(_errors_as_values(look)).collect()
        for error in found:
            if isinstance(error, ReconcilerError):
                raise error
        return list(found)


def _errors_as_values(look: ContentTask) -> Callable[[Iterable[Range]], Iterator[Content | ReconcilerError]]:
    def values(ranges: Iterable[Range]) -> Iterator[Content | ReconcilerError]:
        try:
            yield from look(ranges)
        except ReconcilerError as error:
            yield error

    return values


def _outcomes(spark: SparkContext, ranges: tuple[Range, ...], read: ReadTask, order: OrderTask) -> Iterator[Outcome]:
    with _failures():
        for outcome in _ordered(spark, ranges, read, order).toLocalIterator(prefetchPartitions=True):
            if isinstance(outcome, ReconcilerError):
                raise outcome
            yield outcome


def _ordered(spark: SparkContext, ranges: tuple[Range, ...], read: ReadTask, order: OrderTask) -> "RDD[Any]":
    """The window's job, not yet run."""
    buckets = read.spec.buckets
    if buckets == 1:
        return spark.parallelize([ranges], 1).mapPartitions(read).mapPartitions(order)
    parts = divided(ranges, 2 * spark.defaultParallelism, _SMALLEST_RANGE)
    records = spark.parallelize([(part,) for part in parts], len(parts)).mapPartitions(read)
    return records.partitionBy(buckets + 1, _bucket).mapPartitions(order)


@contextmanager
def _failures() -> Iterator[None]:
    """What Spark throws, as WorkerLostError: a worker, an executor or the JVM died, or a task has a bug."""
    try:
        yield
    except (Py4JError, OSError, EOFError) as error:
        raise WorkerLostError(f"a Spark job failed: {telling_lines(error)}") from error


def _bucket(key: int) -> int:
    return key

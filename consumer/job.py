"""One Spark job a window: tasks read their own Kafka ranges in parallel; rows are shuffled by row or by commitTs.

A small window takes a short way through the same code: one task, no shuffle.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Protocol, TypeVar

from pyspark import RDD, SparkContext
from pyspark.serializers import BatchedSerializer, pack_long

from consumer.explain import Content, ContentTask, Place, RowTask, Sought
from consumer.intake import REPORTS, Record
from consumer.reader import KafkaReaders
from consumer.report import Report, accounts_of
from consumer.scan import ReadSpec
from consumer.spark import FAILURES, how_java_ended, telling_lines
from consumer.tasks import Answered, Failure, OrderTask, Part, ReadTask, RowsOnly, Unfetched
from consumer.writing import WriteTask, Written
from ordering.errors import ReconcilerError, WorkerLostError
from ordering.manifest import Accounts, check_answers
from ordering.progress import Progress
from ordering.window import Range, Window, divided, together
from sinks.chunk import Chunk

_SMALLEST_RANGE = 50_000
_TASKS_A_CORE = 2
_HELD_BYTES = 64 << 20
"""Of rows that come to the driver at once, unless each core's share of them is larger."""

Found = TypeVar("Found")
Outcome = Report | Chunk | Part | Unfetched | Failure


class Job(Protocol):
    """A window's rows: read and reduced once, whatever is done with them then."""

    @property
    def parts(self) -> int:
        """Over how many buckets the rows are spread."""
        ...

    def outcomes(self, order: OrderTask) -> Iterator[Outcome | Answered]:
        """Yield the rows' chunks, and the end of each bucket; where they are in one bucket, all reports before.

        Raises what a reading task met, and WorkerLostError; what an ordering task met comes as a Failure.
        """
        ...

    def reports(self) -> list[Report]:
        """Only the reports, of rows that are spread over buckets; raises as `outcomes`."""
        ...

    def written(self, task: WriteTask, writers: int) -> Iterator[Written | Failure]:
        """Let tasks write the rows of the buckets, so many at once. Raises WorkerLostError."""
        ...


@dataclass(frozen=True, slots=True)
class Waiting:
    """Rows that stay in their buckets until tasks take them."""

    job: Job
    accounts: Accounts
    """What the window was judged by: the tasks demand it of what the buckets hold then."""


@dataclass(frozen=True, slots=True)
class Ready:
    """A window that was read and judged: what is left to do is to apply it."""

    window: Window
    reports: list[Report]
    rows: Iterator[Outcome] | Waiting
    progress: Progress
    """As it is after the window, DDLs apart."""


class Jobs(Protocol):
    """What runs a window's tasks. Tests run them in their own process."""

    @property
    def cores(self) -> int:
        """How many tasks run at once."""
        ...

    def job(self, ranges: tuple[Range, ...], spec: ReadSpec) -> Job:
        """The job that reads these ranges."""
        ...

    def contents(self, ranges: tuple[Range, ...], spec: ReadSpec, wanted: frozenset[int]) -> list[Content]:
        """The contents of the messages with these fingerprints."""
        ...

    def places(self, ranges: tuple[Range, ...], spec: ReadSpec, sought: Sought) -> list[Place]:
        """Where the messages of a row lie."""
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

    def job(self, ranges: tuple[Range, ...], spec: ReadSpec) -> "SparkJob":
        """See `Jobs.job`."""
        with _failures():
            records = _records(self._spark, ranges, ReadTask(spec, KafkaReaders(self._kafka)))
        return SparkJob(self, ranges, spec, records)

    def contents(self, ranges: tuple[Range, ...], spec: ReadSpec, wanted: frozenset[int]) -> list[Content]:
        """See `Jobs.contents`."""
        return self._looked(ranges, ContentTask(spec, KafkaReaders(self._kafka), wanted))

    def places(self, ranges: tuple[Range, ...], spec: ReadSpec, sought: Sought) -> list[Place]:
        """See `Jobs.places`."""
        return self._looked(ranges, RowTask(spec, KafkaReaders(self._kafka), sought))

    def _looked(self, ranges: tuple[Range, ...], look: Callable[[Iterable[Range]], Iterator[Found]]) -> list[Found]:
        """What a second look finds. Raises what it meets."""
        with _failures():
            found = self._spark.parallelize(ranges, len(ranges)).mapPartitions(_errors_as_values(look)).collect()
        for error in found:
            if isinstance(error, ReconcilerError):
                raise error
        return list(found)


@dataclass(frozen=True, slots=True)
class SparkJob:
    """One window's records as an RDD. The shuffle's files stay as long as it, so further uses skip the reading."""

    jobs: SparkJobs
    ranges: tuple[Range, ...]
    spec: ReadSpec
    records: "RDD[Any]"

    @property
    def parts(self) -> int:
        """See `Job.parts`."""
        return self.spec.buckets

    def outcomes(self, order: OrderTask) -> Iterator[Outcome | Answered]:
        """See `Job.outcomes`."""
        if self.parts == 1 or order.whole_transactions:
            work = order if self.parts == 1 else RowsOnly(order)
            with _failures():
                for outcome in self.records.mapPartitions(work).toLocalIterator(prefetchPartitions=True):
                    yield self._found(outcome)
        else:
            yield from self._in_groups(RowsOnly(order))

    def _in_groups(self, work: RowsOnly) -> Iterator[Outcome | Answered]:
        """The outcomes of some buckets at once: of so many that what they yield fits the driver's memory.

        An iterator over partitions begins a job for each, which takes longer than to order and encode its rows.
        """
        rows, at, count = self.records.mapPartitions(work), REPORTS + 1, self.jobs.cores
        while at <= self.parts:
            group = list(range(at, min(at + count, self.parts + 1)))
            with _failures():
                found = self.records.context.runJob(rows, list, group)
            yield from map(self._found, found)
            at += len(group)
            held = sum(len(outcome.payload) for outcome in found if isinstance(outcome, Chunk))
            count = self.jobs.cores * max(1, _HELD_BYTES * len(group) // max(1, held) // self.jobs.cores)

    def reports(self) -> list[Report]:
        """See `Job.reports`: the reports' bucket alone."""
        with _failures():
            found = self.records.context.runJob(self.records.values(), list, [REPORTS])
        return [self._found(report) for report in found]

    def written(self, task: WriteTask, writers: int) -> Iterator[Written | Failure]:
        """See `Job.written`: as many tasks as writers, each with several buckets one after the other."""
        with _failures():
            found = self.records.mapPartitions(task).coalesce(writers).collect()
        for outcome in found:
            yield self._found(outcome)

    def _found(self, outcome: Any) -> Any:
        """The outcome; raises an error of the reading."""
        if isinstance(outcome, ReconcilerError):
            raise outcome
        return outcome


def reported_apart(job: Job, order: OrderTask, *, by_tasks: bool) -> tuple[list[Report], Iterator[Outcome] | Waiting]:
    """The reports, and what becomes of rows in several buckets: they are looked at once it is known they are wanted."""
    reports = job.reports()
    accounts = accounts_of(reports)
    if by_tasks:
        return reports, Waiting(job, accounts)
    return reports, complete(job.outcomes(replace(order, accounts=accounts)), job.parts)


def reported_first(job: Job, order: OrderTask) -> tuple[list[Report], Iterator[Outcome]]:
    """The reports, and the rows that come behind them: one task has read them all."""
    reports: list[Report] = []
    outcomes = complete(job.outcomes(order), job.parts)
    for outcome in outcomes:
        if not isinstance(outcome, Report):
            return reports, chain([outcome], outcomes)
        reports.append(outcome)
    return reports, iter(())


def complete(outcomes: Iterator[Outcome | Answered], parts: int) -> Iterator[Outcome]:
    """The outcomes of so many buckets. Raises WorkerLostError if a bucket, or one of its outcomes, did not come."""
    answered: list[int] = []
    count = 0
    for outcome in outcomes:
        if not isinstance(outcome, Answered):
            count += not isinstance(outcome, Report)
            yield outcome
            continue
        if count != outcome.outcomes:
            raise WorkerLostError(f"of bucket {outcome.bucket} {count} of {outcome.outcomes} outcomes came")
        answered.append(outcome.bucket)
        count = 0
    check_answers(answered, parts)


def succeeded(outcomes: Iterator[Outcome]) -> Iterator[Outcome]:
    """The outcomes up to the first failure, which is raised."""
    for outcome in outcomes:
        if isinstance(outcome, Failure):
            raise outcome.raised
        yield outcome


def _errors_as_values(
    look: Callable[[Iterable[Range]], Iterator[Found]],
) -> Callable[[Iterable[Range]], Iterator[Found | ReconcilerError]]:
    def values(ranges: Iterable[Range]) -> Iterator[Found | ReconcilerError]:
        try:
            yield from look(ranges)
        except ReconcilerError as error:
            yield error

    return values


def _records(spark: SparkContext, ranges: tuple[Range, ...], read: ReadTask) -> "RDD[Any]":
    """The window's records by bucket, not yet read."""
    buckets = read.spec.buckets
    if buckets == 1:
        return spark.parallelize([(0, ranges)], 1).mapPartitions(read)
    parts = list(ranges)
    if not read.spec.force_replicate:  # passes are told apart within a partition, so one task has to see all of it
        parts = divided(ranges, _TASKS_A_CORE * spark.defaultParallelism, _SMALLEST_RANGE)
    groups = together(parts, _TASKS_A_CORE * spark.defaultParallelism)
    records = spark.parallelize(list(enumerate(groups)), len(groups)).mapPartitions(read)
    return shuffled(records, buckets + 1)


def shuffled(records: "RDD[Any]", partitions: int) -> "RDD[Any]":
    """As `partitionBy`, with each record on its own: that gathers a thousand of them, and ours are megabytes long."""
    context, serializer = records.context, records.ctx._unbatched_serializer  # noqa: SLF001

    def keyed(some: Iterable[Record]) -> Iterator[bytes]:
        for record in some:
            yield pack_long(record[0])
            yield serializer.dumps([record])

    pairs = records.mapPartitions(keyed, preservesPartitioning=True)
    pairs._bypass_serializer = True  # noqa: SLF001
    java = context._jvm  # noqa: SLF001
    partitioner = java.PythonPartitioner(partitions, id(keyed))
    shuffled = java.PairwiseRDD(pairs._jrdd.rdd()).asJavaPairRDD().partitionBy(partitioner)  # noqa: SLF001
    return RDD(java.PythonRDD.valueOfPair(shuffled), context, BatchedSerializer(serializer))


@contextmanager
def _failures() -> Iterator[None]:
    """What Spark throws, as WorkerLostError: a worker, an executor or the JVM died, or a task has a bug."""
    try:
        yield
    except FAILURES as error:
        raise WorkerLostError(f"a Spark job failed: {telling_lines(error)}{how_java_ended()}") from error

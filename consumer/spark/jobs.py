"""One Spark job a window: tasks read their own Kafka ranges in parallel; rows are shuffled by row or by commitTs.

A small window takes a short way through the same code: one task, no shuffle.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import structlog
from pyspark import RDD, SparkContext
from pyspark.serializers import BatchedSerializer, pack_long

from consumer.kafka.allowance import allowance
from consumer.kafka.reader import KafkaReaders, Readers
from consumer.native.log_choice import tell_missing
from consumer.spark.context import FAILURES, how_java_ended, is_alive, telling_lines
from consumer.spark.local_files import LocalFiles, fetched_chunks, local_files
from consumer.spark.order_ahead import OrderAhead
from consumer.spark.reports_ahead import Beside, ReportsAhead
from consumer.tasks.jobs import Outcome, chunks_in
from consumer.tasks.order import Answered, Failure, OrderTask, ReadTask, RowsOnly
from consumer.tasks.read_spec import ReadSpec
from consumer.tasks.report import RawDdl, Report
from consumer.tasks.scans.choose_scan import takes_in_place
from consumer.tasks.second_look import (
    BoundedReaders,
    Content,
    ContentTask,
    DdlTask,
    DenseTask,
    MessagePlace,
    RowTask,
    Sought,
)
from consumer.tasks.shuffle_blocks import REPORTS, Record
from consumer.tasks.write import WriteTask, Written
from ordering.errors import PackedBatchError, ReconcilerError, SourceUnreachableError, WorkerLostError
from ordering.events import Partition
from ordering.rows.segments import Segment
from ordering.window import Range, divided, together

_TASKS_A_CORE = 2
_HELD_BYTES = 64 << 20
"""Of rows that come to the driver at once, unless each core's share of them is larger."""

_ENDED = ("exited unexpectedly", "MemoryError", "ExecutorLostFailure")
"""What Spark tells of a worker that ended, by itself or by the system, or that got no memory."""
_dense: set[tuple[str, Partition]] = set()
"""Partitions, and their brokers, that are read batch by batch in this process."""

Found = TypeVar("Found")
log = structlog.get_logger()


class SparkJobs:
    """Jobs on Spark: see `consumer.tasks.jobs.Jobs`."""

    def __init__(self, spark: SparkContext, readers: Readers) -> None:
        self._spark, self._readers, self.beside = spark, readers, Beside(spark)
        with _failures():
            self._cores = int(spark.defaultParallelism)

    @property
    def cores(self) -> int:
        """See `Jobs.cores`."""
        return self._cores

    def job(self, ranges: tuple[Range, ...], spec: ReadSpec) -> "SparkJob":
        """See `Jobs.job`."""
        readers = self._reading_with(ranges, spec)
        if isinstance(readers, KafkaReaders) and takes_in_place(spec):
            readers = replace(readers, native=spec.native)
        with _failures():
            files = None if spec.buckets == 1 else self._files()
            records = _records(self._spark, ranges, ReadTask(spec, readers), files)
        ahead = OrderAhead(spec.segments, self.cores, partial(_ordered, records)) if spec.segments else None
        return SparkJob(self, ranges, spec, records, files=files, ahead=ahead)

    def _files(self) -> LocalFiles | None:
        return local_files(self._spark.master, self._spark.getConf().get("spark.local.dir", ""))

    def ddls(self, ranges: tuple[Range, ...], spec: ReadSpec) -> list[RawDdl]:
        """See `Jobs.ddls`."""
        parts = tuple(divided(ranges, self._cores, spec.smallest_range))
        return self._looked(parts, spec, DdlTask(spec, self._reading_with(ranges, spec)))

    def contents(self, ranges: tuple[Range, ...], spec: ReadSpec, wanted: frozenset[int]) -> list[Content]:
        """See `Jobs.contents`."""
        return self._looked(ranges, spec, ContentTask(spec, self._reading_with(ranges, spec), wanted))

    def places(self, ranges: tuple[Range, ...], spec: ReadSpec, sought: Sought) -> list[MessagePlace]:
        """See `Jobs.places`."""
        return self._looked(ranges, spec, RowTask(spec, self._reading_with(ranges, spec), sought))

    def _reading_with(self, ranges: Iterable[Range], spec: ReadSpec) -> Readers:
        """What tasks read these ranges with: within bounds of memory, as others write what a topic holds."""
        readers = self._readers
        if not isinstance(readers, KafkaReaders):
            return readers
        if _dense.isdisjoint((readers.brokers, part.partition) for part in ranges):
            return replace(readers, may_take=allowance(spec.message_bytes))
        return BoundedReaders(readers.settings, spec.message_bytes)

    def _looked(
        self, ranges: tuple[Range, ...], spec: ReadSpec, look: Callable[[Iterable[Range]], Iterator[Found]]
    ) -> list[Found]:
        """What a second look finds. Raises what it meets."""
        with self.reading(ranges, spec):
            return self._seen(ranges, look)

    def _seen(self, ranges: tuple[Range, ...], look: Callable[[Iterable[Range]], Iterator[Found]]) -> list[Found]:
        found = self._spark.parallelize(ranges, len(ranges)).mapPartitions(_errors_as_values(look)).collect()
        for error in found:
            if isinstance(error, ReconcilerError):
                raise error
        return list(found)

    @contextmanager
    def reading(self, ranges: tuple[Range, ...], spec: ReadSpec) -> Iterator[None]:
        """As `_failures`. Where a worker ended, batches may hold too much: raises InputError for the one that does.

        Where none does and all together take much memory, their partitions are read batch by batch from then on; so
        are those with a batch that only Kafka's client can't unpack.
        """
        try:
            with _failures():
                yield
        except WorkerLostError as error:
            if isinstance(self._readers, KafkaReaders) and _was_killed(error) and is_alive(self._spark):
                self._read_slowly(self._readers, self._heavy(self._readers, ranges, spec), "a task ran out of memory")
            raise
        except PackedBatchError as error:
            if isinstance(self._readers, KafkaReaders):
                self._heavy(self._readers, ranges, spec)
                self._read_slowly(self._readers, {part.partition for part in ranges}, error.fact)
            raise SourceUnreachableError(error.fact, where=error.where) from error

    def _heavy(self, readers: KafkaReaders, ranges: tuple[Range, ...], spec: ReadSpec) -> set[Partition]:
        """The partitions whose batches together take much memory. Raises InputError for a batch that holds too much."""
        with _failures():
            return set(self._seen(ranges, DenseTask(BoundedReaders(readers.settings, spec.message_bytes))))

    def _read_slowly(self, readers: KafkaReaders, partitions: set[Partition], reason: str) -> None:
        if partitions:
            names = sorted(map(str, partitions))
            log.warning("partitions are read batch by batch, which is slower", reason=reason, partitions=names)
        _dense.update((readers.brokers, partition) for partition in partitions)


@dataclass(frozen=True, slots=True)
class SparkJob:
    """One window's records as an RDD. The shuffle's files stay as long as it, so further uses skip the reading."""

    jobs: SparkJobs
    ranges: tuple[Range, ...]
    spec: ReadSpec
    records: "RDD[Any]"
    files: LocalFiles | None = None
    segment: Segment | None = None
    ahead: OrderAhead | None = None

    def _failures(self) -> AbstractContextManager[None]:
        return self.jobs.reading(self.ranges, self.spec)

    @property
    def parts(self) -> int:
        """See `Job.parts`."""
        return self.spec.buckets if self.segment is None else self.segment.buckets

    @property
    def _first(self) -> int:
        return 0 if self.segment is None else self.segment.first

    def of(self, segment: Segment) -> "SparkJob":
        """See `Job.of`."""
        return replace(self, segment=segment)

    def outcomes(self, order: OrderTask) -> Iterator[Outcome | Answered]:
        """See `Job.outcomes`."""
        if self.ahead is not None and self.segment is not None and self.parts == 1:
            with self._failures():
                found = self.ahead.outcomes(self.segment, order)
            yield from map(self._found, found)
            return
        order = replace(order, first=self._first)
        if self.segment is None and (self.parts == 1 or order.whole_transactions):
            work = order if self.parts == 1 else RowsOnly(order)
            with self._failures():
                for outcome in self.records.mapPartitions(work).toLocalIterator(prefetchPartitions=True):
                    yield self._found(outcome)
        else:
            yield from self._in_groups(RowsOnly(order))

    def _in_groups(self, work: RowsOnly) -> Iterator[Outcome | Answered]:
        """The outcomes of some buckets at once: of so many that what they yield fits the driver's memory.

        An iterator over partitions begins a job for each, which takes longer than to order and encode its rows.
        """
        rows, at, count = self.records.mapPartitions(work), self._first + 1, self.jobs.cores
        rows = rows if self.files is None else rows.mapPartitions(self.files.stored_chunks)
        last = self._first + self.parts
        while at <= last:
            group = list(range(at, min(at + count, last + 1)))
            held = 0
            with self._failures():
                found = self.records.context.runJob(rows, list, group)
                for outcome in fetched_chunks(found):
                    held += sum(len(chunk.payload) for chunk in chunks_in([outcome]))
                    yield self._found(outcome)
            at += len(group)
            count = self.jobs.cores * max(1, _HELD_BYTES * len(group) // max(1, held) // self.jobs.cores)

    def reports(self) -> list[Report]:
        """See `Job.reports`: the reports' bucket alone."""
        with self._failures():
            found = self.records.context.runJob(self.records.values(), list, [REPORTS])
        return [self._found(report) for report in found]

    def begun(self) -> ReportsAhead:
        """See `Job.begun`."""
        with _failures():
            return self.jobs.beside.begun(self.reports)

    def written(self, task: WriteTask, writers: int) -> Iterator[Written | Failure]:
        """See `Job.written`: as many tasks as writers, each with several buckets one after the other."""
        work = self.records.mapPartitions(replace(task, first=self._first))
        with self._failures():
            found = work.coalesce(writers).collect() if self.segment is None else self._written_by(work, writers)
        for outcome in found:
            yield self._found(outcome)

    def _written_by(self, work: "RDD[Any]", writers: int) -> list[Any]:
        """The buckets of a segment, as many at once as there are writers."""
        buckets = range(self._first + 1, self._first + self.parts + 1)
        groups = (list(buckets[at : at + writers]) for at in range(0, self.parts, writers))
        return [outcome for group in groups for outcome in self.records.context.runJob(work, list, group)]

    def _found(self, outcome: Any) -> Any:
        """The outcome; raises an error of the reading."""
        if isinstance(outcome, ReconcilerError):
            with self._failures():
                raise outcome
        if isinstance(outcome, Report) and outcome.without_core:
            tell_missing(outcome.without_core)
        return outcome


def _ordered(records: "RDD[Any]", order: OrderTask, buckets: list[int]) -> list[list[Any]]:
    """The outcomes of some buckets, each apart."""
    found: list[list[Any]] = records.context.runJob(records.mapPartitions(RowsOnly(order)), _as_one, buckets)
    return found


def _as_one(outcomes: Iterable[Any]) -> list[Any]:
    return [list(outcomes)]


def _errors_as_values(
    look: Callable[[Iterable[Range]], Iterator[Found]],
) -> Callable[[Iterable[Range]], Iterator[Found | ReconcilerError]]:
    def values(ranges: Iterable[Range]) -> Iterator[Found | ReconcilerError]:
        try:
            yield from look(ranges)
        except ReconcilerError as error:
            yield error

    return values


def _records(spark: SparkContext, ranges: tuple[Range, ...], read: ReadTask, files: LocalFiles | None) -> "RDD[Any]":
    """The window's records by bucket, not yet read."""
    buckets = read.spec.buckets
    if buckets == 1:
        return spark.parallelize([(0, ranges)], 1).mapPartitions(read)
    parts = list(ranges)
    if not read.spec.force_replicate:  # passes are told apart within a partition, so one task has to see all of it
        parts = divided(ranges, _TASKS_A_CORE * spark.defaultParallelism, read.spec.smallest_range)
    groups = together(parts, _TASKS_A_CORE * spark.defaultParallelism)
    records = spark.parallelize(list(enumerate(groups)), len(groups)).mapPartitions(read)
    if files is None:
        return shuffled(records, buckets + 1)
    rows = shuffled(records.mapPartitions(files.stored), buckets + 1).mapPartitions(files.fetched)
    files.kept_with(rows)
    return rows


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


def _was_killed(error: WorkerLostError) -> bool:
    return any(sign in str(error.__cause__) for sign in _ENDED)


@contextmanager
def _failures() -> Iterator[None]:
    """What Spark throws, as WorkerLostError: a worker, an executor or the JVM died, or a task has a bug."""
    try:
        yield
    except FAILURES as error:
        raise WorkerLostError(f"a Spark job failed: {telling_lines(error)}{how_java_ended()}") from error

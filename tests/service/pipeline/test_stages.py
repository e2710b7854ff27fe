"""With a real Spark: a reading stage is done again, for its files are gone; what it does not read the same is noticed.

An executor that is lost takes the files of its shuffle with it; here they are deleted, which has the same effect.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from pyspark import SparkContext

from consumer.codec.canal_json import Plain
from consumer.kafka.account import Reached
from consumer.library.changes import ChangesTask
from consumer.spark.context import FAILURES
from consumer.spark.jobs import SparkJob, SparkJobs
from consumer.tasks.jobs import complete, succeeded
from consumer.tasks.order import Failure, OrderTask
from consumer.tasks.read_spec import ReadSpec
from consumer.tasks.report import accounts_of
from consumer.tasks.write import WriteTask
from consumer.wiring import bodies_of
from ordering.errors import ReconcilerError, SourceUnreachableError, WorkerLostError
from ordering.events import Partition, RowOp, TableName
from ordering.rows.manifest import Accounts
from ordering.window import Range
from sinks.bookkeeping.write_permits import Phase
from sinks.rows.chunk import Chunk
from sinks.rows.schema import Column, Shape, TableSchema
from sinks.target import Target
from tests.bench.limits import whole
from tests.live_files import files_below
from tests.simulation.memory import TextEncoder
from tests.simulation.world import config_of

ROWS, PARTITIONS = 1_000, 4
TABLE = TableName("d", "t")
BODIES = bodies_of(config_of())


@dataclass(frozen=True)
class Messages:
    """Rows in place of Kafka. While `refusing` exists they can't be read; while `gone` does, the last are missing."""

    refusing: Path
    gone: Path

    def get(self) -> "Messages":
        return self

    def forget(self) -> None:
        """Nothing is kept."""

    def done(self, _partition: Partition) -> None:
        """Each range is read to its stop."""

    def reached(self, _partition: Partition) -> Reached:
        """As if what is missing were compacted."""
        each = ROWS // PARTITIONS
        return Reached(each, each - 100 * self.gone.exists())

    def read(self, spans: Sequence[tuple[Partition, int, int]]) -> Iterator[tuple[Partition, list[Plain]]]:
        for partition, start, stop in spans:
            if self.refusing.exists():
                raise SourceUnreachableError("Kafka does not answer")
            last = stop - 100 * self.gone.exists()
            yield partition, [Plain(at, row(at * PARTITIONS + partition.partition)) for at in range(start, last)]


def row(key: int) -> bytes:
    return (
        b'{"id":0,"database":"d","table":"t","pkNames":["id"],"isDdl":false,"type":"INSERT","es":1,"ts":1,"sql":"",'
        b'"data":[{"id":"%d","v":"x"}],"old":null,"_tidb":{"commitTs":%d}}' % (key, 10 + key)
    )


@dataclass(frozen=True)
class Judged:
    """A window that Spark has read and the driver judged, and what happens to Kafka then."""

    job: SparkJob
    accounts: Accounts
    messages: Messages

    @property
    def order(self) -> OrderTask:
        columns = Column("id", "int", Shape.INTEGER), Column("v", "varchar(9)", Shape.TEXT)
        schemas = {TABLE: TableSchema(TABLE, columns, ("id",), (("id",),))}
        return OrderTask(schemas, TextEncoder(), BODIES, whole_transactions=False, accounts=self.accounts)

    def lose_files(self, pattern: str = "shuffle_*") -> None:
        """As if the executor that read were lost."""
        place = self.job.records.context.getConf().get("spark.local.dir")
        files = [file for file in files_below(Path(place or "")) if file.match(pattern)]
        assert files
        for file in files:
            file.unlink(missing_ok=True)  # Spark removes those of earlier shuffles by itself


@pytest.fixture
def judged(spark: SparkContext, tmp_path: Path) -> Judged:
    messages = Messages(tmp_path / "refusing", tmp_path / "gone")
    each = ROWS // PARTITIONS
    ranges = tuple(Range(Partition("t", p), 0, each, 0) for p in range(PARTITIONS))
    spec: ReadSpec = replace(whole(ranges), buckets=3)
    job = SparkJobs(spark, messages).job(ranges, spec)
    reports = job.reports()
    assert sum(report.released for report in reports) == ROWS
    return Judged(job, accounts_of(reports), messages)


def in_order(judged: Judged, *, whole_transactions: bool) -> int:
    order = replace(judged.order, whole_transactions=whole_transactions)
    found = list(succeeded(complete(judged.job.outcomes(order), judged.job.parts)))
    chunks = [c for one in found for c in ((one,) if isinstance(one, Chunk) else getattr(one, "chunks", ()))]
    return sum(chunk.rows for chunk in chunks)


def nets(judged: Judged) -> int:
    return in_order(judged, whole_transactions=False)


def transactions(judged: Judged) -> int:
    return in_order(judged, whole_transactions=True)


def refusing() -> Target:
    raise AssertionError("a task opened the target")


def written(judged: Judged) -> int:
    """What tasks come to before they write: without rows of their half they don't."""
    task = WriteTask(replace(judged.order, only=RowOp.DELETE), Phase("c", "token", 3), refusing)
    outcomes = list(judged.job.written(task, 2))
    for outcome in outcomes:
        if isinstance(outcome, Failure):
            raise outcome.raised
    return ROWS if len(outcomes) == judged.job.parts else 0


def given(judged: Judged) -> int:
    """The library's rows."""
    task = ChangesTask(BODIES, net=True, accounts=judged.accounts)
    try:
        return judged.job.records.mapPartitionsWithIndex(task).count()
    except FAILURES as error:
        kind = SourceUnreachableError if "SourceUnreachableError" in str(error) else WorkerLostError
        raise kind(str(error)) from error


WAYS = [nets, transactions, written, given]


@pytest.mark.spark
@pytest.mark.cells(by_turns=("way",))
@pytest.mark.parametrize("way", WAYS)
def test_the_same_again_is_taken(judged: Judged, way: Callable[[Judged], int]) -> None:
    judged.lose_files()
    assert way(judged) == ROWS


@pytest.mark.spark
@pytest.mark.cells("what", by_turns=("way",))
@pytest.mark.parametrize(("what", "error"), [("refusing", SourceUnreachableError), ("gone", WorkerLostError)])
@pytest.mark.parametrize("way", WAYS)
def test_what_was_not_judged_is_refused(
    judged: Judged, way: Callable[[Judged], int], what: str, error: type[ReconcilerError]
) -> None:
    getattr(judged.messages, what).touch()
    judged.lose_files()
    with pytest.raises(error):
        way(judged)


@pytest.mark.spark
@pytest.mark.cells(by_turns=("way",))
@pytest.mark.parametrize("way", WAYS)
def test_rows_whose_files_are_gone_are_missed(judged: Judged, way: Callable[[Judged], int]) -> None:
    """They lie beside the shuffle (`consumer.spark.local_files`), which does not know; a new session reads again."""
    judged.lose_files("rows-*/*")
    with pytest.raises(WorkerLostError):
        way(judged)

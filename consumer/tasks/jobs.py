"""The port behind which a window's tasks run: Spark in the product (`consumer.spark.jobs`), one process in tests."""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import Protocol

from consumer.tasks.order import Answered, Failure, OrderTask, Part, Unfetched
from consumer.tasks.read_spec import ReadSpec
from consumer.tasks.report import RawDdl, Report, accounts_of
from consumer.tasks.second_look import Content, MessagePlace, Sought
from consumer.tasks.write import WriteTask, Written
from ordering.errors import WorkerLostError
from ordering.events import TableName
from ordering.rows.identity import table_of
from ordering.rows.manifest import Accounts, check_answers
from ordering.rows.segments import HandleKeys, Segment
from ordering.window import Range, Window
from sinks.rows.chunk import Chunk

Outcome = Report | Chunk | Part | Unfetched | Failure


class Coming(Protocol):
    """The reports of a job that was begun."""

    def result(self) -> list[Report]:
        """Wait for them; raises as `Job.reports`."""
        ...

    def end(self) -> None:
        """Break it off where it is not done; nothing of it runs any more then."""
        ...


class Job(Protocol):
    """A window's rows: read and reduced once, whatever is done with them then."""

    @property
    def parts(self) -> int:
        """Over how many buckets the rows are spread."""
        ...

    def of(self, segment: Segment) -> "Job":
        """The rows of one segment alone, of a window that is read in segments."""
        ...

    def outcomes(self, order: OrderTask) -> Iterator[Outcome | Answered]:
        """Yield the rows' chunks, and the end of each bucket; where they are in one bucket, all reports before.

        Raises what a reading task met, and WorkerLostError; what an ordering task met comes as a Failure.
        """
        ...

    def reports(self) -> list[Report]:
        """Only the reports, of rows that are spread over buckets; raises as `outcomes`."""
        ...

    def begun(self) -> "Coming":
        """Begin to read rows that are spread over buckets; other jobs may run meanwhile. Raises WorkerLostError."""
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
class SegmentReading:
    """A window that was read in segments, and which of them wait for their turn."""

    window: Window
    handle_keys: HandleKeys
    """With which its rows were read."""
    job: Job
    accounts: Accounts
    waiting: deque[tuple[Segment, list[Report]]]


class Jobs(Protocol):
    """What runs a window's tasks. Tests run them in their own process."""

    @property
    def cores(self) -> int:
        """How many tasks run at once."""
        ...

    def job(self, ranges: tuple[Range, ...], spec: ReadSpec) -> Job:
        """The job that reads these ranges."""
        ...

    def ddls(self, ranges: tuple[Range, ...], spec: ReadSpec) -> list[RawDdl]:
        """The DDLs that seem to lie in these ranges."""
        ...

    def contents(self, ranges: tuple[Range, ...], spec: ReadSpec, wanted: frozenset[int]) -> list[Content]:
        """The contents of the messages with these fingerprints."""
        ...

    def places(self, ranges: tuple[Range, ...], spec: ReadSpec, sought: Sought) -> list[MessagePlace]:
        """Where the messages of a row lie."""
        ...


def reported_apart(job: Job, order: OrderTask, *, by_tasks: bool) -> tuple[list[Report], Iterator[Outcome] | Waiting]:
    """The reports, and what becomes of rows in several buckets: they are looked at once it is known they are wanted."""
    reports = job.reports()
    accounts = accounts_of(reports)
    if by_tasks:
        return reports, Waiting(job, accounts)
    return reports, released(job, replace(order, accounts=accounts), reports)


def released(job: Job, order: OrderTask, reports: Iterable[Report]) -> Iterator[Outcome]:
    """The outcomes that these reports announce. Where they release no row, no job is begun: topics begin with DDLs."""
    if not any(report.released for report in reports):
        return iter(())
    return complete(job.outcomes(order), job.parts)


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
            raise WorkerLostError(f"only {count} of {outcome.outcomes} outcomes of bucket {outcome.bucket} arrived")
        answered.append(outcome.bucket)
        count = 0
    check_answers(answered, parts)


def succeeded(outcomes: Iterator[Outcome]) -> Iterator[Outcome]:
    """The outcomes up to the first failure, which is raised."""
    for outcome in outcomes:
        if isinstance(outcome, Failure):
            raise outcome.raised
        yield outcome


def chunks_in(outcomes: Iterable[object]) -> Iterator[Chunk]:
    """The chunks that came to the driver, those of whole transactions too."""
    for outcome in outcomes:
        if isinstance(outcome, Part):
            yield from chunks_in(outcome.chunks)
        elif isinstance(outcome, Chunk):
            yield outcome


def tables_of(outcomes: Iterable[object]) -> set[TableName]:
    """The tables of rows that came to the driver, encoded or not."""
    found: set[TableName] = set()
    for outcome in outcomes:
        if isinstance(outcome, Part):
            found |= tables_of(outcome.chunks)
        elif isinstance(outcome, Chunk):
            found.add(outcome.table)
        elif isinstance(outcome, Unfetched):
            found |= {table_of(half[0]) for half in outcome.halves}
    return found

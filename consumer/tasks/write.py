"""How Spark's tasks write a window in parallel, in `row` consistency: two phases, first all deletes, then all writes.

    window recorded -> tasks delete -> tasks write -> (the pipeline saves the progress)

The rows have been read and shuffled by then, and both phases run over what the shuffle left: each task takes the rows
of one bucket, nets them and writes them over a connection of its own. Rows of different tasks are different rows; where
they meet on another unique key, or under a collation, the phases make it come out right (R5).
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Protocol
from uuid import uuid4

from pyspark import TaskContext

from consumer.tasks.encoding.chunk_encoder import RowError
from consumer.tasks.order import Failure, OrderTask, failure_of, names_in
from consumer.tasks.report import Report
from consumer.tasks.shuffle_blocks import REPORTS, Block, Record, taken
from ordering.errors import ReconcilerError
from ordering.events import RowOp
from ordering.progress import Progress
from ordering.rows.manifest import check_answers
from sinks.bookkeeping.progress_rows import Lease
from sinks.bookkeeping.write_permits import NOTHING_DONE, Attempt, PartDone, Phase, all_done
from sinks.rows.schema import Catalog
from sinks.steps import Observer, Step
from sinks.target import Target


@dataclass(frozen=True, slots=True)
class Written:
    """What a task has written of a bucket."""

    bucket: int
    done: PartDone


def spark_attempt() -> int:
    """The number of this task's attempt; Spark counts them up over all jobs."""
    context = TaskContext.get()
    return 0 if context is None else int(context.taskAttemptId()) + 1


@dataclass(frozen=True, slots=True)
class WriteTask:
    """Writes one half of a bucket's rows into the target."""

    order: OrderTask
    phase: Phase
    opener: Callable[[], Target]
    attempt: Callable[[], int] = spark_attempt
    first: int = 0
    """The bucket before the first of those that the phase writes."""

    def __call__(self, records: Iterable[Record]) -> Iterator[Written | Failure]:
        """Run in a Spark task."""
        intake = taken(records)
        if intake.bucket == REPORTS:
            return
        try:
            blocks = intake.blocks(self.order.accounts or {})
            yield Written(intake.bucket - self.first, self._written(intake.bucket - 1 - self.first, blocks))
        except (ReconcilerError, RowError) as error:
            yield failure_of(error)

    def _written(self, part: int, blocks: list[Block]) -> PartDone:
        names, rows = names_in(blocks), self.order.netted(blocks)
        blocks.clear()
        if next(self.order.chunks_of(rows, names), None) is None:
            return NOTHING_DONE
        target = self.opener()
        try:
            target.assume(Catalog(self.order.schemas))
            attempt = Attempt(self.phase, part, self.attempt())
            again = target.take_over(attempt)
            order = replace(self.order, again=again, judged=self.order.judged and not again)
            return target.write_part(attempt, order.chunks_of(rows, names))
        finally:
            target.close()


class ShuffledRows(Protocol):
    """A window's rows, read and shuffled."""

    @property
    def parts(self) -> int:
        """Over how many buckets."""
        ...

    def written(self, task: WriteTask, writers: int) -> Iterator[Written | Failure]:
        """Let tasks write them, so many at once."""
        ...


@dataclass(frozen=True, slots=True)
class ParallelWriting:
    """A window on its way into the target."""

    target: Target
    lease: Lease
    observe: Observer
    writers: int

    def write(self, rows: ShuffledRows, order: OrderTask, recorded: Progress, *, deletes: bool) -> PartDone:
        """Write a window.

        `recorded`: the progress with the window in it, saved before the first. `deletes`: whether any row may have to
        be deleted; a window of nothing but inserts has one phase.
        """
        total = NOTHING_DONE
        phases = [(RowOp.DELETE, Step.DELETES_DONE)] if deletes else []
        for number, (half, done) in enumerate([*phases, (RowOp.WRITE, Step.WRITES_DONE)]):
            phase = Phase(self.lease.changefeed, uuid4().hex, rows.parts)
            self.target.save(recorded, self.lease, phase)
            if number == 0:
                self.observe(Step.WINDOW_RECORDED)
            total = all_done(
                [total, self._phase(rows, WriteTask(replace(order, only=half), phase, self.target.opener()))]
            )
            self.observe(done)
        return total

    def _phase(self, rows: ShuffledRows, task: WriteTask) -> PartDone:
        done: list[Written] = []
        for outcome in rows.written(task, self.writers):
            if isinstance(outcome, Failure):
                raise outcome.raised
            done.append(outcome)
        check_answers((one.bucket for one in done), rows.parts)
        return all_done(one.done for one in done)


def deletes_any(reports: Iterable[Report], catalog: Catalog) -> bool:
    """Whether a window may have to delete a row: one that went, or any of a table that deletes first."""
    for report in reports:
        if report.deletes:
            return True
        tables = (catalog.get(name) for name in report.tables)
        if any(table is not None and table.deletes_first(table.handle_key) for table in tables):
            return True
    return False

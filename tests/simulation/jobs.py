"""Spark in one process: the same tasks, several of them, with a shuffle between the stages, and lost attempts."""

import pickle
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

from consumer.tasks.jobs import Outcome
from consumer.tasks.order import Answered, Failure, OrderTask, ReadTask
from consumer.tasks.read_spec import ReadSpec
from consumer.tasks.report import RawDdl, Report
from consumer.tasks.second_look import Content, ContentTask, DdlTask, MessagePlace, RowTask, Sought
from consumer.tasks.shuffle_blocks import REPORTS, Record, decode_block
from consumer.tasks.write import WriteTask, Written
from ordering.errors import ReconcilerError, WorkerLostError
from ordering.rows.manifest import Manifest
from ordering.rows.segments import Segment
from ordering.window import Range, divided, together
from tests.simulation.log import FakeLog
from tests.simulation.zombies import Zombie

Group = tuple[int, tuple[Range, ...]]


@dataclass(slots=True)
class LocalJobs:
    """As `SparkJobs`: `buckets` 1 is the short way, more go through the shuffle, with `tasks` parts of the ranges."""

    log: FakeLog
    buckets: int = 1
    tasks: int = 1
    cores: int = 2
    zombies: list[Zombie] = field(default_factory=list)
    attempts: Iterator[int] = field(default_factory=lambda: count(1))
    ahead: Counter[str] = field(default_factory=Counter)
    """How many windows were read ahead: begun, taken, dropped."""

    def job(self, ranges: tuple[Range, ...], spec: ReadSpec) -> "LocalJob":
        """As `Jobs.job`."""
        self.haunt()
        if self.log.faults.happens("worker lost"):
            raise WorkerLostError("simulated: a worker died")
        buckets = spec.spread.buckets if spec.spread else spec.buckets if spec.segments else self.buckets
        if spec.buckets == 1:
            return LocalJob(self, 1, [list(ReadTask(spec, self.log)([(0, ranges)]))], parted=False)
        read = ReadTask(replace(spec, buckets=buckets), self.log)
        parts = list(ranges) if spec.force_replicate else divided(ranges, self.tasks, 1)
        groups = list(enumerate(together(parts, self.tasks)))
        return LocalJob(self, buckets, self.shuffled(read, groups), read=read, groups=groups)

    def shuffled(self, read: ReadTask, groups: list[Group]) -> list[list[Record]]:
        """Run the first stage; what it leaves, by bucket."""
        tasks = [list(read([group])) for group in groups]
        self.log.faults.chance.shuffle(tasks)
        found: list[list[Record]] = [[] for _ in range(read.spec.buckets + 1)]
        for records in tasks:
            for bucket, payload in records:
                found[bucket].append((bucket, pickle.loads(pickle.dumps(payload))))  # noqa: S301 our own
        return found

    def ddls(self, ranges: tuple[Range, ...], spec: ReadSpec) -> list[RawDdl]:
        """As `Jobs.ddls`."""
        return list(DdlTask(spec, self.log)(ranges))

    def contents(self, ranges: tuple[Range, ...], spec: ReadSpec, wanted: frozenset[int]) -> list[Content]:
        """As `Jobs.contents`."""
        return list(ContentTask(spec, self.log, wanted)(ranges))

    def places(self, ranges: tuple[Range, ...], spec: ReadSpec, sought: Sought) -> list[MessagePlace]:
        """As `Jobs.places`."""
        return list(RowTask(spec, self.log, sought)(ranges))

    def haunt(self, chance: float = 0.4) -> None:
        """Let some of the lost attempts go on."""
        for zombie in list(self.zombies):
            if self.log.faults.chance.random() < chance:
                self.zombies.remove(zombie)
                zombie.go_on()


@dataclass(slots=True)
class LocalJob:
    """As `SparkJob`."""

    jobs: LocalJobs
    parts: int
    buckets: list[list[Record]]
    parted: bool = True
    """Whether reports have a bucket of their own."""
    read: ReadTask | None = None
    groups: list[Group] = field(default_factory=list)
    first: int = 0
    """The bucket before the first of its own."""

    def of(self, segment: Segment) -> "LocalJob":
        """As `Job.of`; what is done again in the first stage is so for all segments."""
        return replace(self, first=segment.first, parts=segment.buckets)

    def _own(self) -> range:
        first = self.first + int(self.parted)
        return range(first, first + self.parts)

    def outcomes(self, order: OrderTask) -> Iterator[Outcome | Answered]:
        """As `Job.outcomes`."""
        order = replace(order, first=self.first)
        for bucket in self._own():
            self._lose()
            for outcome in order(iter(self.buckets[bucket])):
                yield _raised(outcome)

    def _lose(self) -> None:
        """Let some of the first stage's tasks be done again: their executor was lost. Kafka may refuse by now."""
        faults = self.jobs.log.faults
        if self.read is None or not faults.happens("stage done again"):
            return
        lost = faults.chance.sample(self.groups, faults.chance.randrange(1, len(self.groups) + 1))
        numbers = {number for number, _ in lost}
        again = self.jobs.shuffled(self.read, lost)
        for bucket in range(REPORTS + 1, len(self.buckets)):
            kept = [record for record in self.buckets[bucket] if _task_of(record) not in numbers]
            self.buckets[bucket] = kept + again[bucket]

    def reports(self) -> list[Report]:
        """As `Job.reports`."""
        return [_raised(payload) for _, payload in self.buckets[REPORTS]]

    def begun(self) -> "LocalReports":
        """As `Job.begun`: done at once, whatever comes of it."""
        reports: Future[list[Report]] = Future()
        try:
            reports.set_result(self.reports())
        except ReconcilerError as error:
            reports.set_exception(error)
        self.jobs.ahead["begun"] += 1
        return LocalReports(self.jobs, reports)

    def written(self, task: WriteTask, writers: int) -> Iterator[Written | Failure]:
        """As `Job.written`: the buckets in any order; an attempt may get lost, and go on when it is done again."""
        assert writers > 0
        faults, jobs = self.jobs.log.faults, self.jobs
        order, task = list(self._own()), replace(task, first=self.first)
        faults.chance.shuffle(order)
        for bucket in order:
            self._lose()
            if faults.happens("worker lost"):
                raise WorkerLostError("simulated: a worker died while it wrote")
            if faults.happens("attempt lost"):
                jobs.zombies.append(Zombie(self._attempt(task), self.buckets[bucket], faults.chance.randrange(4)))
            jobs.haunt()
            yield from self._attempt(task)(iter(self.buckets[bucket]))

    def _attempt(self, task: WriteTask) -> WriteTask:
        number = next(self.jobs.attempts)
        return replace(task, attempt=lambda: number)


@dataclass(frozen=True, slots=True)
class LocalReports:
    """As `ReportsAhead`."""

    jobs: LocalJobs
    reports: "Future[list[Report]]"

    def result(self) -> list[Report]:
        """As `Coming.result`."""
        self.jobs.ahead["taken"] += 1
        return self.reports.result()

    def end(self) -> None:
        """As `Coming.end`."""
        self.jobs.ahead["dropped"] += 1


def _task_of(record: Record) -> int:
    return (record[1] if isinstance(record[1], Manifest) else decode_block(record[1])).task


def _raised(outcome: Any) -> Any:
    if isinstance(outcome, ReconcilerError):
        raise outcome
    return outcome

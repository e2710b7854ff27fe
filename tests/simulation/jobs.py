"""Spark in one process: the same tasks, several of them, with a shuffle between the stages."""

import pickle
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from consumer.explain import Content, ContentTask
from consumer.job import Outcome
from consumer.scan import ReadSpec
from consumer.tasks import OrderTask, ReadTask
from ordering.errors import ReconcilerError, WorkerLostError
from ordering.window import Range, divided
from tests.simulation.log import FakeLog


@dataclass(slots=True)
class LocalJobs:
    """As `SparkJobs`: `buckets` 1 is the short way, more go through the shuffle, with `tasks` parts of the ranges."""

    log: FakeLog
    buckets: int = 1
    tasks: int = 1
    cores: int = 2

    def run(self, ranges: tuple[Range, ...], spec: ReadSpec, order: OrderTask) -> Iterator[Outcome]:
        """As `Jobs.run`."""
        if self.log.faults.happens("worker lost"):
            raise WorkerLostError("simulated: a worker died")
        read = ReadTask(replace(spec, buckets=self.buckets), self.log)
        for partition in self._partitions(ranges, read):
            for outcome in order(iter(partition)):
                if isinstance(outcome, ReconcilerError):
                    raise outcome
                yield outcome

    def _partitions(self, ranges: tuple[Range, ...], read: ReadTask) -> list[list[tuple[int, Any]]]:
        if self.buckets == 1:
            return [list(read([ranges]))]
        tasks = [list(read([(part,)])) for part in divided(ranges, self.tasks, 1)]
        self.log.faults.chance.shuffle(tasks)
        shuffled: list[list[tuple[int, Any]]] = [[] for _ in range(self.buckets + 1)]
        for records in tasks:
            for bucket, payload in records:
                shuffled[bucket].append((bucket, pickle.loads(pickle.dumps(payload))))  # noqa: S301 our own
        return shuffled

    def contents(self, ranges: tuple[Range, ...], spec: ReadSpec, wanted: frozenset[int]) -> list[Content]:
        """As `Jobs.contents`."""
        return list(ContentTask(spec, self.log, wanted)(ranges))

"""A changefeed over real Kafka whose tasks run in this process: for what is about Kafka, and not about Spark.

Fixtures give it to tests that are marked `kafka` (`tests.service.conftest`).
"""

import random
import time
from dataclasses import dataclass, field

from consumer.config.model import Config
from consumer.kafka.reader import Messages, Readers
from consumer.run.progress_log import Display
from consumer.run.runner import Runner, RunOutcome
from consumer.tasks.jobs import Jobs
from consumer.wiring import readers_of
from sinks.steps import Observer
from tests.service.lab import Feed
from tests.simulation.faults import Faults
from tests.simulation.jobs import LocalJobs


@dataclass
class ReadersHere:
    """What `LocalJobs` asks of a log, over real Kafka."""

    readers: Readers
    faults: Faults = field(default_factory=lambda: Faults(random.Random(0)))

    def get(self) -> Messages:
        return self.readers.get()

    def forget(self) -> None:
        self.readers.forget()


class RunnerHere(Runner):
    """The product's runner, but for Spark."""

    def _warm(self) -> None:
        self._sides.reach()
        self._target.connect()

    def _jobs(self, config: Config) -> Jobs:
        return LocalJobs(ReadersHere(readers_of(config)), buckets=2, tasks=2)  # type: ignore[arg-type, return-value]


@dataclass
class KafkaFeed(Feed):
    """As `Feed`, several times as fast."""

    def once(self, observe: Observer = lambda _: None) -> RunOutcome:
        runner = RunnerHere(self.config, Display(), observe, tuning=self.tuning)
        return runner.run(once=True, started=time.monotonic())

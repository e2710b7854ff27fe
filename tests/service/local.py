"""A changefeed whose Kafka and Spark are in this process, and whose target is real: for what is about targets alone."""

from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass, field

from consumer.demo.upstream.changefeed import Message
from consumer.pipeline import Pipeline
from consumer.source import Source
from consumer.targets import target_of
from sinks.target import Observer
from tests.service.lab import PARTITIONS, Feed
from tests.simulation.jobs import LocalJobs
from tests.simulation.log import FakeLog


class Killed(BaseException):
    """The driver is gone: no clean-up, no second thought."""


@dataclass
class LocalFeed(Feed):
    """As `Feed`, a hundred times as fast."""

    log_of_messages: FakeLog = field(default_factory=lambda: FakeLog(partitions=PARTITIONS))

    def send(self, messages: Iterable[Message]) -> list[Message]:
        moved = self.here(messages)
        self.log_of_messages.coming.extend(moved)
        self.log_of_messages.arrive(len(moved))
        return moved

    def apply(self) -> None:
        """Rounds until nothing is left to do. Raises ReconcilerError."""
        assert self.lives()

    def lives(self, observe: Observer = lambda _: None) -> bool:
        """As `apply`; False if `Killed` on the way. Nothing is handed over: the next one starts as a new process."""
        log, target = self.log_of_messages, target_of(self.config)
        source = Source(self.config, log, marks=log.get())  # type: ignore[arg-type]
        with closing(target):
            target.connect()
            try:
                pipeline = Pipeline(self.config, source, target, LocalJobs(log), observe)
                while pipeline.round(to_end=True):
                    pass
            except Killed:
                return False
        return True

    def once(self, observe: object = None) -> None:  # type: ignore[override]  # nothing to observe or to tell
        assert observe is None
        self.apply()

    def check(self) -> list[str]:
        """What the target says to `reconciler check`. Raises ReconcilerError."""
        with closing(target_of(self.config)) as target:
            return target.check()

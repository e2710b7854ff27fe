"""A changefeed whose Kafka and Spark are in this process, and whose target is real: for what is about targets alone.

Fixtures give it to tests that are not marked `spark` (`tests.service.conftest`).
"""

from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self
from uuid import uuid4

from consumer.demo.fake_ticdc.changefeed import Message
from consumer.pipeline.round import Round
from consumer.pipeline.session import Session
from consumer.run.runner import RunOutcome
from consumer.source.probe import Source
from consumer.wiring import target_of
from ordering.events import Partition
from sinks.steps import Observer
from tests.service.cells import MariaDbCells, SqliteCells
from tests.service.lab import PARTITIONS, Feed
from tests.service.postgres_cells import PostgresCells
from tests.simulation.jobs import LocalJobs
from tests.simulation.log import FakeLog


class Killed(BaseException):
    """The driver is gone: no clean-up, no second thought."""


@dataclass
class LocalFeed(Feed):
    """As `Feed`, a hundred times as fast."""

    log_of_messages: FakeLog = field(default_factory=lambda: FakeLog(partitions=PARTITIONS))

    @classmethod
    def into(cls, uri: str, cells: SqliteCells | MariaDbCells | PostgresCells, directory: Path) -> Self:
        """A feed of its own name into a target."""
        return cls(None, "nowhere:1", f"local-{uuid4().hex[:12]}", uri, cells, directory)  # type: ignore[arg-type]

    def send(self, messages: Iterable[Message]) -> list[Message]:
        moved = self.here(messages)
        self.log_of_messages.flush()
        self.log_of_messages.coming.extend(moved)
        self.log_of_messages.arrive(len(moved))
        return moved

    def send_raw(self, partition: int, *values: bytes | None) -> None:
        for value in values:
            self.log_of_messages.add(self.topic, partition, value)

    def make_topic(self, partitions: int = PARTITIONS, topic: str | None = None, **settings: str) -> None:
        assert not settings
        for number in range(partitions):
            self.log_of_messages.held.setdefault(Partition(topic or self.topic, number), [])

    def delete_records(self, partition: int, before: int) -> None:
        self.log_of_messages.delete_before(Partition(self.topic, partition), before)

    def apply(self) -> None:
        """Rounds until nothing is left to do. Raises ReconcilerError."""
        self.once()

    def lives(self, observe: Observer = lambda _: None) -> bool:
        """As `once`; False if `Killed` on the way. Nothing is handed over: the next one starts as a new process."""
        try:
            self.once(observe)
        except Killed:
            return False
        return True

    def once(self, observe: Observer = lambda _: None) -> RunOutcome:
        with self.leading(observe) as session:
            before = session.progress.counts
            while Round(session).run(to_end=True):
                pass
            return RunOutcome(before, session.progress.counts, session.progress.checkpoint_ts)

    @contextmanager
    def leading(self, observe: Observer = lambda _: None) -> Iterator[Session]:
        """A leader of this changefeed, for as long as a test wants; nothing is handed over at its end."""
        log, target = self.log_of_messages, target_of(self.config)
        source = Source(self.config, log, marks=log.get())  # type: ignore[arg-type]
        with closing(target):
            target.connect()
            session = Session(
                self.config, source, target, LocalJobs(log, buckets=2, tasks=2), observe, tuning=self.tuning
            )
            with closing(session.ledger):
                yield session

    def check(self) -> list[str]:
        """What the target says to `reconciler check`. Raises ReconcilerError."""
        with closing(target_of(self.config)) as target:
            return target.check()

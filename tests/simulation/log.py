"""Kafka in memory: topics whose messages arrive little by little, behind the interfaces of `Control` and `Messages`."""

import random
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from consumer.control import Topic
from consumer.demo.upstream.changefeed import Message
from ordering.errors import SourceUnreachableError
from ordering.events import Partition
from tests.simulation.faults import Faults


@dataclass(frozen=True, slots=True)
class Stored:
    """A message as a reader gives it out."""

    at: int
    content: bytes | None

    def offset(self) -> int:
        """Its offset."""
        return self.at

    def key(self) -> bytes | None:
        """Its key: none."""
        return None

    def timestamp(self) -> tuple[int, int]:
        """Its time, as Kafka's client tells it."""
        return 1, self.at

    def value(self) -> bytes | None:
        """Its bytes."""
        return self.content


class FakeLog:
    """Topics with partitions. What is still to come arrives when told, and a little while others ask.

    A topic appears with its first message. `ends` is not atomic, as partitions lie on several brokers.
    """

    def __init__(self, messages: Iterable[Message] = (), partitions: int = 1, faults: Faults | None = None) -> None:
        self.partitions_each = partitions
        self.faults = faults or Faults(random.Random(0))
        self.coming = deque(messages)
        self.held: dict[Partition, list[bytes | None]] = {}
        self.creeping = False

    def add(self, topic: str, partition: int, value: bytes | None) -> None:
        """Append one message."""
        if Partition(topic, partition) not in self.held:
            numbers = range(max(partition + 1, self.partitions_each))
            self.held.update({Partition(topic, n): [] for n in numbers if Partition(topic, n) not in self.held})
        self.held[Partition(topic, partition)].append(value)

    def arrive(self, count: int) -> None:
        """Let so many of the coming messages arrive."""
        for _ in range(min(count, len(self.coming))):
            self.add(*self.coming.popleft())

    def _creep(self) -> None:
        if self.creeping and self.coming and self.faults.chance.random() < 0.2:
            self.arrive(self.faults.chance.randrange(1, 6))

    def topics(self, wanted: Iterable[str]) -> list[Topic]:
        """As `Control.topics`."""
        self._creep()
        pattern = re.compile(next(iter(wanted)).removeprefix("~"))
        names = sorted({p.topic for p in self.held if pattern.fullmatch(p.topic)})
        return [Topic(name, f"id-{name}", tuple(sorted(p for p in self.held if p.topic == name))) for name in names]

    def begins(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """As `Control.begins`: nothing is ever deleted."""
        return dict.fromkeys(partitions, 0)

    def ends(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """As `Control.ends`; more may arrive between one partition's answer and the next one's."""
        found = {}
        asked = list(partitions)
        self.faults.chance.shuffle(asked)
        for partition in asked:
            found[partition] = len(self.held[partition])
            self._creep()
        return found

    def commit(self, group: str, offsets: Mapping[Partition, int]) -> None:
        """As `Control.commit`."""

    def close(self) -> None:
        """As `Control.close`."""

    def get(self) -> "FakeReader":
        """As `Readers.get`."""
        return FakeReader(self)

    def forget(self) -> None:
        """As `Readers.forget`."""


class FakeReader:
    """Reads ranges in runs of random length, the partitions in random turns."""

    def __init__(self, log: FakeLog) -> None:
        self._log = log
        self._stops: dict[Partition, int] = {}

    def read(self, spans: Sequence[tuple[Partition, int, int]]) -> Iterator[tuple[Partition, list[Stored]]]:
        """As `Reader.read`."""
        faults = self._log.faults
        at = {p: start for p, start, stop in spans if stop > start}
        self._stops = {p: min(stop, len(self._log.held[p])) for p, start, stop in spans if stop > start}
        while open_ := sorted(p for p, stop in self._stops.items() if at[p] < stop):
            if faults.happens("kafka hiccup"):
                raise SourceUnreachableError("simulated: Kafka does not answer")
            p = faults.chance.choice(open_)
            upto = min(self._stops[p], at[p] + faults.chance.randrange(1, 9))
            run = [Stored(o, self._log.held[p][o]) for o in range(at[p], upto)]
            at[p] = upto
            yield p, run

    def done(self, partition: Partition) -> None:
        """As `Reader.done`."""
        self._stops.pop(partition, None)

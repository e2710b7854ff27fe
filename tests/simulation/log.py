"""Kafka in memory: topics whose messages arrive little by little, behind the interfaces of `Control` and `Messages`."""

import random
import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise

from consumer.demo.fake_ticdc.changefeed import Message
from consumer.kafka.account import EpochTrail, Reached
from consumer.kafka.admin import End, Topic
from consumer.kafka.reader import gone
from ordering.errors import SourceUnreachableError
from ordering.events import Partition
from tests.simulation.faults import Faults


class Keyed(bytes):
    """A value whose message has a key."""

    beside: bytes
    is_null: bool
    """Whether there is no value, but the key alone."""

    @classmethod
    def of(cls, message: Message) -> bytes:
        """A message's value, with its key where it has one."""
        if message.key is None:
            return message.value
        found = cls(message.value or b"")
        found.beside, found.is_null = message.key, message.value is None
        return found


@dataclass(frozen=True, slots=True)
class Stored:
    """A message as a reader gives it out."""

    at: int
    content: bytes | None
    ms: int

    def offset(self) -> int:
        """Its offset."""
        return self.at

    def key(self) -> bytes | None:
        """Its key, where it has one."""
        return self.content.beside if isinstance(self.content, Keyed) else None

    def timestamp(self) -> tuple[int, int]:
        """Its time, as Kafka's client tells it."""
        return 1, self.ms

    def value(self) -> bytes | None:
        """Its bytes."""
        return None if isinstance(self.content, Keyed) and self.content.is_null else self.content


class Gap(Enum):
    """What an offset holds that no reader gets: the mark of a transaction, or a message of one that was aborted."""

    GAP = "gap"


class FakeLog:
    """Topics with partitions. What is still to come arrives when told, and a little while others ask.

    A topic appears with its first message. `ends` is not atomic, as partitions lie on several brokers. `in_doubt` is
    how often a message begins a transaction: what follows in its partition can be read once that is committed; where
    it is aborted all of it comes again.
    """

    def __init__(
        self,
        messages: Iterable[Message] = (),
        partitions: int = 1,
        faults: Faults | None = None,
        in_doubt: float = 0.0,
        *,
        foreign: bool = False,
    ) -> None:
        """`foreign`: transactions are another producer's, so messages among theirs are not aborted with them."""
        self.partitions_each = partitions
        self.faults = faults or Faults(random.Random(0))
        self.coming = deque(messages)
        self.held: dict[Partition, list[bytes | Gap | None]] = {}
        self.open: dict[Partition, int] = {}
        """Where the open transaction of a partition begins."""
        self.elections: dict[Partition, list[int]] = {}
        """Where each leader but the first began to write."""
        self.made: Counter[str] = Counter()
        self.begun: dict[Partition, list[int]] = {}
        """Where batches begin; what lies before the first is one."""
        self.first: dict[Partition, int] = {}
        self.in_doubt, self.foreign = in_doubt, foreign
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
            message = self.coming.popleft()
            if self.in_doubt:
                self._doubt(Partition(message.topic, message.partition))
            self.add(message.topic, message.partition, Keyed.of(message))

    def _doubt(self, partition: Partition) -> None:
        """Begin a transaction where the next message goes, or end one of any partition."""
        chance = self.faults.chance
        if partition in self.held and chance.random() < self.in_doubt:
            self.begin(partition)
        if self.open and chance.random() < self.in_doubt:
            self.end(chance.choice(sorted(self.open)))

    def begin(self, partition: Partition) -> None:
        """Begin a transaction, unless one is open."""
        self.open.setdefault(partition, len(self.held[partition]))

    def end(self, partition: Partition) -> None:
        """Commit, or abort and send all of it once more."""
        if not self.foreign and self.faults.chance.random() < 0.5:
            self.abort(partition)
        else:
            self.commit_open(partition)

    def time_of(self, partition: Partition, offset: int) -> int:  # noqa: ARG002
        """When a message was written, in ms: of these tests most ask for no time."""
        return offset

    def commit_open(self, partition: Partition) -> None:
        """Commit the open transaction."""
        del self.open[partition]
        self.held[partition].append(Gap.GAP)

    def abort(self, partition: Partition) -> None:
        """Abort the open transaction; its producer sends the messages again."""
        start, held = self.open.pop(partition), self.held[partition]
        lost = held[start:]
        held[start:] = [Gap.GAP] * (len(lost) + 1)
        held.extend(message for message in lost if message is not Gap.GAP)

    def messages(self, partition: Partition) -> list[tuple[int, bytes | None]]:
        """Offset and value of all that is no gap."""
        return [(at, one) for at, one in enumerate(self.held[partition]) if not isinstance(one, Gap)]

    def settle(self) -> None:
        """End all open transactions."""
        for partition in sorted(self.open):
            self.end(partition)

    def _creep(self) -> None:
        if self.creeping and self.coming and self.faults.chance.random() < 0.2:
            self.arrive(self.faults.chance.randrange(1, 6))

    def topics(self, wanted: Iterable[str]) -> list[Topic]:
        """As `Control.topics`."""
        self._creep()
        pattern = re.compile("|".join(f"(?:{name.removeprefix('~')})" for name in wanted))
        names = sorted({p.topic for p in self.held if pattern.fullmatch(p.topic)})
        return [
            Topic(name, f"id-{name}-{self.made[name]}", tuple(sorted(p for p in self.held if p.topic == name)))
            for name in names
        ]

    def begins(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """As `Control.begins`."""
        return {p: self.first.get(p, 0) for p in partitions}

    def ends(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """As `Control.ends`; more may arrive between one partition's answer and the next one's."""
        found = {}
        asked = list(partitions)
        self.faults.chance.shuffle(asked)
        for partition in asked:
            found[partition] = self.open.get(partition, len(self.held[partition]))
            self._creep()
        return found

    def stable_ends(self, partitions: Iterable[Partition]) -> dict[Partition, End]:
        """As `Control.stable_ends`."""
        return {p: End(end, len(self.elections.get(p, ()))) for p, end in self.ends(partitions).items()}

    def epoch_ends(self, epochs: Mapping[Partition, int]) -> dict[Partition, int | None]:
        """As `Control.epoch_ends`: the next leader began where this one's messages ended."""
        return {p: self._epoch_end(p, epoch) for p, epoch in epochs.items()}

    def _epoch_end(self, partition: Partition, epoch: int) -> int | None:
        later = self.elections.get(partition, ())[epoch:]
        now = len(self.held[partition]) if epoch == len(self.elections.get(partition, ())) else None
        return min(later, default=now)

    def epoch_at(self, partition: Partition, offset: int) -> int:
        """Of the leader that wrote what lies at an offset."""
        begun = enumerate(self.elections.get(partition, ()), 1)
        return max((epoch for epoch, begin in begun if begin <= offset), default=0)

    def elect(self, partition: Partition, lost: int = 0) -> None:
        """Another leader, which lacks so many of the last messages."""
        held = self.held[partition]
        del held[len(held) - lost :]
        self.elections.setdefault(partition, []).append(len(held))

    def make_anew(self, topic: str) -> None:
        """Delete a topic and make it again: empty, with another id."""
        for partition in [p for p in self.held if p.topic == topic]:
            self.held[partition] = []
            self.elections.pop(partition, None)
        self.made[topic] += 1

    def delete_before(self, partition: Partition, offset: int) -> None:
        """Delete as retention does."""
        self.first[partition] = offset

    def cleanup_policies(self, topics: Iterable[str]) -> dict[str, str]:
        """As `Control.cleanup_policies`."""
        return dict.fromkeys(topics, "delete")

    def first_gap(self, partition: Partition, start: int, stop: int) -> int | None:
        """As `Control.first_gap`: only transactions leave offsets empty here."""

    def flush(self) -> None:
        """Let the next message of each partition begin a batch."""
        for partition, held in self.held.items():
            self.begun.setdefault(partition, []).append(len(held))

    def batches(self, partition: Partition, start: int, stop: int) -> list[int]:
        """As `Control.batches`."""
        begun = sorted({0, *self.begun.get(partition, ())})
        return [at for at, end in pairwise([*begun, stop]) if at < stop and end > start]

    def written_ends(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """As `Control.written_ends`."""
        self._creep()
        return {p: len(self.held[p]) for p in partitions}

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
        self._at: dict[Partition, int] = {}
        self._given: Counter[Partition] = Counter()
        self._epochs = EpochTrail()

    def read(self, spans: Sequence[tuple[Partition, int, int]]) -> Iterator[tuple[Partition, list[Stored]]]:
        """As `Reader.read`."""
        faults = self._log.faults
        at = self._at = {p: start for p, start, _ in spans}
        self._given, self._epochs = Counter(), EpochTrail()
        self._stops = {p: stop for p, start, stop in spans if stop > start}
        while open_ := sorted(p for p, stop in self._stops.items() if at[p] < stop):
            if faults.happens("kafka hiccup"):
                raise SourceUnreachableError("simulated: Kafka does not answer")
            p = faults.chance.choice(open_)
            end = self._log.open.get(p, len(self._log.held[p]))
            upto = min(self._stops[p], at[p] + faults.chance.randrange(1, 9), end)
            if upto <= at[p]:
                raise SourceUnreachableError("simulated: what was promised does not come", where=str(p))
            if at[p] < self._log.first.get(p, 0):
                raise gone(p, at[p])
            run = [
                Stored(o, message, self._log.time_of(p, o))
                for o in range(at[p], upto)
                if not isinstance(message := self._log.held[p][o], Gap)
            ]
            at[p] = upto
            self._given[p] += len(run)
            for message in run:
                self._epochs.note(p, self._log.epoch_at(p, message.at), message.at)
            if run:
                yield p, run

    def reached(self, partition: Partition) -> Reached:
        """As `Reader.reached`."""
        return Reached(self._at[partition], self._given[partition], self._epochs.of(partition))

    def done(self, partition: Partition) -> None:
        """As `Reader.done`."""
        self._stops.pop(partition, None)

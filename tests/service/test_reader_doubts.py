"""The reader against a client that tells of an earlier assignment: an end or a message too early is asked for again."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from confluent_kafka import KafkaError, TopicPartition

from consumer import reader
from ordering.events import Partition

ONE, TWO = Partition("t", 1), Partition("t", 2)
Told = tuple[Partition, int, bool]


@dataclass
class FakeMessage:
    place: Partition
    at: int
    is_end: bool = False

    def topic(self) -> str:
        return self.place.topic

    def partition(self) -> int:
        return self.place.partition

    def offset(self) -> int:
        return self.at

    def error(self) -> Any:
        return KafkaError(KafkaError._PARTITION_EOF) if self.is_end else None


@dataclass
class FakeConsumer:
    """Holds a log per partition; `stale` comes before anything else, as what an old assignment left in the queue."""

    ends: dict[Partition, int]
    missing: Sequence[int] = ()
    stale: list[FakeMessage] = field(default_factory=list)
    queue: "deque[FakeMessage]" = field(default_factory=deque)
    assigned: int = 0

    def assign(self, places: list[TopicPartition]) -> None:
        self.queue.extend(self.stale)
        self.incremental_assign(places)

    def incremental_assign(self, places: list[TopicPartition]) -> None:
        for place in places:
            self.assigned += 1
            partition = Partition(place.topic, place.partition)
            offsets = [o for o in range(place.offset, self.ends[partition]) if o not in self.missing]
            self.queue.extend(FakeMessage(partition, o) for o in offsets)
            self.queue.append(FakeMessage(partition, self.ends[partition], is_end=True))

    def incremental_unassign(self, places: list[TopicPartition]) -> None:
        gone = {Partition(place.topic, place.partition) for place in places}
        self.queue = deque(m for m in self.queue if m.place not in gone)

    def unassign(self) -> None:
        self.queue.clear()

    def consume(self, count: int, _timeout: float) -> list[FakeMessage]:
        return [self.queue.popleft() for _ in range(min(count, len(self.queue)))]

    def poll(self, _timeout: float) -> FakeMessage | None:
        return None


Read = Callable[..., dict[Partition, list[int]]]


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Read:
    """The offsets that a reader delivers of some spans."""

    def read_with(fake: FakeConsumer, *spans: tuple[Partition, int, int]) -> dict[Partition, list[int]]:
        monkeypatch.setattr(reader, "Consumer", lambda _: fake)
        got: dict[Partition, list[int]] = {}
        for partition, run in reader.Reader({"bootstrap.servers": "none"}).read(spans):
            got.setdefault(partition, []).extend(message.offset() for message in run)
        return got

    return read_with


def end(partition: Partition, at: int) -> FakeMessage:
    return FakeMessage(partition, at, is_end=True)


def test_nothing_stale_asks_for_nothing_twice(read: Read) -> None:
    fake = FakeConsumer({ONE: 4, TWO: 3})
    assert read(fake, (ONE, 1, 4), (TWO, 0, 3)) == {ONE: [1, 2, 3], TWO: [0, 1, 2]}
    assert fake.assigned == 2


@pytest.mark.parametrize("spans", [[(ONE, 1, 4)], [(ONE, 1, 4), (TWO, 0, 2)]])
@pytest.mark.parametrize(
    "stale",
    [[end(ONE, 4)], [end(ONE, 4), end(TWO, 3)], [FakeMessage(ONE, 3)], [FakeMessage(TWO, 2)], [FakeMessage(ONE, 0)]],
    ids=["end", "ends", "later-message", "of-another-partition", "earlier-message"],
)
def test_what_an_old_assignment_left_behind(
    read: Read, stale: list[FakeMessage], spans: list[tuple[Partition, int, int]]
) -> None:
    fake = FakeConsumer({ONE: 4, TWO: 3}, stale=stale)
    assert read(fake, *spans) == {p: list(range(start, stop)) for p, start, stop in spans}


def test_offsets_that_hold_no_message_are_passed(read: Read) -> None:
    fake = FakeConsumer({ONE: 6}, missing=(0, 3, 5))
    assert read(fake, (ONE, 0, 6)) == {ONE: [1, 2, 4]}

"""The reader against a client that tells of an earlier assignment: an end or a message too early is not believed."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import pytest
from confluent_kafka import KafkaError, TopicPartition

from consumer.kafka import reader
from consumer.native import Core, chosen
from ordering.errors import SourceUnreachableError
from ordering.events import Partition
from tests.consumer.native.in_place import END, FakeShelf, Told

ONE, TWO = Partition("t", 1), Partition("t", 2)


@dataclass
class FakeMessage:
    place: Partition
    at: int
    is_end: bool = False
    is_too_large: bool = False

    def told(self) -> Told:
        code = END if self.is_end else KafkaError.MSG_SIZE_TOO_LARGE if self.is_too_large else 0
        return (*self.place, self.at, None if code else b"x", code)

    def topic(self) -> str:
        return self.place.topic

    def partition(self) -> int:
        return self.place.partition

    def offset(self) -> int:
        return self.at

    def leader_epoch(self) -> int:
        return self.at // 7

    def error(self) -> Any:
        code = self.told()[-1]
        return KafkaError(code) if code else None


@dataclass
class FakeConsumer:
    """Holds a log per partition; `stale` comes before anything else once there was an assignment."""

    ends: dict[Partition, int]
    missing: Sequence[int] = ()
    stale: list[FakeMessage] = field(default_factory=list)
    one_by_one: bool = False
    lag: int = 0
    """So many offsets a follower lacks, which tells its own end; what it lacks comes when it is waited for."""
    catches_up: bool = True
    late: "deque[FakeMessage]" = field(default_factory=deque)
    lacking: "deque[FakeMessage]" = field(default_factory=deque)
    queue: "deque[FakeMessage]" = field(default_factory=deque)
    assigned: int = 0

    def assign(self, places: list[TopicPartition]) -> None:
        if self.assigned:
            self.late.extend(self.stale)
        for place in places:
            self.assigned += 1
            partition = Partition(place.topic, place.partition)
            offsets = [o for o in range(place.offset, self.ends[partition]) if o not in self.missing]
            held = max(place.offset, self.ends[partition] - self.lag)
            self.queue.extend(FakeMessage(partition, o) for o in offsets if o < held)
            self.queue.append(FakeMessage(partition, held, is_end=True))
            self.lacking.extend(FakeMessage(partition, o) for o in offsets if o >= held)

    def incremental_unassign(self, places: list[TopicPartition]) -> None:
        gone = {Partition(place.topic, place.partition) for place in places}
        self.queue = deque(m for m in self.queue if m.place not in gone)

    def unassign(self) -> None:
        self.queue.clear()
        self.lacking.clear()

    def consume(self, count: int, _timeout: float) -> list[FakeMessage]:
        if self.late and self.one_by_one:
            return [self.late.popleft()]
        if self.late:
            self.queue.extendleft(reversed(self.late))
            self.late.clear()
        return [self.queue.popleft() for _ in range(min(count, len(self.queue)))]

    def poll(self, _timeout: float) -> FakeMessage | None:
        return self.lacking.popleft() if self.lacking and self.catches_up else None

    def close(self) -> None:
        self.queue.clear()


class FakeCoreConsumer(FakeConsumer):
    """The same, which gives messages as the compiled core's consumer does."""

    shelf: FakeShelf

    def consume(self, count: int, seconds: float) -> Any:
        return self.shelf.batch([message.told() for message in super().consume(count, seconds)])

    def poll(self, seconds: float) -> Any:
        found = super().poll(seconds)
        return self.shelf.batch([] if found is None else [found.told()])

    def unassign(self) -> None:
        super().unassign()
        self.shelf.shelf.clear()


def client_of(fake: FakeConsumer, core: Core | None) -> FakeConsumer:
    """A new client on the same logs."""
    fresh = {"late": deque(), "queue": deque(), "lacking": deque()}
    if core is None:
        return replace(fake, **fresh)
    values = {one.name: getattr(fake, one.name) for one in fields(fake)} | fresh
    made = FakeCoreConsumer(**values)
    made.shelf = FakeShelf(core)
    return made


@pytest.fixture(params=[False, True], ids=["python", "core"])
def core(request: pytest.FixtureRequest) -> Core | None:
    """Who takes the messages."""
    return chosen(request.param).core


Span = tuple[Partition, int, int]
Read = Callable[..., dict[Partition, list[int]]]


@pytest.fixture
def made() -> list[FakeConsumer]:
    """The clients that the reader has made."""
    return []


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch, made: list[FakeConsumer], core: Core | None) -> Read:
    """The offsets that a reader delivers of some spans, in its second read."""

    def read_with(fake: FakeConsumer, *spans: Span, ended: Sequence[Partition] = ()) -> dict[Partition, list[int]]:
        def client(*_: object) -> FakeConsumer:
            made.append(client_of(fake, core))
            return made[-1]

        monkeypatch.setattr(reader, "Consumer" if core is None else "CoreConsumer", client)
        used = reader.RangeReader({"bootstrap.servers": "none"}, core=core)
        assert [len(run) for _, run in used.read([(TWO, 0, 1)])] == [1]
        got: dict[Partition, list[int]] = {}
        for partition, run in used.read(spans):
            got.setdefault(partition, []).extend(message.offset() for message in run)
            if partition in ended:
                used.done(partition)
        for partition, offsets in got.items():
            assert used.reached(partition).epochs == epochs_of(offsets)
        return got

    return read_with


def epochs_of(offsets: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """The leaders' epochs, and where their messages begin."""
    firsts: dict[int, int] = {}
    for offset in offsets:
        firsts.setdefault(FakeMessage(ONE, offset).leader_epoch(), offset)
    return tuple(firsts.items())


def end(partition: Partition, at: int) -> FakeMessage:
    return FakeMessage(partition, at, is_end=True)


STALE = {
    "end": [end(ONE, 4)],
    "end-that-comes-often": [end(ONE, 4)] * 5,
    "ends": [end(ONE, 4), end(TWO, 3)],
    "later-message": [FakeMessage(ONE, 3)],
    "later-messages": [FakeMessage(ONE, 2), FakeMessage(ONE, 3), end(ONE, 4)],
    "of-another-partition": [FakeMessage(TWO, 2)],
    "too-large": [FakeMessage(ONE, 1, is_too_large=True)],
    "too-large-in-the-midst": [FakeMessage(ONE, 1), FakeMessage(ONE, 2, is_too_large=True)],
    "too-large-of-another-partition": [FakeMessage(Partition("t", 9), 2, is_too_large=True)],
    "earlier-message": [FakeMessage(ONE, 0)],
    "first-messages": [FakeMessage(ONE, 1), FakeMessage(ONE, 2)],
}


def test_nothing_stale_asks_for_nothing_twice(read: Read, made: list[FakeConsumer]) -> None:
    fake = FakeConsumer({ONE: 4, TWO: 3})
    assert read(fake, (ONE, 1, 4), (TWO, 0, 3)) == {ONE: [1, 2, 3], TWO: [0, 1, 2]}
    assert [client.assigned for client in made] == [1 + 2]


@pytest.mark.parametrize("one_by_one", [True, False])
@pytest.mark.parametrize("spans", [[(ONE, 1, 4)], [(ONE, 1, 4), (TWO, 0, 2)]])
@pytest.mark.parametrize("stale", STALE.values(), ids=STALE)
def test_what_an_old_assignment_left_behind(
    read: Read, stale: list[FakeMessage], spans: list[Span], *, one_by_one: bool
) -> None:
    fake = FakeConsumer({ONE: 4, TWO: 3}, stale=stale, one_by_one=one_by_one)
    assert read(fake, *spans) == {p: list(range(start, stop)) for p, start, stop in spans}


def test_a_partition_that_is_asked_for_anew_can_be_ended(read: Read) -> None:
    fake = FakeConsumer({ONE: 5_000, TWO: 3}, stale=[end(ONE, 4)])
    assert read(fake, (ONE, 1, 5_000), (TWO, 0, 3), ended=[ONE]) == {ONE: list(range(1, 2_001)), TWO: [0, 1, 2]}


def test_offsets_that_hold_no_message_are_passed(read: Read, made: list[FakeConsumer]) -> None:
    fake = FakeConsumer({ONE: 6, TWO: 1}, missing=(2, 3, 5))
    assert read(fake, (ONE, 0, 6), (TWO, 0, 1)) == {ONE: [0, 1, 4], TWO: [0]}
    assert len(made) == 2


def test_what_is_too_large_for_a_new_client_is_an_error(
    made: list[FakeConsumer], monkeypatch: pytest.MonkeyPatch, core: Core | None
) -> None:
    def client(*_: object) -> FakeConsumer:
        made.append(client_of(FakeConsumer({ONE: 6}), core))
        made[-1].late.append(FakeMessage(ONE, 1, is_too_large=True))
        return made[-1]

    monkeypatch.setattr(reader, "Consumer" if core is None else "CoreConsumer", client)
    new = reader.RangeReader({"bootstrap.servers": "none"}, core=core)
    with pytest.raises(SourceUnreachableError, match="can't be read"):
        list(new.read([(ONE, 1, 6)]))


@pytest.mark.parametrize("lag", [1, 3, 9])
def test_a_follower_that_lags_is_waited_for(read: Read, lag: int) -> None:
    """Its end is no end: what lies behind it was promised."""
    fake = FakeConsumer({ONE: 6, TWO: 3}, lag=lag)
    assert read(fake, (ONE, 1, 6), (TWO, 1, 3)) == {ONE: [1, 2, 3, 4, 5], TWO: [1, 2]}


@pytest.mark.parametrize("lag", [1, 3])
def test_a_follower_that_does_not_catch_up_ends_the_read(
    made: list[FakeConsumer], monkeypatch: pytest.MonkeyPatch, core: Core | None, lag: int
) -> None:
    def client(*_: object) -> FakeConsumer:
        made.append(client_of(FakeConsumer({ONE: 6}, lag=lag, catches_up=False), core))
        return made[-1]

    monkeypatch.setattr(reader, "Consumer" if core is None else "CoreConsumer", client)
    monkeypatch.setattr(reader, "SILENCE_S", 0.0)
    lagging = reader.RangeReader({"bootstrap.servers": "none"}, core=core)
    got: list[int] = []
    with pytest.raises(SourceUnreachableError, match=rf"up to offset {6 - lag} only, 6 was promised"):
        got.extend(message.offset() for _, run in lagging.read([(ONE, 0, 6)]) for message in run)
    assert got == list(range(6 - lag))
    assert lagging.reached(ONE).offset == 6 - lag

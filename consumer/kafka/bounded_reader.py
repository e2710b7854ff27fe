"""Reads offset ranges batch by batch, each unpacked within a limit: for who must not end by what a message holds.

librdkafka unpacks a whole answer before anything can be counted. This reader is slower and exact: the driver looks for
watermarks with it, and tasks read with it what another worker could not. What it gives is what `RangeReader` does.
"""

import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from kafka.record import MemoryRecords
from kafka.record.util import decode_varint

from consumer.kafka.account import EpochTrail, Reached
from consumer.kafka.admin import KafkaAdmin
from consumer.kafka.reader import SILENCE_S, gone
from consumer.kafka.requests import Fetched
from consumer.kafka.unpacking import BatchTooLargeError, UnpackError, unpacked
from ordering.errors import InputError, SourceUnreachableError
from ordering.events import Partition

_SMALLEST_FETCH = 64 << 10
_LARGEST_FETCH = 1 << 20
_RUN = 2_000
"""Messages that are given out at once: of a packed batch of 64 MiB there may be ten million."""
_LEAST_LIMIT = 64 << 20
_ANSWER = 8 << 20
"""Bytes of a partition that librdkafka asks for at once."""
_DENSE = 256 << 20
_OF_A_MESSAGE = 512
"""What a message takes in librdkafka besides its bytes, about."""
_FRAME = 1 << 20
"""What a batch takes besides its message."""
_PAUSE_S = 0.1
_V2 = 2
_CODEC = 0x07
_CREATED, _APPENDED = 1, 2
"""Kinds of timestamps, as confluent-kafka names them."""
_ABORT = 0

_TOO_LARGE = (
    "something other than TiCDC packed it; or raise limits.message-bytes: a batch may hold as much, at least 64 MiB."
    " With compression.type=uncompressed on the topic the broker unpacks, and refuses what is too large"
)
_DISK = "if this lasts, the disk or memory of a broker is at fault: let another replica lead the partition"
_DAMAGED = "something other than TiCDC wrote it, or a disk is damaged: nothing behind it can be read"


@dataclass(frozen=True, slots=True)
class RecordMessage:
    """A message, with what of confluent-kafka's is asked for."""

    at: int
    time: tuple[int, int]
    name: bytes | None
    held: bytes | None

    def offset(self) -> int:
        """Where it lies in its partition."""
        return self.at

    def timestamp(self) -> tuple[int, int]:
        """Its kind, and milliseconds since 1970."""
        return self.time

    def key(self) -> bytes | None:
        """Its key."""
        return self.name

    def value(self) -> bytes | None:
        """Its bytes."""
        return self.held


class _Heaviest:
    """The most memory that batches take which lie behind one another and may come in one answer."""

    def __init__(self) -> None:
        self.bytes = 0
        self._some: deque[tuple[int, int]] = deque()
        self._packed = self._weight = 0

    def add(self, packed: int, weight: int) -> None:
        """The next batch."""
        self._some.append((packed, weight))
        self._packed, self._weight = self._packed + packed, self._weight + weight
        while self._packed > _ANSWER and len(self._some) > 1:
            gone_packed, gone_weight = self._some.popleft()
            self._packed, self._weight = self._packed - gone_packed, self._weight - gone_weight
        self.bytes = max(self.bytes, self._weight)


class BoundedReader:
    """Reads as `Messages` says, over the control plane's connections; not for several threads."""

    def __init__(self, control: KafkaAdmin, message_bytes: int) -> None:
        self._control, self._limit = control, max(message_bytes, _LEAST_LIMIT) + _FRAME
        self._stops: dict[Partition, int] = {}
        self._next: dict[Partition, int] = {}
        self._given: Counter[Partition] = Counter()
        self._epochs = EpochTrail()
        self._heaviest = _Heaviest()

    @property
    def is_dense(self) -> bool:
        """Whether another reader may have needed too much memory for what was read of a partition."""
        return self._heaviest.bytes > _DENSE

    def read(self, spans: Sequence[tuple[Partition, int, int]]) -> Iterator[tuple[Partition, list[RecordMessage]]]:
        """See `Messages.read`. Raises InputError for a batch that holds more than the limit."""
        self._next = {partition: start for partition, start, _ in spans}
        self._stops = {partition: stop for partition, start, stop in spans if start < stop}
        self._given, self._epochs, self._heaviest = Counter(), EpochTrail(), _Heaviest()
        size, silent_s, waiting = _SMALLEST_FETCH, 0.0, list(self._stops)
        while self._stops:
            asked, begun = {p: self._next[p] for p in waiting if p in self._stops}, time.monotonic()
            found = self._control.fetched(asked, size)
            took_s = time.monotonic() - begun
            for number, (p, start) in enumerate(asked.items()):
                if p in found:
                    yield from self._taken(p, start, found[p], is_first=not number)
            waiting = sorted(self._stops, key=lambda p: self._next[p] != asked[p])  # who got nothing is asked first
            if any(self._next[p] != start for p, start in asked.items()):  # also who got all that was wanted of it
                size, silent_s = min(2 * size, _LARGEST_FETCH), 0.0
                continue
            silent_s += took_s + _PAUSE_S
            if silent_s > SILENCE_S:
                raise _silent(waiting[0], self._next[waiting[0]], self._stops[waiting[0]])
            time.sleep(_PAUSE_S)

    def done(self, partition: Partition) -> None:
        """See `Messages.done`."""
        self._stops.pop(partition, None)

    def reached(self, partition: Partition) -> Reached:
        """See `Messages.reached`."""
        return Reached(self._next[partition], self._given[partition], self._epochs.of(partition))

    def _taken(
        self, partition: Partition, start: int, found: Fetched, *, is_first: bool
    ) -> Iterator[tuple[Partition, list[RecordMessage]]]:
        """The runs of what was fetched of a partition; its offsets up to the stop."""
        if partition not in self._stops:
            return
        if found.is_gone:
            raise gone(partition, start)
        begun, gone_by, any_batch = deque(found.aborted), set[int](), False
        for batch in MemoryRecords(found.records):
            if partition not in self._stops:
                return
            any_batch = True
            _begin(begun, gone_by, batch)
            if _is_control(batch):
                _end(gone_by, batch, partition)
            elif not _is_aborted(batch, gone_by):
                yield from self._runs(partition, batch)
            self._pass(partition, batch.next_offset)
        if is_first and not any_batch and found.stable_end >= self._stops.get(partition, found.stable_end + 1):
            self._pass(partition, self._stops[partition])  # the first one gets a batch if there is any

    def _runs(self, partition: Partition, batch: Any) -> Iterator[tuple[Partition, list[RecordMessage]]]:
        records = _records(batch, partition, self._limit, self._heaviest)
        while some := list(islice(records, _RUN)):
            following, stop = self._next[partition], self._stops[partition]
            run = [message for message in some if following <= message.at < stop]
            if run:
                self._next[partition] = run[-1].at + 1
                self._given[partition] += len(run)
                self._epochs.note(partition, _epoch_of(batch), run[0].at, run[-1].at)
                yield partition, run
            if some[-1].at >= stop - 1:
                self._pass(partition, stop)
            if partition not in self._stops:
                return

    def _pass(self, partition: Partition, offset: int) -> None:
        stop = self._stops.get(partition)
        if stop is None:
            return
        self._next[partition] = max(self._next[partition], min(offset, stop))
        if offset >= stop:
            self.done(partition)


def _epoch_of(batch: Any) -> int | None:
    """Of the leader that wrote a batch; earlier formats don't tell."""
    epoch = batch.leader_epoch if batch.magic >= _V2 else -1
    return None if epoch < 0 else int(epoch)


def _begin(begun: "deque[tuple[int, int]]", gone_by: set[int], batch: Any) -> None:
    """Take the aborted transactions that begin before this batch ends."""
    while begun and begun[0][0] <= batch.next_offset - 1:
        gone_by.add(begun.popleft()[1])


def _is_control(batch: Any) -> bool:
    return batch.magic >= _V2 and bool(batch.is_control_batch)


def _is_aborted(batch: Any, gone_by: set[int]) -> bool:
    return batch.magic >= _V2 and batch.is_transactional and batch.producer_id in gone_by


def _end(gone_by: set[int], batch: Any, partition: Partition) -> None:
    """A mark that ends its producer's transaction: what follows of that producer is another one."""
    for mark in _records(batch, partition, _FRAME, _Heaviest()):
        if int.from_bytes((mark.name or b"")[2:4], "big") == _ABORT:
            gone_by.discard(batch.producer_id)


def _records(batch: Any, partition: Partition, limit: int, heaviest: _Heaviest) -> Iterator[RecordMessage]:
    """The records of a batch. Raises InputError with its position."""
    where = f"{partition} offset={batch.base_offset}"
    if not batch.validate_crc():  # brokers leave that to whoever reads
        fact = "what Kafka sends is damaged: the checksum of a batch is not of its content"
        raise SourceUnreachableError(fact, where=where, hint=_DISK)
    try:
        yield from _plain_records(batch, limit, heaviest)
    except BatchTooLargeError as error:
        raise InputError(f"a batch of messages is too large: {error}", where=where, hint=_TOO_LARGE) from error
    except (UnpackError, ValueError, IndexError) as error:
        raise InputError(f"a batch of messages can't be read: {error}", where=where, hint=_DAMAGED) from error


def _plain_records(batch: Any, limit: int, heaviest: _Heaviest) -> Iterator[RecordMessage]:
    codec = batch.compression_type & _CODEC
    if batch.magic < _V2:
        if codec:
            raise UnpackError("it is packed in the format of Kafka before 0.11")
        for old in batch:
            yield RecordMessage(old.offset, (_kind(batch), old.timestamp or 0), old.key, old.value)
        return
    data = bytes(memoryview(batch._buffer)[batch._pos :])  # noqa: SLF001 it unpacks without a limit
    if codec:
        data = unpacked(codec, data, limit)
    heaviest.add(batch.size_in_bytes, len(data) + _OF_A_MESSAGE * batch.records_count)
    at = 0
    for _ in range(batch.records_count):
        size, at = decode_varint(data, at)
        if not 0 < size <= len(data) - at:
            raise ValueError("it holds less than it says")
        yield _record(batch, data[at : at + size])
        at += size


def _kind(batch: Any) -> int:
    return _APPENDED if batch.timestamp_type else _CREATED


def _record(batch: Any, data: bytes) -> RecordMessage:
    """A record without its headers: attributes, time, offset, key, value."""
    later, at = decode_varint(data, 1)
    further, at = decode_varint(data, at)
    name, at = _bytes(data, at)
    held, at = _bytes(data, at)
    if not 0 <= further <= batch.last_offset_delta:
        raise ValueError("a record lies outside of it")
    ms = batch.max_timestamp if batch.timestamp_type else batch.first_timestamp + later
    return RecordMessage(batch.base_offset + further, (_kind(batch), ms), name, held)


def _bytes(data: bytes, at: int) -> tuple[bytes | None, int]:
    size, at = decode_varint(data, at)
    if size < 0:
        return None, at
    if size > len(data) - at:
        raise ValueError("a record holds less than it says")
    return data[at : at + size], at + size


def _silent(partition: Partition, at: int, stop: int) -> SourceUnreachableError:
    return SourceUnreachableError(
        f"Kafka gives out messages up to offset {at} only, {stop} was promised, and nothing for {SILENCE_S:.0f} s",
        where=f"{partition} offset={at}",
        hint="check the brokers: a new leader may lag behind the one that was asked before",
    )

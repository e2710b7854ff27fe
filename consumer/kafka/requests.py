"""Requests that kafka-python's admin client can send and has no method for.

Fetch: batches as they lie in the log. A log that nothing was taken out of has no gaps: each batch begins where the last
one ended, and has a record for each of its offsets, also marks of transactions and what was aborted. Compaction leaves
records out and keeps offsets.

OffsetForLeaderEpoch (KIP-320): up to where a leader of some epoch wrote.
"""

from collections import defaultdict
from collections.abc import AsyncIterator, Mapping
from typing import Any, NamedTuple

from kafka import TopicPartition
from kafka.errors import KafkaTimeoutError, OffsetOutOfRangeError, for_code
from kafka.protocol.consumer import FetchRequest, OffsetForLeaderEpochRequest
from kafka.record import MemoryRecords

_BYTES = 8 << 20
_WAIT_MS = 500
_TRIES = 20
_KNOWN_VERSION = 12
"""The last that names topics; later ones name ids."""
_NO_SESSION = -1
_UNKNOWN = -1
_LATEST_FORMAT = 2
"""Earlier formats know no transactions: an empty offset was compacted there."""


async def first_gap(admin: Any, place: TopicPartition, start: int, stop: int) -> int | None:
    """The first offset of [start, stop) from which on a record was taken out; None: none was. Raises KafkaError."""
    at = start
    async for batch in _batches(admin, place, start, stop):
        if batch.magic < _LATEST_FORMAT or batch.base_offset > at or not _is_whole(batch):
            return at
        at = batch.next_offset
    return None


async def begins(admin: Any, place: TopicPartition, start: int, stop: int) -> list[int]:
    """Where the batches begin that hold the offsets [start, stop). Raises KafkaError.

    In earlier formats each record counts as one: theirs don't tell where they begin.
    """
    found: list[int] = []
    at = start
    async for batch in _batches(admin, place, start, stop):
        if batch.magic < _LATEST_FORMAT:
            return [*found, *range(at, stop)]
        found.append(batch.base_offset)
        at = batch.next_offset
    return found


async def _batches(admin: Any, place: TopicPartition, start: int, stop: int) -> AsyncIterator[Any]:
    """The batches that hold the offsets [start, stop), in order."""
    leaders = await admin._async_get_leader_for_partitions({place})  # noqa: SLF001 no other way
    (leader,) = leaders
    at, silent = start, 0
    while at < stop:
        batches = list(MemoryRecords(await _fetched(admin, leader, place, at)))
        silent = 0 if batches else silent + 1
        if silent > _TRIES:
            raise KafkaTimeoutError(f"nothing can be fetched of {place.topic}-{place.partition} at offset {at}")
        for batch in batches:
            if at >= stop:
                break
            yield batch
            at = batch.next_offset


def _is_whole(batch: Any) -> bool:
    return bool(batch.records_count == batch.last_offset - batch.base_offset + 1)


class Fetched(NamedTuple):
    """What a broker gave of a partition. `aborted`: the transactions among it that count as nothing."""

    records: bytes = b""
    stable_end: int = -1
    aborted: tuple[tuple[int, int], ...] = ()
    """Each one's first offset and its producer's number, by offset."""
    is_gone: bool = False
    """Whether the log holds nothing at this offset any more, or not yet."""


async def fetched(admin: Any, starts: Mapping[TopicPartition, int], size: int) -> dict[TopicPartition, Fetched]:
    """Batches from these offsets on, of each partition about `size` bytes, of its first one the whole.

    Of all partitions of a broker only the first one surely gets something; those that got nothing may be missing.
    Raises KafkaError.
    """
    leaders = await admin._async_get_leader_for_partitions(set(starts))  # noqa: SLF001 no other way
    found: dict[TopicPartition, Fetched] = {}
    for leader, theirs in leaders.items():
        asked = {place: offset for place, offset in starts.items() if place in theirs}
        found |= await _asked(admin, leader, asked, size, committed=True)
    return found


async def _fetched(admin: Any, leader: int, place: TopicPartition, offset: int) -> bytes:
    found = await _asked(admin, leader, {place: offset}, _BYTES, committed=False)
    given = found.get(place, Fetched())
    if given.is_gone:
        raise OffsetOutOfRangeError(f"Fetch failed for {place.topic}-{place.partition}")
    return given.records


async def _asked(
    admin: Any, leader: int, starts: Mapping[TopicPartition, int], size: int, *, committed: bool
) -> dict[TopicPartition, Fetched]:
    answer = await admin._manager.send(_request(starts, size, committed=committed), node_id=leader)  # noqa: SLF001
    parts = [(topic.topic, part) for topic in answer.responses for part in topic.partitions]
    given = {TopicPartition(topic, part.partition_index): _found(topic, part) for topic, part in parts}
    return {place: one for place, one in given.items() if one is not None}


def _request(starts: Mapping[TopicPartition, int], size: int, *, committed: bool) -> Any:
    topic = FetchRequest.FetchTopic
    by_topic = defaultdict(list)
    for place, offset in starts.items():
        one = topic.FetchPartition(
            partition=place.partition, current_leader_epoch=-1, fetch_offset=offset, partition_max_bytes=size
        )
        by_topic[place.topic].append(one)
    return FetchRequest(
        max_wait_ms=_WAIT_MS,
        min_bytes=1,
        max_bytes=_BYTES,
        isolation_level=int(committed),
        session_id=0,
        session_epoch=_NO_SESSION,
        topics=[topic(topic=name, partitions=some) for name, some in by_topic.items()],
        forgotten_topics_data=[],
        rack_id="",
        min_version=4,
        max_version=_KNOWN_VERSION,
    )


def _found(topic: str, part: Any) -> Fetched | None:
    """None: not now, as while a partition gets another leader."""
    if part.error_code == OffsetOutOfRangeError.errno:
        return Fetched(is_gone=True)
    if part.error_code:
        error = for_code(part.error_code)
        if error.retriable:
            return None
        raise error(f"Fetch failed for {topic}-{part.partition_index}")
    aborted = sorted((one.first_offset, one.producer_id) for one in part.aborted_transactions or ())
    return Fetched(bytes(part.records or b""), part.last_stable_offset, tuple(aborted))


async def epochs_asked(admin: Any, epochs: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
    """The end of each partition's epoch, from its leader; None: it knows no such epoch. Raises KafkaError."""
    found: dict[TopicPartition, int | None] = {}
    leaders = await admin._async_get_leader_for_partitions(set(epochs))  # noqa: SLF001
    for leader, partitions in leaders.items():
        answer = await admin._manager.send(_epochs_request({tp: epochs[tp] for tp in partitions}), node_id=leader)  # noqa: SLF001
        found |= _ends(answer)
    return found


def _epochs_request(epochs: Mapping[TopicPartition, int]) -> Any:
    topic = OffsetForLeaderEpochRequest.OffsetForLeaderTopic
    by_topic = defaultdict(list)
    for tp, epoch in epochs.items():
        one = topic.OffsetForLeaderPartition(partition=tp.partition, current_leader_epoch=_UNKNOWN, leader_epoch=epoch)
        by_topic[tp.topic].append(one)
    topics = [topic(topic=name, partitions=some) for name, some in by_topic.items()]
    return OffsetForLeaderEpochRequest(replica_id=-1, topics=topics)


def _ends(answer: Any) -> dict[TopicPartition, int | None]:
    found: dict[TopicPartition, int | None] = {}
    for topic in answer.topics:
        for one in topic.partitions:
            if one.error_code:
                raise for_code(one.error_code)(f"OffsetForLeaderEpoch failed for {topic.topic}-{one.partition}")
            found[TopicPartition(topic.topic, one.partition)] = None if one.end_offset == _UNKNOWN else one.end_offset
    return found

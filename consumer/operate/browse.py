"""A look into a topic of a changefeed: the newest messages, or those from a commitTs on; bounded in work and memory.

It joins no group and commits nothing: looking changes nothing.
"""

import time
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from consumer.config.model import Config
from consumer.kafka.admin import KafkaAdmin, require
from consumer.kafka.bounded_reader import BoundedReader, RecordMessage
from consumer.kafka.topic_names import matcher
from consumer.operate.message_filter import MessageFilter
from consumer.operate.tail import Told, told_of
from consumer.quarantine.content import told_bytes
from consumer.wiring import format_of
from ordering.errors import ConfigError
from ordering.events import Partition, Position
from ordering.timestamps import physical_ms

MOST_READ = 10_000
"""Messages that one look reads, over all partitions."""
_MOST_BYTES = 64 << 20
_MOST_S = 10.0


@dataclass(frozen=True, slots=True)
class MessagesFound:
    """What a look found, in the order of commitTs; `is_whole`: nothing that matches was left out."""

    items: list[Told]
    read: int
    is_whole: bool


@dataclass(frozen=True, slots=True)
class MessageSearch:
    """What is looked for: at most `limit` messages, the first with `wanted.since`, the last without."""

    topic: str
    wanted: MessageFilter
    limit: int = 50


def look_at(config: Config, look: MessageSearch) -> MessagesFound:
    """The messages of a topic that match. Raises ConfigError, SourceError, InputError."""
    _check_topic(config, look.topic)
    with closing(KafkaAdmin(config.source.bootstrap_servers, config.source.kafka)) as control:
        spans, is_whole = _spans(control, config, look)
        found = _Matching(config, look)
        is_whole &= found.read_all(BoundedReader(control, config.limits.message_bytes), spans)
    chosen = found.first if look.wanted.since else found.last
    return MessagesFound(chosen(), found.count, is_whole and len(found.items) <= look.limit)


def content_at(config: Config, position: Position, most: int) -> dict[str, Any]:
    """One message's bytes, and what they hold. Raises ConfigError if it is not there, SourceError."""
    _check_topic(config, position.topic)
    partition = Partition(position.topic, position.partition)
    gone = ConfigError("Kafka has no message there", where=str(position), hint="retention may have deleted it")
    with closing(KafkaAdmin(config.source.bootstrap_servers, config.source.kafka)) as control:
        topics = control.topics([position.topic])
        if not any(partition in topic.partitions for topic in topics):
            raise gone
        begin, end = control.begins([partition])[partition], control.ends([partition])[partition]
        if not begin <= position.offset < end:
            raise gone
        reader = BoundedReader(control, config.limits.message_bytes)
        for _, run in reader.read([(partition, position.offset, position.offset + 1)]):
            for message in run:
                return {**position._asdict(), **told_bytes(message.key(), message.value(), position, config, most)}
    raise gone


def _check_topic(config: Config, topic: str) -> None:
    """Whoever looks may look at what the changefeed reads, not at the whole cluster."""
    if config.source.storage:
        raise ConfigError("this changefeed reads files", where="source.storage", hint="`reconciler tail` shows them")
    if not matcher(config.source.topics)(topic):
        names = ", ".join(config.source.topics)
        raise ConfigError("this changefeed does not read that topic", where=f"topic {topic}", hint=f"it reads {names}")


def _spans(control: KafkaAdmin, config: Config, look: MessageSearch) -> tuple[list[tuple[Partition, int, int]], bool]:
    """The offsets to read of each partition, and whether these are all."""
    topics = control.topics([look.topic])
    require([look.topic], topics, config.source.bootstrap_servers)
    partitions = [p for topic in topics for p in topic.partitions]
    begins, ends = control.begins(partitions), control.ends(partitions)
    most = max(1, MOST_READ // max(1, len(partitions))) if look.wanted.leaves_out else look.limit
    if not look.wanted.since:
        spans = [(p, max(begins[p], ends[p] - most), ends[p]) for p in partitions]
        return spans, all(start == begins[p] for p, start, _ in spans)
    since = control.offsets_since(partitions, physical_ms(look.wanted.since))
    starts = {p: ends[p] if (at := since[p]) is None else at for p in partitions}
    spans = [(p, starts[p], min(ends[p], starts[p] + most)) for p in partitions]
    return spans, all(stop == ends[p] for p, _, stop in spans)


class _Matching:
    """Reads spans and keeps what matches."""

    def __init__(self, config: Config, look: MessageSearch) -> None:
        self._limit, self._format, self._look = config.limits.message_bytes, format_of(config), look
        self._matches = look.wanted.predicate()
        self.items: list[Told] = []
        self.count = self._bytes = 0

    def read_all(self, reader: BoundedReader, spans: list[tuple[Partition, int, int]]) -> bool:
        """Whether all of them were read before time or memory were used up."""
        deadline = time.monotonic() + _MOST_S
        for partition, run in reader.read([span for span in spans if span[1] < span[2]]):
            for message in run:
                self._take(partition, message)
            if self._bytes > _MOST_BYTES or time.monotonic() > deadline:
                return False
        return True

    def _take(self, partition: Partition, message: RecordMessage) -> None:
        self.count += 1
        self._bytes += len(message.value() or b"")
        self.items += filter(self._matches, told_of(partition, message, self._limit, self._format))

    def first(self) -> list[Told]:
        """The first by commitTs."""
        return self._sorted()[: self._look.limit]

    def last(self) -> list[Told]:
        """The last by commitTs."""
        return self._sorted()[-self._look.limit :]

    def _sorted(self) -> list[Told]:
        return sorted(self.items, key=lambda one: (one.commit_ts or (one.timestamp or 0) << 18, one.position))

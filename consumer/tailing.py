"""Reads a topic's messages for people: each in one line, with its commitTs as time, also those that can't be decoded.

Nothing is committed and no group is joined: looking changes nothing.
"""

import heapq
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from consumer import canal
from consumer.control import Control, require
from consumer.filters.tables import table_filter
from consumer.kafka_settings import Settings, reader_settings
from ordering.errors import InputError, SourceUnreachableError
from ordering.events import Partition, Position, TableName
from ordering.timestamps import utc_text

_WAIT_S = 0.5
_PATIENCE_S = 30.0
_LARGEST = 64 << 20
_SHOWN = 400


@dataclass(frozen=True, slots=True)
class Told:
    """One message. `kind`: its type, or `?` where it can't be decoded; then `error` says why."""

    position: Position
    timestamp: int | None
    kind: str
    commit_ts: int = 0
    table: TableName | None = None
    body: Mapping[str, Any] | None = None
    raw: bytes = b""
    error: str = ""

    def as_json(self) -> dict[str, Any]:
        """For programs; what can't be decoded is text with replaced characters."""
        return {
            **self.position._asdict(),
            "timestamp": self.timestamp,
            "type": self.kind,
            "commit_ts": self.commit_ts or None,
            "commit_time": utc_text(self.commit_ts) if self.commit_ts else None,
            "database": self.table.database if self.table else None,
            "table": self.table.table if self.table else None,
            "content": self.body if not self.error else self.raw[:_SHOWN].decode("utf-8", "replace"),
            "error": self.error or None,
        }

    def line(self) -> str:
        """For people, one line."""
        place = f"{self.position.topic}/{self.position.partition}/{self.position.offset}"
        when = utc_text(self.commit_ts) if self.commit_ts else "-"
        if self.error:
            return f"{place}  {when}  ?  {self.error}"
        what = " ".join(f"{name}={_short(value)}" for name, value in (self.body or {}).items())
        return f"{place}  {when}  {self.kind}  {self.table or ''}  {what}".rstrip()


def _short(value: Any) -> str:
    text = "NULL" if value is None else str(value)
    text = text if text.isprintable() else repr(text)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def told_of(message: Message, limit: int = _LARGEST) -> Told:
    """What a message says; never raises for what is in it."""
    position = Position(message.topic(), message.partition(), message.offset())
    kind, stamp = message.timestamp()
    timestamp, raw = (stamp if kind else None), message.value()
    try:
        found = canal.decode(canal.plain(raw, position, limit), position)
        images = [canal.decode_image(image) for image in found.data or []]
        old = [canal.decode_image(image) for image in found.old or []]
    except (InputError, *canal.UNREADABLE) as error:
        fact = error.fact if isinstance(error, InputError) else str(error)
        return Told(position, timestamp, "?", raw=raw or b"", error=fact)
    extension = found.tidb or canal.Extension()
    if found.type == canal.WATERMARK:
        return Told(position, timestamp, "WATERMARK", extension.watermark_ts)
    body: dict[str, Any] = {"sql": found.sql} if found.is_ddl else dict(images[0]) if images else {}
    if old and not found.is_ddl:
        body |= {f"old.{name}": value for name, value in old[0].items()}
    return Told(position, timestamp, found.type, extension.commit_ts, TableName(found.database, found.table), body)


@dataclass(frozen=True, slots=True)
class Tail:
    """A look at a topic. `count`: so many of its latest messages; `rules`: which tables, as in `filter.rules`."""

    bootstrap: str
    topic: str
    settings: Settings
    count: int = 10
    rules: tuple[str, ...] = ()
    watermarks: bool = True

    def messages(self, *, follow: bool) -> Iterator[Told]:
        """The latest by their offsets, then (`follow`) those that come. Raises SourceError or InputError."""
        wanted = table_filter(list(self.rules)) if self.rules else None
        latest: list[tuple[int, int, Told]] = []
        for number, (told, new) in enumerate(self._read(follow=follow)):
            if told is None:
                yield from (one for *_, one in sorted(latest, key=lambda entry: entry[:2]))
                continue
            if told.kind == "WATERMARK" and not (self.watermarks and wanted is None):
                continue
            if wanted is not None and told.table is not None and not wanted(*told.table):
                continue
            if new:
                yield told
                continue
            heapq.heappush(latest, (told.timestamp or 0, number, told))
            if len(latest) > self.count:
                heapq.heappop(latest)

    def _read(self, *, follow: bool) -> Iterator[tuple[Told | None, bool]]:
        """Messages, and whether each came after the look began; None once all that was there has been read."""
        starts, ends = self._spans()
        consumer = Consumer(reader_settings(self.bootstrap, self.settings))
        try:
            consumer.assign([TopicPartition(p.topic, p.partition, start) for p, start in starts.items()])
            left = {p for p in starts if starts[p] < ends[p]}
            silent_s, waiting = 0.0, True
            while left or waiting or follow:
                if waiting and not left:
                    waiting = False
                    yield None, False
                    continue
                message = consumer.poll(_WAIT_S)
                silent_s = silent_s + _WAIT_S if message is None else 0.0
                if message is None:
                    self._check(silent_s, left)
                    continue
                place = Partition(message.topic(), message.partition())
                if message.error():
                    self._refuse(message.error())
                    left.discard(place)  # what is between here and the end are marks of transactions
                    continue
                new = message.offset() >= ends[place]
                if message.offset() >= ends[place] - 1:
                    left.discard(place)
                if follow or not new:
                    yield told_of(message), new
        except KafkaException as error:
            raise SourceUnreachableError(f"Kafka can't be read: {error}", where=self.bootstrap) from error
        finally:
            consumer.close()

    def _spans(self) -> tuple[dict[Partition, int], dict[Partition, int]]:
        control = Control(self.bootstrap, self.settings)
        try:
            topics = control.topics([self.topic])
            require([self.topic], topics, self.bootstrap)
            partitions = [p for topic in topics for p in topic.partitions]
            begins, ends = control.begins(partitions), control.ends(partitions)
        finally:
            control.close()
        # with a filter nobody knows how far back its messages are
        back = {p: begins[p] if self.rules or not self.watermarks else ends[p] - self.count for p in partitions}
        return {p: max(begins[p], at) for p, at in back.items()}, ends

    def _check(self, silent_s: float, left: set[Partition]) -> None:
        if left and silent_s >= _PATIENCE_S:
            raise SourceUnreachableError("Kafka sends nothing of what it holds", where=self.bootstrap)

    def _refuse(self, error: KafkaError) -> None:
        # librdkafka names the end of a partition an error too
        if error.code() != KafkaError._PARTITION_EOF:  # noqa: SLF001 its only name
            raise KafkaException(error)

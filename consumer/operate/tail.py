"""Reads a topic's messages for people: each in one line, with its commitTs as time, also those that can't be decoded.

Nothing is committed and no group is joined: looking changes nothing.
"""

import heapq
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

from consumer.codec import canal_json
from consumer.formats.canal_json import CANAL_JSON
from consumer.formats.message_format import MessageFormat
from consumer.kafka.admin import KafkaAdmin, require
from consumer.kafka.bounded_reader import BoundedReader, RecordMessage
from consumer.kafka.properties import Settings
from consumer.operate.message_filter import EVERYTHING, MessageFilter
from ordering.errors import InputError
from ordering.events import Partition, Position, TableName
from ordering.timestamps import utc_text

_WAIT_S = 0.5
_LARGEST = 64 << 20
_SHOWN = 400
_Offsets = Mapping[Partition, int]


@dataclass(frozen=True, slots=True)
class Told:
    """An event of a message. `kind`: its type, or `?` where it can't be decoded; then `error` says why.

    `part`: which event it is of its message. `key`: the values of the row's key, as far as the message names it.
    """

    position: Position
    timestamp: int | None
    kind: str
    commit_ts: int = 0
    table: TableName | None = None
    body: Mapping[str, Any] | None = None
    raw: bytes = b""
    error: str = ""
    part: int = 0
    key: tuple[str | None, ...] = ()

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
        return f"{place}  {when}  {self.kind}  {self.table or ''}  {self.summary()}".rstrip()

    def summary(self, most: int = 1 << 20) -> str:
        """Its values, each cut where it is long; at most so many characters of all."""
        found, left = [], most
        for name, value in (self.body or {}).items():
            found.append(f"{name}={_short(value)}")
            left -= len(found[-1])
            if left < 0:
                return f"{' '.join(found)[:most]}..."
        return " ".join(found)


def _short(value: Any) -> str:
    text = "NULL" if value is None else str(value)
    text = text if text.isprintable() else repr(text)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def told_of(
    partition: Partition, message: RecordMessage, limit: int = _LARGEST, format_: MessageFormat = CANAL_JSON
) -> list[Told]:
    """What a message says, each of its events; never raises for what is in it."""
    position = Position(*partition, message.offset())
    kind, stamp = message.timestamp()
    timestamp, content = (stamp if kind else None), format_.content(message.key(), message.value())
    try:
        shown = format_.shown(content, position, limit)
    except InputError as error:
        return [Told(position, timestamp, "?", raw=message.value() or b"", error=error.fact)]
    return [replace(told_event(value, position, timestamp), part=part) for part, value in enumerate(shown)]


def told_event(raw: bytes | None, position: Position, timestamp: int | None) -> Told:
    """What an event says, in the form that tasks read."""
    try:
        found = canal_json.decode(raw, position)
        images = [canal_json.decode_image(image) for image in found.data or []]
        old = [canal_json.decode_image(image) for image in found.old or []]
    except (InputError, *canal_json.UNREADABLE) as error:
        fact = error.fact if isinstance(error, InputError) else str(error)
        return Told(position, timestamp, "?", raw=raw or b"", error=fact)
    extension = found.tidb or canal_json.Extension()
    if found.type == canal_json.WATERMARK:
        return Told(position, timestamp, "WATERMARK", extension.watermark_ts)
    table = TableName(found.database, found.table)
    if found.is_ddl:
        return Told(position, timestamp, found.type, extension.commit_ts, table, {"sql": found.sql})
    body: dict[str, Any] = dict(images[0]) if images else {}
    key = tuple(image[name] for image in (images + old)[:2] for name in found.primary_key or image if name in image)
    if old:
        body |= {f"old.{name}": value for name, value in old[0].items()}
    return Told(position, timestamp, found.type, extension.commit_ts, table, body, key=key)


@dataclass(frozen=True, slots=True)
class Tail:
    """A look at a topic. `count`: so many of its latest messages that are wanted."""

    bootstrap: str
    topic: str
    settings: Settings
    count: int = 10
    wanted: MessageFilter = EVERYTHING
    format: MessageFormat = CANAL_JSON

    def messages(self, *, follow: bool) -> Iterator[Told]:
        """The latest by their offsets, then (`follow`) those that come. Raises SourceError or InputError."""
        matches = self.wanted.predicate()
        latest: list[tuple[int, int, Told]] = []
        for number, (told, new) in enumerate(self._read(follow=follow)):
            if told is None:
                yield from (one for *_, one in sorted(latest, key=lambda entry: entry[:2]))
                continue
            if not matches(told):
                continue
            if new:
                yield told
                continue
            heapq.heappush(latest, (told.timestamp or 0, number, told))
            if len(latest) > self.count:
                heapq.heappop(latest)

    def _read(self, *, follow: bool) -> Iterator[tuple[Told | None, bool]]:
        """Messages, and whether each came after the look began; None once all that was there has been read."""
        with closing(KafkaAdmin(self.bootstrap, self.settings)) as control:
            reader = BoundedReader(control, _LARGEST)
            starts, ends = self._spans(control)
            for told in self._told(reader, starts, ends):
                yield told, False
            yield None, False
            while follow:
                time.sleep(_WAIT_S)
                starts, ends = ends, control.ends(ends)
                for told in self._told(reader, starts, ends):
                    yield told, True

    def _told(self, reader: BoundedReader, starts: _Offsets, ends: _Offsets) -> Iterator[Told]:
        spans = [(p, start, ends[p]) for p, start in starts.items() if start < ends[p]]
        for partition, run in reader.read(spans):
            for message in run:
                yield from told_of(partition, message, format_=self.format)

    def _spans(self, control: KafkaAdmin) -> tuple[_Offsets, _Offsets]:
        topics = control.topics([self.topic])
        require([self.topic], topics, self.bootstrap)
        partitions = [p for topic in topics for p in topic.partitions]
        begins, ends = control.begins(partitions), control.ends(partitions)
        # with a filter nobody knows how far back its messages are
        back = {p: begins[p] if self.wanted.leaves_out else ends[p] - self.count for p in partitions}
        return {p: max(begins[p], at) for p, at in back.items()}, ends

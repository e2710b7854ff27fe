"""A second look at suspicious messages: reads the window's ranges again for a few fingerprints, with their contents.

Runs only where two messages of one identity differ byte by byte, which is rare and mostly harmless (another order of
columns after a restart).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from consumer import canal
from consumer.images import TableKeys
from consumer.reader import Readers
from consumer.scan import ReadSpec
from ordering.errors import InputError
from ordering.events import Half, Position, TableName
from ordering.identity import fingerprint, ordinal
from ordering.timestamps import CommitTs, utc_text
from ordering.window import Range


class Content(NamedTuple):
    """The content of one message: what it is called, its identity, its image with the columns sorted."""

    identity: bytes
    position: Position
    name: str
    image: bytes


@dataclass(frozen=True, slots=True)
class ContentTask:
    """Yields the contents of the wanted messages; runs in Spark tasks."""

    spec: ReadSpec
    readers: Readers
    wanted: frozenset[int]

    def __call__(self, ranges: Iterable[Range]) -> Iterator[Content]:
        """Read the ranges again."""
        for part in ranges:
            for partition, run in self.readers.get().read([(part.partition, part.start, part.stop)]):
                for message in run:
                    position = Position(*partition, message.offset())
                    value = canal.plain(message.value(), position, self.spec.message_bytes)
                    found = self._content(canal.decode(value, position), position)
                    if found is not None:
                        yield found

    def _content(self, message: canal.Envelope, position: Position) -> Content | None:
        if message.is_ddl or message.type not in ("INSERT", "UPDATE") or not message.data or message.tidb is None:
            return None
        name = TableName(message.database, message.table)
        names = message.primary_key or self.spec.handle_keys.get(name, ())
        ts = message.tidb.commit_ts
        if not names or not self.spec.window.base < ts <= self.spec.window.high:
            return None
        key = TableKeys(name, names).key(message.data[0])
        if fingerprint(key, ordinal(CommitTs(ts), Half.WRITE)) not in self.wanted:
            return None
        try:
            image = msgspec.msgpack.encode(sorted(canal.decode_image(message.data[0]).items()))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            hint = "values are texts or null in Canal-JSON: something other than TiCDC wrote this message"
            raise InputError(f"row of {name} can't be read: {error}", where=str(position), hint=hint) from error
        title = f"{name}, commitTs {ts} ({utc_text(ts)} UTC)"
        return Content(ts.to_bytes(8) + key, position, title, image)

"""Events of tables without a key, for sums: how often each has happened, though equal rows give equal messages.

Copies and repetitions are told apart as a run does it, by the passes of each partition (`ordering.rows.keyless_rows`).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import chain
from struct import Struct
from typing import NamedTuple

from consumer.codec.canal_json import Envelope, Image
from ordering.events import Partition, TableName
from ordering.rows.content_sums import RowDigest
from ordering.rows.identity import row_key
from ordering.rows.keyless_rows import CopyCounter, EventHalf, Passes, merged

_PACKED = Struct(">BQQ")
_TEXTS = 16
"""Bytes of a digest of a row's texts."""


class Place(NamedTuple):
    """Where an event lies: its partition, the pass that it is in, the row key that TiCDC sent, or b""."""

    partition: Partition
    in_pass: tuple[int, int]
    mark: bytes


@dataclass(slots=True)
class PassOrder:
    """The passes of all partitions. `passed`: the last watermark of each before what is read."""

    passed: dict[Partition, int] = field(default_factory=dict)
    _passes: dict[Partition, Passes] = field(default_factory=dict)

    def watermark(self, partition: Partition, message: Envelope, *, is_kept: bool) -> None:
        """Take a watermark. `is_kept`: what is read next time begins behind it."""
        ts = 0 if message.tidb is None else message.tidb.watermark_ts
        self._of(partition).watermark(ts)
        if is_kept:
            self.passed[partition] = ts

    def row(self, partition: Partition, name: TableName, message: Envelope) -> Place:
        """Take a row event, of any commitTs."""
        if message.primary_key or message.tidb is None:
            return Place(partition, (0, 0), b"")
        return Place(partition, self._of(partition).row(name, message.tidb.commit_ts), message.tidb.row_key)

    def _of(self, partition: Partition) -> Passes:
        if partition not in self._passes:
            self._passes[partition] = Passes(self.passed.get(partition))
        return self._passes[partition]


def content(name: TableName, digest: RowDigest, image: Image) -> bytes:
    """What tells a row's events apart: its texts as they came, as in a run.

    Rows of one digest may be spelled in several ways (JSON's 1 and 1.0, 0 and -0): two events, in two partitions too.
    """
    texts = row_key(name, [part for item in sorted(image.items()) for part in item])
    return _PACKED.pack(*digest) + sha256(texts).digest()[:_TEXTS]


@dataclass(slots=True)
class KeylessCopies:
    """How often each event of one table has happened."""

    _counters: dict[Partition, CopyCounter] = field(default_factory=dict)

    def add(self, row: bytes, order: int, place: Place, other: bytes = b"") -> None:
        """Count a half of an event, by its `content`. `other`: that of an UPDATE's other half."""
        counter = self._counters.setdefault(place.partition, CopyCounter())
        counter.add(EventHalf(row, order, place.mark, other), place.in_pass)

    def found(self) -> Iterator[tuple[RowDigest, int, int]]:
        """The rows, their ordinals, and how many copies of each came or went."""
        for half, times in merged(chain.from_iterable(one.found() for one in self._counters.values())):
            yield RowDigest(*_PACKED.unpack_from(half.content)), half.order, times

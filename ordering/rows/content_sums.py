"""Sums that stand for the content of a table, kept up from events alone: a copy is right if it has the same sums.

A row's digest is a number of 128 bits, made of all its values; a sum is the count of rows and the total of their
digests, modulo 2^128 in two halves of 64 bits, for servers add no more exactly. It does not matter in which order rows
are added, and copies count. Rows fall into `BUCKETS` by a digest of their handle key, so that a difference says where.

Each event takes the row that it found away and adds the row that it left. Over an interval of commitTs these steps
telescope: whatever is in between cancels out, if each half of an event counts once. A repetition is known by its
identity (`ordering.rows.identity`): an UPDATE is a DELETE of its old image and a WRITE of its new one, also where it
keeps its key, for TiCDC may send it as one event and, after a restart, as two.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import xxhash

from ordering.events import RowOp

BUCKETS = 16
_MASK = (1 << 64) - 1


class RowDigest(NamedTuple):
    """A row: the bucket of its key, and the two halves of its digest."""

    bucket: int
    high: int
    low: int


class ContentSum(NamedTuple):
    """So many rows, and the total of their digests; halves below 2^64."""

    rows: int = 0
    high: int = 0
    low: int = 0

    def plus(self, rows: int, high: int, low: int) -> "ContentSum":
        """This sum with so many rows more, or fewer, and what they add."""
        return ContentSum(self.rows + rows, (self.high + high) & _MASK, (self.low + low) & _MASK)


EMPTY = ContentSum()
ContentSums = Mapping[int, ContentSum]
"""By bucket; one that is left out is empty."""


def added(sums: ContentSums, more: ContentSums) -> ContentSums:
    """Both together; empty buckets are left out."""
    total = {bucket: sums.get(bucket, EMPTY).plus(*more.get(bucket, EMPTY)) for bucket in sums.keys() | more.keys()}
    return {bucket: one for bucket, one in sorted(total.items()) if one != EMPTY}


def differing(expected: ContentSums, found: ContentSums) -> list[int]:
    """The buckets whose sums are not the same."""
    buckets = sorted(expected.keys() | found.keys())
    return [bucket for bucket in buckets if expected.get(bucket, EMPTY) != found.get(bucket, EMPTY)]


def rows_in(sums: ContentSums) -> int:
    """How many rows there are."""
    return sum(one.rows for one in sums.values())


@dataclass(slots=True)
class IntervalSums:
    """What the events of an interval add to one table's sums; each half of an event is taken once."""

    sums: dict[int, ContentSum] = field(default_factory=dict)
    _seen: set[int] = field(default_factory=set)

    @property
    def halves(self) -> int:
        """How many different halves of events were taken."""
        return len(self._seen)

    def take(self, key: bytes, order: int, digest: Callable[[], RowDigest]) -> RowDigest | None:
        """Take a half: a row that is gone, or one that is there; `order`: its ordinal, which says which of both.

        Returns the row's digest; None for a half that was taken before.
        """
        identity = xxhash.xxh3_128_intdigest(key + order.to_bytes(9, "big"))
        if identity in self._seen:
            return None
        self._seen.add(identity)
        found = digest()
        step(self.sums, found, order)
        return found


def step(sums: dict[int, ContentSum], row: RowDigest, order: int, times: int = 1) -> None:
    """Add so many copies of the row that a half of an event has left, or take away those that it found."""
    count = times if order & RowOp.WRITE else -times
    sums[row.bucket] = sums.get(row.bucket, EMPTY).plus(count, count * row.high, count * row.low)


def as_lists(sums: ContentSums) -> list[list[int]]:
    """To be kept: bucket, rows and both halves."""
    return [[bucket, *one] for bucket, one in sorted(sums.items())]


def from_lists(kept: Iterable[Sequence[int]]) -> ContentSums:
    """What `as_lists` made of them."""
    return {bucket: ContentSum(rows, high, low) for bucket, rows, high, low in kept}


def sums_of(rows: Iterable[RowDigest]) -> ContentSums:
    """The sums of these rows."""
    total: dict[int, ContentSum] = {}
    for bucket, high, low in rows:
        total[bucket] = total.get(bucket, EMPTY).plus(1, high, low)
    return total

"""The global resolvedTs. Only this module raises a watermark, and none ever goes back (R6).

A watermark below the highest seen in its partition is a replay and says nothing. A partition that has none yet, or
whose watermark stands, holds back all others: everything at or below the minimum has been sent, nothing more is known.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ordering.events import Partition
from ordering.timestamps import ResolvedTs


class Resolved(NamedTuple):
    """The minimum over partitions, and which hold it there; `ts` is None while a partition has no watermark."""

    ts: ResolvedTs | None
    held_back_by: tuple[Partition, ...]


def raised(*seen: ResolvedTs | None) -> ResolvedTs | None:
    """The highest of some watermarks of one partition."""
    return max((ts for ts in seen if ts is not None), default=None)


def global_resolved(watermarks: Mapping[Partition, ResolvedTs | None]) -> Resolved:
    """Minimum over all partitions that count. No partition at all resolves nothing."""
    silent = tuple(sorted(p for p, ts in watermarks.items() if ts is None))
    if silent or not watermarks:
        return Resolved(None, silent)
    lowest = min(ts for ts in watermarks.values() if ts is not None)
    return Resolved(lowest, tuple(sorted(_at(watermarks.items(), lowest))))


def _at(items: Iterable[tuple[Partition, ResolvedTs | None]], lowest: ResolvedTs) -> Iterable[Partition]:
    return (partition for partition, ts in items if ts == lowest)

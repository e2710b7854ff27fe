"""A window that is read once and applied piece by piece: what lies between two barriers is a segment of it.

The ends are known before the ranges are read, so rows are reduced segment by segment while they are read once. Each
segment is then applied like a window of its own, behind the DDLs that come before it. What is known of one when its
turn comes decides whether it still counts as read (`stands`); if not, it is read again, as a window. Pure.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ordering.events import DdlEvent, TableName
from ordering.progress import PartitionProgress, Progress
from ordering.rows.bucketing import Spread
from ordering.timestamps import CheckpointTs, ResolvedTs
from ordering.window import Range, Window

HandleKeys = Mapping[TableName, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Segment:
    """(low, high] of a reading; its rows are in the buckets from `first` + 1 on."""

    low: CheckpointTs
    high: ResolvedTs
    first: int
    buckets: int
    spread: Spread | None = None
    """Of whole transactions, see `ordering.rows.bucketing`; None: of net effects, by key."""


def segments_of(low: int, ends: Sequence[int], sizes: Iterable[int | Spread]) -> tuple[Segment, ...]:
    """The segments that end there, each over so many buckets."""
    found: list[Segment] = []
    first = 0
    for (begin, end), size in zip(pairwise([low, *ends]), sizes, strict=True):
        spread = size if isinstance(size, Spread) else None
        buckets = size if isinstance(size, int) else size.buckets
        found.append(Segment(CheckpointTs(begin), ResolvedTs(end), first, buckets, spread))
        first += buckets
    return tuple(found)


def window_of(segment: Segment, progress: Progress, reading: Window) -> Window:
    """The window that a segment of a reading is: what one from this progress on would read of the same ranges."""
    ranges = (_left(r, progress.partitions.get(r.partition)) for r in reading.ranges)
    some = tuple(r for r in ranges if r.start < r.stop)
    return Window(progress.checkpoint_ts, progress.base_ts, segment.high, reading.resolved, some, ahead=True)


def _left(whole: Range, at: PartitionProgress | None) -> Range:
    return whole if at is None else Range(whole.partition, at.start, whole.stop, at.counted_to, at.passed, whole.epoch)


def is_next(segment: Segment, progress: Progress, waiting: Iterable[DdlEvent]) -> bool:
    """Whether a segment begins where the progress is, and no DDL lies before its end that is still to be executed."""
    begins = progress.checkpoint_ts == progress.base_ts == segment.low and progress.window is None
    return begins and all(ddl.commit_ts >= segment.high for ddl in waiting)


def stands(tables: Iterable[TableName], read: HandleKeys, now: HandleKeys) -> bool:
    """Whether rows of these tables would be read as they were, now that DDLs before them were executed.

    Of a table that is new the messages name the key. Where the key was known, it has to be the same one now.
    """
    changed = {name for name in read.keys() | now.keys() if read.get(name) != now.get(name)}
    known = {name.folded for name in changed if name in read}
    return not any(
        table.folded in known or any(name.folded == table.folded and name != table for name in changed)
        for table in tables
        if changed
    )

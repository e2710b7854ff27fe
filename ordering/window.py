"""A window (C, T], the offsets that have to be read for it, and how large both may get, by rows and by bytes.

R is the global resolvedTs over what was probed; T <= R is where the window ends: at a DDL, or where its rows would pass
the limit. A range is read from `start` until the first watermark above R, or to `stop`: everything at or below R lies
in it. With T = R = C a window applies nothing; it moves offsets past repetitions and finds DDLs behind the watermark.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from ordering.errors import WorkerLostError
from ordering.events import Partition
from ordering.timestamps import MAX_TSO, CheckpointTs, CommitTs, ResolvedTs

_SLACK = 1.05
"""Some of what is read are watermarks, or lies beyond the window."""
_LEAST = 10
"""A partition where little waits may read a tenth of a fair share: it has to come to a watermark."""

Histogram = Sequence[tuple[int, int]]
"""Rows of one range by commitTs, summed up: [(commitTs, rows at or below it)], ascending."""


@dataclass(frozen=True, slots=True)
class Range:
    """What one task reads: offsets [start, stop) of a partition; those before `counted_to` were counted already.

    `passed`: the last watermark before `start`, where it matters (`ordering.rows.keyless_rows`). `epoch`: of the
    leader that named `stop`, where it is known.
    """

    partition: Partition
    start: int
    stop: int
    counted_to: int
    passed: ResolvedTs | None = None
    epoch: int | None = None

    @property
    def messages(self) -> int:
        """Upper bound of the messages in it."""
        return max(0, self.stop - self.start)


@dataclass(frozen=True, slots=True)
class Window:
    """(low, high] of a round; `resolved` >= high is what its ranges cover.

    `to_end`: applies nothing (low = high = resolved) but is read to the end of its ranges, whatever watermarks say.
    `rewound`: is applied once more, as one unit (`ordering.rewind`). `ahead`: what its ranges hold up to `resolved` was
    counted with an earlier one, so they are read so far again: it has to know all repetitions of its rows.
    """

    low: CheckpointTs
    base: CheckpointTs
    high: ResolvedTs
    resolved: ResolvedTs
    ranges: tuple[Range, ...] = ()
    to_end: bool = False
    rewound: bool = False
    ahead: bool = False

    @property
    def until(self) -> int:
        """A range is read until a watermark above this: by then all that the window applies has been sent."""
        if self.to_end:
            return MAX_TSO
        return self.resolved if self.ahead else self.high

    @property
    def messages(self) -> int:
        """Upper bound of the messages to read."""
        return sum(r.messages for r in self.ranges)


@dataclass(slots=True)
class Cuts:
    """Commit timestamps at which windows have to end so that none has more rows than the limit; for (low, upto]."""

    upto: int = 0
    at: list[CommitTs] = field(default_factory=list)

    def within(self, low: CheckpointTs, resolved: ResolvedTs) -> CommitTs | None:
        """The first cut above low and below resolved."""
        return next((ts for ts in self.at if low < ts < resolved), None)


@dataclass(frozen=True, slots=True)
class Scanned:
    """How the rows up to `resolved` lie, by range, as far as they were read."""

    resolved: int = 0
    histograms: Sequence[Histogram] = ()

    def expected(self, window: Window) -> int:
        """About how many messages have to be read: few for a window that ends at a near barrier or cut."""
        if window.high == window.resolved or self.resolved != window.resolved:
            return window.messages
        return 2 * sum(rows_below(histogram, window.high) for histogram in self.histograms)


def rows_below(histogram: Histogram, ts: int) -> int:
    """Rows of a histogram at or below a commitTs, and at most a step more."""
    return next((upto for at, upto in histogram if at >= ts), histogram[-1][1] if histogram else 0)


def total(histograms: Iterable[Histogram]) -> int:
    """All rows of some histograms."""
    return sum(histogram[-1][1] for histogram in histograms if histogram)


def _commit_ts(step: tuple[int, int]) -> int:
    return step[0]


def within(histogram: Histogram, low: int, high: int) -> Histogram:
    """The steps of a histogram that lie above `low` and not above `high`."""
    first, end = (bisect_right(histogram, bound, key=_commit_ts) for bound in (low, high))
    before = histogram[first - 1][1] if first else 0
    return [(ts, upto - before) for ts, upto in histogram[first:end]]


def cuts(histograms: Iterable[Histogram], limit: int) -> list[CommitTs]:
    """Where to end windows so that each has at most `limit` rows, but always at least one commitTs.

    A histogram of many commit timestamps comes in steps: a window may pass the limit by a step of each range. A
    transaction is never cut (R10).
    """
    points = merged(histograms)
    found: list[CommitTs] = []
    done = 0
    for (ts, upto), (_, following) in pairwise(points):
        if upto > done and following - done > limit:
            found.append(CommitTs(ts))
            done = upto
    return found


def merged(histograms: Iterable[Histogram]) -> list[tuple[int, int]]:
    """One histogram of several, by commitTs."""
    steps: dict[int, int] = {}
    for histogram in histograms:
        before = 0
        for ts, upto in histogram:
            steps[ts] = steps.get(ts, 0) + upto - before
            before = upto
    total, found = 0, []
    for ts in sorted(steps):
        total += steps[ts]
        found.append((ts, total))
    return found


def divided(ranges: Iterable[Range], pieces: int, smallest: int) -> list[Range]:
    """Ranges cut into about `pieces` parts of equal size, none below `smallest` messages, for parallel reading."""
    ranges = list(ranges)
    total = sum(r.messages for r in ranges)
    size = max(smallest, -(-total // max(1, pieces)))
    return [part for r in ranges for part in _parts(r, size)]


def _parts(whole: Range, size: int) -> list[Range]:
    count = max(1, round(whole.messages / size))
    step = -(-whole.messages // count)
    bounds = [*range(whole.start, whole.stop, step)][:count] if step else [whole.start]
    ends = [*bounds[1:], whole.stop]
    return [
        Range(whole.partition, a, b, whole.counted_to, epoch=whole.epoch) for a, b in zip(bounds, ends, strict=True)
    ]


def check_whole(ranges: Iterable[Range], parts: Iterable[Range]) -> None:
    """Raise WorkerLostError unless the parts make up the ranges, of which a partition has one: each offset once."""
    by_partition: dict[Partition, list[Range]] = {}
    for part in sorted(parts, key=lambda part: (part.partition, part.start, part.stop)):
        by_partition.setdefault(part.partition, []).append(part)
    for whole in ranges:
        some = by_partition.pop(whole.partition, [])
        if not some or [p.start for p in some] + [whole.stop] != [whole.start] + [p.stop for p in some]:
            fact = f"of offsets {whole.start} to {whole.stop} was read {[(p.start, p.stop) for p in some[:10]]}"
            raise WorkerLostError(fact, where=str(whole.partition))
    if by_partition:
        raise WorkerLostError("a partition was read that is not in the window", where=str(min(by_partition)))


def together(parts: Iterable[Range], groups: int) -> list[tuple[Range, ...]]:
    """The parts in about so many groups of about equal size: to begin with a part costs as much as many messages.

    A reader is at one place of a partition at a time, so no group holds two parts of one.
    """
    parts = sorted(parts, key=lambda part: (-part.messages, part.partition, part.start))
    count = max([min(groups, len(parts)), *Counter(part.partition for part in parts).values()])
    found: list[dict[Partition, Range]] = [{} for _ in range(count)]
    sizes = [0] * count
    for part in parts:
        at = min((at for at in range(count) if part.partition not in found[at]), key=sizes.__getitem__)
        found[at][part.partition] = part
        sizes[at] += max(1, part.messages)
    return [tuple(group.values()) for group in found]


def budget(limit_rows: int, limit_bytes: int, average_bytes: Mapping[Partition, float], partitions: int) -> int:
    """Messages that a window may read of each partition so that all together keep the limits."""
    known = [size for size in average_bytes.values() if size > 0]
    average = sum(known) / len(known) if known else 1.0
    return max(1, int(min(limit_rows, limit_bytes / average) / max(1, partitions)))


def shares(fair: int, waiting: Mapping[Partition, int]) -> dict[Partition, int]:
    """How far a window may read in each partition, if `fair` were what each may if all were alike.

    All of what waits if that is not much more than all of them may; else as much as waits there, in proportion: that
    took about the same time to gather everywhere, so the partitions are read up to about the same commitTs.
    """
    total, limit = sum(waiting.values()), fair * len(waiting)
    if total <= limit * _SLACK:
        return {partition: max(fair, count) for partition, count in waiting.items()}
    least = max(1, fair // _LEAST)
    return {partition: max(least, limit * count // total) for partition, count in waiting.items()}

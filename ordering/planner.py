"""Which window comes next, and which DDLs are due: what is pending between rounds, without I/O (R6, R7, R8).

A planner lives as long as the lease. It is told what reading showed (`met`, `saw`) and asked for the next step
(`next_window`, `look_through`, `due`); the progress is handed in each time, for only commits move it. Nothing here is
saved: a new planner learns the same by reading again.

    window = planner.next_window(progress, resolved, ranges)
    read it; nearer = planner.saw(window, seen, progress); read again up to `nearer` if it is not None
    apply it; settle each of planner.due(progress, window, ...)
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from ordering.ddl_barrier import executable, first_barrier, pending
from ordering.events import DdlEvent, Partition
from ordering.progress import Progress
from ordering.timestamps import MAX_TSO, CommitTs, ResolvedTs
from ordering.topic_lifecycle import end_of
from ordering.window import Cuts, Histogram, Range, Scanned, Window, cuts

MOST_SEGMENTS = 200
"""Segments that a window is read in at most: each has buckets of its own in the shuffle."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What reading showed of one range, as far as windows depend on it."""

    partition: Partition
    stop: int
    """Offset up to which it was read."""
    released: int
    """Rows of the window."""
    histogram: Histogram


class Planner:
    """Plans windows of at most so many rows, whole transactions always, which are read in so many segments at most."""

    def __init__(self, window_rows: int, most_segments: int = MOST_SEGMENTS) -> None:
        self._limit, self._most_segments = window_rows, most_segments
        self._ddls: dict[str, DdlEvent] = {}
        self._cuts, self._scanned = Cuts(), Scanned()
        self._looked: dict[Partition, int] = {}
        self.expects_ddls = False
        """Whether the last window that was read held a DDL."""

    def pending(self, progress: Progress) -> list[DdlEvent]:
        """The DDLs that were met and are not executed yet, in commitTs order."""
        return pending(self._ddls.values(), progress.start_ts, progress.checkpoint_ts, progress.executed)

    def dead_topics(self, progress: Progress) -> dict[str, ResolvedTs]:
        """Topics whose last table a pending DDL takes: its commitTs stands for their watermarks."""
        waiting = self.pending(progress)
        ends = {name: end_of(topic, name, waiting) for name, topic in progress.topics.items()}
        return {name: ended for name, ended in ends.items() if ended is not None}

    def next_window(self, progress: Progress, resolved: ResolvedTs | None, ranges: tuple[Range, ...]) -> Window | None:
        """The window that was recorded and not finished; else up to `resolved`, the next barrier or the next cut."""
        if progress.window is not None:
            return progress.window
        checkpoint = progress.checkpoint_ts
        if resolved is None or resolved < checkpoint or (resolved <= checkpoint and not progress.is_torn):
            return None
        window = Window(checkpoint, progress.base_ts, resolved, resolved, ranges)
        return replace(window, high=self._end(window, progress))

    def look_through(
        self,
        progress: Progress,
        resolved: ResolvedTs | None,
        ranges: Iterable[Range],
        before_first: Callable[[tuple[Range, ...]], tuple[Range, ...]],
    ) -> Window | None:
        """A window that applies nothing: what lies behind the watermarks and was not read yet.

        `before_first` chooses what of it is looked through before the first watermark.
        """
        # what was looked through is not read again, however long a watermark is stuck: it stays held as it is
        unseen = (replace(r, start=max(r.start, self._looked.get(r.partition, 0))) for r in ranges)
        left = tuple(r for r in unseen if r.start < r.stop)
        checkpoint = progress.checkpoint_ts
        if resolved is None and checkpoint == progress.began_ts:
            left = before_first(left)
        high = ResolvedTs(checkpoint)
        return Window(checkpoint, progress.base_ts, high, high, left, to_end=True) if left else None

    def knows(self, identity: str) -> bool:
        """Whether this DDL was met: reports tell of it once for each segment, and reading a statement takes long."""
        return identity in self._ddls

    def met(self, ddl: DdlEvent) -> None:
        """A DDL was read; TiCDC may send it several times."""
        self._ddls.setdefault(ddl.identity, ddl)

    def saw(self, window: Window, seen: Sequence[Seen], progress: Progress) -> ResolvedTs | None:
        """Take what reading the window showed. Return where it has to end instead, or None if it stands.

        One that was recorded ends as it was recorded, whatever the limits are now.
        """
        self._looked.update((one.partition, one.stop) for one in seen)
        self.expects_ddls = self._holds_ddls(window, progress)
        if window.high == window.resolved:
            self._scanned = Scanned(window.resolved, [one.histogram for one in seen])
        if sum(one.released for one in seen) > self._limit and self._cuts.upto < window.high:
            self._cuts = Cuts(window.high, cuts([one.histogram for one in seen], self._limit))
        if window.to_end or window == progress.window:
            return None
        end = self._end(window, progress)
        return end if end < window.high else None

    def ends(self, window: Window, progress: Progress) -> tuple[ResolvedTs, ...]:
        """Where windows end from this one on: at each barrier, each known cut and `resolved`; of many, the first."""
        end, resolved = self._end(window, progress), window.resolved
        if end <= window.low:
            return (end,)
        barriers = [ddl.commit_ts for ddl in self.pending(progress)]
        found = {ResolvedTs(ts) for ts in (*barriers, *self._cuts.at) if end < ts < resolved}
        return tuple(sorted({end, *found, resolved})[: self._most_segments])

    def saw_segments(
        self, window: Window, ends: Sequence[ResolvedTs], seen: Sequence[Sequence[Seen]], progress: Progress
    ) -> bool:
        """As `saw`, of a window that was read up to `high` in segments with these ends; whether these are all.

        `seen`: of each segment, what reading its ranges showed.
        """
        self._looked.update((one.partition, one.stop) for some in seen for one in some)
        self.expects_ddls = self._holds_ddls(window, progress)
        if window.high == window.resolved:
            self._scanned = Scanned(window.resolved, [one.histogram for some in seen for one in some])
        large = [some for some in seen if sum(one.released for one in some) > self._limit]
        if large and self._cuts.upto < window.high:
            at = [ts for some in large for ts in cuts([one.histogram for one in some], self._limit)]
            self._cuts = Cuts(window.high, sorted({*self._cuts.at, *at}))
        return self.ends(window, progress) == tuple(ends)

    def _holds_ddls(self, window: Window, progress: Progress) -> bool:
        return any(window.low < ddl.commit_ts <= window.resolved for ddl in self.pending(progress))

    def _end(self, window: Window, progress: Progress) -> ResolvedTs:
        end = first_barrier(self.pending(progress), window.resolved) or window.resolved
        cut = self._cuts.within(window.low, ResolvedTs(end)) if self._cuts.upto >= end else None
        return ResolvedTs(end if cut is None else cut)

    def expected(self, window: Window) -> int:
        """About how many messages the window will read."""
        return self._scanned.expected(window)

    def histograms(self, window: Window) -> Sequence[Histogram]:
        """How the window's rows lie, where it was read before."""
        return self._scanned.histograms if self._scanned.resolved == window.resolved else ()

    def due(
        self, progress: Progress, window: Window, next_row: CommitTs | None, stopped_at: Iterable[int]
    ) -> tuple[list[DdlEvent], ResolvedTs]:
        """The DDLs that nothing lies before once the window is applied, and up to where every message was read.

        `next_row`: the lowest commitTs above the window; `stopped_at`: watermarks that ended ranges early: behind them
        may lie rows that nobody saw.
        """
        read_to = ResolvedTs(min(window.resolved, *stopped_at, MAX_TSO))
        return executable(self.pending(progress), read_to, next_row), read_to

    def settled(self, ddl: DdlEvent) -> None:
        """A DDL is done with: what waited behind it in its partition is looked at again."""
        self._looked.pop(Partition(ddl.position.topic, ddl.position.partition), None)

    def forget_done(self, progress: Progress) -> None:
        """Keep only the DDLs that are pending."""
        self._ddls = {ddl.identity: ddl for ddl in self.pending(progress)}

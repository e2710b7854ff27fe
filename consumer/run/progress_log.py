"""What a person sees of a run in the log: sums of what was applied, what holds the watermark back, how long is left.

Each window is a line at debug. At info there is one line in `EVERY_S` while windows bring something, and one a minute
while nothing new can be said.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

import structlog

from consumer.pipeline.session import Session
from consumer.source.offer import Probe
from ordering.progress import Counts, Progress
from ordering.timestamps import physical_ms, utc_text
from sinks.rows.spool import RowCounts

EVERY_S = 10.0
"""At most one line about applied windows in so long."""
SAME_EVERY_S = 60.0
"""A line that says what the last one said comes again after so long."""
_HALF_S = 10.0
"""Seconds of work after which an event counts half for the rate."""
log = structlog.get_logger()


@dataclass(slots=True)
class _Unsaid:
    """Windows that no line has told of yet, summed up."""

    since: Counts
    windows: int = 0
    seconds: float = 0.0


class Display:
    """Logs windows and idleness; keeps nothing but rates."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._recent = (0.0, 0.0)  # events and seconds of work, older ones counting less
        self._unsaid: _Unsaid | None = None
        self._last: tuple[Progress, Probe | None] | None = None
        self._said_at: float | None = None
        self._idle: tuple[str, str] | None = None
        self._idle_at = 0.0

    def window(self, before: Progress, after: Progress, probe: Probe | None, seconds: float) -> None:
        """Say what windows did: rows, rate, lag, and how long what is left will take."""
        events = after.counts.events - before.counts.events
        log.debug("window applied", checkpoint_ts=after.checkpoint_ts, events=events, seconds=round(seconds, 2))
        if _brought(before.counts) == _brought(after.counts):
            return  # only the checkpoint went on
        kept = 0.5 ** (seconds / _HALF_S)
        # summed, not averaged: of a window that is applied in segments, the first one counts all events
        self._recent = (self._recent[0] * kept + events, self._recent[1] * kept + seconds)
        self._unsaid = self._unsaid or _Unsaid(before.counts)
        self._unsaid.windows += 1
        self._unsaid.seconds += seconds
        self._last = after, probe
        self._say_applied()

    def written(self, rows: RowCounts, checkpoint_ts: int) -> None:
        """Take what a commit wrote to each table; here nothing of it is needed."""

    def left(self, session: Session) -> None:
        """Take what a session knew that is about to be given up; here nothing of it is needed."""

    def idle(self, progress: Progress, probe: Probe | None) -> None:
        """Say now and then that nothing is resolved, and who holds it back."""
        self._say_applied()
        if probe is None:
            return
        held = ", ".join(map(str, probe.resolved.held_back_by))
        if probe.resolved.ts is None:
            if self._is_due(("unseen", held)):
                text = "nothing can be applied: no watermark has been seen in a partition"
                log.warning(text, held_back_by=held or "no partition yet")
        elif any(found.end > found.progress.start for found in probe.partitions.values()):
            if self._is_due(("waiting", held)):
                log.info("waiting for the next watermark", held_back_by=held, resolved=utc_text(probe.resolved.ts))
        elif self._is_due(("idle", "")):
            log.info("idle: everything is applied", checkpoint=utc_text(progress.checkpoint_ts))

    def end(self) -> None:
        """Say what is left to be said: the run ends."""
        self._said_at = None
        self._say_applied()

    def _is_due(self, what: tuple[str, str]) -> bool:
        now = self._now()
        wait_s = SAME_EVERY_S if self._idle is not None and what[0] == self._idle[0] else EVERY_S
        if self._idle is not None and now - self._idle_at < wait_s:
            return False
        self._idle, self._idle_at = what, now
        return True

    def _say_applied(self) -> None:
        now, unsaid = self._now(), self._unsaid
        if unsaid is None or self._last is None or (self._said_at is not None and now - self._said_at < EVERY_S):
            return
        (after, probe), self._said_at, self._unsaid = self._last, now, None
        events = after.counts.events - unsaid.since.events
        unread = unread_messages(after, probe)
        rate = self._recent[0] / self._recent[1] if self._recent[1] > 0 else 0.0
        log.info(
            "applied",
            windows=unsaid.windows,
            events=events,
            rows=after.counts.rows_written - unsaid.since.rows_written,
            duplicates=after.counts.duplicates - unsaid.since.duplicates,
            events_per_s=round(rate),
            checkpoint=f"{after.checkpoint_ts} ({utc_text(after.checkpoint_ts)} UTC)",
            lag_s=round(max(0.0, time.time() - physical_ms(after.checkpoint_ts) / 1000), 1),
            unread_messages=unread,
            eta=_duration(unread / rate) if unread and rate > 0 else "-",
        )


def _brought(counts: Counts) -> tuple[int, ...]:
    """What makes a window worth a line."""
    return counts.events, counts.ddls, counts.rows_written, counts.quarantined


def unread_messages(progress: Progress, probe: Probe | None) -> int:
    """Messages that Kafka held at the last look behind what is applied; watermarks are among them."""
    found = {} if probe is None else probe.partitions
    return sum(max(0, at.end - progress.partitions.get(p, at.progress).start) for p, at in found.items())


def _duration(seconds: float) -> str:
    whole = int(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02d}:{whole % 60:02d}"

"""What one run of a changefeed shows: kept in memory for status, history and metrics, written by the runner's thread.

Everything that is kept is an immutable value in one attribute, or a bounded deque: other threads read without a lock.
"""

import time
from collections import deque
from dataclasses import dataclass, field

from consumer.display import Display
from consumer.serving.moments import now
from consumer.serving.shapes import WindowDone
from consumer.source import Probe
from ordering.progress import Progress
from ordering.timestamps import utc_text

_WINDOWS_KEPT = 50
BUCKETS_S = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)
"""Upper bounds of the histogram of windows' durations, in seconds."""


@dataclass(slots=True)
class Durations:
    """A histogram: how many windows took at most so long, the last one for all beyond."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS_S) + 1))
    sum_s: float = 0.0

    def add(self, seconds: float) -> None:
        """Count a window."""
        place = next((i for i, bound in enumerate(BUCKETS_S) if seconds <= bound), len(BUCKETS_S))
        self.counts[place] += 1
        self.sum_s += seconds


@dataclass(frozen=True, slots=True)
class Round:
    """A round as it ended: what is applied, what Kafka offered, when (monotonic seconds)."""

    progress: Progress
    probe: Probe | None
    at: float


class Watching(Display):
    """Logs as always, and keeps what it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.last: Round | None = None
        self.windows: deque[WindowDone] = deque(maxlen=_WINDOWS_KEPT)
        self.durations = Durations()

    def window(self, before: Progress, after: Progress, probe: Probe | None, seconds: float) -> None:
        """Keep a window that was applied."""
        super().window(before, after, probe, seconds)
        self.last = Round(after, probe, time.monotonic())
        self.durations.add(seconds)
        done = WindowDone(
            at=now(),
            window=after.counts.windows,
            checkpoint_ts=after.checkpoint_ts,
            checkpoint_time=utc_text(after.checkpoint_ts),
            events=after.counts.events - before.counts.events,
            rows=after.counts.rows_written - before.counts.rows_written,
            duplicates=after.counts.duplicates - before.counts.duplicates,
            seconds=round(seconds, 3),
        )
        self.windows.appendleft(done)

    def idle(self, progress: Progress, probe: Probe | None) -> None:
        """Keep that there was nothing to do."""
        super().idle(progress, probe)
        self.last = Round(progress, probe, time.monotonic())

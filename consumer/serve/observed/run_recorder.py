"""What one run of a changefeed shows: kept in memory for status, history and metrics, written by the runner's thread.

Everything that is kept is an immutable value in one attribute, or a bounded deque: other threads read without a lock.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from consumer.pipeline.session import Session
from consumer.run.progress_log import Display
from consumer.serve.api.models import WindowDone
from consumer.serve.observed.history import now
from consumer.serve.observed.tables_written import TablesWritten
from consumer.source.offer import Probe
from ordering.progress import Progress
from ordering.timestamps import utc_text
from sinks.rows.spool import RowCounts

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
class RecordedRound:
    """What a round knew: what is applied, what Kafka offered and when (monotonic seconds), whether Redis answered."""

    progress: Progress
    probe: Probe | None
    probed_at: float | None
    is_ledger_there: bool | None = None
    """None: nobody has asked it yet."""


def recorded(session: Session) -> RecordedRound:
    """What a session knows now, also in the middle of a round."""
    return RecordedRound(session.progress, session.probe, session.probed_at, session.ledger.available)


class RunRecorder(Display):
    """Logs as always, and keeps what it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.last: RecordedRound | None = None
        """What the last session knew when it was given up."""
        self.rounds = 0
        """How many were done, also those that found nothing."""
        self.windows: deque[WindowDone] = deque(maxlen=_WINDOWS_KEPT)
        self.durations = Durations()
        self.tables = TablesWritten()
        self.applied: Callable[[int], None] = lambda _checkpoint_ts: None
        """Is told each checkpoint."""

    def window(self, before: Progress, after: Progress, probe: Probe | None, seconds: float) -> None:
        """Keep a window that was applied."""
        super().window(before, after, probe, seconds)
        self.rounds += 1
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
        self.applied(after.checkpoint_ts)

    def written(self, rows: RowCounts, checkpoint_ts: int) -> None:
        """Keep what a commit wrote to each table."""
        self.tables.add(rows, checkpoint_ts)

    def known(self, session: Session) -> RecordedRound:
        """What a session knows now; what it has not asked for yet, as the sessions before it knew it."""
        found, last = recorded(session), self.last
        if last is None:
            return found
        if found.probe is None:
            found = replace(found, probe=last.probe, probed_at=last.probed_at)
        return found if found.is_ledger_there is not None else replace(found, is_ledger_there=last.is_ledger_there)

    def left(self, session: Session) -> None:
        """Keep what is known of a run that ends: nobody asks Kafka and Redis after it."""
        self.last = self.known(session)

    def idle(self, progress: Progress, probe: Probe | None) -> None:
        """Keep that there was nothing to do."""
        super().idle(progress, probe)
        self.rounds += 1
        self.applied(progress.checkpoint_ts)

"""What `target.audit` writes: a line for each window, in the transaction that ends it.

`transaction` consistency commits many times a window, and a line each would cost as much as a small transaction's rows.
So there one line stands for all of a second, or of the rest of the window. If a crash takes what was counted for a
line, the next instance writes one for those commits: how many rows there were is known, of which tables is not.
"""

import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta

from consumer.config.model import Config
from ordering.progress import Progress
from ordering.quarantine import AppliedWindow, Changes
from sinks.rows.spool import RowCounts
from sinks.target import Target

_LINE_S = 1.0


class WindowAudit:
    """The audit of one session. Raises TargetError."""

    def __init__(self, config: Config, target: Target, progress: Progress) -> None:
        self._target, self._changefeed = target, config.changefeed
        self._is_on, self._kept = config.target.audit, timedelta(days=config.target.audit_days)
        self._rows: Counter[str] = Counter()
        self._begun = time.monotonic()
        self._told = progress
        """At the last line."""
        self._lost: tuple[AppliedWindow, ...] = ()
        if self._is_on:
            self._take_up(progress)

    def _take_up(self, progress: Progress) -> None:
        self._target.audit.make()
        self._target.audit.prune(self._changefeed, self._kept)
        latest = self._target.audit.latest(self._changefeed, 1)
        last = latest[0].window if latest else None
        if last is not None:
            lost, before = progress.counts.rows_written - last.rows - last.rows_before, last.rows + last.rows_before
            if lost > 0 and progress.checkpoint_ts >= last.upto_ts:
                at = int(progress.checkpoint_ts)
                self._lost = (AppliedWindow(last.upto_ts, at, 0, lost, before, None),)

    def begin(self) -> None:
        """A window begins to be applied."""
        self._begun = time.monotonic()

    def with_lines(self, changes: Changes, written: Iterable[RowCounts], after: Progress, *, ends: bool) -> Changes:
        """What changes with the progress `after`, with the lines that are due. `ends`: its window is over."""
        if not self._is_on:
            return changes
        for rows in written:
            self._rows.update({str(name): count for name, count in rows.items() if count})
        duration = time.monotonic() - self._begun
        if not (ends or duration >= _LINE_S) or not (self._rows or self._lost):
            return changes
        self._target.audit.prune(self._changefeed, self._kept)
        own = AppliedWindow(
            int(self._told.checkpoint_ts), int(after.checkpoint_ts), round(duration * 1000),
            sum(self._rows.values()), self._told.counts.rows_written, dict(self._rows),
        )  # fmt: skip
        return replace(changes, applied=(*self._lost, *((own,) if self._rows else ())))

    def committed(self, changes: Changes, after: Progress) -> None:
        """The target holds them now."""
        if changes.applied:
            self._lost, self._told, self._begun = (), after, time.monotonic()
            self._rows.clear()

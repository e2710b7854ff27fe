"""The table `ticdc_reconciler.audit`: which windows were applied, in SQL that all targets speak.

A line is written in the transaction that saves the progress which it tells of, so it is there exactly if its rows are.
It is made where `target.audit` asks for it. Lines go by their age.
"""

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import orjson

from ordering.progress import Progress
from ordering.quarantine import AppliedWindow, Changes
from sinks.bookkeeping.progress_rows import Lease
from sinks.bookkeeping.tables import Book, changed_by_hand
from sinks.rows.spool import RowCounts

_STEP = timedelta(microseconds=1)
_LAST = datetime.max.replace(tzinfo=UTC) - timedelta(days=365)
"""No clock tells a later moment: who wrote it leaves no room for the lines that follow."""
_LINE_S = 1.0
_PRUNE_EVERY_S = 60.0


@dataclass(frozen=True, slots=True)
class AuditLine:
    """A line as it is kept: who wrote it, and when (UTC, by the writer's clock, never before the line before)."""

    window: AppliedWindow
    epoch: int
    applied_at: datetime

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        one = self.window
        return {
            "above_ts": one.above_ts,
            "checkpoint_ts": one.upto_ts,
            "epoch": self.epoch,
            "applied_at": self.applied_at.isoformat(timespec="milliseconds"),
            "duration_ms": one.duration_ms,
            "rows": one.rows,
            "rows_by_table": None if one.tables is None else dict(sorted(one.tables.items())),
        }


class AuditTable:
    """What was applied. Raises TargetError and its kinds."""

    def __init__(self, book: Book) -> None:
        self._book = book
        self._pruned: float | None = None
        self._last: datetime | None = None

    @property
    def _table(self) -> str:
        return self._book.place("audit")

    def make(self) -> None:
        """Make the table where it is missing; not inside a transaction."""
        types = self._book.types
        columns = (
            f"changefeed {types.short} NOT NULL, applied_at {types.short} NOT NULL, above_ts {types.tso} NOT NULL,"
            f" checkpoint_ts {types.tso} NOT NULL, epoch BIGINT NOT NULL, duration_ms BIGINT NOT NULL,"
            f" row_count BIGINT NOT NULL, rows_before BIGINT NOT NULL, rows_by_table {types.text} NOT NULL,"
            " PRIMARY KEY (changefeed, applied_at)"
        )
        self._book.run(f"CREATE TABLE IF NOT EXISTS {self._table} ({columns}){types.tail}")

    def add(self, lease: Lease, windows: Sequence[AppliedWindow]) -> None:
        """Add lines, in the transaction that has begun."""
        for window in windows:
            self._last = max(datetime.now(UTC), self._after(lease.changefeed))
            told = "" if window.tables is None else orjson.dumps(dict(window.tables)).decode()
            values = (window.above_ts, window.upto_ts, lease.epoch, window.duration_ms, window.rows, window.rows_before)
            insert = f"INSERT INTO {self._table} VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608 constants
            self._book.run(insert, (lease.changefeed, self._last.isoformat(timespec="microseconds"), *values, told))

    def prune(self, changefeed: str, kept: timedelta) -> None:
        """Let lines go that are older, once a minute, but for the latest: by it is known what has no line yet.

        In a transaction or outside.
        """
        if self._pruned is not None and time.monotonic() - self._pruned < _PRUNE_EVERY_S:
            return
        self._pruned = time.monotonic()
        latest = self.latest(changefeed, 1)
        before = min([datetime.now(UTC) - kept, *(line.applied_at for line in latest)]).isoformat(
            timespec="microseconds"
        )
        delete = f"DELETE FROM {self._table} WHERE changefeed = ? AND applied_at < ?"  # noqa: S608 constants
        self._book.run(delete, (changefeed, before))

    def latest(self, changefeed: str, limit: int) -> list[AuditLine]:
        """The latest lines, newest first; none where the table was never made. Changes nothing."""
        if not self._book.has("audit"):
            return []
        names = "above_ts, checkpoint_ts, duration_ms, row_count, rows_before, rows_by_table, epoch, applied_at"
        sql = f"SELECT {names} FROM {self._table} WHERE changefeed = ? ORDER BY applied_at DESC LIMIT {limit:d}"  # noqa: S608 constants
        return [_line(row) for row in self._book.query(sql, (changefeed,))]

    def _after(self, changefeed: str) -> datetime:
        """Just after the latest line: another machine's clock may be ahead."""
        if self._last is None:
            latest = self.latest(changefeed, 1)
            self._last = latest[0].applied_at if latest else datetime.min.replace(tzinfo=UTC)
        return self._last + _STEP


class WindowAudit:
    """The audit of one session: a line for each window. `kept`: for how long; None: there is none. Raises TargetError.

    `transaction` consistency commits many times a window, and a line each would cost as much as a small transaction's
    rows. So there one line stands for all of a second, or of the rest of the window. If a crash takes what was counted
    for a line, the next instance writes one for those commits: how many rows there were is known, of which tables is
    not. The same stands for what was written while there was no list.
    """

    def __init__(self, table: AuditTable, changefeed: str, progress: Progress, kept: timedelta | None) -> None:
        self._table, self._changefeed, self._kept = table, changefeed, kept
        self._rows: Counter[str] = Counter()
        self._begun = time.monotonic()
        self._told = progress
        """At the last line."""
        self._lost: tuple[AppliedWindow, ...] = ()
        if kept is not None:
            self._table.make()
            self._take_up(progress)

    def _take_up(self, progress: Progress) -> None:
        latest = self._table.latest(self._changefeed, 1)
        # without any, all that was written has none: a crash may take the first one along
        last = (
            latest[0].window if latest else AppliedWindow(int(progress.start_ts), int(progress.start_ts), 0, 0, 0, None)
        )
        lost, before = progress.counts.rows_written - last.rows - last.rows_before, last.rows + last.rows_before
        if lost > 0 and progress.checkpoint_ts >= last.upto_ts:
            at = int(progress.checkpoint_ts)
            self._lost = (AppliedWindow(last.upto_ts, at, 0, lost, before, None),)

    def begin(self) -> None:
        """A window begins to be applied."""
        self._begun = time.monotonic()

    def with_lines(self, changes: Changes, written: Iterable[RowCounts], after: Progress, *, ends: bool) -> Changes:
        """What changes with the progress `after`, with the lines that are due. `ends`: its window is over."""
        if self._kept is None:
            return changes
        for rows in written:
            self._rows.update({str(name): count for name, count in rows.items() if count})
        duration = time.monotonic() - self._begun
        if not (ends or duration >= _LINE_S) or not (self._rows or self._lost):
            return changes
        self._table.prune(self._changefeed, self._kept)
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


def _line(row: Sequence[Any]) -> AuditLine:
    """A line as it is kept. Raises TargetError for one that somebody has changed."""
    above, upto, duration, rows, before, told, epoch, at = row
    try:
        tables = msgspec.json.decode(told, type=dict[str, int]) if told else None
        moment = datetime.fromisoformat(str(at))
        if moment.tzinfo is None or moment > _LAST:
            raise ValueError(f"{moment} is no moment of ours")  # noqa: TRY301
    except ValueError as error:
        raise changed_by_hand("audit", "applied_at", at, error) from error
    window = AppliedWindow(int(above), int(upto), int(duration), int(rows), int(before), tables)
    return AuditLine(window, int(epoch), moment)

"""How the progress is written: in whole, or inside a window what moves of it.

A progress names every partition: 1.3 MB with 10,000 of them. `transaction` consistency commits it with every commitTs,
though only checkpoint, executed DDLs and counts change inside a window. So the first commit that changes no more than
these keeps the whole progress apart, in `ticdc_reconciler.window_start`, and until one changes more the row of
`checkpoint` holds a state of some hundred bytes and `{}` for the offsets:

    whole -> start kept + what moves -> what moves -> ... -> whole

The offsets lie in another row, not just in columns that are left alone: TiDB, SQLite and a binary log of MySQL write
a row anew whatever changes in it. The state names the kept start by its digest; one that is not there is an error.
What is kept of a window that ended stays there until the next one begins. A small progress is always written in whole.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import orjson
import xxhash

from ordering.errors import TargetError
from ordering.progress import Progress, check_format

_START = "window_start"
"""In a state: the digest of the start that it goes on from."""


@dataclass(frozen=True, slots=True)
class Row:
    """What a save changes in the row of `checkpoint`."""

    checkpoint_ts: int
    offsets: str
    state: str


@dataclass(frozen=True, slots=True)
class Start:
    """A row of `window_start`: a progress in whole."""

    digest: str
    offsets: str
    state: str

    @classmethod
    def of(cls, row: Row) -> "Start":
        """What is kept of a row that holds all."""
        return cls(_digest(row.offsets, row.state), row.offsets, row.state)


@dataclass(frozen=True, slots=True)
class Saved:
    """What a connection last wrote in whole; `start` once it is kept."""

    changefeed: str
    epoch: int
    progress: Progress
    row: Row
    start: Start | None = None


def whole_row(progress: Progress) -> Row:
    """The row that holds all of a progress."""
    return Row(progress.checkpoint_ts, _json(progress.offsets()), _json(progress.state()))


def moving_row(progress: Progress, start: Start) -> Row:
    """The row that holds what moved since a start that is kept."""
    return Row(progress.checkpoint_ts, "{}", _json({**progress.moves(), _START: start.digest}))


def restored(row: Row, start: Start | None, where: str) -> Progress:
    """The progress that was saved. Raises ConfigError for a later version's, TargetError without its start."""
    state = orjson.loads(row.state)
    check_format(state)
    if _START not in state:
        return Progress.restored(row.checkpoint_ts, orjson.loads(row.offsets), state)
    if start is None or not state[_START] == start.digest == _digest(start.offsets, start.state):
        raise TargetError(
            "the progress goes on from a start that ticdc_reconciler.window_start does not hold",
            where=where,
            hint="restore all tables of ticdc_reconciler from one moment: see docs/recovery.md",
        )
    whole = Progress.restored(row.checkpoint_ts, orjson.loads(start.offsets), orjson.loads(start.state))
    return whole.moved(row.checkpoint_ts, state)


class ProgressSaving(ABC):
    """The progress of a changefeed in a target; see the module."""

    name: str
    _start_table = ""
    _least_bytes: ClassVar[int] = 16 << 10
    """What is smaller is always written in whole. It is a page of InnoDB: less is written at once as it is."""
    _saved: Saved | None = None

    @abstractmethod
    def _log_run(self, sql: str, parameters: Sequence[Any]) -> int:
        """Execute a statement with `?` for bound values."""

    @abstractmethod
    def _put(self, row: Row, changefeed: str) -> None:
        """Update the changefeed's row of `checkpoint`."""

    def _save_progress(self, progress: Progress, changefeed: str, epoch: int) -> None:
        """Save a progress, in the transaction that has begun and has checked this epoch."""
        saved = self._saved
        if saved is None or (saved.changefeed, saved.epoch) != (changefeed, epoch) or not self._moves(saved, progress):
            self._saved = Saved(changefeed, epoch, progress, whole_row(progress))
            self._put(self._saved.row, changefeed)
        else:
            start = saved.start or self._kept(saved)
            self._put(moving_row(progress, start), changefeed)

    def _forget_saved(self) -> None:
        """What was saved may have been rolled back: write the next progress in whole."""
        self._saved = None

    def _moves(self, saved: Saved, progress: Progress) -> bool:
        large = len(saved.row.offsets) + len(saved.row.state) >= self._least_bytes
        return large and progress.goes_on_from(saved.progress)

    def _kept(self, saved: Saved) -> Start:
        """Keep what was saved as a start, in the place of the last one."""
        start = Start.of(saved.row)
        self._put_start(start, saved.changefeed)
        self._saved = replace(saved, start=start)
        return start

    def _put_start(self, start: Start, changefeed: str) -> None:
        self._log_run(f"DELETE FROM {self._start_table} WHERE changefeed = ?", (changefeed,))  # noqa: S608 a constant
        insert = f"INSERT INTO {self._start_table} (changefeed, digest, offsets, state) VALUES (?, ?, ?, ?)"  # noqa: S608 a constant
        self._log_run(insert, (changefeed, start.digest, start.offsets, start.state))


def select_of(checkpoint: str, start: str) -> str:
    """The query for what is stored of a changefeed: in one statement, so that row and start are of one moment.

    `start` may be empty: an earlier version made no such table.
    """
    if not start:
        none = "NULL, NULL, NULL"
        return f"SELECT checkpoint_ts, offsets, state, epoch, updated_at, {none} FROM {checkpoint} WHERE changefeed = ?"  # noqa: S608
    return (
        "SELECT c.checkpoint_ts, c.offsets, c.state, c.epoch, c.updated_at, s.digest, s.offsets, s.state"  # noqa: S608
        f" FROM {checkpoint} c LEFT JOIN {start} s ON s.changefeed = c.changefeed WHERE c.changefeed = ?"
    )


def progress_of(row: Sequence[Any], where: str) -> Progress:
    """The progress out of a row of `select_of`'s. Raises as `restored`."""
    checkpoint_ts, offsets, state, _, _, digest, *kept = row
    return restored(Row(checkpoint_ts, offsets, state), None if digest is None else Start(digest, *kept), where)


def _json(value: object) -> str:
    return orjson.dumps(value).decode()


def _digest(offsets: str, state: str) -> str:
    digest = xxhash.xxh3_128(offsets.encode())
    digest.update(b"\0")
    digest.update(state.encode())
    return digest.hexdigest()

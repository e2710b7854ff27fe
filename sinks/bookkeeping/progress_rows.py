"""How the progress is written: in whole, or inside a window what moves of it.

A progress names every partition: 1.3 MB with 10,000 of them. `transaction` consistency commits it with every commitTs,
though only checkpoint, executed DDLs and counts change inside a window. So the first commit that changes no more than
these keeps the whole progress apart, in `ticdc_reconciler.window_start`, and until one changes more the row of
`checkpoint` holds a state of some hundred bytes and `{}` for the offsets:

    whole -> start kept + what moves -> what moves -> ... -> whole

The offsets lie in another row, not just in columns that are left alone: TiDB, SQLite and a binary log of MySQL write
a row again whatever changes in it. The state names the kept start by its digest; one that is not there is an error.
What is kept of a window that ended stays there until the next one begins. A small progress is always written in whole.
"""

from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import orjson
import xxhash

from ordering.errors import TargetError
from ordering.progress import Progress, check_format
from sinks.bookkeeping.tables import Book, as_moment

_START = "window_start"
"""In a state: the digest of the start that it goes on from."""


@dataclass(frozen=True, slots=True)
class Saving:
    """What tells one save of a progress from every other: an epoch does not, where backups are restored."""

    checkpoint_ts: int
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class Stored:
    """A changefeed's row of the progress table."""

    progress: Progress
    epoch: int
    updated_at: datetime

    @property
    def saving(self) -> Saving:
        """The save that wrote it."""
        return Saving(self.progress.checkpoint_ts, self.updated_at)


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to write for a changefeed: valid while the target's epoch is this one."""

    changefeed: str
    epoch: int


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

    lease: Lease
    progress: Progress
    row: Row
    start: Start | None = None


def whole_row(progress: Progress) -> Row:
    """The row that holds all of a progress."""
    return Row(progress.checkpoint_ts, _json(progress.offsets()), _json(progress.kept_state()))


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
            hint="restore all tables of ticdc_reconciler from one moment; or delete the changefeed's row in its table"
            " checkpoint and `reconciler progress import` an export (`reconciler help recovery`)",
        )
    whole = Progress.restored(row.checkpoint_ts, orjson.loads(start.offsets), orjson.loads(start.state))
    return whole.moved(row.checkpoint_ts, state)


_LEAST_BYTES = 16 << 10
"""What is smaller is always written in whole. It is a page of InnoDB: less is written at once as it is."""


class ProgressTable:
    """The progress of changefeeds in a target, and their epochs; see the module."""

    def __init__(self, book: Book, least_bytes: int = _LEAST_BYTES) -> None:
        self._book, self._least_bytes = book, least_bytes
        self._saved: Saved | None = None
        self._known: dict[str, Saving] = {}
        self._unsure: dict[str, Saving] = {}
        """What is written by the transaction that has begun."""

    def stored(self, changefeed: str) -> Stored | None:
        """The changefeed's progress, or None for a new one; also where no progress table is there yet."""
        if not self._book.has("checkpoint"):
            return None
        # an earlier version made no such table
        start = self._book.place("window_start") if self._book.has("window_start") else ""
        rows = self._book.query(select_of(self._book.place("checkpoint"), start), (changefeed,))
        if not rows:
            return None
        epoch, updated_at = rows[0][3:5]
        return Stored(progress_of(rows[0], self._book.where), epoch, as_moment(updated_at))

    def applied(self, changefeed: str) -> int | None:
        """The TSO up to which everything is here, as committed now; None for a changefeed of which nothing is known."""
        found = self._value("checkpoint_ts", changefeed) if self._book.has("checkpoint") else None
        return None if found is None else int(found)

    def slowest(self, among: Container[str] | None = None) -> tuple[str, int] | None:
        """Of the changefeeds that have applied something the one with the lowest `applied`, and that; None of none.

        `among`: these alone; None: all.
        """
        if not self._book.has("checkpoint"):
            return None
        rows = self._book.query(f"SELECT changefeed, checkpoint_ts FROM {self._book.place('checkpoint')}", ())  # noqa: S608 constants
        wanted = [(int(ts), str(changefeed)) for changefeed, ts in rows if among is None or changefeed in among]
        known = [one for one in wanted if one[0]]  # 0: it was reset, or has not begun
        lowest = min(known, default=None)
        return None if lowest is None else (lowest[1], lowest[0])

    def _value(self, column: str, changefeed: str) -> Any:
        look = f"SELECT {column} FROM {self._book.place('checkpoint')} WHERE changefeed = ?"  # noqa: S608 constants
        rows = self._book.query(look, (changefeed,))
        return rows[0][0] if rows else None

    def locked(self, changefeed: str) -> tuple[int, Saving] | None:
        """The epoch and the last save, their row locked."""
        return standing(self._book.query(f"{self.look} WHERE changefeed = ?{self._book.lock()}", (changefeed,)))

    @property
    def look(self) -> str:
        """The query for what `standing` reads, without a condition."""
        return f"SELECT epoch, checkpoint_ts, updated_at FROM {self._book.place('checkpoint')}"  # noqa: S608 constants

    def is_known(self, changefeed: str, saving: Saving) -> bool:
        """Whether this is what a leader over this connection last read or saved; as good as that where none leads."""
        return saving == self._unsure.get(changefeed, self._known.get(changefeed, saving))

    def knows(self, changefeed: str, saving: Saving) -> None:
        """What a new leader goes on from."""
        self._known[changefeed] = saving

    def committed(self) -> None:
        """What was saved is in the target."""
        self._known |= self._unsure
        self._unsure.clear()

    def add(self, changefeed: str) -> None:
        """Add the changefeed's row, with epoch 0."""
        insert = f"INSERT INTO {self._book.place('checkpoint')} VALUES (?, 0, '{{}}', '{{}}', 0, ?)"  # noqa: S608 a constant
        self._book.run(insert, (changefeed, self._book.now()))

    def raise_epoch(self, changefeed: str) -> None:
        """Raise the epoch by one."""
        update = f"UPDATE {self._book.place('checkpoint')} SET epoch = epoch + 1 WHERE changefeed = ?"  # noqa: S608 a constant
        self._book.run(update, (changefeed,))

    def save(self, progress: Progress, lease: Lease) -> None:
        """Save a progress, in the transaction that has begun and has checked the epoch."""
        saved = self._saved
        if saved is None or saved.lease != lease or not self._moves(saved, progress):
            self._saved = Saved(lease, progress, whole_row(progress))
            self._put(self._saved.row, lease.changefeed)
        else:
            start = saved.start or self._kept(saved)
            self._put(moving_row(progress, start), lease.changefeed)

    def _put(self, row: Row, changefeed: str) -> None:
        moment = self._book.now()
        self.put(row, changefeed, moment)
        self._unsure[changefeed] = Saving(row.checkpoint_ts, as_moment(moment))

    def forget_saved(self) -> None:
        """What was saved may have been rolled back: write the next progress in whole."""
        self._saved = None
        self._unsure.clear()

    def _moves(self, saved: Saved, progress: Progress) -> bool:
        large = len(saved.row.offsets) + len(saved.row.state) >= self._least_bytes
        return large and progress.goes_on_from(saved.progress)

    def _kept(self, saved: Saved) -> Start:
        """Keep what was saved as a start, in the place of the last one."""
        start = Start.of(saved.row)
        self.put_start(start, saved.lease.changefeed)
        self._saved = replace(saved, start=start)
        return start

    def put(self, row: Row, changefeed: str, moment: str) -> None:
        """Update the changefeed's row. `moment`: as `Book.now` gives it."""
        self._book.run(
            f"UPDATE {self._book.place('checkpoint')} SET checkpoint_ts = ?, offsets = ?, state = ?, updated_at = ?"  # noqa: S608 a constant
            " WHERE changefeed = ?",
            (row.checkpoint_ts, row.offsets, row.state, moment, changefeed),
        )

    def put_start(self, start: Start, changefeed: str) -> None:
        """Put a start in the place of the last one."""
        place = self._book.place("window_start")
        self._book.run(f"DELETE FROM {place} WHERE changefeed = ?", (changefeed,))  # noqa: S608 a constant
        insert = f"INSERT INTO {place} (changefeed, digest, offsets, state) VALUES (?, ?, ?, ?)"  # noqa: S608 a constant
        self._book.run(insert, (changefeed, start.digest, start.offsets, start.state))


def standing(rows: Sequence[Sequence[Any]]) -> tuple[int, Saving] | None:
    """The epoch and the last save, of the rows of `ProgressTable.look`."""
    return next(((int(epoch), Saving(int(ts), as_moment(at))) for epoch, ts, at in rows), None)


def select_of(checkpoint: str, start: str) -> str:
    """The query for what is stored of a changefeed: in one statement, so that row and start are of one moment."""
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

"""The table `ticdc_reconciler.loaded`: how far each file of a dump has got, in SQL that all targets speak.

A file's line is moved on in the transaction that writes its rows, and only from where the writer knows it to be: what
the UPDATE changed is counted. Of two that write the same file, one of them a process that outlived its load, the second
finds the line moved or under another epoch, and writes nothing. So does one whose own COMMIT was in doubt, for the
connection broke meanwhile: it looks again where the line is.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ordering.errors import LeadershipLostError, TargetError, TargetUnreachableError
from sinks.bookkeeping.progress_rows import Lease
from sinks.bookkeeping.tables import Book

_LINE = 'WHERE "changefeed" = ? AND "file" = ?'
_REACHED = '"row_count", "whole", "seen", "sums"'
_MANY = 100


@dataclass(frozen=True, slots=True)
class Mark:
    """The right to write a file's rows: of a changefeed, under its epoch."""

    changefeed: str
    epoch: int
    file: str


@dataclass(frozen=True, slots=True)
class Loaded:
    """How many of a file's rows are in the target, and whether these are all.

    `seen`: what tells these rows, and a whole file, from others; "" where an earlier version loaded them. `sums`: of
    their content, as the dump has it; "" where they were not taken.
    """

    rows: int
    whole: bool
    seen: str = ""
    sums: str = ""


def _loaded(found: Sequence[Any]) -> Loaded:
    rows, whole, seen, sums = found
    return Loaded(int(rows), bool(whole), seen or "", sums or "")


class LoadTable:
    """What a target holds of files that are loaded into it."""

    def __init__(self, book: Book) -> None:
        self._book = book

    @property
    def _table(self) -> str:
        return self._book.place("loaded")

    def make(self) -> None:
        """Make the table if it is missing; not inside a transaction."""
        types = self._book.types
        columns = (
            f'"changefeed" {types.short} NOT NULL, "file" {types.short} NOT NULL, "load_id" {types.short} NOT NULL,'
            ' "epoch" BIGINT NOT NULL, "row_count" BIGINT NOT NULL, "whole" INTEGER NOT NULL,'
            f' "seen" {types.short}, "sums" {types.text}, PRIMARY KEY ("changefeed", "file")'
        )
        self._book.run(f"CREATE TABLE IF NOT EXISTS {self._table} ({columns}){types.tail}")
        for name, kind in (("seen", types.short), ("sums", types.text)):
            self._complete(name, kind)

    def _complete(self, column: str, kind: str) -> None:
        """Add a column that an earlier version's table lacks."""
        try:
            self._book.query(f'SELECT l."{column}" FROM {self._table} l WHERE 1 = 0')  # noqa: S608 constants
        except TargetUnreachableError:
            raise
        except TargetError:
            self._book.run(f'ALTER TABLE {self._table} ADD COLUMN "{column}" {kind}')

    def files(self, changefeed: str, load: str) -> dict[str, Loaded]:
        """The files of a load, by name; the table has to be there."""
        where = 'WHERE "changefeed" = ? AND "load_id" = ?'
        select = f'SELECT "file", {_REACHED} FROM {self._table} {where}'  # noqa: S608 constants
        return {row[0]: _loaded(row[1:]) for row in self._book.query(select, (changefeed, load))}

    def enter(self, lease: Lease, load: str, files: Sequence[str]) -> None:
        """Begin a load's list again, in the transaction that has begun."""
        self._book.run(f'DELETE FROM {self._table} WHERE "changefeed" = ?', (lease.changefeed,))  # noqa: S608 constants
        for start in range(0, len(files), _MANY):
            some = files[start : start + _MANY]
            columns = '"changefeed", "file", "load_id", "epoch", "row_count", "whole"'
            marks = ", ".join(["(?, ?, ?, ?, 0, 0)"] * len(some))
            values = [value for file in some for value in (lease.changefeed, file, load, lease.epoch)]
            self._book.run(f"INSERT INTO {self._table} ({columns}) VALUES {marks}", values)  # noqa: S608 constants

    def take(self, lease: Lease) -> None:
        """Shut out who wrote under another epoch, in the transaction that has begun."""
        update = f'UPDATE {self._table} SET "epoch" = ? WHERE "changefeed" = ?'  # noqa: S608 constants
        self._book.run(update, (lease.epoch, lease.changefeed))

    def reached(self, mark: Mark) -> Loaded:
        """How far a file has got. Raises LeadershipLostError if it is not ours to write any more."""
        select = f'SELECT "epoch", {_REACHED} FROM {self._table} {_LINE}'  # noqa: S608 constants
        rows = self._book.query(select, (mark.changefeed, mark.file))
        if not rows or int(rows[0][0]) != mark.epoch:
            raise self._replaced(mark)
        return _loaded(rows[0][1:])

    def move(self, mark: Mark, before: Loaded, after: Loaded) -> None:
        """Move a file's line on, in the transaction that writes its rows.

        Raises LeadershipLostError if the line is under another epoch, and TargetUnreachableError, which is tried again,
        if it is not where it was: a commit of which no answer came was made all the same.
        """
        where = f'{_LINE} AND "epoch" = ? AND "row_count" = ? AND "whole" = ?'
        update = f'UPDATE {self._table} SET "row_count" = ?, "whole" = ?, "seen" = ?, "sums" = ? {where}'  # noqa: S608 constants
        now = (after.rows, int(after.whole), after.seen, after.sums)
        was = (mark.changefeed, mark.file, mark.epoch, before.rows, int(before.whole))
        if self._book.run(update, (*now, *was)) != 1:
            raise self._moved(mark, before)

    def _moved(self, mark: Mark, before: Loaded) -> TargetUnreachableError:
        found = self.reached(mark)  # not under our epoch: raises
        return TargetUnreachableError(
            f"{mark.file} is loaded up to row {found.rows}, not {before.rows}: an earlier commit, of which no answer"
            " came, was made",
            where=self._book.where,
            hint="the load continues from there; if this error repeats, another process loads this file",
        )

    def _replaced(self, mark: Mark) -> LeadershipLostError:
        return LeadershipLostError(
            f"another instance loads {mark.file} into changefeed {mark.changefeed!r}, or has started over",
            where=self._book.where,
            hint="let it end; `reconciler load` goes on where it was",
        )

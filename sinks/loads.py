"""The table `ticdc_reconciler.loaded`: how far each file of a dump has got, in SQL that all targets speak.

A file's line is moved on in the transaction that writes its rows, and only from where the writer knows it to be: what
the UPDATE changed is counted. Of two that write the same file, one of them a process that outlived its load, the second
finds the line moved or under another epoch, and writes nothing. So does one whose own COMMIT was in doubt, for the
connection broke meanwhile: it looks again where the line is.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from ordering.drift import Drifts
from ordering.errors import LeadershipLostError, TargetUnreachableError
from ordering.events import TableName
from sinks.quarantine import QuarantineTypes
from sinks.spool import Spool

_LINE = 'WHERE "changefeed" = ? AND "file" = ?'
_MANY = 100


@dataclass(frozen=True, slots=True)
class Mark:
    """The right to write a file's rows: of a changefeed, under its epoch."""

    changefeed: str
    epoch: int
    file: str


@dataclass(frozen=True, slots=True)
class Loaded:
    """How many of a file's rows are in the target, and whether these are all."""

    rows: int
    whole: bool


class LoadTable(ABC):
    """What a target holds of files that are loaded into it."""

    name: str
    _quarantine_types: QuarantineTypes

    @abstractmethod
    def _log_run(self, sql: str, parameters: Sequence[Any]) -> int:
        """Execute a statement with `?` for bound values; how many rows it changed."""

    @abstractmethod
    def _log_query(self, sql: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
        """Execute a query with `?` for bound values."""

    @abstractmethod
    def _spelled(self, sql: str) -> str:
        """A statement with the dialect's quotes."""

    @abstractmethod
    def _transaction(self) -> AbstractContextManager[None]: ...

    @abstractmethod
    def _write_groups(self, spool: Spool) -> Drifts:
        """See `PartWriting._write_groups`."""

    def is_empty(self, table: TableName) -> bool:
        """Whether a table that is there holds no row."""
        return not self._log_query(f"SELECT 1 FROM {self._place(table)} LIMIT 1", ())  # noqa: S608 quoted

    def _place(self, table: TableName) -> str:
        """A table as statements name it."""
        quote = self._quarantine_types.quote
        return ".".join(quote + name.replace(quote, quote * 2) + quote for name in table)

    @property
    def _loads(self) -> str:
        return self._quarantine_types.table.removesuffix("quarantine") + "loaded"

    def make_loads(self) -> None:
        """Make the table if it is missing; not inside a transaction."""
        types = self._quarantine_types
        columns = (
            f'"changefeed" {types.short} NOT NULL, "file" {types.short} NOT NULL, "load_id" {types.short} NOT NULL,'
            ' "epoch" BIGINT NOT NULL, "row_count" BIGINT NOT NULL, "whole" INTEGER NOT NULL,'
            ' PRIMARY KEY ("changefeed", "file")'
        )
        self._log_run(self._spelled(f"CREATE TABLE IF NOT EXISTS {self._loads} ({columns}){types.tail}"), ())

    def loads(self, changefeed: str, load: str) -> dict[str, Loaded]:
        """The files of a load, by name; the table has to be there."""
        where = 'WHERE "changefeed" = ? AND "load_id" = ?'
        select = f'SELECT "file", "row_count", "whole" FROM {self._loads} {where}'  # noqa: S608 constants
        rows = self._log_query(self._spelled(select), (changefeed, load))
        return {file: Loaded(int(count), bool(whole)) for file, count, whole in rows}

    def _enter_loads(self, changefeed: str, epoch: int, load: str, files: Sequence[str]) -> None:
        """Begin a load's list anew, in the transaction that has begun."""
        self._log_run(self._spelled(f'DELETE FROM {self._loads} WHERE "changefeed" = ?'), (changefeed,))  # noqa: S608 constants
        for start in range(0, len(files), _MANY):
            some = files[start : start + _MANY]
            columns = '"changefeed", "file", "load_id", "epoch", "row_count", "whole"'
            marks = ", ".join(["(?, ?, ?, ?, 0, 0)"] * len(some))
            values = [value for file in some for value in (changefeed, file, load, epoch)]
            self._log_run(self._spelled(f"INSERT INTO {self._loads} ({columns}) VALUES {marks}"), values)  # noqa: S608 constants

    def _take_loads(self, changefeed: str, epoch: int) -> None:
        """Shut out who wrote under another epoch, in the transaction that has begun."""
        update = f'UPDATE {self._loads} SET "epoch" = ? WHERE "changefeed" = ?'  # noqa: S608 constants
        self._log_run(self._spelled(update), (epoch, changefeed))

    def loaded(self, mark: Mark) -> Loaded:
        """How far a file has got. Raises LeadershipLostError if it is not ours to write any more."""
        select = f'SELECT "row_count", "whole", "epoch" FROM {self._loads} {_LINE}'  # noqa: S608 constants
        rows = self._log_query(self._spelled(select), (mark.changefeed, mark.file))
        if not rows or int(rows[0][2]) != mark.epoch:
            raise self._replaced(mark)
        return Loaded(int(rows[0][0]), bool(rows[0][1]))

    def write_loaded(self, mark: Mark, before: Loaded, after: Loaded, rows: Spool) -> None:
        """Write some of a file's rows and move its line on, in one transaction.

        Raises LeadershipLostError if the line is under another epoch, and TargetUnreachableError, which is tried again,
        if it is not where it was: a commit of which no answer came was made all the same.
        """
        where = f'{_LINE} AND "epoch" = ? AND "row_count" = ? AND "whole" = ?'
        update = f'UPDATE {self._loads} SET "row_count" = ?, "whole" = ? {where}'  # noqa: S608 constants
        told = (after.rows, int(after.whole), mark.changefeed, mark.file, mark.epoch, before.rows, int(before.whole))
        with self._transaction():
            if self._log_run(self._spelled(update), told) != 1:
                raise self._moved(mark, before)
            self._write_groups(rows)

    def _moved(self, mark: Mark, before: Loaded) -> TargetUnreachableError:
        found = self.loaded(mark)  # not under our epoch: raises
        return TargetUnreachableError(
            f"{mark.file} is loaded up to row {found.rows}, not {before.rows}: an earlier commit, of which no answer"
            " came, was made",
            where=self.name,
            hint="it is looked up and gone on from there; if this lasts, another process loads this file",
        )

    def _replaced(self, mark: Mark) -> LeadershipLostError:
        return LeadershipLostError(
            f"another instance loads {mark.file} into changefeed {mark.changefeed!r}, or has begun anew",
            where=self.name,
            hint="let it end; `reconciler load` goes on where it was",
        )

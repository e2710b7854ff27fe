"""The table `stop`: with which error a changefeed's last run ended, for who asks `status` while nothing runs.

It only tells people: nothing is decided by it, so it is written outside of every epoch, by whoever stopped. A run that
leads forgets it.
"""

from dataclasses import dataclass
from datetime import datetime

from sinks.bookkeeping.tables import Book, as_moment

_MOST = 4000
"""Characters of an error that are kept."""


@dataclass(frozen=True, slots=True)
class Stop:
    """How a run ended: its exit code, and its error as it was printed."""

    at: datetime
    exit_code: int
    error: str


class StopTable:
    """How runs ended. Raises TargetError and its kinds."""

    def __init__(self, book: Book) -> None:
        self._book = book

    @property
    def _table(self) -> str:
        return self._book.place("stop")

    def last(self, changefeed: str) -> Stop | None:
        """How the last run ended; None after one that was stopped by hand, and while one leads. Changes nothing."""
        if not self._book.has("stop"):
            return None
        sql = f"SELECT stopped_at, exit_code, error FROM {self._table} WHERE changefeed = ?"  # noqa: S608 constants
        rows = self._book.query(sql, (changefeed,))
        return Stop(as_moment(rows[0][0]), int(rows[0][1]), str(rows[0][2])) if rows else None

    def note(self, changefeed: str, exit_code: int, error: str) -> None:
        """Keep how a run ended, in the place of what was kept before."""
        self.forget(changefeed)
        insert = f"INSERT INTO {self._table} (changefeed, stopped_at, exit_code, error) VALUES (?, ?, ?, ?)"  # noqa: S608
        self._book.run(insert, (changefeed, self._book.now(), exit_code, error[:_MOST]))

    def forget(self, changefeed: str) -> None:
        """Keep nothing: a run leads."""
        self._book.run(f"DELETE FROM {self._table} WHERE changefeed = ?", (changefeed,))  # noqa: S608 a constant

"""What a process has written to each table of a changefeed since it began: kept in memory, for the page and the API."""

import threading
from dataclasses import dataclass

from consumer.serve.observed.history import now
from ordering.events import TableName
from sinks.rows.spool import RowCounts

MOST_TABLES = 10_000
"""Beyond this the table that was written longest ago is forgotten; its next row is its first again."""


@dataclass(frozen=True, slots=True)
class TableWritten:
    """`rows`: deleted and written; `checkpoint_ts`: of the last commit with rows of it; `at`: seconds since 1970."""

    rows: int
    checkpoint_ts: int
    at: float


class TablesWritten:
    """Tables by when they were last written. Methods may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tables: dict[TableName, TableWritten] = {}

    def add(self, rows: RowCounts, checkpoint_ts: int) -> None:
        """Count what a commit wrote."""
        at = now()
        with self._lock:
            for table, count in rows.items():
                before = self._tables.pop(table, None)
                self._tables[table] = TableWritten(count + (before.rows if before else 0), checkpoint_ts, at)
            while len(self._tables) > MOST_TABLES:
                del self._tables[next(iter(self._tables))]

    def newest(self, contains: str = "") -> list[tuple[TableName, TableWritten]]:
        """The tables whose name contains this, in any case; those written last come first."""
        with self._lock:
            found = list(self._tables.items())
        wanted = contains.casefold()
        return [one for one in reversed(found) if wanted in str(one[0]).casefold()]

"""Reads the target while it is written, as an application would: through connections of its own."""

import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from tenacity import retry, retry_if_exception, stop_after_attempt, wait_fixed

from ordering.progress import Progress
from sinks.bookkeeping.progress_rows import progress_of, select_of
from sinks.bookkeeping.tables import PROGRESS_DATABASE
from sinks.sqlite.catalog import file_of
from sinks.sqlite.ddl.schema_text import quoted
from sinks.sqlite.journal import meets_recovery

_BUSY_TIMEOUT_S = 30.0
_PAUSE_S = 0.02


again = retry(
    retry=retry_if_exception(meets_recovery), stop=stop_after_attempt(50), wait=wait_fixed(_PAUSE_S), reraise=True
)
"""Lets a look that met the reconciler's recovery be taken again."""


@contextmanager
def reading(file: Path) -> Iterator[sqlite3.Connection]:
    """A connection that writes nothing of its own.

    Not `mode=ro`: whoever first opens a file after a crash rolls the torn transaction back, readers too.
    """
    with closing(sqlite3.connect(f"{file.as_uri()}?mode=rw", uri=True, timeout=_BUSY_TIMEOUT_S)) as connection:
        connection.execute("PRAGMA query_only = ON")
        yield connection


@again
def progress_in(directory: Path, changefeed: str) -> Progress | None:
    """The progress that the target holds; None before the first."""
    file = file_of(directory, PROGRESS_DATABASE)
    if not file.exists():
        return None
    with reading(file) as connection:
        if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'window_start'").fetchone():
            return None
        row = connection.execute(select_of("checkpoint", "window_start"), (changefeed,)).fetchone()
    if row is None or row[2] == "{}":
        return None
    return progress_of(row, str(file))


def _sum_of(table: str) -> str:
    return f"(SELECT coalesce(sum(bal), 0) FROM {quoted(table)})"  # noqa: S608 quoted


class InvariantReader:
    """A thread that adds up all balances again and again, in one SELECT each, and counts sums that are wrong."""

    def __init__(self, file: Path, tables: Sequence[str], expected: int) -> None:
        sums = " + ".join(map(_sum_of, tables))
        self._select = f"SELECT {sums}"
        self._file, self._expected = file, expected
        self.looks = 0
        self.wrong: list[int] = []
        self.error: Exception | None = None
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="demo-reader", daemon=True)

    @property
    def started(self) -> bool:
        """Whether it looks, or has looked."""
        return self._thread.ident is not None

    def start(self) -> None:
        """Begin to look: from now on every sum has to be right."""
        self._thread.start()

    def close(self) -> None:
        """Look no more."""
        self._ending.set()
        if self.started:
            self._thread.join()

    def _run(self) -> None:
        try:
            while not self._ending.wait(_PAUSE_S):
                self._look()
        except sqlite3.Error as error:
            self.error = error

    def _look(self) -> None:
        total = self._total()
        self.looks += 1
        if total != self._expected:
            self.wrong.append(total)

    @again
    def _total(self) -> int:
        with reading(self._file) as connection:
            (total,) = connection.execute(self._select).fetchone()
        return int(total)

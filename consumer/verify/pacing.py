"""How fast rows are read, and how far it has come."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from consumer.runtime.terminal import safe


class Pace:
    """Lets no more rows a second through than it was told, of each side; 0: as many as come."""

    def __init__(self, rows_per_second: float, stopping: threading.Event) -> None:
        self._rate, self._stopping = rows_per_second, stopping
        self._lock, self._due = threading.Lock(), time.monotonic()

    def __call__(self, rows: int) -> None:
        """Rows were read: wait until so many were allowed, together with all before them."""
        if not self._rate:
            return
        with self._lock:
            self._due = max(self._due, time.monotonic()) + rows / self._rate
            due = self._due
        self._stopping.wait(max(0.0, due - time.monotonic()))


class Bar:
    """A bar on a terminal, of tables; silent elsewhere."""

    def __init__(self) -> None:
        self._rows, self._lock = 0, threading.Lock()
        console = Console(stderr=True)
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        self._progress = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
        self._task: TaskID | None = None

    @contextmanager
    def shown(self, tables: int) -> Iterator[None]:
        """Show it meanwhile."""
        with self._progress:
            self._task = self._progress.add_task("tables", total=tables)
            yield

    def add(self, rows: int, table: str) -> None:
        """A chunk is done."""
        with self._lock:
            self._rows += rows
            told = escape(safe(f"{table}: {self._rows:,} rows in all"))
        if self._task is not None:
            self._progress.update(self._task, description=told)

    def table_done(self) -> None:
        """A table is done."""
        if self._task is not None:
            self._progress.advance(self._task)

"""What a person sees of a load: a bar on a terminal, now and then a log line elsewhere."""

import sys
import threading
import time
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Self

import structlog
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from consumer.load.run import Show
from consumer.runtime.signals import handled

_EVERY_S = 10.0
log = structlog.get_logger()


class LoadDisplay(Show):
    """A bar of files on stderr; a context that takes it away again."""

    def __init__(self) -> None:
        columns = (TextColumn("loading"), BarColumn(), TextColumn("{task.completed}/{task.total} files"))
        rest = (TextColumn("{task.fields[rows]:,} rows"), TextColumn("{task.fields[rate]:,} rows/s"))
        self._bar = Progress(*columns, *rest, TimeElapsedColumn(), console=Console(stderr=True), transient=True)
        self._on_terminal = sys.stderr.isatty()
        self._begun = self._said = time.monotonic()
        self._rows = self._files = self._total = 0
        self._task = self._bar.add_task("", total=None, rows=0, rate=0)

    def __enter__(self) -> Self:
        if self._on_terminal:
            self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._on_terminal:
            self._bar.stop()

    def begin(self, files: int, size: int) -> None:
        """See `Show`."""
        self._total, self._begun = files, time.monotonic()
        self._bar.update(self._task, total=files)
        log.info("loading rows", files=files, mib=round(size / (1 << 20), 1))

    def rows(self, count: int) -> None:
        """See `Show`."""
        self._rows += count
        now = time.monotonic()
        rate = round(self._rows / max(0.001, now - self._begun))
        self._bar.update(self._task, rows=self._rows, rate=rate)
        if not self._on_terminal and now - self._said > _EVERY_S:
            self._said = now
            log.info("loading", rows=self._rows, files=f"{self._files}/{self._total}", rows_per_s=rate)

    def file(self) -> None:
        """See `Show`."""
        self._files += 1
        self._bar.update(self._task, completed=self._files)


def stopped_by_signals(stopping: threading.Event) -> AbstractContextManager[None]:
    """Let SIGTERM and SIGINT end the load after the batch that is being written."""
    return handled(lambda *_: stopping.set())

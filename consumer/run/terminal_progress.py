"""A run on a terminal: one line that turns while Spark starts, then shows what is applied and what is left."""

import sys
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.markup import escape
from rich.progress import Progress as Bar
from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

from consumer.run.progress_log import Display, unread_messages
from consumer.runtime.terminal import safe
from consumer.source.offer import Probe
from ordering.progress import Progress
from ordering.timestamps import utc_text
from sinks.wording import plural


class TerminalDisplay(Display):
    """Logs as always, above a line on stderr that is always of now; a context that takes the line away again."""

    def __init__(self, changefeed: str) -> None:
        super().__init__()
        self._name = safe(changefeed)
        columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
        self._bar = Bar(*columns, console=Console(stderr=True), transient=True)
        self._task = self._bar.add_task(escape(f"{self._name}: starting Spark and connecting"))
        self._events = 0

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._bar.stop()

    def window(self, before: Progress, after: Progress, probe: Probe | None, seconds: float) -> None:
        """See `Display.window`."""
        super().window(before, after, probe, seconds)
        self._events += after.counts.events - before.counts.events
        self._show(after, probe)

    def idle(self, progress: Progress, probe: Probe | None) -> None:
        """See `Display.idle`."""
        super().idle(progress, probe)
        self._show(progress, probe)

    def _show(self, progress: Progress, probe: Probe | None) -> None:
        parts = (
            f"{plural(self._events, 'event')} applied",
            f"up to {utc_text(progress.checkpoint_ts)} UTC" if progress.checkpoint_ts else "no checkpoint yet",
            f"{plural(unread_messages(progress, probe), 'message')} left",
        )
        self._bar.update(self._task, description=escape(f"{self._name}: {', '.join(parts)}"))


def display_of(changefeed: str) -> "TerminalDisplay | Quiet":
    """What fits where stderr goes."""
    return TerminalDisplay(changefeed) if sys.stderr.isatty() else Quiet()


class Quiet(Display):
    """Log lines alone."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        """There is no line to be taken away."""

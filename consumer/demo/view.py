"""What the demo's spectator sees: a live table on a terminal, plain lines elsewhere, and the table of the end."""

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self

from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.table import Table

from consumer.demo.compare import Compared, ComparedSide

_PLAIN_EVERY_S = 2.0
_WIDTH = 110


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The state of the play at one moment."""

    seconds: float
    rows_sent: int
    repeats_sent: int
    watermarks_sent: int
    ddls_sent: int
    upstream_restarts: int
    held: int
    duplicates: int
    rows_written: int
    windows: int
    ddls: int
    checkpoint: str
    lag_s: float | None
    looks: int
    wrong: int
    kills: int
    state: str


class DemoView(Protocol):
    """Says what happens, and shows samples."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def say(self, text: str) -> None:
        """Tell of something that happened."""

    def show(self, sample: Sample) -> None:
        """Show how things stand."""

    def end(self, tables: Sequence[Compared], facts: Sequence[tuple[str, str]]) -> None:
        """Print the comparison and the figures of the run."""


class PlainView:
    """Lines, for pipes and logs."""

    def __init__(self) -> None:
        self._console = Console(width=_WIDTH, highlight=False)
        self._shown = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def say(self, text: str) -> None:
        """See `DemoView.say`."""
        self._console.print(escape(text), soft_wrap=True)
        sys.stdout.flush()

    def show(self, sample: Sample) -> None:
        """See `DemoView.show`; only now and then."""
        if time.monotonic() - self._shown >= _PLAIN_EVERY_S:
            self._shown = time.monotonic()
            self.say(_line(sample))

    def end(self, tables: Sequence[Compared], facts: Sequence[tuple[str, str]]) -> None:
        """See `DemoView.end`."""
        _print_end(self._console, tables, facts)


class LiveView:
    """A table that changes in place, what happened above it."""

    def __init__(self) -> None:
        self._console = Console(highlight=False)
        self._live = Live(console=self._console, refresh_per_second=8, transient=True)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def say(self, text: str) -> None:
        """See `DemoView.say`."""
        self._console.print(escape(text))

    def show(self, sample: Sample) -> None:
        """See `DemoView.show`."""
        self._live.update(_table(sample))

    def end(self, tables: Sequence[Compared], facts: Sequence[tuple[str, str]]) -> None:
        """See `DemoView.end`."""
        self._live.stop()
        _print_end(self._console, tables, facts)


def view_for_stdout() -> DemoView:
    """A live view on a terminal, lines elsewhere."""
    return LiveView() if sys.stdout.isatty() else PlainView()


def _line(s: Sample) -> str:
    return (
        f"{s.seconds:5.1f} s | in: {s.rows_sent} rows ({s.repeats_sent} repeats), {s.watermarks_sent} watermarks,"
        f" {s.ddls_sent} DDLs | held: {s.held} | dropped: {s.duplicates} | applied: {s.rows_written} rows"
        f" up to {s.checkpoint}{_lag(s)} | reader: {s.looks} looks, {s.wrong} wrong totals | reconciler {s.state}"
    )


def _lag(s: Sample) -> str:
    return "" if s.lag_s is None else f" ({s.lag_s:.1f} s ago)"


def _table(s: Sample) -> Table:
    table = Table(show_header=False, title=f"bank transfers, TiCDC to SQLite: {s.seconds:.0f} s", min_width=80)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column()
    restarts = f"{s.watermarks_sent:,} watermarks, {s.ddls_sent} DDLs, TiCDC restarted {s.upstream_restarts} times"
    table.add_row("comes in", f"{s.rows_sent:,}", f"row messages, {s.repeats_sent:,} of them repeats; {restarts}")
    table.add_row("held", f"{s.held:,}", "messages in Kafka that are not applied yet: above the watermark, or in work")
    table.add_row("dropped", f"{s.duplicates:,}", "duplicates, proven by what was applied")
    applied = f"rows, the net effect of what was released, in {s.windows:,} windows; {s.ddls} DDLs"
    table.add_row("applied", f"{s.rows_written:,}", applied)
    table.add_row("checkpoint", s.checkpoint, f"the target equals the upstream of this moment{_lag(s)}")
    colour = "red" if s.wrong else "green"
    table.add_row("reader", f"{s.looks:,}", f"looks at all accounts, [{colour}]{s.wrong} wrong totals[/]")
    table.add_row("reconciler", s.state, f"killed {s.kills} times")
    return table


def _print_end(console: Console, tables: Sequence[Compared], facts: Sequence[tuple[str, str]]) -> None:
    table = Table(title="at the end")
    for header in ("table", "rows upstream", "rows in target", "sum upstream", "sum in target", ""):
        number = header.startswith("rows")
        table.add_column(header, justify="right" if number else "left", no_wrap=header != "" and not number)
    for one in tables:
        verdict = "[green]equal[/]" if one.equal else "[red]DIFFERENT[/]"
        counts = (_count(one.upstream), _count(one.target))
        table.add_row(escape(one.table), *counts, _checksum(one.upstream), _checksum(one.target), verdict)
    console.print(table)
    for name, value in facts:
        console.print(f"{name:<12} {escape(value)}")


def _count(side: ComparedSide | None) -> str:
    return "no table" if side is None else f"{len(side.rows):,}"


def _checksum(side: ComparedSide | None) -> str:
    return "-" if side is None else side.checksum

"""Logs to stderr: for people on a console, JSON for machines. One line a window at info.

| level | meaning |
|---|---|
| error | a changefeed, or the process, does not go on without a person |
| warning | it goes on, but a person should know: tried again, taken over, quarantined, stands still |
| info | what a run does: its start, a line a window, a line a DDL, its end |
| debug | with --verbose: what Spark and the libraries say, and what passes by itself |

Each line that is about a changefeed names it (`changefeed`), each one that is written while a window is worked on names
the window (`window`, its number since the changefeed began): `about` binds both for a block. Libraries are heard from
`warning` on with --verbose, else only where they can't go on; their lines take the same form as ours.
"""

import logging
import sys
from collections.abc import MutableMapping
from contextlib import AbstractContextManager
from io import StringIO
from typing import Any, TextIO, cast

import structlog

from consumer.runtime.terminal import safe, show_bug, without_controls

_FIRST = ("timestamp", "level", "event", "table", "topic", "partition", "offset", "error", "where", "hint")
_LAST = ("changefeed", "window")
"""They are the same on many lines, one after the other."""
_NAME = "reconciler"
"""Of our handler: others on the root logger are not ours to remove."""


def set_up(*, json: bool, verbose: bool) -> None:
    """Configure structlog and tame the libraries' own loggers."""
    told: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso" if json else "%H:%M:%S", utc=json),
    ]
    told.append(in_order)
    shown: list[structlog.typing.Processor] = (
        [structlog.processors.format_exc_info, structlog.processors.JSONRenderer(default=str)]
        if json
        else [
            without_controls,
            structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=_traceback, sort_keys=False),
        ]
    )
    sys.excepthook = show_bug
    structlog.configure(
        processors=[*told, *shown],
        wrapper_class=structlog.make_filtering_bound_logger(logging.DEBUG if verbose else logging.INFO),
        logger_factory=structlog.PrintLoggerFactory(cast("TextIO", _Stderr())),
    )
    _tame(told, shown, logging.WARNING if verbose else logging.CRITICAL)


class _Stderr:
    """Whatever `sys.stderr` is when a line comes: a progress bar takes its place, to print lines above itself."""

    def __getattr__(self, name: str) -> Any:
        return getattr(sys.stderr, name)


def in_order(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """A processor: what a reader looks for comes first, then the rest as the line's author wrote it."""
    first = {name: event[name] for name in _FIRST if name in event}
    rest = {name: value for name, value in event.items() if name not in first and name not in _LAST}
    return {**first, **rest, **{name: event[name] for name in _LAST if name in event}}


def _traceback(output: TextIO, told: Any) -> None:
    """Of structlog's formatters the other shows local variables, and so passwords; texts of errors are others'."""
    plain = StringIO()
    structlog.dev.plain_traceback(plain, told)
    output.write(safe(plain.getvalue(), lines=True))


def _tame(told: list[structlog.typing.Processor], shown: list[structlog.typing.Processor], level: int) -> None:
    """Let libraries' lines look like ours, and be few."""
    handler = logging.StreamHandler(sys.stderr)
    handler.set_name(_NAME)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[structlog.stdlib.add_logger_name, *told],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *shown],
        )
    )
    root = logging.getLogger()
    for former in [known for known in root.handlers if known.get_name() == _NAME]:
        root.removeHandler(former)
    root.addHandler(handler)
    root.setLevel(level)
    logging.captureWarnings(capture=True)


def about(**what: Any) -> AbstractContextManager[None]:
    """Name the changefeed, or the window, on every line of this thread that is written in the block."""
    return structlog.contextvars.bound_contextvars(**what)

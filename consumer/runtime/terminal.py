r"""What may be written to a terminal: text in which no character commands it.

Names, values, statements and servers' errors come from others. Raw, they could move the cursor, rewrite lines, set the
clipboard or the title, forge lines, and show text in another order than it is in (ECMA-48's control functions; Unicode
Standard Annex 9; CVE-2021-42574). So each such character is printed as its escape, as in `\x1b`. Every command prints
through `say` and `say_json`; log lines go through `without_controls`.
"""

import json
import re
import sys
from collections.abc import MutableMapping
from traceback import format_exception
from types import TracebackType
from typing import Any

import click
import orjson

_CONTROL = re.compile(
    "[\x00-\x1f\x7f-\x9f"  # C0, DEL, C1
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # marks, embeddings, overrides and isolates of direction
    "\u2028\u2029"  # separators of lines and paragraphs
    "\ud800-\udfff]"  # halves of characters, which no terminal's encoding holds
)


def safe(text: str, *, lines: bool = False) -> str:
    """The text with escapes in place of control characters; `lines`: except for ends of lines."""
    return _CONTROL.sub(lambda found: found[0] if lines and found[0] == "\n" else repr(found[0])[1:-1], text)


def safe_json(told: Any, *, indent: bool = False) -> str:
    """JSON whose texts hold no control character either: it is JSON with more escapes than it needs."""
    try:
        text = orjson.dumps(told, option=orjson.OPT_INDENT_2 if indent else 0).decode()
    except TypeError:  # halves of characters, as in names of files that are no UTF-8
        text = json.dumps(told, indent=2 if indent else None, default=str)
    return _CONTROL.sub(lambda found: found[0] if found[0] == "\n" else f"\\u{ord(found[0]):04x}", text)


def say(text: str = "", *, lines: bool = False, err: bool = False, colour: str | None = None) -> None:
    """Print a line; `lines`: the text is several, of which each may hold what others wrote."""
    click.secho(safe(text, lines=lines), fg=colour, err=err)


def say_json(told: Any, *, indent: bool = True) -> None:
    """Print what a command has to say to programs."""
    click.echo(safe_json(told, indent=indent))


def without_controls(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """A processor of log lines for a console: it makes each text safe, and what is printed as text."""
    for name, value in event.items():
        if isinstance(value, str):
            event[name] = safe(value, lines=name in ("exception", "stack"))
    return event


def show_bug(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """A hook as `sys.excepthook`: a traceback whose texts are safe."""
    sys.stderr.write(safe("".join(format_exception(kind, error, trace)), lines=True))

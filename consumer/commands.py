"""What all commands of the command line share: their first argument, and how a foreseen failure ends them."""

import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec

import click

from consumer.terminal import say, say_json
from ordering.errors import ReconcilerError

P = ParamSpec("P")
CONFIG = click.argument("config", type=click.Path(path_type=Path))
"""The config file that a command is about."""
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
"""What every command has that tells something."""


def tell(told: Any, text: str, *, as_json: bool) -> None:
    """Print what a command has to tell: as JSON for programs, or a text for people."""
    if as_json:
        say_json(told)
    else:
        say(text)


def foreseen(command: Callable[P, int | None]) -> Callable[P, None]:
    """Exit with the command's code, or with the one of the error it raised: one text on stderr, no traceback."""

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            code = command(*args, **kwargs) or 0
        except ReconcilerError as error:
            say(f"error: {error}", lines=True, err=True)
            code = error.exit_code
        sys.stdout.flush()
        sys.exit(code)

    return run

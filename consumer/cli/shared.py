"""What all commands of the command line share: their first argument, and how a foreseen failure ends them."""

import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec

import click

from consumer.runtime.advice import with_config
from consumer.runtime.terminal import safe, say, say_json
from ordering.errors import ConfigError, ReconcilerError

if TYPE_CHECKING:
    from consumer.config.model import Config

P = ParamSpec("P")
CONFIG = click.argument("config", type=click.Path(path_type=Path))
"""The config file that a command is about."""
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
"""What every command has that tells something."""


SECTIONS = {
    "Try it": {
        "demo": "everything embedded, with a kill halfway",
        "sandbox": "Kafka, Redis and an upstream to try all commands on",
    },
    "Set up": {
        "init": "write a config file",
        "check": "try config, Kafka, Redis and target; change nothing",
        "load": "load a dump, from which the changefeed goes on",
    },
    "Run": {
        "run": "run one changefeed until stopped",
        "serve": "run many, with API, metrics and a status page",
    },
    "Look": {
        "status": "checkpoint, lag, partitions, DDLs",
        "tail": "the latest messages of a topic, decoded",
        "verify": "compare the target with the upstream",
        "prove": "prove the target by sums of its content",
        "audit": "the windows applied last, if target.audit lists them",
        "wait": "wait until the target holds a transaction",
    },
    "Decide": {
        "ddl": "list DDLs; leave one out, or report it as done",
        "quarantine": "list, replay or discard quarantined messages",
        "topic": "retire a topic that gets no more messages",
        "progress": "show, export, rewind or reset the progress",
        "expire": "delete old snapshots of an Iceberg target",
        "compact": "merge small data files of an Iceberg target",
    },
    "Help": {
        "help": "show a page of the documentation",
        "completion": "print the completion script of a shell",
    },
}
"""The commands by what people want to do, each in a few words."""


class Sectioned(click.Group):
    """The group of all commands, which lists them by `SECTIONS`."""

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """See `click.Group`."""
        width = max(len(name) for section in SECTIONS.values() for name in section)
        for title, section in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), words) for name, words in section.items()])


def load_config(path: Path) -> "Config":
    """As `consumer.config.model.load_config`; it and what it imports are loaded by commands that read a config."""
    from consumer.config.model import load_config as load  # noqa: PLC0415

    return load(path)


class WholeNumber(click.IntRange):
    """A whole number, called that in messages."""

    name = "whole number"


class CommitTs(click.IntRange):
    """A commitTs, which is copied from a list."""

    name = "commitTs"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """See `ParamType.convert`; says where these numbers stand."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            self.fail(f"{value!r} is no commitTs, a number such as 463219034579861505: see `reconciler ddl list`")


def cut(text: str, most: int) -> str:
    """The beginning of a long text in one line; it ends in … where something is left out."""
    line = text.replace("\n  hint: ", "; ")
    return line if len(line) <= most else f"{line[: most - 1]}…"


def tell(told: Any, text: str, *, as_json: bool) -> None:
    """Print what a command has to tell: as JSON for programs, or a text for people."""
    if as_json:
        say_json(told)
    else:
        say(text)


def is_asked() -> bool:
    """Whether somebody can answer a question."""
    return sys.stdin.isatty()


def ask_first(question: str, *, yes: bool) -> None:
    """Ask on a terminal, unless `yes` was given; a script has said what it wants. Raises ConfigError for a no."""
    if not yes and is_asked() and not click.confirm(safe(question)):
        raise ConfigError("nothing was changed")


def foreseen(command: Callable[P, int | None]) -> Callable[P, None]:
    """Exit with the command's code, or with the one of the error it raised: one text on stderr, no traceback."""

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            code = command(*args, **kwargs) or 0
        except ReconcilerError as error:
            named = kwargs.get("config")
            say(with_config(f"error: {error}", named if isinstance(named, Path) else None), lines=True, err=True)
            code = error.exit_code
        sys.stdout.flush()
        sys.exit(code)

    return run

"""`docs/cli.md`: every command with its arguments, options, examples and exit codes, from the commands themselves."""

import inspect
import re
from collections.abc import Iterator

import click

from consumer.cli.main import main
from consumer.reference.markdown import joined, made_by, table
from ordering import errors
from ordering.errors import ReconcilerError

_INTRODUCTION = """\
# Command reference

`reconciler` and `ticdc-reconciler` are the same program. Options of `reconciler` itself stand before the command:
`reconciler --log-format json run orders.toml`. CONFIG is a changefeed's TOML file (`docs/configuration.md`)."""
_STREAMS = """\
## What goes where

Results go to stdout, logs and errors to stderr. With `--json`, stdout contains only JSON: `run` and `load` print one
object as the last line, `tail` prints one object per line. An expected error is one text on stderr,
`error: FACT (WHERE)`, with `hint: WHAT TO DO` in the next line, also with `--json`; programs use the exit code to
distinguish errors. Colours and progress bars are shown on terminals only. `--help` of every command has an example."""
_CODES = "## Exit codes\n\nThey are the same for all commands. `docs/runbook.md` describes what to do about each."


def commands(group: click.Group = main, prefix: str = "") -> Iterator[tuple[str, click.Command]]:
    """Name and command of all that do something, those of groups too."""
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, f"{prefix}{name} ")
        else:
            yield f"{prefix}{name}", command


def page() -> str:
    """The page."""
    return joined(
        made_by("the commands in `consumer/cli/`"),
        _INTRODUCTION,
        table(
            ("command", "does"), ((f"[`{name}`](#{_anchor(name)})", _first(command)) for name, command in commands())
        ),
        _STREAMS,
        _CODES,
        table(("code", "means"), _codes()),
        *_command("", main),
        *(part for name, command in commands() for part in _command(name, command)),
    )


def _anchor(name: str) -> str:
    return f"reconciler-{name}".replace(" ", "-")


def _command(name: str, command: click.Command) -> Iterator[str | list[str]]:
    """Its usage, what it says about itself, its options, its examples."""
    context = click.Context(command, info_name=f"reconciler {name}".strip())
    said, _, examples = inspect.cleandoc(command.help or "").partition("\b\n")
    yield f"## {context.info_name}"
    yield f"`{context.info_name} {' '.join(command.collect_usage_pieces(context))}`"
    yield re.sub(r"(?<!\n)\n(?!\n)", " ", said).strip()
    options = [one for one in command.params if isinstance(one, click.Option)]
    if options:
        yield table(("option", "value", "default", "meaning"), (_option(one, context) for one in options))
    lines = [line.strip() for line in examples.splitlines()[1:] if line.strip()]
    yield "\n".join(["```bash", *(re.sub(r" {2,}.*", "", line) for line in lines), "```"])


def _option(option: click.Option, context: click.Context) -> tuple[str, str, str, str]:
    names = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
    value = "" if option.is_flag else _value(option, context)
    help_text, _, told = (option.help or "").partition("[default: ")
    if option.required:
        default = "required"
    elif told:
        default = told.strip().rstrip("]")
    else:
        default = f"`{option.default}`" if option.show_default and option.default not in (None, ()) else ""
    told_so = any(word in help_text for word in ("again", "repeated", "several times"))
    several = " May be repeated." if option.multiple and not told_so else ""
    return names, value, default, help_text.strip() + several


def _value(option: click.Option, context: click.Context) -> str:
    """What stands behind the option."""
    kind = option.type
    if isinstance(kind, click.Choice):
        return " or ".join(f"`{one}`" for one in kind.choices)
    if isinstance(kind, click.IntRange | click.FloatRange):
        named = "whole number" if isinstance(kind, click.IntRange) else "number"
        low = f", at least {kind.min:,g}" if kind.min is not None else ""
        return named + low + (f", at most {kind.max:,g}" if kind.max is not None else "")
    return option.make_metavar(context)


def _first(command: click.Command) -> str:
    """The first sentence about it."""
    return command.get_short_help_str(limit=200)


def _codes() -> Iterator[tuple[str, str]]:
    yield "0", "done, or stopped by a signal"
    yield str(ReconcilerError.exit_code), "a bug; Spark's workers died again and again; this machine's disk is full"
    kinds = [kind for kind in ReconcilerError.__subclasses__() if kind.__module__ == errors.__name__]
    for code in sorted({kind.exit_code for kind in kinds} - {ReconcilerError.exit_code}):
        yield str(code), "; ".join(_said(kind) for kind in kinds if kind.exit_code == code)


def _said(kind: type[ReconcilerError]) -> str:
    said = (kind.__doc__ or "").replace(" (R8)", "").strip().rstrip(".")
    return said[0].lower() + said[1:] if not said.startswith("Kafka") else said

"""The commands `reconciler quarantine ...`."""

import base64
from pathlib import Path
from typing import Any

import click

from consumer.commands import CONFIG, JSON, foreseen
from consumer.config import load_config
from consumer.quarantine_told import place_of, position_of, told_message
from consumer.terminal import say, say_json
from ordering.errors import ConfigError

_OFFSETS = click.option(
    "--offset", "offsets", multiple=True, metavar="TOPIC/PARTITION/OFFSET", help="Only this message; may be repeated."
)


@click.group()
def quarantine() -> None:
    """See messages that were set aside, and decide about them (docs/quarantine.md)."""


@quarantine.command("list")
@CONFIG
@JSON
@foreseen
def list_messages(config: Path, as_json: bool) -> None:
    """List the messages that were set aside, by position.

    \b
    Example:
      reconciler quarantine list orders.toml --json
    """
    from consumer.replaying import listed  # noqa: PLC0415 drivers are loaded only where they are needed

    found = listed(load_config(config))
    if as_json:
        say_json([told_message(one) for one in found])
    for one in found if not as_json else []:
        say(f"{place_of(one.position)}  {one.state.value}  {one.about or 'row unknown'}: {one.reason[:200]}")


@quarantine.command()
@CONFIG
@click.argument("offset", metavar="TOPIC/PARTITION/OFFSET")
@JSON
@foreseen
def show(config: Path, offset: str, as_json: bool) -> None:
    """Show one message with its bytes.

    \b
    Example:
      reconciler quarantine show orders.toml ticdc-test/0/42
    """
    from consumer.replaying import message_of  # noqa: PLC0415

    one = message_of(load_config(config), position_of(offset))
    told = {**told_message(one), "key": _base64(one.key), "value": _base64(one.value)}
    if as_json:
        say_json(told)
        return
    for name, value in told.items():
        if name not in ("key", "value"):
            say(f"{name:<11} {'-' if value in (None, '') else value}")
    say(f"{'key':<11} {_text(one.key)}")
    say(f"{'value':<11} {_text(one.value)}")


@quarantine.command()
@CONFIG
@_OFFSETS
@JSON
@foreseen
def replay(config: Path, offsets: tuple[str, ...], as_json: bool) -> None:
    """Apply messages that are held, or some of them, once their cause was mended.

    Each is applied only if nothing newer of its row was: what became of it is printed. Not while an instance runs.

    \b
    Example:
      reconciler quarantine replay orders.toml --offset ticdc-test/0/42
    """
    from consumer.replaying import replay as replayed  # noqa: PLC0415

    verdicts = [_verdict(one) for one in replayed(load_config(config), list(map(position_of, offsets)))]
    _print_verdicts(verdicts, as_json=as_json)


@quarantine.command()
@CONFIG
@_OFFSETS
@click.option("--all", "every", is_flag=True, help="All that are held or superseded.")
@click.option("--reason", required=True, help="Why; kept with the message.")
@JSON
@foreseen
def discard(config: Path, offsets: tuple[str, ...], every: bool, reason: str, as_json: bool) -> None:
    """Leave messages out for good. They stay listed. Not while an instance runs.

    \b
    Example:
      reconciler quarantine discard orders.toml --offset ticdc-test/0/42 --reason "test data"
    """
    from consumer.replaying import discard as discarded  # noqa: PLC0415

    if bool(offsets) is every:
        raise ConfigError("which messages?", hint="--offset TOPIC/PARTITION/OFFSET, or --all")
    found = discarded(load_config(config), list(map(position_of, offsets)), reason)
    _print_verdicts([_verdict(one) for one in found], as_json=as_json)


def _print_verdicts(verdicts: list[dict[str, Any]], *, as_json: bool) -> None:
    if as_json:
        say_json(verdicts)
    for one in verdicts if not as_json else []:
        say(f"{one['message']}  {one['state']}  {one['why']}")


def _verdict(one: Any) -> dict[str, Any]:
    return {"message": place_of(one.position), "state": one.state.value, "why": one.why}


def _base64(value: bytes | None) -> str | None:
    return None if value is None else base64.b64encode(value).decode()


def _text(value: bytes | None) -> str:
    return "-" if value is None else value.decode("utf-8", "backslashreplace")

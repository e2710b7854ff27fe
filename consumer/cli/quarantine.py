"""The commands `reconciler quarantine ...`."""

from pathlib import Path
from typing import Any

import click

from consumer.cli.shared import CONFIG, JSON, cut, foreseen, load_config
from consumer.quarantine.presentation import place_of, position_of, told_message
from consumer.runtime.terminal import say, say_json
from ordering.errors import ConfigError, NotAppliedError
from ordering.quarantine import QuarantineState
from sinks.wording import plural

_OFFSETS = click.option(
    "--offset", "offsets", multiple=True, metavar="TOPIC/PARTITION/OFFSET", help="Only this message; may be repeated."
)


@click.group()
def quarantine() -> None:
    """List quarantined messages, and decide about them (`reconciler help quarantine`)."""


@quarantine.command("list")
@CONFIG
@JSON
@foreseen
def list_messages(config: Path, as_json: bool) -> None:
    """List the quarantined messages by position.

    \b
    Example:
      reconciler quarantine list orders.toml --json
    """
    from consumer.operate.quarantine import listed  # noqa: PLC0415 drivers are loaded only where they are needed

    found = listed(load_config(config))
    if as_json:
        say_json([told_message(one) for one in found])
    if not found and not as_json:
        say("nothing is quarantined")
    for one in found if not as_json else []:
        say(f"{place_of(one.position)}  {one.state.value}  {one.about or 'row unknown'}: {cut(one.reason, 300)}")


@quarantine.command()
@CONFIG
@click.argument("offset", metavar="TOPIC/PARTITION/OFFSET")
@JSON
@foreseen
def show(config: Path, offset: str, as_json: bool) -> None:
    """Show one message with its bytes, and as it is read.

    \b
    Example:
      reconciler quarantine show orders.toml ticdc-test/0/42
    """
    from consumer.operate.quarantine import message_of  # noqa: PLC0415
    from consumer.quarantine.content import told_content  # noqa: PLC0415

    read = load_config(config)
    one = message_of(read, position_of(offset))
    told, content = told_message(one), told_content(one, read)
    if as_json:
        say_json({**told, **content})
        return
    for name, value in told.items():
        say(f"{name:<11} {'-' if value in (None, '') else value}".replace("\n", f"\n{'':<11}"), lines=name == "reason")
    say(f"{'key':<11} {_text(one.key)}")
    say(f"{'value':<11} {_text(one.value)}")
    say(f"{'decoded':<11} {content['fault']}")
    for line in (content["decoded"] or "").splitlines():
        say(f"  {line}")


@quarantine.command()
@CONFIG
@_OFFSETS
@JSON
@foreseen
def replay(config: Path, offsets: tuple[str, ...], as_json: bool) -> None:
    """Apply held messages, or some of them, after their cause was fixed.

    A message is applied only if no newer event of its row was. Prints the result of each. Stop all instances first.
    Exits 8 if a message stays held.

    \b
    Example:
      reconciler quarantine replay orders.toml --offset ticdc-test/0/42
    """
    from consumer.operate.quarantine import replay as replayed  # noqa: PLC0415

    verdicts = [_verdict(one) for one in replayed(load_config(config), list(map(position_of, offsets)))]
    _print_verdicts(verdicts, as_json=as_json)
    _refuse_held(verdicts)


@quarantine.command()
@CONFIG
@_OFFSETS
@click.option("--all", "every", is_flag=True, help="All messages that are held or superseded.")
@click.option("--reason", required=True, help="The reason; stored with the message.")
@JSON
@foreseen
def discard(config: Path, offsets: tuple[str, ...], every: bool, reason: str, as_json: bool) -> None:
    """Leave messages out for good. They stay listed. Not while an instance runs.

    \b
    Example:
      reconciler quarantine discard orders.toml --offset ticdc-test/0/42 --reason "test data"
    """
    from consumer.operate.quarantine import discard as discarded  # noqa: PLC0415

    if bool(offsets) is every:
        raise ConfigError("which messages?", hint="--offset TOPIC/PARTITION/OFFSET, or --all")
    found = discarded(load_config(config), list(map(position_of, offsets)), reason)
    _print_verdicts([_verdict(one) for one in found], as_json=as_json)


def _print_verdicts(verdicts: list[dict[str, Any]], *, as_json: bool) -> None:
    if as_json:
        say_json(verdicts)
    if not verdicts and not as_json:
        say("no message is held")
    for one in verdicts if not as_json else []:
        say(f"{one['message']}  {one['state']}  {one['why']}")


def _refuse_held(verdicts: list[dict[str, Any]]) -> None:
    """Raise NotAppliedError if a message that was to be applied was not."""
    held = sum(one["state"] == QuarantineState.HELD.value for one in verdicts)
    if held:
        stay = "stays" if held == 1 else "stay"
        raise NotAppliedError(
            f"{held} of {plural(len(verdicts), 'message')} could not be applied and {stay} held",
            hint="fix the reason printed with each and replay again, or discard it (`reconciler help quarantine`)",
        )


def _verdict(one: Any) -> dict[str, Any]:
    return {"message": place_of(one.position), "state": one.state.value, "why": one.why}


def _text(value: bytes | None) -> str:
    return "-" if value is None else value.decode("utf-8", "backslashreplace")

"""The command `reconciler tail`."""

import sys
from pathlib import Path

import click

from consumer.commands import foreseen
from consumer.config import load_config
from consumer.terminal import say, say_json
from ordering.errors import ConfigError

_COLOURS = {"DELETE": "red", "INSERT": "green", "UPDATE": "yellow", "WATERMARK": "bright_black", "?": "magenta"}


@click.command()
@click.argument("topic")
@click.option("--bootstrap-servers", default="", help="Kafka's addresses; or --config.")
@click.option("--config", type=click.Path(path_type=Path), help="A config whose Kafka and login are taken.")
@click.option("-n", "--lines", type=click.IntRange(0, 100_000), default=10, show_default=True, help="How many.")
@click.option("--follow", "-f", is_flag=True, help="Go on with what comes, until stopped.")
@click.option("--table", "rules", multiple=True, help="Only these tables, as in filter.rules; may be said again.")
@click.option("--no-watermarks", is_flag=True, help="Leave out watermarks.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
@foreseen
def tail(
    topic: str,
    bootstrap_servers: str,
    config: Path | None,
    lines: int,
    follow: bool,
    rules: tuple[str, ...],
    no_watermarks: bool,
    as_json: bool,
) -> None:
    """Show the latest messages of TOPIC: position, commitTs as time, kind, table, values. Changes nothing in Kafka.

    Messages that can't be decoded are shown as such, with the reason.

    \b
    Examples:
      reconciler tail ticdc-test --bootstrap-servers 127.0.0.1:9092
      reconciler tail ticdc-test --config orders.toml -n 100 --table 'shop.*' --json
      reconciler tail ticdc-test --config orders.toml --follow --no-watermarks
    """
    from consumer.tailing import Tail  # noqa: PLC0415 Kafka's client is loaded only where it is needed

    read = load_config(config) if config is not None else None
    if (read is None) == (not bootstrap_servers):
        raise ConfigError("which Kafka?", hint="say --bootstrap-servers HOST:PORT, or --config CONFIG")
    bootstrap, settings = (read.source.bootstrap_servers, read.source.kafka) if read else (bootstrap_servers, {})
    look = Tail(bootstrap, topic, settings, lines, rules, watermarks=not no_watermarks)
    try:
        for told in look.messages(follow=follow):
            if as_json:
                say_json(told.as_json(), indent=False)
            else:
                say(told.line(), colour=_COLOURS.get(told.kind))
            sys.stdout.flush()
    except KeyboardInterrupt:
        say(err=True)

"""The command `reconciler tail`."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from consumer.cli.shared import CommitTs, WholeNumber, foreseen, load_config
from consumer.runtime.terminal import say, say_json
from ordering.errors import ConfigError

if TYPE_CHECKING:
    from consumer.config.model import Config

_COLOURS = {"DELETE": "red", "INSERT": "green", "UPDATE": "yellow", "WATERMARK": "bright_black", "?": "magenta"}


@click.command()
@click.argument("topic")
@click.option("--bootstrap-servers", default="", help="Kafka's addresses; or use --config.")
@click.option("--config", type=click.Path(path_type=Path), help="Use Kafka and login of this config.")
@click.option("-n", "--lines", type=WholeNumber(0, 100_000), default=10, show_default=True, help="How many.")
@click.option("--follow", "-f", is_flag=True, help="Print new messages until stopped.")
@click.option("--table", "rules", multiple=True, help="Only these tables, as in filter.rules; may be repeated.")
@click.option("--key", default="", help="Only rows with this value in a column of their key.")
@click.option("--since", type=CommitTs(0), default=0, help="Only events with this commitTs or a higher one.")
@click.option("--no-watermarks", is_flag=True, help="Leave out watermarks.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
@foreseen
def tail(
    topic: str,
    bootstrap_servers: str,
    config: Path | None,
    lines: int,
    follow: bool,
    rules: tuple[str, ...],
    key: str,
    since: int,
    no_watermarks: bool,
    as_json: bool,
) -> None:
    """Show the latest messages of TOPIC: position, commitTs as time, kind, table, values. Changes nothing in Kafka.

    Messages that can't be decoded are shown as such, with the reason. If the config has
    source.storage, TOPIC is the beginning of the files' path.

    \b
    Examples:
      reconciler tail ticdc-test --bootstrap-servers 127.0.0.1:9092
      reconciler tail ticdc-test --config orders.toml -n 100 --table 'shop.*' --json
      reconciler tail ticdc-test --config orders.toml --follow --no-watermarks
      reconciler tail ticdc-test --config orders.toml --table shop.orders --key 77
      reconciler tail shop/orders/ --config files.toml
    """
    from consumer.formats.canal_json import CANAL_JSON  # noqa: PLC0415 Kafka's client is loaded only where it is needed
    from consumer.operate.message_filter import MessageFilter  # noqa: PLC0415
    from consumer.operate.tail import Tail  # noqa: PLC0415
    from consumer.wiring import format_of  # noqa: PLC0415

    read = load_config(config) if config is not None else None
    if read is not None and read.source.storage:
        _tail_files(read, topic, lines, follow=follow or bool(rules or key or since), as_json=as_json)
        return
    if (read is None) == (not bootstrap_servers):
        raise ConfigError("no Kafka was named", hint="use --bootstrap-servers HOST:PORT, or --config CONFIG")
    bootstrap, settings = (read.source.bootstrap_servers, read.source.kafka) if read else (bootstrap_servers, {})
    format_ = format_of(read) if read else CANAL_JSON
    wanted = MessageFilter(rules, key, since, watermarks=not no_watermarks)
    look = Tail(bootstrap, topic, settings, lines, wanted, format=format_)
    try:
        for told in look.messages(follow=follow):
            if as_json:
                say_json(told.as_json(), indent=False)
            else:
                say(told.line(), colour=_COLOURS.get(told.kind))
            sys.stdout.flush()
    except KeyboardInterrupt:
        say(err=True)


def _tail_files(read: "Config", prefix: str, lines: int, *, follow: bool, as_json: bool) -> None:
    """The latest rows of files."""
    from consumer.operate.files import FileTail  # noqa: PLC0415 as above

    if follow:
        raise ConfigError(
            "--follow, --table, --key and --since are of topics", hint="name the files: reconciler tail SCHEMA/TABLE/"
        )
    for told in FileTail(read, prefix, lines).messages():
        if as_json:
            say_json(told.as_json(), indent=False)
        else:
            say(told.line(), colour=_COLOURS.get(told.kind))

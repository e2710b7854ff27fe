"""The command `reconciler init`: writes a commented config, by asking or by options, and never over another file."""

import json
import sys
from pathlib import Path

import click

from consumer.commands import JSON, foreseen, tell
from consumer.config import config_from
from ordering.errors import ConfigError
from sinks.private_files import open_file

_TEMPLATE = """\
# A changefeed of ticdc-reconciler. Left out keys have the values that are shown behind a "#"; README.md tells of all.
changefeed = {changefeed}                # names the checkpoint row, the consumer group and the prefix in Redis

[source]
bootstrap-servers = {bootstrap}
topics = {topics}                        # names, or one "~regular expression"
# start-ts = 0                           # TSO of a dump that the target holds; `reconciler load` sets it by itself
# time-zone = "UTC"                      # the TiCDC server's (--tz), for TIMESTAMP values
# [source.kafka]                         # client properties: "security.protocol", "sasl.mechanism" ...

[target]
# sqlite:////DIRECTORY | mysql://USER:PASSWORD@HOST:3306 | mariadb://... | tidb://... | postgresql://USER:PASSWORD@HOST:5432/DATABASE
# no secret need stand here: "${{NAME}}" is an environment variable, "file:/run/secrets/uri" a file
uri = {uri}
{consistency}

[redis]
uri = {redis}                            # "" = without Redis: duplicates are dropped unproven

[filter]
rules = {rules}                          # which tables, as in a TiCDC changefeed
"""

_NO_CONSISTENCY = '# consistency = "snapshot"               # or transaction, row; of tidb:// row is the default'


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--changefeed", help="The changefeed's id.  [default: the file's name]")
@click.option("--bootstrap-servers", help="Kafka's addresses.")
@click.option("--topic", "topics", multiple=True, help="A topic, or ~EXPRESSION; may be said again.")
@click.option("--target", "uri", help="The target's URI.")
@click.option("--consistency", type=click.Choice(["snapshot", "transaction", "row"]), help="[default: the target's]")
@click.option("--redis", help='Redis\'s URI; "" is none.')
@click.option("--rule", "rules", multiple=True, help="A filter rule; may be said again.  [default: *.*]")
@JSON
@foreseen
def init(  # a command's options
    file: Path,
    changefeed: str | None,
    bootstrap_servers: str | None,
    topics: tuple[str, ...],
    uri: str | None,
    consistency: str | None,
    redis: str | None,
    rules: tuple[str, ...],
    as_json: bool,
) -> None:
    """Write a commented config to FILE. What no option says is asked for on a terminal, and a default elsewhere.

    \b
    Examples:
      reconciler init orders.toml
      reconciler init orders.toml --bootstrap-servers 127.0.0.1:9092 --topic ticdc-test --target sqlite:////tmp/out
    """
    if file.exists():
        raise ConfigError(f"{file} is there already", hint="name a new file; nothing is ever overwritten")
    values: dict[str, str | list[str]] = {
        "changefeed": _asked(changefeed, "Id of the changefeed", file.stem),
        "bootstrap": _asked(bootstrap_servers, "Kafka's addresses", "127.0.0.1:9092"),
        "topics": list(topics) or [_asked(None, "Topic, or ~expression", "ticdc-test")],
        "uri": _asked(uri, "Target's URI", "sqlite:////tmp/out"),
        "redis": _asked(redis, "Redis's URI (empty: none)", "redis://127.0.0.1:6379/0"),
        "rules": list(rules) or ["*.*"],
    }
    text = _text(values, consistency)
    try:
        with open_file(file, "x", encoding="utf-8") as made:
            made.write(text)
    except OSError as error:
        raise ConfigError(f"can't write {file}: {error.strerror}") from error
    text = f"wrote {file}; try it: reconciler check {file}"
    tell({"file": str(file), "changefeed": values["changefeed"]}, text, as_json=as_json)


def _asked(told: str | None, question: str, otherwise: str) -> str:
    if told is not None or not sys.stdin.isatty():
        return otherwise if told is None else told
    return str(click.prompt(question, default=otherwise))


def _text(values: dict[str, str | list[str]], consistency: str | None) -> str:
    """The file's text, after the config's own validation of what it says. Raises ConfigError."""
    target = {"uri": values["uri"], **({"consistency": consistency} if consistency else {})}
    config_from(
        {
            "changefeed": values["changefeed"],
            "source": {"bootstrap-servers": values["bootstrap"], "topics": values["topics"]},
            "target": target,
            "redis": {"uri": values["redis"]},
            "filter": {"rules": values["rules"]},
        },
        "the options",
    )
    chosen = f"consistency = {_toml(consistency)}" if consistency else _NO_CONSISTENCY
    return _TEMPLATE.format(**{name: _toml(value) for name, value in values.items()}, consistency=chosen)


def _toml(value: str | list[str]) -> str:
    """A TOML string or list of strings: JSON's escapes are among TOML's."""
    return json.dumps(value, ensure_ascii=False)

"""The command `reconciler init`: writes a commented config, by asking or by options, and never over another file."""

import json
from pathlib import Path

import click

from consumer.cli.shared import JSON, foreseen, is_asked, tell
from consumer.runtime.terminal import say
from ordering.errors import ConfigError
from sinks.private_files import open_file

_TEMPLATE = """\
# A changefeed of ticdc-reconciler. Lines with "#" show defaults; all keys: reconciler help configuration
changefeed = {changefeed}                # names the checkpoint row, the consumer group and the prefix in Redis

[source]
bootstrap-servers = {bootstrap}
topics = {topics}                        # names, or one "~regular expression"
# start-ts = 0                           # TSO of a dump that the target holds; `reconciler load` sets it by itself
# time-zone = "UTC"                      # the TiCDC server's (--tz), for TIMESTAMP values
# [source.kafka]                         # client properties: "security.protocol", "sasl.mechanism" ...

[target]
# sqlite:////DIRECTORY | mysql://USER:PASSWORD@HOST:3306 | mariadb://... | tidb://... | postgresql://USER:PASSWORD@HOST:5432/DATABASE
# to keep the password out of this file: "${{NAME}}" reads an environment variable, "file:/run/secrets/uri" a file
uri = {uri}
{consistency}

[redis]
uri = {redis}                            # "" = without Redis: repetitions of earlier windows are dropped unproven

[filter]
rules = {rules}                          # which tables, as in a TiCDC changefeed
"""

_NO_CONSISTENCY = '# consistency = "snapshot"               # or transaction, row; of tidb:// row is the default'
_NO_REDIS = ("none", "no", '""', "''", "-")
"""Answers that leave Redis out: an empty one takes what is proposed."""
_Values = dict[str, str | list[str]]
_EXAMPLE: _Values = {
    "changefeed": "c", "bootstrap": "h:1", "topics": ["t"], "uri": "sqlite:////tmp", "redis": "", "rules": ["*.*"]
}  # fmt: skip
"""Values that are fine, beside which one answer is judged."""


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--changefeed", help="The changefeed's id.  [default: the file's name]")
@click.option("--bootstrap-servers", help="Kafka's addresses.")
@click.option("--topic", "topics", multiple=True, help="A topic, or ~EXPRESSION; may be repeated.")
@click.option("--target", "uri", help="The target's URI.")
@click.option("--consistency", type=click.Choice(["snapshot", "transaction", "row"]), help="[default: the target's]")
@click.option("--redis", help='URI of Redis; "": no Redis.')
@click.option("--rule", "rules", multiple=True, help="A filter rule; may be repeated.  [default: *.*]")
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
    """Write a commented config to FILE. On a terminal it asks for missing options; elsewhere it uses defaults.

    \b
    Examples:
      reconciler init orders.toml
      reconciler init orders.toml --bootstrap-servers 127.0.0.1:9092 --topic ticdc-test --target sqlite:////tmp/out
    """
    if file.exists():
        raise ConfigError(f"{file} is there already", hint="name a new file; nothing is ever overwritten")
    values: _Values = {
        "changefeed": _asked("changefeed", changefeed, "Id of the changefeed", file.stem),
        "bootstrap": _asked("bootstrap", bootstrap_servers, "Kafka's addresses", "127.0.0.1:9092"),
        "topics": list(topics) or [_asked("topics", None, "Topic, or ~expression", "ticdc-test")],
        "uri": _asked("uri", uri, "Target's URI", "sqlite:////tmp/out"),
        "redis": _asked("redis", redis, f"Redis's URI ({_NO_REDIS[0]}: without Redis)", "redis://127.0.0.1:6379/0"),
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


def _asked(name: str, told: str | None, question: str, otherwise: str) -> str:
    """What an option says, or somebody who is asked: again, until the answer can be used."""
    if told is not None or not is_asked():
        return otherwise if told is None else told
    while True:
        answer = str(click.prompt(question, default=otherwise)).strip()
        answer = "" if name == "redis" and answer.lower() in _NO_REDIS else answer
        try:
            _check({**_EXAMPLE, name: [answer] if name == "topics" else answer}, None, question)
        except ConfigError as error:
            say(error.fact.removeprefix("the config is wrong: "), err=True)
        else:
            return answer


def _text(values: _Values, consistency: str | None) -> str:
    """The file's text, after the config's own validation of what it says. Raises ConfigError."""
    _check(values, consistency, "the options")
    chosen = f"consistency = {_toml(consistency)}" if consistency else _NO_CONSISTENCY
    text = _TEMPLATE.format(**{name: _toml(value) for name, value in values.items()}, consistency=chosen)
    return "".join(map(_aligned, text.splitlines(keepends=True)))


def _aligned(line: str) -> str:
    """The line with what it says about its value where the other lines say it."""
    value, gap, said = line.rpartition("  # ")
    return f"{value.rstrip():39}{gap}{said}" if gap else line


def _check(values: _Values, consistency: str | None, place: str) -> None:
    target = {"uri": values["uri"], **({"consistency": consistency} if consistency else {})}
    from consumer.config.model import config_from  # noqa: PLC0415 `--help` does without

    config_from(
        {
            "changefeed": values["changefeed"],
            "source": {"bootstrap-servers": values["bootstrap"], "topics": values["topics"]},
            "target": target,
            "redis": {"uri": values["redis"]},
            "filter": {"rules": values["rules"]},
        },
        place,
    )


def _toml(value: str | list[str]) -> str:
    """A TOML string or list of strings: JSON's escapes are among TOML's."""
    return json.dumps(value, ensure_ascii=False)

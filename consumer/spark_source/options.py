"""The options of the data source: a config file's keys, with what only a reader of changes needs.

    spark.readStream.format("ticdc").option("source.topics", "ticdc-test").load()

A key is the path in the config file (`source.start-ts`); `load(PATH)` reads such a file, whose `[target]` counts for
nothing here, and options go before it.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from consumer.config.model import Config, config_from, load_config
from ordering.errors import ConfigError
from ordering.events import TableName

MAX_ROWS, END_TS, TABLE, HANDLE_KEYS = "maxRowsPerTrigger", "end-ts", "table", "handle-keys"
_OWN = {name.lower(): name for name in (MAX_ROWS, END_TS, TABLE, HANDLE_KEYS)}
_LISTS = ("source.topics", "source.ignored-watermarks", "filter.rules")
_LITERAL = ("limits.", "source.start-ts", "filter.case-sensitive", "spark.native")
_NOWHERE = {"uri": "sqlite:///nowhere"}
_KEY = re.compile(r"\s*([^.\s]+)\.([^\s(]+)\s*\(([^()]+)\)\s*(?:;|$)")


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """What a reader was asked for."""

    config: Config
    max_rows: int
    """Row messages of a batch; a transaction with more is a batch of its own."""
    end_ts: int | None
    table: TableName | None
    """The one whose columns are read as such; None: all tables, rows as JSON."""
    handle_keys: Mapping[TableName, tuple[str, ...]]
    """Of tables whose messages name none."""


def read_options(options: Mapping[str, str]) -> SourceOptions:
    """Read the options as Spark passes them on. Raises ConfigError."""
    given = {key.lower(): value for key, value in options.items()}
    own = {_OWN[key]: given.pop(key) for key in [*given] if key in _OWN}
    config = _config(given)
    _check(config)
    table = own.get(TABLE)
    end = own.get(END_TS)
    return SourceOptions(
        config,
        _number(MAX_ROWS, own.get(MAX_ROWS, str(config.limits.window_rows))),
        None if end is None else _number(END_TS, end),
        None if table is None else _table(table),
        _handle_keys(own.get(HANDLE_KEYS, "")),
    )


def _config(options: Mapping[str, str]) -> Config:
    """The config of the file, if one is named, with the options in the place of its keys."""
    values: dict[str, Any] = {"changefeed": "spark-source", "target": dict(_NOWHERE), "redis": {"uri": ""}}
    path = options.get("path")
    if path is not None:
        values = load_config(Path(path)).model_dump(by_alias=True)
    for key, text in options.items():
        if key == "changefeed":
            values[key] = text
        elif key != "path":
            _put(values, key, text)
    return config_from(values, "options of the data source")


def _put(values: dict[str, Any], key: str, text: str) -> None:
    section, dot, name = key.partition(".")
    if not dot or section not in {"source", "limits", "filter"}:
        hint = f"known are {', '.join(_OWN.values())}, changefeed, and keys of [source], [limits] and [filter]"
        raise ConfigError(f"the data source has no option {key!r}", hint=hint)
    at = values.setdefault(section, {})
    if section == "source" and name.startswith("kafka."):
        at, name = at.setdefault("kafka", {}), name.removeprefix("kafka.")
    at[name] = _value(key, text)


def _value(key: str, text: str) -> Any:
    if key in _LISTS and not text.lstrip().startswith("["):
        return [text] if text.startswith("~") else [one.strip() for one in text.split(",")]
    if key in _LISTS or key.startswith(_LITERAL):
        try:
            return tomllib.loads(f"v = {text}")["v"]
        except tomllib.TOMLDecodeError:
            return text
    return text


def _check(config: Config) -> None:
    """Refuse what would need more than the messages and this process."""
    hint = "run a changefeed with a target for this, or leave it out"
    for key, used in (
        (f'source.protocol = "{config.source.protocol}"', config.source.protocol != "canal-json"),
        ("source.storage", bool(config.source.storage)),
        ("filter.event-filters", bool(config.filter.event_filters)),
        ("filter.force-replicate", config.filter.force_replicate),
        ("quarantine.enabled", config.quarantine.enabled),
        ("sink.dispatchers", bool(config.sink.dispatchers)),
        ("sink.column-selectors", bool(config.sink.column_selectors)),
        ("sink.column-masks", bool(config.sink.column_masks)),
    ):
        if used:
            raise ConfigError(f"the data source does not know {key}", where=key.split(" ", maxsplit=1)[0], hint=hint)


def _number(name: str, text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise ConfigError(f"{name} is no positive whole number: {text!r}", where=name)
    return int(text)


def _table(text: str) -> TableName:
    database, dot, name = text.partition(".")
    if not dot or not database or not name:
        raise ConfigError(f"table is no DATABASE.TABLE: {text!r}", where=TABLE)
    return TableName(database, name)


def _handle_keys(text: str) -> dict[TableName, tuple[str, ...]]:
    """Read `shop.orders(id, region); shop.items(code)`."""
    found: dict[TableName, tuple[str, ...]] = {}
    at = 0
    while text[at:].strip():
        match = _KEY.match(text, at)
        if match is None:
            raise ConfigError(f"handle-keys can't be read from {text[at:]!r} on", hint="write shop.orders(id, region)")
        database, table, columns = match.groups()
        found[TableName(database, table)] = tuple(column.strip() for column in columns.split(","))
        at = match.end()
    return found

"""An applier of Canal-JSON that shares no code with the simulator.

Per transaction all old images go out, then all new ones come in.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from consumer.demo.fake_ticdc.changefeed import Message

Value: TypeAlias = dict[str, Any]
Tables: TypeAlias = dict[str, dict[tuple[str, ...], dict[str, Any]]]


def decoded(messages: Iterable[Message]) -> list[Value]:
    return [json.loads(message.value) for message in messages]


def is_row(value: Value) -> bool:
    return not value["isDdl"] and value["type"] != "TIDB_WATERMARK"


def content(value: Value) -> tuple[Any, ...]:
    """A row event without what depends on when and how it was sent."""
    images = [json.dumps(value[name], sort_keys=True) for name in ("data", "old")]
    return value["_tidb"]["commitTs"], value["database"], value["table"], value["type"], *images


def row_transactions(values: Iterable[Value]) -> dict[int, list[Value]]:
    """{commitTs: row events}, repetitions dropped."""
    distinct = {content(value): value for value in values if is_row(value)}
    found = defaultdict(list)
    for value in distinct.values():
        found[value["_tidb"]["commitTs"]].append(value)
    return found


def apply_transaction(tables: Tables, events: list[Value], keys: Mapping[str, list[str]]) -> None:
    """Take all old images out and put all new ones in; `keys` names the handle keys of tables without a primary key."""
    for value in events:
        rows, key, new = tables[full_name(value)], value["pkNames"] or keys[value["table"]], value["data"][0]
        if value["type"] != "INSERT":
            old = new if value["type"] == "DELETE" else {**new, **value["old"][0]}
            del rows[tuple(old[name] for name in key)]
    for value in events:
        rows, key, new = tables[full_name(value)], value["pkNames"] or keys[value["table"]], value["data"][0]
        if value["type"] != "DELETE":
            assert tuple(new[name] for name in key) not in rows
            rows[tuple(new[name] for name in key)] = new


def full_name(value: Value) -> str:
    return f"{value['database']}.{value['table']}"


def applied(
    messages: Iterable[Message],
    keys: Mapping[str, list[str]],
    ddls: Iterable[tuple[int, Callable[[Tables], None]]] = (),
) -> Tables:
    """Apply everything in commitTs order; `ddls` are commitTs and what the DDL does to the tables."""
    tables: Tables = defaultdict(dict)
    found, changes = row_transactions(decoded(messages)), dict(ddls)
    for ts in sorted({*found, *changes}):
        apply_transaction(tables, found.get(ts, []), keys)
        if ts in changes:
            changes[ts](tables)
    return tables

"""What a topic's messages say, read in the simplest way: each change of a row once, by what it is."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from consumer.demo.fake_ticdc.changefeed import Message
from tests.service.lab import body

Identity = tuple[str, str, int, str, str]
"""Database, table, commitTs, whether it deletes or writes, and the handle key."""


def identities(
    messages: Iterable[Message], keys: Mapping[str, tuple[str, ...]]
) -> dict[Identity, dict[str, Any] | None]:
    """Each change with the row that it leaves; an UPDATE that moves a key is two.

    `keys`: of tables whose messages name none.
    """
    found: dict[Identity, dict[str, Any] | None] = {}
    for message in messages:
        event = body(message)
        if event["type"] not in {"INSERT", "UPDATE", "DELETE"}:
            continue
        names = event["pkNames"] or keys[f"{event['database']}.{event['table']}"]
        (data,), old = event["data"], (event["old"] or [{}])[0]
        place = event["database"], event["table"], event["_tidb"]["commitTs"]
        if event["type"] == "DELETE":
            found[*place, "delete", _key(names, data)] = None
            continue
        found[*place, "write", _key(names, data)] = data
        if event["type"] == "UPDATE" and _key(names, data | old) != _key(names, data):
            found[*place, "delete", _key(names, data | old)] = None
    return found


def ddls(messages: Iterable[Message]) -> set[tuple[int, str]]:
    """All DDLs: TiCDC may send one several times."""
    events = [body(message) for message in messages]
    return {(e["_tidb"]["commitTs"], e["sql"]) for e in events if e["isDdl"]}


def resolved(messages: Iterable[Message]) -> list[int]:
    """After each message the lowest of the partitions' highest watermarks; 0 where one has none."""
    highest: dict[tuple[str, int], int] = {}
    found = []
    for message in messages:
        place = message.topic, message.partition
        event = body(message)
        mark = event["_tidb"]["watermarkTs"] if event["type"] == "TIDB_WATERMARK" else 0
        highest[place] = max(mark, highest.get(place, 0))
        found.append(min(highest.values()))
    return found


def _key(names: Sequence[str], row: dict[str, Any]) -> str:
    return json.dumps({name: row[name] for name in names}, sort_keys=True)

"""Messages by hand, as TiCDC would send them, for what no recording holds."""

import json
from collections.abc import Mapping
from typing import Any

import cramjam

from consumer.demo.fake_ticdc.changefeed import Message
from tests.service.lab import PARTITIONS

TOPIC = "ticdc"
BASE = (1767225600000 << 18) + 1
"""commitTs 0 of a test: 2026-01-01 00:00:00 UTC."""
Row = Mapping[str, object]
TYPES = {"id": "int", "v": "int", "s": "varchar", "a": "int", "x": "int"}
"""Of columns that most tests have; what others are is for a test to say (`typed`), or left open."""


def at(number: int) -> int:
    """The commitTs of a test's transaction: one a millisecond."""
    return BASE + (number << 18)


def value_of(kind: str, table: str, ts: int, **more: Any) -> dict[str, Any]:
    """The JSON of a message about `database.table`."""
    database, _, name = table.partition(".")
    fixed = {"id": 0, "database": database, "table": name, "pkNames": None, "isDdl": False, "type": kind}
    clock = {
        "es": ts >> 18,
        "ts": 1795264262445,
        "sql": "",
        "sqlType": None,
        "mysqlType": None,
        "data": None,
        "old": None,
    }
    return {**fixed, **clock, "_tidb": {"commitTs": ts}, **more}


def encoded(value: Mapping[str, Any]) -> bytes:
    """A message's bytes, spelled as Go's encoder does."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def lz4(value: bytes) -> bytes:
    """A value as TiCDC compresses it with lz4, but for the frame's settings."""
    return bytes(cramjam.lz4.compress(value))


def snappy(value: bytes) -> bytes:
    """A value as TiCDC compresses it with snappy."""
    return bytes(cramjam.snappy.compress_raw(value))


def row_value(
    kind: str, table: str, ts: int, data: Row, old: Row | None = None, key: tuple[str, ...] = ("id",)
) -> dict[str, Any]:
    """The JSON of a row event; values become texts."""
    types = {name: TYPES[name] for name in data if name in TYPES}
    return value_of(
        kind,
        table,
        ts,
        pkNames=list(key),
        sqlType=dict.fromkeys(data, 4),
        mysqlType=types,
        data=[_texts(data)],
        old=None if old is None else [_texts(old)],
    )


def _texts(row: Row) -> dict[str, str | None]:
    return {name: None if value is None else str(value) for name, value in row.items()}


def insert(table: str, number: int, partition: int = 0, **row: object) -> Message:
    """An INSERT in transaction `number`."""
    return Message(TOPIC, partition, encoded(row_value("INSERT", table, at(number), row)))


def delete(table: str, number: int, partition: int = 0, **row: object) -> Message:
    """A DELETE."""
    return Message(TOPIC, partition, encoded(row_value("DELETE", table, at(number), row)))


def update(table: str, number: int, old: Row, partition: int = 0, **row: object) -> Message:
    """An UPDATE; a raw one if it changes the key."""
    return Message(TOPIC, partition, encoded(row_value("UPDATE", table, at(number), row, {**row, **old})))


def typed(message: Message, **types: str) -> Message:
    """The message with these types of columns (`mysqlType`)."""
    value = json.loads(message.value)
    return message._replace(value=encoded({**value, "mysqlType": {**value["mysqlType"], **types}}))


def keyed(message: Message, *names: str) -> Message:
    """The message with another primary key than `id`."""
    return message._replace(value=encoded({**json.loads(message.value), "pkNames": list(names)}))


def ddl(table: str, number: int, sql: str, kind: str = "CREATE") -> Message:
    """A DDL; to partition 0, as TiCDC does."""
    return Message(TOPIC, 0, encoded(value_of(kind, table, at(number), isDdl=True, sql=sql)))


def watermark(number: int, partition: int) -> Message:
    """A watermark that promises everything up to transaction `number`."""
    value = value_of("TIDB_WATERMARK", "", at(number))
    return Message(TOPIC, partition, encoded({**value, "_tidb": {"watermarkTs": at(number)}}))


def watermarks(number: int, partitions: int = PARTITIONS) -> list[Message]:
    """The watermark in each partition."""
    return [watermark(number, partition) for partition in range(partitions)]


def begun(table: str = "d.t", columns: str = "id INT PRIMARY KEY, v INT, s VARCHAR(10)") -> list[Message]:
    """A database and a table with the row (1, 1, 'one') at transaction 3, everything resolved up to it."""
    database, _, name = table.partition(".")
    return [
        ddl(f"{database}.", 1, f"CREATE DATABASE `{database}`", kind="QUERY"),
        ddl(table, 2, f"CREATE TABLE `{name}` ({columns})"),
        insert(table, 3, id=1, v=1, s="one"),
        *watermarks(3),
    ]

"""Canal-JSON messages written once more as the Open Protocol has them, after TiCDC's encoder.

A tool for tests, not TiCDC's own bytes: field names, lengths, flags and values follow pingcap/ticdc,
`pkg/sink/codec/open/{codec,encoder,message}.go`; the values are those that TiCDC's Canal-JSON encoder wrote. Rows that
follow each other in a partition share a message, up to `batch` of them (`max-batch-size`).
"""

import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from struct import pack
from typing import Any

from consumer.demo.fake_ticdc.changefeed import Message
from tests.simple_protocol import COMPRESSIONS, Body, canal_body, encoded, is_binary

BINARY, HANDLE, PRIMARY, NULLABLE, UNSIGNED = 1, 2, 8, 64, 128
CODES = {
    "tinyint": 1, "smallint": 2, "int": 3, "float": 4, "double": 5, "timestamp": 7, "bigint": 8, "mediumint": 9,
    "date": 10, "time": 11, "datetime": 12, "year": 13, "varchar": 15, "varbinary": 15, "bit": 16, "json": 245,
    "decimal": 246, "enum": 247, "set": 248, "tinyblob": 249, "tinytext": 249, "mediumblob": 250, "mediumtext": 250,
    "longblob": 251, "longtext": 251, "blob": 252, "text": 252, "char": 254, "binary": 254, "vector": 225,
}  # fmt: skip
ACTIONS = {"CREATE": 3, "RENAME": 14, "CINDEX": 7, "DINDEX": 8, "ERASE": 4, "TRUNCATE": 11, "ALTER": 5, "QUERY": 1}
ROW, DDL, RESOLVED = 1, 2, 3
_SHORT = {7: "\\a", 8: "\\b", 12: "\\f", 10: "\\n", 13: "\\r", 9: "\\t", 11: "\\v", 92: "\\\\", 34: '\\"'}


def go_quoted(value: bytes) -> str:
    """As Go's `strconv.Quote`, without its quotes."""
    found, at = [], 0
    while at < len(value):
        for width in (1, 2, 3, 4):
            try:
                char = value[at : at + width].decode()
            except UnicodeDecodeError:
                continue
            if char:
                break
        else:
            found.append(f"\\x{value[at]:02x}")
            at += 1
            continue
        code = ord(char)
        if code in _SHORT:
            found.append(_SHORT[code])
        elif char.isprintable():
            found.append(char)
        elif code < 0x20 or code == 0x7F:
            found.append(f"\\x{code:02x}")
        else:
            found.append(f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}")
        at += len(char.encode())
    return "".join(found)


def value_of(kind: str, value: str | None) -> Any:
    """A value of Canal-JSON as the Open Protocol has it. Numbers come as `Bare`."""
    if value is None:
        return None
    base = kind.split(" ", maxsplit=1)[0].partition("(")[0]
    if base in ("tinyint", "smallint", "int", "bigint", "mediumint", "year", "bit", "enum", "set", "float", "double"):
        return Bare(value)
    if base in ("binary", "varbinary"):
        return go_quoted(value.encode("latin-1"))
    if CODES[base] in (249, 250, 251, 252):
        return b64encode(value.encode("latin-1" if is_binary(kind) else "utf-8")).decode()
    return value


class Bare(str):
    """A number's text, which stands in JSON as it is."""

    __slots__ = ()


def json_of(value: Any) -> bytes:
    """JSON as `tests.simple_protocol.encoded`, with numbers as they were spelled."""
    if isinstance(value, Bare):
        return value.encode()
    if isinstance(value, dict):
        return b"{%b}" % b",".join(encoded(name) + b":" + json_of(held) for name, held in value.items())  # type: ignore[arg-type]
    return encoded(value)


def columns_of(body: Body, image: Body) -> Body:
    """The columns of an image."""
    found = {}
    for name, value in image.items():
        kind, is_key = body["mysqlType"][name], name in (body["pkNames"] or ())
        column: Body = {"t": CODES[re.split(r"[ (]", kind)[0]]}
        flags = BINARY * is_binary(kind) | UNSIGNED * ("unsigned" in kind) | (HANDLE | PRIMARY if is_key else NULLABLE)
        found[name] = column | ({"h": True} if is_key else {}) | {"f": flags, "v": value_of(kind, value)}
    return found


def packed(events: Sequence[tuple[bytes, bytes]], version: int = 1) -> tuple[bytes, bytes]:
    """Key and value of a message."""
    key = b"".join(pack(">Q", len(about)) + about for about, _ in events)
    return pack(">Q", version) + key, b"".join(pack(">Q", len(held)) + held for _, held in events)


@dataclass
class Open:
    """Writes the messages of one history anew."""

    messages: Sequence[Message]
    partitions: int = 3
    batch: int = 16
    compression: str = ""
    old_values: bool = True

    def event(self, body: Body) -> tuple[bytes, bytes]:
        """Key and value of an event."""
        tidb = body["_tidb"]
        if body["type"] == "TIDB_WATERMARK":
            return encoded({"ts": tidb["watermarkTs"], "t": RESOLVED}), b""
        key: Body = {"ts": tidb["commitTs"], "scm": body["database"], "tbl": body["table"]}
        compress = COMPRESSIONS[self.compression]
        if body["isDdl"]:
            value: Body = {"q": body["sql"], "t": ACTIONS[body["type"]]}
            return encoded({**key, "t": DDL}), compress(encoded(value))
        key |= {"t": ROW}
        if location := tidb.get("claimCheckLocation"):
            key |= {"ohk": False, "ccl": location}
        elif tidb.get("onlyHandleKey"):
            key |= {"ohk": True}
        now = columns_of(body, body["data"][0])
        if body["type"] == "DELETE":
            row = {"d": now}
        else:
            row = {"u": now}
            if body["type"] == "UPDATE" and self.old_values:
                row |= {"p": columns_of(body, {**body["data"][0], **body["old"][0]})}
        return encoded(key), compress(json_of(row))

    def written(self) -> Iterator[Message]:
        """The history's messages."""
        waiting: dict[tuple[str, int], list[tuple[bytes, bytes]]] = {}
        for message in self.messages:
            body = canal_body(message.value)
            place, event = (message.topic, message.partition), self.event(body)
            if body["isDdl"] or body["type"] == "TIDB_WATERMARK":
                yield from self._flushed(waiting, message.topic)
                everywhere = range(self.partitions) if body["isDdl"] else [message.partition]
                key, value = packed([event])
                yield from (Message(message.topic, at, value, key) for at in everywhere)
                continue
            waiting.setdefault(place, []).append(event)
            if len(waiting[place]) >= self.batch:
                yield from self._flushed(waiting, *place)
        for topic in {topic for topic, _ in waiting}:
            yield from self._flushed(waiting, topic)

    def _flushed(
        self, waiting: dict[tuple[str, int], list[tuple[bytes, bytes]]], topic: str, partition: int | None = None
    ) -> Iterator[Message]:
        for place in [p for p in waiting if p[0] == topic and partition in (None, p[1])]:
            key, value = packed(waiting.pop(place))
            yield Message(*place, value, key)


def as_open(messages: Iterable[Message], **options: Any) -> list[Message]:
    """The messages in the Open Protocol."""
    return list(Open(list(messages), **options).written())

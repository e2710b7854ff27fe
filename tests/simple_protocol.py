"""Canal-JSON messages written once more as the Simple protocol has them, after TiCDC's encoder.

A tool for tests, not TiCDC's own bytes: field names, order and values follow pingcap/ticdc,
`pkg/sink/codec/simple/{message,encoder}.go`; the values are those that TiCDC's Canal-JSON encoder wrote. A schema's
version is a little below the commitTs of the DDL before it, as upstream's `UpdateTS` is; every DDL begins a new one for
every table, so that most tables tell theirs by BOOTSTRAP.
"""

import json
import re
from base64 import b64encode
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import cramjam

from consumer.codec.compression import decompressed, is_compressed
from consumer.demo.fake_ticdc.changefeed import Message
from consumer.formats.simple.checksum import row_checksum

Body = dict[str, Any]
_ROWS = ("INSERT", "UPDATE", "DELETE")
BUILD_TS = 1767225600123


def canal_body(value: bytes) -> Body:
    """A Canal-JSON message's parts."""
    found: Body = json.loads(decompressed(value, 1 << 24) if is_compressed(value) else value)
    return found


def encoded(body: Body) -> bytes:
    """JSON as Go writes it: no spaces, map keys sorted where they are columns."""
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026").encode()


COMPRESSIONS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    "lz4": lambda value: bytes(cramjam.lz4.compress(value)),
    "snappy": lambda value: bytes(cramjam.snappy.compress_raw(value)),
}


@dataclass
class Simple:
    """Writes the messages of one history again. `zone`: TiCDC's; `late`: BOOTSTRAP comes behind the first row."""

    messages: Sequence[Message]
    partitions: int = 3
    zone: str = "UTC"
    compression: str = ""
    checksums: bool = False
    late: bool = False
    _bodies: list[Body] = field(init=False)
    _ddls: list[int] = field(init=False)
    _schemas: dict[tuple[str, str, int], Body] = field(init=False, default_factory=dict)
    _told: set[tuple[str, str, str, int]] = field(init=False, default_factory=set)

    def __post_init__(self) -> None:
        self._bodies = [canal_body(message.value) for message in self.messages]
        self._ddls = sorted({b["_tidb"]["commitTs"] for b in self._bodies if b["isDdl"]})
        for body in self._bodies:
            if body["type"] in _ROWS and not body["isDdl"]:
                self._schema(body)

    def version(self, commit_ts: int) -> int:
        """Of the schemas that rows of this commitTs have."""
        before = bisect_left(self._ddls, commit_ts)
        return max(1, (self._ddls[before - 1] if before else 2) - 1)

    def _identity(self, body: Body) -> tuple[str, str, int]:
        return body["database"], body["table"], self.version(body["_tidb"]["commitTs"])

    def _schema(self, body: Body) -> None:
        """Add what a row tells of its table."""
        found = self._schemas.setdefault(self._identity(body), {"types": {}, "key": ()})
        found["types"] |= body["mysqlType"]
        found["key"] = tuple(body["pkNames"] or ())

    def table_schema(self, identity: tuple[str, str, int]) -> Body:
        """The `tableSchema` of a version."""
        database, table, version = identity
        known = self._schemas.get(identity, {"types": {}, "key": ()})
        key = [{"name": "primary", "unique": True, "primary": True, "nullable": False, "columns": list(known["key"])}]
        columns = [_column(name, kind) for name, kind in known["types"].items()]
        told = {"schema": database, "table": table, "tableID": 104, "version": version}
        return {**told, "columns": columns, "indexes": key if known["key"] else []}

    def written(self) -> Iterator[Message]:
        """The history's messages."""
        compress = COMPRESSIONS[self.compression]
        for message, body in zip(self.messages, self._bodies, strict=True):
            for at, found in self._events(message, body):
                yield message._replace(partition=at, value=compress(encoded({"version": 1, **found})))

    def _events(self, message: Message, body: Body) -> Iterator[tuple[int, Body]]:
        tidb, stamp = body["_tidb"], {"buildTs": BUILD_TS}
        if body["type"] == "TIDB_WATERMARK":
            yield message.partition, {"type": "WATERMARK", "commitTs": tidb["watermarkTs"], **stamp}
        elif body["isDdl"]:
            identity = (body["database"], body["table"], max(1, tidb["commitTs"] - 1))
            told = {"type": body["type"], "sql": body["sql"], "commitTs": tidb["commitTs"], **stamp}
            told |= {"tableSchema": self.table_schema(identity)} if body["table"] else {}
            yield from ((at, told) for at in range(self.partitions))
        else:
            row = (message.partition, self.row(body))
            yield from (row,) if self.late else ()
            yield from self._bootstraps(message, self._identity(body))
            yield from () if self.late else (row,)

    def _bootstraps(self, message: Message, identity: tuple[str, str, int]) -> Iterator[tuple[int, Body]]:
        if (message.topic, *identity) not in self._told:
            self._told.add((message.topic, *identity))
            told = {"type": "BOOTSTRAP", "commitTs": 0, "buildTs": BUILD_TS, "tableSchema": self.table_schema(identity)}
            yield from ((at, told) for at in range(self.partitions))

    def row(self, body: Body) -> Body:
        """A row event."""
        tidb, kind = body["_tidb"], body["type"]
        database, table, version = self._identity(body)
        found: Body = {"database": database, "table": table, "tableID": 104, "type": kind}
        found |= {"commitTs": tidb["commitTs"], "buildTs": BUILD_TS, "schemaVersion": version}
        if location := tidb.get("claimCheckLocation"):
            found["claimCheckLocation"] = location
        if location or tidb.get("onlyHandleKey"):
            found["handleKeyOnly"] = True
        now = body["data"][0]
        before = {**now, **body["old"][0]} if kind == "UPDATE" else now if kind == "DELETE" else None
        now = None if kind == "DELETE" else now
        if self.checksums:
            sums = (self._checksum(self._schemas[self._identity(body)]["types"], image) for image in (now, before))
            found["checksum"] = {
                "version": 1,
                "corrupted": False,
                **dict(zip(("current", "previous"), sums, strict=True)),
            }
        for name, image in (("data", now), ("old", before)):
            if image is not None:
                found[name] = {c: self._value(body["mysqlType"][c], image[c]) for c in sorted(image)}
        return found

    def _value(self, kind: str, value: str | None) -> Any:
        if value is None:
            return None
        if is_binary(kind):
            return b64encode(value.encode("latin-1")).decode()
        return {"location": self.zone, "value": value} if kind.startswith("timestamp") else value

    def _checksum(self, types: dict[str, str], image: dict[str, str | None] | None) -> int:
        """Of a row without TIMESTAMPs, or of a history in UTC."""
        if image is None:
            return 0
        values = {
            c: None if v is None else v.encode("latin-1" if is_binary(types[c]) else "utf-8") for c, v in image.items()
        }
        return row_checksum(list(types.items()), values)


def is_binary(kind: str) -> bool:
    """Whether values of a type are bytes."""
    return "blob" in kind or "binary" in kind


def _column(name: str, kind: str) -> Body:
    base, *flags = re.sub(r"\(.*\)", "", kind).split(" ")
    told: Body = {"mysqlType": base, "charset": "binary" if is_binary(kind) else "utf8mb4", "collate": "utf8mb4_bin"}
    told |= {"length": 11, **{flag: True for flag in ("unsigned", "zerofill") if flag in flags}}
    return {"name": name, "dataType": told, "nullable": True, "default": None}


def as_simple(messages: Iterable[Message], **options: Any) -> list[Message]:
    """The messages in the Simple protocol."""
    return list(Simple(list(messages), **options).written())

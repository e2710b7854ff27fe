"""The Simple protocol's Avro encoding: one fixed schema, read without a registry and without a general Avro reader.

A message is a union whose branch 11 is the record `Message`: a kind, and a payload of the same kind. Its values stay
as they are until the row's own schema is known (`consumer.formats.simple.avro_rows`). Facts of the format: TiCDC's
`pkg/sink/codec/simple/message.json`.
"""

from collections.abc import Callable, Iterator
from enum import IntEnum
from typing import Any

import msgspec

from consumer.codec.foreign import SIMPLE_AVRO
from consumer.formats.avro.binary import DOUBLE, FLOAT, MOST_COLUMNS, AvroBytes, wrong

_MESSAGE = 11
_WATERMARK_BEGINS = SIMPLE_AVRO[0]
_KINDS = ("WATERMARK", "BOOTSTRAP", "DDL", "DML")
_DDL_TYPES = ("CREATE", "ALTER", "ERASE", "RENAME", "TRUNCATE", "CINDEX", "DINDEX", "QUERY")
_ROW_TYPES = ("INSERT", "UPDATE", "DELETE")
_WORD = 2**64
_MOST_INDEXES, _MOST_MEMBERS = 4096, 65_535
"""TiDB takes no more in an ENUM (indexes of a table: 512): a column here fills a hundred times its bytes."""
_encode = msgspec.json.Encoder().encode
Parts = dict[str, Any]


class Branch(IntEnum):
    """What a column's value is sent as."""

    NULL, LONG, FLOAT, DOUBLE, STRING, BYTES, TIMESTAMP, UNSIGNED_BIGINT = range(8)


_BRANCHES = tuple(Branch)
Value = int | float | str | bytes | tuple[str, str] | None


def is_avro(value: bytes) -> bool:
    """Whether a message begins as one in Avro does."""
    return value.startswith(SIMPLE_AVRO)


def is_avro_watermark(value: bytes) -> bool:
    """Whether a message begins as a watermark in Avro does."""
    return value.startswith(_WATERMARK_BEGINS)


def avro_parts(content: bytes) -> Parts:
    """A message's parts by their names in the Simple protocol's JSON: images raw, schemas as JSON.

    Raises ValueError.
    """
    reader = AvroBytes(content)
    if reader.long() != _MESSAGE:
        raise wrong("the message is of another branch than `Message`")
    kind = reader.one_of(_KINDS, "kind")
    if reader.one_of(_KINDS, "payload") != kind:
        raise wrong(f"{kind} has a payload of another kind")
    parts = {"type": kind, "version": reader.long()} | _PAYLOADS[kind](reader)
    reader.ended()
    return parts


def _watermark(reader: AvroBytes) -> Parts:
    return {"commitTs": reader.long(), "buildTs": reader.long()}


def _bootstrap(reader: AvroBytes) -> Parts:
    return {"buildTs": reader.long(), "tableSchema": _schema(reader)}


def _ddl(reader: AvroBytes) -> Parts:
    told = {"type": reader.one_of(_DDL_TYPES, "type"), "sql": reader.text(), "commitTs": reader.long()}
    reader.long()
    for name in ("tableSchema", "preTableSchema"):
        if (schema := reader.perhaps(lambda: _schema(reader))) is not None:
            told[name] = schema
    return told


def _row(reader: AvroBytes) -> Parts:
    told: Parts = {"database": reader.text(), "table": reader.text(), "tableID": reader.long()}
    told |= {"type": reader.one_of(_ROW_TYPES, "type"), "commitTs": reader.long(), "buildTs": reader.long()}
    told |= {"schemaVersion": reader.long(), "claimCheckLocation": reader.perhaps(reader.text) or ""}
    told |= {"handleKeyOnly": reader.perhaps(reader.boolean) or False, "checksum": reader.perhaps(lambda: _sum(reader))}
    for name in ("data", "old"):
        if (image := reader.perhaps(lambda: _image(reader))) is not None:
            told[name] = image
    return told


_PAYLOADS = {"WATERMARK": _watermark, "BOOTSTRAP": _bootstrap, "DDL": _ddl, "DML": _row}


def _sum(reader: AvroBytes) -> Parts:
    reader.long()
    return {"corrupted": reader.boolean(), "current": reader.long(), "previous": reader.long()}


def _schema(reader: AvroBytes) -> msgspec.Raw:
    told = {"schema": reader.text(), "table": reader.text(), "tableID": reader.long(), "version": reader.long()}
    columns = reader.items(lambda: _column(reader), MOST_COLUMNS)
    indexes = reader.items(lambda: _index(reader), _MOST_INDEXES)
    return msgspec.Raw(_encode(told | {"columns": columns, "indexes": indexes}))


def _column(reader: AvroBytes) -> Parts:
    told = {"name": reader.text()}
    kind: Parts = {"mysqlType": reader.text(), "charset": reader.text(), "collate": reader.text()}
    kind |= {"length": reader.long(), "decimal": reader.perhaps(reader.long)}
    kind |= {"elements": reader.perhaps(lambda: reader.items(reader.text, _MOST_MEMBERS))}
    kind |= {name: bool(reader.perhaps(reader.boolean)) for name in ("unsigned", "zerofill")}
    return told | {"dataType": kind, "nullable": reader.boolean(), "default": reader.perhaps(reader.text)}


def _index(reader: AvroBytes) -> Parts:
    told: Parts = {"name": reader.text()}
    told |= {name: reader.boolean() for name in ("unique", "primary", "nullable")}
    return told | {"columns": reader.items(reader.text, MOST_COLUMNS)}


def _image(reader: AvroBytes) -> msgspec.Raw:
    begin = reader.at
    for _ in _pairs(reader):
        pass
    return msgspec.Raw(reader.since(begin))


def avro_image(raw: bytes) -> Iterator[tuple[str, Branch, Value]]:
    """An image's columns. Raises ValueError, also for a column that comes twice."""
    return _pairs(AvroBytes(raw))


def _pairs(reader: AvroBytes) -> Iterator[tuple[str, Branch, Value]]:
    met: set[str] = set()
    for _ in reader.blocks(MOST_COLUMNS):
        name = reader.text()
        if name in met:
            raise wrong(f"column {name[:80]!r} comes twice")
        met.add(name)
        branch = reader.one_of(_BRANCHES, "branch")
        yield name, branch, _VALUES[branch](reader)


def _unsigned(reader: AvroBytes) -> int:
    return reader.long() % _WORD


_VALUES: dict[Branch, Callable[[AvroBytes], Value]] = {
    Branch.NULL: lambda _: None,
    Branch.LONG: AvroBytes.long,
    Branch.FLOAT: lambda reader: reader.fixed(FLOAT),
    Branch.DOUBLE: lambda reader: reader.fixed(DOUBLE),
    Branch.STRING: AvroBytes.text,
    Branch.BYTES: AvroBytes.raw,
    Branch.TIMESTAMP: lambda reader: (reader.text(), reader.text()),
    Branch.UNSIGNED_BIGINT: _unsigned,
}

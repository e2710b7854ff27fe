"""The Simple protocol's Avro encoding: one fixed schema, read without a registry and without a general Avro reader.

A message is a union whose branch 11 is the record `Message`: a kind, and a payload of the same kind. Its values stay
as they are until the row's own schema is known (`consumer.formats.avro_rows`). Bytes are checked before anything is
made of them, so what a message takes is bounded by its length. Facts of the format: TiCDC's
`pkg/sink/codec/simple/message.json`; Apache Avro specification, "Binary Encoding".
"""

from collections.abc import Callable, Iterator
from enum import IntEnum
from struct import Struct
from typing import Any, TypeVar

import msgspec

from consumer.codec.foreign import SIMPLE_AVRO

_MESSAGE = 11
_WATERMARK_BEGINS = SIMPLE_AVRO[0]
_KINDS = ("WATERMARK", "BOOTSTRAP", "DDL", "DML")
_DDL_TYPES = ("CREATE", "ALTER", "ERASE", "RENAME", "TRUNCATE", "CINDEX", "DINDEX", "QUERY")
_ROW_TYPES = ("INSERT", "UPDATE", "DELETE")
_FLOAT, _DOUBLE = Struct("<f"), Struct("<d")
_LONGEST_VARINT, _WORD = 10, 2**64
_SHORT = 0x80
_MOST_COLUMNS, _MOST_INDEXES, _MOST_MEMBERS = 4096, 4096, 65_535
"""TiDB takes no more in a table and in an ENUM (indexes: 512): a column here fills a hundred times its bytes."""
_encode = msgspec.json.Encoder().encode
Parts = dict[str, Any]
T = TypeVar("T")


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


class _Bytes:
    """Reads one message from its beginning. All methods raise ValueError."""

    def __init__(self, content: bytes) -> None:
        self._content, self.at = content, 0

    def long(self) -> int:
        content, at = self._content, self.at
        found = shift = 0
        for byte in content[at : at + _LONGEST_VARINT]:
            found |= (byte & 0x7F) << shift
            shift += 7
            if byte < _SHORT:
                self.at = at + shift // 7
                if found >= _WORD:
                    break
                return (found >> 1) ^ -(found & 1)
        raise _wrong(f"byte {at} begins no number of up to 64 bits")

    def raw(self) -> bytes:
        size = self.long()
        begin = self.at
        if not 0 <= size <= len(self._content) - begin:
            raise _wrong(f"a value of {size} bytes begins at byte {begin} of {len(self._content)}")
        self.at = begin + size
        return self.since(begin)

    def text(self) -> str:
        at = self.at
        try:
            return self.raw().decode()
        except UnicodeDecodeError:
            raise _wrong(f"the text at byte {at} is no UTF-8") from None

    def fixed(self, of: Struct) -> float:
        if len(self._content) - self.at < of.size:
            raise _wrong(f"it ends within the number at byte {self.at}")
        (found,) = of.unpack_from(self._content, self.at)
        self.at += of.size
        return float(found)

    def boolean(self) -> bool:
        at, self.at = self.at, self.at + 1
        found = self._content[at : self.at]
        if found not in (b"\0", b"\1"):
            raise _wrong(f"byte {at} is no boolean")
        return found == b"\1"

    def one_of(self, choices: tuple[T, ...], what: str) -> T:
        at, number = self.at, self.long()
        if not 0 <= number < len(choices):
            raise _wrong(f"{what} {number} at byte {at} is none that the schema has")
        return choices[number]

    def perhaps(self, read: Callable[[], T]) -> T | None:
        return read() if self.one_of((False, True), "branch") else None

    def blocks(self, most: int) -> Iterator[None]:
        """Once for each item of an array or a map. TiCDC writes no blocks that tell their size (a negative count)."""
        met = 0
        while count := self.long():
            met += count
            if count < 0 or met > most:
                raise _wrong(f"a block of {count} items begins before byte {self.at}; at most {most} are taken in all")
            for _ in range(count):
                yield

    def items(self, read: Callable[[], T], most: int) -> list[T]:
        return [read() for _ in self.blocks(most)]

    def since(self, begin: int) -> bytes:
        return self._content[begin : self.at]

    def ended(self) -> None:
        if self.at != len(self._content):
            raise _wrong(f"{len(self._content) - self.at} bytes follow its end")


def _wrong(fact: str) -> ValueError:
    return ValueError(f"Avro: {fact}")


def avro_parts(content: bytes) -> Parts:
    """A message's parts by their names in the Simple protocol's JSON: images raw, schemas as JSON.

    Raises ValueError.
    """
    reader = _Bytes(content)
    if reader.long() != _MESSAGE:
        raise _wrong("the message is of another branch than `Message`")
    kind = reader.one_of(_KINDS, "kind")
    if reader.one_of(_KINDS, "payload") != kind:
        raise _wrong(f"{kind} has a payload of another kind")
    parts = {"type": kind, "version": reader.long()} | _PAYLOADS[kind](reader)
    reader.ended()
    return parts


def _watermark(reader: _Bytes) -> Parts:
    return {"commitTs": reader.long(), "buildTs": reader.long()}


def _bootstrap(reader: _Bytes) -> Parts:
    return {"buildTs": reader.long(), "tableSchema": _schema(reader)}


def _ddl(reader: _Bytes) -> Parts:
    told = {"type": reader.one_of(_DDL_TYPES, "type"), "sql": reader.text(), "commitTs": reader.long()}
    reader.long()
    for name in ("tableSchema", "preTableSchema"):
        if (schema := reader.perhaps(lambda: _schema(reader))) is not None:
            told[name] = schema
    return told


def _row(reader: _Bytes) -> Parts:
    told: Parts = {"database": reader.text(), "table": reader.text(), "tableID": reader.long()}
    told |= {"type": reader.one_of(_ROW_TYPES, "type"), "commitTs": reader.long(), "buildTs": reader.long()}
    told |= {"schemaVersion": reader.long(), "claimCheckLocation": reader.perhaps(reader.text) or ""}
    told |= {"handleKeyOnly": reader.perhaps(reader.boolean) or False, "checksum": reader.perhaps(lambda: _sum(reader))}
    for name in ("data", "old"):
        if (image := reader.perhaps(lambda: _image(reader))) is not None:
            told[name] = image
    return told


_PAYLOADS = {"WATERMARK": _watermark, "BOOTSTRAP": _bootstrap, "DDL": _ddl, "DML": _row}


def _sum(reader: _Bytes) -> Parts:
    reader.long()
    return {"corrupted": reader.boolean(), "current": reader.long(), "previous": reader.long()}


def _schema(reader: _Bytes) -> msgspec.Raw:
    told = {"schema": reader.text(), "table": reader.text(), "tableID": reader.long(), "version": reader.long()}
    columns = reader.items(lambda: _column(reader), _MOST_COLUMNS)
    indexes = reader.items(lambda: _index(reader), _MOST_INDEXES)
    return msgspec.Raw(_encode(told | {"columns": columns, "indexes": indexes}))


def _column(reader: _Bytes) -> Parts:
    told = {"name": reader.text()}
    kind: Parts = {"mysqlType": reader.text(), "charset": reader.text(), "collate": reader.text()}
    kind |= {"length": reader.long(), "decimal": reader.perhaps(reader.long)}
    kind |= {"elements": reader.perhaps(lambda: reader.items(reader.text, _MOST_MEMBERS))}
    kind |= {name: bool(reader.perhaps(reader.boolean)) for name in ("unsigned", "zerofill")}
    return told | {"dataType": kind, "nullable": reader.boolean(), "default": reader.perhaps(reader.text)}


def _index(reader: _Bytes) -> Parts:
    told: Parts = {"name": reader.text()}
    told |= {name: reader.boolean() for name in ("unique", "primary", "nullable")}
    return told | {"columns": reader.items(reader.text, _MOST_COLUMNS)}


def _image(reader: _Bytes) -> msgspec.Raw:
    begin = reader.at
    for _ in _pairs(reader):
        pass
    return msgspec.Raw(reader.since(begin))


def avro_image(raw: bytes) -> Iterator[tuple[str, Branch, Value]]:
    """An image's columns. Raises ValueError, also for a column that comes twice."""
    return _pairs(_Bytes(raw))


def _pairs(reader: _Bytes) -> Iterator[tuple[str, Branch, Value]]:
    met: set[str] = set()
    for _ in reader.blocks(_MOST_COLUMNS):
        name = reader.text()
        if name in met:
            raise _wrong(f"column {name[:80]!r} comes twice")
        met.add(name)
        branch = reader.one_of(_BRANCHES, "branch")
        yield name, branch, _VALUES[branch](reader)


def _unsigned(reader: _Bytes) -> int:
    return reader.long() % _WORD


_VALUES: dict[Branch, Callable[[_Bytes], Value]] = {
    Branch.NULL: lambda _: None,
    Branch.LONG: _Bytes.long,
    Branch.FLOAT: lambda reader: reader.fixed(_FLOAT),
    Branch.DOUBLE: lambda reader: reader.fixed(_DOUBLE),
    Branch.STRING: _Bytes.text,
    Branch.BYTES: _Bytes.raw,
    Branch.TIMESTAMP: lambda reader: (reader.text(), reader.text()),
    Branch.UNSIGNED_BIGINT: _unsigned,
}

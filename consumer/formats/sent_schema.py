"""What the Simple protocol says of a table (`tableSchema`): rows name it by database, table and version.

Kept of it is what rows are read by: each column's type, and the primary key. Facts of the format: TiCDC's encoder,
`pkg/sink/codec/simple/message.go`.
"""

from typing import Annotated, NamedTuple

import msgspec

from consumer.codec.canal_json import UNREADABLE, Tso
from ordering.errors import InputError

_ODD = "not written by TiCDC as documented"
_ADDED = "primary"
"""The name of the index that TiCDC adds; one that the table has is named `PRIMARY`."""


class SchemaIdentity(NamedTuple):
    """How a row names the schema that it was written with."""

    database: str
    table: str
    version: int


class SentSchema(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One version of an upstream table. `columns`: names and types as Canal-JSON spells them, in the order sent."""

    database: str
    table: str
    version: int
    columns: tuple[tuple[str, str], ...]
    key: tuple[str, ...] = ()
    """The primary key's columns; none: the table has none."""

    @property
    def identity(self) -> SchemaIdentity:
        """How rows name it."""
        return SchemaIdentity(self.database, self.table, self.version)


class _DataType(msgspec.Struct, gc=False):
    name: Annotated[str, msgspec.Meta(min_length=1)] = msgspec.field(name="mysqlType")
    unsigned: bool = False
    zerofill: bool = False


class _Column(msgspec.Struct, gc=False):
    name: Annotated[str, msgspec.Meta(min_length=1)]
    type: _DataType = msgspec.field(name="dataType")


class _Index(msgspec.Struct, gc=False):
    columns: tuple[str, ...]
    name: str = ""
    primary: bool = False
    unique: bool = False
    nullable: bool = False


class _TableSchema(msgspec.Struct, gc=False):
    database: str = msgspec.field(name="schema")
    table: str = ""
    version: Tso = 0
    columns: tuple[_Column, ...] | None = None
    indexes: tuple[_Index, ...] | None = None


_decode = msgspec.json.Decoder(_TableSchema).decode
_encode_kept = msgspec.json.Encoder().encode
_decode_kept = msgspec.json.Decoder(SentSchema).decode


def read_schema(raw: msgspec.Raw, where: str) -> SentSchema:
    """A `tableSchema`. Raises InputError with the position for one that can't be used."""
    try:
        sent = _decode(raw)
    except UNREADABLE as error:
        raise InputError(f"the schema of a table can't be read: {error}", where=where, hint=_ODD) from None
    columns = tuple((column.name, _type_of(column.type)) for column in sent.columns or ())
    names = [name for name, _ in columns]
    key = _key_of(sent.indexes or ())
    fault = _fault(sent, names, key)
    if fault:
        raise InputError(f"the schema of {sent.database}.{sent.table} {fault}"[:400], where=where, hint=_ODD)
    return SentSchema(sent.database, sent.table, sent.version, columns, key)


def _fault(sent: _TableSchema, names: list[str], key: tuple[str, ...]) -> str:
    if len(set(names)) < len(names):
        return "names a column twice"
    if strange := [name for name in key if name not in names]:
        return f"has column {strange[0]!r} in its primary key, which it lacks"
    return "" if sent.version > 0 else "lacks its version"


def _key_of(indexes: tuple[_Index, ...]) -> tuple[str, ...]:
    """The primary key's columns; none where it is only TiDB's implicit one.

    TiCDC adds an index named `primary` where none is marked so: a clustered key, or of a table without primary key the
    first unique index over NOT NULL columns, which need not be the one that its rows are told apart by.
    """
    primary = next((index for index in indexes if index.primary), None)
    if primary is None:
        return ()
    alike = any(i.unique and not i.primary and not i.nullable and i.columns == primary.columns for i in indexes)
    return () if primary.name == _ADDED and alike else primary.columns


def _type_of(sent: _DataType) -> str:
    """The type as Canal-JSON's `mysqlType` has it."""
    flags = " unsigned" * sent.unsigned + " zerofill" * sent.zerofill
    return sent.name + flags


def kept_text(schema: SentSchema) -> str:
    """What the target keeps of a schema."""
    return _encode_kept(schema).decode()


def kept_schema(text: str) -> SentSchema:
    """The schema that `kept_text` gave."""
    return _decode_kept(text)

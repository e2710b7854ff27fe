"""Rows of the Simple protocol in Avro, read with the schema that they name, as Canal-JSON has them.

Each type of column is sent in one branch of a value's union (TiCDC's `pkg/sink/codec/simple/message.go`,
`encodeValue4Avro`); a value in any other is an error, so that none is taken for what it is not.
"""

from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from consumer.formats.numbers import plain_double, plain_float
from consumer.formats.sent_schema import SentSchema
from consumer.formats.simple.avro import Branch, Value, avro_image
from consumer.formats.simple.rows import RowReader, into_zone

_NUMBERS = {"tinyint", "smallint", "mediumint", "int", "bigint", "year", "enum", "set"}
_WORD = 2**64
_encode = msgspec.json.Encoder().encode


class _Column(NamedTuple):
    """How a column's values come, and what they are in the form that tasks read, and in the row's checksum."""

    kind: str
    branch: Branch
    text: Callable[[Any], str]
    stored: Callable[[Any], bytes]


def _latin(value: bytes) -> str:
    return value.decode("latin-1")


def _member(value: int) -> str:
    """A SET of 64 members fills the sign too."""
    return str(value % _WORD)


def _column_of(kind: str, zone: str) -> _Column:
    """How values of a type are sent."""
    name = kind.partition(" ")[0].partition("(")[0]
    if name == "timestamp":
        return _Column(kind, Branch.TIMESTAMP, lambda v: into_zone(v[0], zone)(v[1]), _utc)
    if "blob" in name or "binary" in name:
        return _Column(kind, Branch.BYTES, _latin, bytes)
    text, branch = _plain_text(name, kind)
    return _Column(kind, branch, text, lambda value: text(value).encode())


def _plain_text(name: str, kind: str) -> tuple[Callable[[Any], str], Branch]:
    if name == "bigint" and " unsigned" in kind:
        return str, Branch.UNSIGNED_BIGINT
    if name in _NUMBERS:
        return (_member if name in ("enum", "set") else str), Branch.LONG
    if name == "float":
        return plain_float, Branch.FLOAT
    return (plain_double, Branch.DOUBLE) if name == "double" else (str, Branch.STRING)


def _utc(value: tuple[str, str]) -> bytes:
    return into_zone(value[0], "UTC")(value[1]).encode()


class AvroRowReader(RowReader):
    """Reads rows of one version of a table. `zone`: the one of TIMESTAMP texts in the form that tasks read."""

    def __init__(self, schema: SentSchema, zone: str) -> None:
        super().__init__(schema, zone)
        self._columns = {name: _column_of(kind, zone) for name, kind in schema.columns}

    def _checked(self) -> None:
        """Each value is looked at."""

    def usual(self, raw: msgspec.Raw) -> bytes:
        """See `RowReader.usual`."""
        sent = self._sent(bytes(raw))
        return _encode({name: None if value is None else column.text(value) for name, column, value in sent})

    def _stored_row(self, raw: msgspec.Raw) -> Mapping[str, bytes | None]:
        sent = self._sent(bytes(raw))
        return {name: None if value is None else column.stored(value) for name, column, value in sent}

    def _sent(self, raw: bytes) -> Iterator[tuple[str, _Column, Value]]:
        """An image's values, each in the branch of its column's type. Raises ValueError."""
        for name, branch, value in avro_image(raw):
            column = self._columns.get(name)
            if column is None:
                message = f"its schema lacks column {name[:80]!r}"
                raise ValueError(message)
            if branch not in (Branch.NULL, column.branch):
                message = f"column {name[:80]!r} of type {column.kind} comes as {branch.name}"
                raise ValueError(message)
            yield name, column, value


def shown_image(raw: bytes) -> dict[str, str | None]:
    """An image for people, by itself: binary values in base64, a TIMESTAMP with its zone. Raises ValueError."""
    return {name: None if value is None else _shown(value) for name, _, value in avro_image(raw)}


def _shown(value: Value) -> str:
    if isinstance(value, bytes):
        return b64encode(value).decode()
    return " ".join(value) if isinstance(value, tuple) else str(value)

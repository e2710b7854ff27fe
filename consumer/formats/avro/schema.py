"""What a schema of TiCDC's Avro protocol says: whose rows it is of, and how each column is read.

TiCDC writes records of columns, each of a type with `tidb_type` beside it, nullable or not. Anything else is refused:
no schema is taken for what it is not, and none costs more than its length. Facts: pingcap/ticdc,
`pkg/sink/codec/avro/arvo.go` (`columns2AvroSchema`, `columnToAvroSchema`).
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec

from consumer.formats.avro.binary import DOUBLE, FLOAT, MOST_COLUMNS, AvroBytes
from consumer.formats.numbers import (
    enum_text,
    members_of,
    plain_double,
    plain_float,
    plain_number,
    set_text,
    whole_number,
)

OP, COMMIT_TS, BEFORE, CORRUPTED = "_tidb_op", "_tidb_commit_ts", "_ticdc_before", "_tidb_corrupted"
_OTHERS = ("_tidb_commit_physical_time", "_tidb_row_level_checksum", "_tidb_checksum_version")
_EXTENSION = {
    OP: "string", COMMIT_TS: "long", CORRUPTED: "boolean", **dict(zip(_OTHERS, ("long", "string", "int"), strict=True))
}  # fmt: skip
"""Fields that are no columns, and their types."""
ENVELOPE = {"before", "after", "source", "op"}
"""Fields of Debezium's messages."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_WORD, _HALF = 1 << 64, 1 << 63
_LONGEST_DECIMAL, _MOST_DIGITS, _LONGEST_BIT = 28, 65, 8
"""Bytes and digits of a DECIMAL, bytes of a BIT."""
_SHOWN = 80
Convert = Callable[[Any], str]
Read = Callable[[AvroBytes], Any]
_READ: dict[str, Read] = {
    "int": AvroBytes.long, "long": AvroBytes.long, "string": AvroBytes.text, "bytes": AvroBytes.raw,
    "boolean": AvroBytes.boolean,
    "float": lambda reader: reader.fixed(FLOAT), "double": lambda reader: reader.fixed(DOUBLE),
}  # fmt: skip


class ForeignSchemaError(ValueError):
    """A schema of Debezium's messages, which look alike."""


class AvroColumn(msgspec.Struct, frozen=True, gc=False):
    """A field that is a column. `null_at`: the branch of its union that is NULL, -1 where it has none."""

    name: str
    kind: str
    """As Canal-JSON's `mysqlType` has it."""
    read: Read
    convert: Convert
    null_at: int = -1

    def value(self, reader: AvroBytes) -> str | None:
        """The next value as Canal-JSON has it. Raises ValueError."""
        if self.null_at >= 0 and reader.one_of((0, 1), "branch") == self.null_at:
            return None
        try:
            return self.convert(self.read(reader))
        except ValueError as error:
            message = f"column {self.name[:_SHOWN]!r}: {error}"
            raise ValueError(message) from None


@dataclass(frozen=True, slots=True)
class AvroSchema:
    """A record's columns, and the fields behind them in their order: names, or the columns of the row before."""

    name: tuple[str, str]
    """Database and table."""
    columns: tuple[AvroColumn, ...]
    rest: tuple[str, ...] = ()
    before: tuple[AvroColumn, ...] = ()

    @property
    def kinds(self) -> Mapping[str, str]:
        """The columns' types."""
        return {column.name: column.kind for column in self.columns}

    def row(self, reader: AvroBytes) -> tuple[dict[str, str | None], dict[str, Any]]:
        """The next record: a row's image, and what stands behind it. Raises ValueError."""
        image = image_of(self.columns, reader)
        return image, {name: self._behind(name, reader) for name in self.rest}

    def _behind(self, name: str, reader: AvroBytes) -> Any:
        if name == BEFORE:
            return reader.perhaps(lambda: image_of(self.before, reader))
        return _READ[_EXTENSION[name]](reader)


def image_of(columns: tuple[AvroColumn, ...], reader: AvroBytes) -> dict[str, str | None]:
    """The next values of these columns. Raises ValueError."""
    return {column.name: column.value(reader) for column in columns}


def read_avro_schema(text: str) -> AvroSchema:
    """The schema of a key or a value. Raises ValueError, and what a decoder raises."""
    found = msgspec.json.decode(text)
    name, fields = _record(found)
    if len(ENVELOPE & fields.keys()) == len(ENVELOPE):
        raise ForeignSchemaError("it is the schema of Debezium's messages")
    # <keyspace>.<schema>; schema names themselves hold no dot there
    database = str(found.get("namespace") or "").partition(".")[2]
    own = {name: kind for name, kind in fields.items() if name not in _EXTENSION and name != BEFORE}
    rest = tuple(name for name in fields if name not in own)
    if list(fields) != [*own, *rest]:
        raise _odd("has a column behind the fields of the extension")
    for field in rest:
        if field != BEFORE and fields[field] != _EXTENSION[field]:
            raise _odd(f"has the field {field} of another type")
    columns = tuple(_column(*one) for one in own.items())
    before = _before(fields[BEFORE]) if BEFORE in fields else ()
    if before and [one.name for one in before] != [one.name for one in columns]:
        raise _odd(f"has other columns in {BEFORE}")
    return AvroSchema((database, name), columns, rest, before)


def _record(schema: Any) -> tuple[str, dict[str, Any]]:
    """Name and fields of a record. Raises ValueError."""
    if not isinstance(schema, dict) or schema.get("type") != "record" or not isinstance(schema.get("fields"), list):
        raise _odd("is no record")
    name, found = schema.get("name"), schema["fields"]
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise _odd(f"has the name {str(name)[:_SHOWN]!r}")
    if len(found) > MOST_COLUMNS + len(_EXTENSION) + 1:
        raise _odd(f"has {len(found)} fields")
    fields: dict[str, Any] = {}
    for one in found:
        named = one.get("name") if isinstance(one, dict) else None
        if not isinstance(named, str) or not _NAME.fullmatch(named) or named in fields:
            raise _odd(f"has no name, or another's, for the field {str(named)[:_SHOWN]!r}")
        fields[named] = one.get("type")
    return name, fields


def _before(kind: Any) -> tuple[AvroColumn, ...]:
    if not isinstance(kind, list) or len(kind) != 2 or kind[0] != "null":  # noqa: PLR2004 null and the record
        raise _odd(f"has the field {BEFORE} of another type")
    return tuple(_column(*one) for one in _record(kind[1])[1].items())


def _column(name: str, kind: Any) -> AvroColumn:
    null_at = -1
    if isinstance(kind, list):
        if len(kind) != 2 or kind.count("null") != 1:  # noqa: PLR2004 null and another
            raise _odd(f"has a union for column {name[:_SHOWN]!r} that is not of null and one type")
        null_at = kind.index("null")
        kind = kind[1 - null_at]
    told = kind.get("connect.parameters") if isinstance(kind, dict) else None
    if not isinstance(told, dict) or not isinstance(told.get("tidb_type"), str):
        raise _odd(f"does not tell the TiDB type of column {name[:_SHOWN]!r} (connect.parameters)")
    sent, tidb = str(kind.get("type")), told["tidb_type"]
    mysql, convert = _how(name, sent, tidb, kind, str(told.get("allowed", "")))
    return AvroColumn(name, mysql, _READ[sent], convert, null_at)


def _how(name: str, sent: str, tidb: str, kind: Mapping[str, Any], allowed: str) -> tuple[str, Convert]:
    """A column's type, and what makes its values texts. Raises ValueError for a type that is not sent so."""
    if (tidb, sent) == ("DECIMAL", "bytes") and kind.get("logicalType") == "decimal":
        return "decimal", partial(_decimal, scale=_scale(name, kind.get("scale", 0)))
    if (tidb, sent) in _PLAIN:
        return _PLAIN[tidb, sent]
    if (tidb, sent) == ("ENUM", "string"):
        return "enum", partial(enum_text, members=members_of(allowed, is_enum=True))
    if (tidb, sent) == ("SET", "string"):
        return "set", partial(set_text, members=members_of(allowed, is_enum=False))
    raise _odd(f"has column {name[:_SHOWN]!r} of the unknown type {tidb[:_SHOWN]!r}, sent as {sent[:_SHOWN]!r}")


def _scale(name: str, scale: Any) -> int:
    if not isinstance(scale, int) or isinstance(scale, bool) or not 0 <= scale <= _MOST_DIGITS:
        raise _odd(f"has the scale {str(scale)[:_SHOWN]!r} for column {name[:_SHOWN]!r}")
    return scale


def _odd(fact: str) -> ValueError:
    return ValueError(f"its schema {fact}")


def _unsigned(number: int) -> str:
    if number < 0:
        message = f"{number} in an unsigned column"
        raise ValueError(message)
    return str(number)


def _unsigned_bigint(number: int) -> str:
    """With `avro-bigint-unsigned-handling-mode=long` the 64 bits come as a signed number, so 2^64 - 1 as -1."""
    return str(number % _WORD)


def _unsigned_text(text: str) -> str:
    return _unsigned(int(whole_number(text)))


def _decimal(raw: bytes, *, scale: int) -> str:
    """Two's complement, highest byte first, of the number without its point."""
    if not 0 < len(raw) <= _LONGEST_DECIMAL:
        message = f"a DECIMAL of {len(raw)} bytes"
        raise ValueError(message)
    number = int.from_bytes(raw, "big", signed=True)
    digits = str(abs(number)).zfill(scale + 1)
    whole, rest = digits[: len(digits) - scale], digits[len(digits) - scale :]
    return f"{'-' if number < 0 else ''}{whole}{'.' if rest else ''}{rest}"


def _bit(raw: bytes) -> str:
    if len(raw) > _LONGEST_BIT:
        message = f"a BIT of {len(raw)} bytes"
        raise ValueError(message)
    return str(int.from_bytes(raw, "big"))


def _latin(raw: bytes) -> str:
    return raw.decode("latin-1")


_TEXTS = {
    "TEXT": "varchar", "JSON": "json", "DATE": "date", "DATETIME": "datetime", "TIMESTAMP": "timestamp", "TIME": "time",
    "TiDBVECTORFloat32": "vector",
}  # fmt: skip
"""`TEXT` is any of CHAR, VARCHAR, TEXT."""
_PLAIN: dict[tuple[str, str], tuple[str, Convert]] = {
    **{(tidb, "string"): (kind, str) for tidb, kind in _TEXTS.items()},
    ("INT", "int"): ("int", str), ("INT UNSIGNED", "int"): ("int unsigned", _unsigned),
    ("INT UNSIGNED", "long"): ("int unsigned", _unsigned), ("YEAR", "int"): ("year", str),
    ("BIGINT", "long"): ("bigint", str), ("BIGINT UNSIGNED", "long"): ("bigint unsigned", _unsigned_bigint),
    ("BIGINT UNSIGNED", "string"): ("bigint unsigned", _unsigned_text),
    ("FLOAT", "float"): ("float", plain_float), ("DOUBLE", "double"): ("double", plain_double),
    ("DECIMAL", "string"): ("decimal", plain_number), ("BIT", "bytes"): ("bit", _bit),
    ("BLOB", "bytes"): ("blob", _latin),
}  # fmt: skip
"""By what TiDB's type is and how it is sent: the type as Canal-JSON has it, and what makes values texts."""

"""Values of TiCDC's Debezium format as Canal-JSON has them: read by the type that the schema names (`tidb_type`).

Numbers stay texts, so what the message holds loses nothing here. What TiCDC's encoder lost before is told in
`LOSSES`. Facts: pingcap/ticdc, `pkg/sink/codec/debezium/codec.go` (`writeDebeziumFieldValue` and `...Schema`).
"""

import binascii
from base64 import b64decode
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import Any

import msgspec

from consumer.formats.numbers import enum_text, members_of, plain_number, set_text, whole_number
from consumer.formats.simple.rows import into_zone

LOSSES = (
    "DECIMAL comes as a 64-bit float: 15 digits are kept",
    "NULL in a column with a DEFAULT comes as the default (of TIME and DATETIME also as 0)",
    "zero and invalid dates come as NULL, in a NOT NULL column as 1970-01-01",
    "years 0 to 69 come as 2000 to 2069, 70 to 99 as 1970 to 1999",
    "RECOVER TABLE, FLASHBACK TABLE and TTL clauses are not sent",
)
"""What TiCDC's encoder loses, and no reader can see in every case."""
_FLOAT_DIGITS = 15
"""So many digits of a decimal number a 64-bit float keeps, whichever they are."""
_WORD, _HALF = 1 << 64, 1 << 63
_EPOCH, _MOMENT = date(1970, 1, 1), datetime(1970, 1, 1, tzinfo=UTC)
_SECOND = 1_000_000
_ZERO_TIMESTAMP = "1970-01-01T00:00:00"
"""No TIMESTAMP is so early: the first is a second later."""
_encode = msgspec.json.Encoder().encode
_text_of = msgspec.json.Decoder(str).decode
Convert = Callable[[bytes], str]


class Parameters(msgspec.Struct, gc=False):
    """What a column's schema says besides."""

    allowed: str = ""


class Field(msgspec.Struct, gc=False):
    """A column of the schema."""

    field: str
    tidb_type: str = ""
    name: str = ""
    optional: bool = True
    parameters: Parameters | None = None


class UnsureError(ValueError):
    """A value that TiCDC's encoder may have changed, and that the config does not let pass."""


def _fault(what: str, raw: bytes) -> ValueError:
    return ValueError(f"{what} was expected, not {raw[:40].decode('utf-8', 'replace')!r}")


def _text(raw: bytes) -> str:
    if not raw.startswith(b'"'):
        raise _fault("a text", raw)
    return _text_of(raw)


def _whole(raw: bytes) -> str:
    return whole_number(raw.decode("ascii", "replace"))


def _unsigned(raw: bytes) -> str:
    if (text := _whole(raw)).startswith("-"):
        message = f"{text} stands for a value that the unsigned column can't hold, and that is lost"
        raise ValueError(message)
    return text


def _unsigned_bigint(raw: bytes) -> str:
    """TiCDC writes the 64 bits as a signed number, so 2^64 - 1 as -1."""
    number = int(_whole(raw))
    if not -_HALF <= number < _HALF:
        raise _fault("a number of 64 bits with its sign", raw)
    return str(number % _WORD)


def _float(raw: bytes) -> str:
    return plain_number(raw.decode("ascii", "replace"))


def _decimal(raw: bytes, *, accepts: bool) -> str:
    text = plain_number(raw.decode("ascii", "replace"))
    if not accepts and len(text.lstrip("-").replace(".", "").strip("0")) > _FLOAT_DIGITS:
        message = f"DECIMAL {text[:40]} came as a 64-bit float, which keeps {_FLOAT_DIGITS} digits: others may be lost"
        raise UnsureError(message)
    return text.removesuffix(".0")


def _bytes_of(raw: bytes) -> bytes:
    try:
        return b64decode(_text(raw), validate=True)
    except binascii.Error:
        raise _fault("base64", raw) from None


def _binary(raw: bytes) -> str:
    return _bytes_of(raw).decode("latin-1")


def _bit(raw: bytes) -> str:
    if raw in (b"true", b"false"):
        return str(int(raw == b"true"))
    return str(int.from_bytes(_bytes_of(raw), "little"))


def _date(raw: bytes) -> str:
    try:
        return (_EPOCH + timedelta(days=int(_whole(raw)))).isoformat()
    except OverflowError:
        raise _fault("a day from the year 1 to 9999", raw) from None


def _fraction(micros: int) -> str:
    """Of a second: three digits where they are enough, as fewer are never told."""
    if micros % 1000:
        return f".{micros:06}"
    return f".{micros // 1000:03}" if micros else ""


def _datetime(raw: bytes, *, unit: int) -> str:
    try:
        found = _MOMENT + timedelta(microseconds=int(_whole(raw)) * unit)
    except OverflowError:
        raise _fault("a time from the year 1 to 9999", raw) from None
    return found.replace(microsecond=0, tzinfo=None).isoformat(" ") + _fraction(found.microsecond)


def _timestamp(raw: bytes, *, zone: str) -> str:
    text = _text(raw)
    if not text.endswith("Z") or text[10:11] != "T":
        raise _fault("a time in UTC", raw)
    if text[:-1].partition(".")[0] == _ZERO_TIMESTAMP:
        return "0000-00-00 00:00:00"
    return into_zone("UTC", zone)(text[:-1].replace("T", " ", 1))


def _time(raw: bytes) -> str:
    micros = int(_whole(raw))
    seconds, rest = divmod(abs(micros), _SECOND)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    return f"{'-' if micros < 0 else ''}{hour:02}:{minute:02}:{second:02}{_fraction(rest)}"


def _enum(raw: bytes, *, members: Mapping[str, int]) -> str:
    return enum_text(_text(raw), members)


def _set(raw: bytes, *, members: Mapping[str, int]) -> str:
    return set_text(_text(raw), members)


_PLAIN: dict[str, tuple[str, Convert]] = {
    "year": ("year", _whole), "bit": ("bit", _bit), "float": ("float", _float), "double": ("double", _float),
    "date": ("date", _date), "time": ("time", _time), "json": ("json", _text), "vector": ("vector", _text),
}  # fmt: skip
_WHOLE = {"tinyint", "smallint", "mediumint", "int", "bigint"}
_TEXTS = {"char", "varchar", "tinytext", "text", "mediumtext", "longtext"}
_BINARY = {"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"}
_MICROS = "io.debezium.time.MicroTimestamp"


def kind_of(field: Field, zone: str, *, accepts: bool) -> tuple[str, Convert]:
    """A column's type as Canal-JSON has it, and how its values are read. Raises ValueError for an unknown one."""
    base, _, rest = field.tidb_type.partition(" ")
    if base in _PLAIN:
        return _PLAIN[base]
    if base in _WHOLE:
        unsigned = _unsigned_bigint if base == "bigint" else _unsigned
        return (f"{base} unsigned", unsigned) if rest == "unsigned" else (base, _whole)
    if base in _TEXTS or base in _BINARY:
        return base, _text if base in _TEXTS else _binary
    allowed = field.parameters.allowed if field.parameters else ""
    others: dict[str, Convert] = {
        "decimal": partial(_decimal, accepts=accepts),
        "datetime": partial(_datetime, unit=1 if field.name == _MICROS else 1000),
        "timestamp": partial(_timestamp, zone=zone),
        "enum": partial(_enum, members=members_of(allowed, is_enum=True)),
        "set": partial(_set, members=members_of(allowed, is_enum=False)),
    }
    if base not in others:
        message = f"column {field.field[:80]!r} has the unknown type {field.tidb_type[:80]!r}"
        raise ValueError(message)
    return base, others[base]


class DebeziumTable:
    """How rows of a table are written in the form that tasks read."""

    def __init__(self, name: tuple[str, str], fields: Mapping[str, Field], key: list[str], convert: Any) -> None:
        kinds = {column: convert(field) for column, field in fields.items()}
        self._columns = {column: (b"%b:" % _encode(column), how) for column, (_, how) in kinds.items()}
        told = {"database": name[0], "table": name[1], "pkNames": sorted(key) or None, "isDdl": False, "sql": ""}
        self.head = _encode({**told, "mysqlType": {column: kind for column, (kind, _) in kinds.items()}})[:-1]

    def image(self, row: Mapping[str, msgspec.Raw]) -> bytes:
        """A row's image. Raises ValueError, and what a decoder raises."""
        parts = []
        for column, value in row.items():
            if column not in self._columns:
                message = f"its schema lacks column {column[:80]!r}"
                raise ValueError(message)
            name, convert = self._columns[column]
            raw = bytes(value)
            try:
                parts.append(name + (raw if raw == b"null" else _encode(convert(raw))))
            except UnsureError as error:
                raise UnsureError(f"column {column[:80]!r}: {error}") from None
            except ValueError as error:
                message = f"column {column[:80]!r}: {error}"
                raise ValueError(message) from None
        return b"{%b}" % b",".join(parts)

"""Rows for SQLite: msgpack lists of lists, ready for `executemany`.

The value's type is decided by the column's shape: INTEGER, REAL, TEXT or BLOB. DECIMAL and integers beyond 64 bits stay
text, never rounded; ENUM and SET land as their members' names, TIMESTAMP as UTC's text.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import msgspec

from sinks.rows import plain_values
from sinks.rows.chunk import Texts
from sinks.rows.schema import Column, Shape
from sinks.rows.values import ValueRules, checked_json, member_name, set_names, utc_of

Value = int | float | str | bytes | None

_encode = msgspec.msgpack.Encoder().encode
_MIN, _MAX = -(2**63), 2**63 - 1
_NO_YEAR = "0000"
"""How a dump spells the YEAR 0."""


def _number(text: str) -> int:
    number = plain_values.integer(text)
    if str(number) != text and text != _NO_YEAR:  # '007' is another text than '7' upstream
        message = f"{text[:50]!r} is no whole number as upstream spells one"
        raise ValueError(message)
    return number


def _real(text: str) -> Value:
    return float(plain_values.exact_double(text))  # SQLite would make NULL of a NaN


def _exact(text: str) -> Value:
    number = _number(text)
    return number if _MIN <= number <= _MAX else text


def _integer(text: str) -> Value:
    number = _number(text)
    if not _MIN <= number <= _MAX:
        message = f"{text[:50]} is beyond SQLite's integers"
        raise ValueError(message)
    return number


def _bytes(text: str) -> Value:
    # binary strings come as one code point U+0000..U+00FF a byte
    return text.encode("latin-1")


Convert = Callable[[str], Value]
_CONVERTERS: dict[Shape, Convert] = {
    Shape.INTEGER: _integer,
    Shape.REAL: _real,
    Shape.BYTES: _bytes,
    Shape.EXACT: _exact,
    Shape.JSON: checked_json,
}


class SqliteEncoder:
    """Texts to SQLite's values."""

    def __init__(self, rules: ValueRules) -> None:
        self._utc = utc_of(rules.time_zone)

    def encode(self, columns: Sequence[Column], rows: Sequence[Texts]) -> bytes:
        """See `sinks.rows.chunk.Encoder`."""
        converters = [self._converter(column) for column in columns]
        return _encode([[None if t is None else f(t) for f, t in zip(converters, row, strict=True)] for row in rows])

    def value(self, column: Column, text: str) -> Value:
        """The value of one text. Raises ValueError."""
        return self._converter(column)(text)

    def split(self, payload: bytes) -> list[bytes]:
        """See `sinks.rows.chunk.Encoder`."""
        return [_encode([row]) for row in decode_rows(payload)]

    def joined(self, rows: Sequence[bytes]) -> bytes:
        """See `sinks.rows.chunk.Encoder`."""
        return _encode([row for some in rows for row in decode_rows(some)])

    def _converter(self, column: Column) -> Convert:
        if column.shape is Shape.TIMESTAMP:
            return self._utc
        if column.shape is Shape.ENUM:
            return partial(member_name, column.members)
        if column.shape is Shape.SET:
            return partial(set_names, column.members)
        return _CONVERTERS.get(column.shape, str)


decode_rows = msgspec.msgpack.Decoder(list[list[Any]]).decode

"""Rows for SQLite: msgpack lists of lists, ready for `executemany`.

The value's type is decided by the column's shape: INTEGER, REAL, TEXT or BLOB. DECIMAL and integers beyond 64 bits stay
text, never rounded.
"""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from sinks.chunk import Texts
from sinks.schema import Column, Shape

Value = int | float | str | bytes | None

_encode = msgspec.msgpack.Encoder().encode
_MIN, _MAX = -(2**63), 2**63 - 1


def _exact(text: str) -> Value:
    number = int(text)
    return number if _MIN <= number <= _MAX else text


def _bytes(text: str) -> Value:
    # binary strings come as one code point U+0000..U+00FF a byte
    return text.encode("latin-1")


CONVERTERS: dict[Shape, Callable[[str], Value]] = {
    Shape.TEXT: str,
    Shape.INTEGER: int,
    Shape.REAL: float,
    Shape.BYTES: _bytes,
    Shape.EXACT: _exact,
}


class SqliteEncoder:
    """Texts to SQLite's values."""

    def encode(self, columns: Sequence[Column], rows: Sequence[Texts]) -> bytes:
        """See `sinks.chunk.Encoder`."""
        converters = [CONVERTERS[column.shape] for column in columns]
        return _encode([[None if t is None else f(t) for f, t in zip(converters, row, strict=True)] for row in rows])


decode_rows = msgspec.msgpack.Decoder(list[list[Any]]).decode

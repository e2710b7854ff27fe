"""Values of a SELECT as the texts that TiCDC sends, and back into parameters that find a row by its handle key.

The SELECT's own texts are those of the MySQL protocol. TiCDC differs for numbers of members (ENUM, SET), bits, binary
strings, exponents, zero-filled integers and the year 0 (its Canal-JSON encoder; TiDB documentation, "TiCDC Canal-JSON
Protocol", data type mapping).
"""

import re
import struct
from collections.abc import Callable
from decimal import Decimal
from typing import NamedTuple

from sinks.ddl.rows.out_of_range import shortest
from sinks.mysql.catalog import quoted

Raw = str | bytes | None
Parameter = str | int | float | bytes

_NUMBERED = ("enum", "set")
_BINARY = re.compile(r"(var)?binary|(tiny|medium|long)?blob")
_INTEGER = re.compile(r"(tiny|small|medium|big)?int|year")


class SourceColumn(NamedTuple):
    """A column as SHOW COLUMNS tells it: its type is `binary(4)`, `bigint(20) unsigned`, `enum('a')`, ..."""

    name: str
    type: str

    @property
    def base(self) -> str:
        """The type's name alone."""
        return re.split(r"[( ]", self.type, maxsplit=1)[0].lower()

    @property
    def is_numbered(self) -> bool:
        """Whether messages hold the number of a member, not its name."""
        return self.base in _NUMBERED

    @property
    def shown(self) -> str:
        """An expression that shows all of a value: of a large or small FLOAT TiDB's texts have six digits."""
        name = quoted(self.name)
        if self.is_numbered:
            return f"CAST({name} AS UNSIGNED)"
        return f"({name} + 0e0)" if self.base == "float" else name


def text_of(column: SourceColumn, value: Raw) -> str | None:
    """The text that a message would hold. Values of ENUM and SET come as numbers already."""
    return None if value is None else _converter(column)(value)


def _converter(column: SourceColumn) -> Callable[[str | bytes], str]:
    base = column.base
    if base == "bit":
        return _bits
    if _BINARY.fullmatch(base):
        return _latin
    if _INTEGER.fullmatch(base):
        return _integer
    if base == "float":
        return _single
    return _plain_decimal if base == "double" else _utf8


def _utf8(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.decode()


def _latin(value: str | bytes) -> str:
    return (value.encode() if isinstance(value, str) else value).decode("latin-1")


def _bits(value: str | bytes) -> str:
    return str(int.from_bytes(value.encode("latin-1") if isinstance(value, str) else value))


def _integer(value: str | bytes) -> str:
    return str(int(value))


def _single(value: str | bytes) -> str:
    return shortest(float(_utf8(value)))


def _plain_decimal(value: str | bytes) -> str:
    return format(Decimal(_utf8(value)), "f")


def parameter_of(column: SourceColumn, text: str) -> Parameter:
    """What compares equal to the column's value. Raises ValueError for a text that is no value of the column."""
    base = column.base
    if column.is_numbered or base == "bit" or _INTEGER.fullmatch(base):
        return int(text)
    if _BINARY.fullmatch(base):
        return text.encode("latin-1")
    if base == "float":  # held in 32 bits and compared in 64
        (near,) = struct.unpack("f", struct.pack("f", float(text)))
        return float(near)
    return float(text) if base == "double" else text

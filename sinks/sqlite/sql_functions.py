"""Functions that our statements call in SQLite: conversions and partitions as TiDB computes them.

They belong to a connection, nothing of them lies in a file.
"""

import sqlite3
import zlib
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from itertools import count
from math import floor, trunc
from operator import add, mul, sub

import msgspec

from ordering.errors import TargetError
from sinks.ddl.model import ColumnDef, TypeDef
from sinks.ddl.rows.modify_column import converter, number_of
from sinks.rows.plain_values import is_whole
from sinks.rows.values import ValueRules, zone_of
from sinks.sqlite.encoder import SqliteEncoder, Value
from sinks.sqlite.types import column_of

CONVERTED, HASHED, KEYED, MET = "ticdc_converted", "ticdc_hashed", "ticdc_keyed", "ticdc_met"
COMPUTED = "ticdc_computed"
_LARGEST = 2**63 - 1
_SECONDS = len("2026-01-02 03:04:05")
_Change = msgspec.json.Decoder(tuple[TypeDef, TypeDef]).decode


def conversion(source: str, old: TypeDef, new: TypeDef) -> str:
    """A call that converts the values of a column. Raises TargetError for a pair that is not known."""
    converter(old, new)
    told = msgspec.json.encode((old, new)).decode().replace("'", "''")
    return f"{CONVERTED}({source}, '{told}')"


class Functions:
    """The functions for one target."""

    def __init__(self, encoder: SqliteEncoder, rules: ValueRules) -> None:
        self._encoder, self._zone = encoder, rules.time_zone
        self.failure: str = ""
        """What the last call that failed had to say: SQLite keeps that for itself."""
        self._met = count()
        self._compiled = lru_cache(maxsize=16)(self._compile)

    def register(self, connection: sqlite3.Connection) -> None:
        """Make them known to a connection."""
        connection.create_function(CONVERTED, 2, self._convert, deterministic=True)
        connection.create_function(HASHED, 2, hashed, deterministic=True)
        connection.create_function(COMPUTED, -1, computed, deterministic=True)
        connection.create_function(KEYED, -1, keyed, deterministic=True)
        connection.create_function(MET, 0, self._met.__next__)

    def calls(self) -> Callable[[], int]:
        """Asked once: how often statements have called `MET` since now."""
        before = next(self._met)
        return lambda: next(self._met) - before - 1

    def taken_failure(self) -> str:
        """The failure, once."""
        told, self.failure = self.failure, ""
        return told

    def _convert(self, value: Value, change: str) -> Value:
        if value is None:
            return None
        try:
            return self._compiled(change)(value)
        except (ArithmeticError, LookupError, ValueError, TargetError) as error:
            self.failure = f"{str(value)[:100]!r} can't be converted: {error}"
            raise

    def _compile(self, change: str) -> Callable[[Value], Value]:
        old, new = _Change(change.encode())
        convert, column = converter(old, new), column_of(ColumnDef("", new))
        return lambda value: self._encoder.value(column, convert(self.text_of(value, old)))

    def text_of(self, value: Value, kind: TypeDef) -> str:
        """A value as a message would spell it."""
        if isinstance(value, bytes):
            return value.decode("latin-1")
        if isinstance(value, float):
            return format(Decimal(repr(value)), "f").removesuffix(".0")
        text = str(value)
        if kind.base in {"enum", "set"}:
            return number_of(kind, text)
        return self._in_zone(text) if kind.base == "timestamp" else text

    def _in_zone(self, text: str) -> str:
        """A TIMESTAMP, which lands as UTC's text, in the source's zone."""
        if text.startswith("0000-00-00"):
            return text
        moment = datetime.fromisoformat(text[:_SECONDS]).replace(tzinfo=UTC).astimezone(zone_of(self._zone))
        return moment.strftime("%Y-%m-%d %H:%M:%S") + text[_SECONDS:]


def hashed(number: int | str | None, count: int) -> int:
    """In which of `count` HASH partitions a row is."""
    whole = int(number or 0)  # upstream reads the bits of a large unsigned one as a signed one's
    return abs(whole - (whole > _LARGEST) * 2 * (_LARGEST + 1)) % count


_OPERATIONS: Mapping[str, Callable[..., Decimal | int]] = {
    "+": add, "-": sub, "*": mul, "DIV": lambda a, b: trunc(Fraction(a) / Fraction(b)),
    "MOD": lambda a, b: a - b * trunc(Fraction(a) / Fraction(b)), "ABS": abs, "FLOOR": floor,
}  # fmt: skip
"""MySQL's, on whole numbers and decimals: a quotient is cut towards zero, a remainder has the sign of the dividend."""


def computed(operation: str, *numbers: str | float | None) -> str | float | None:
    """An operation on numbers that may be texts, for SQLite has none from 2^63 on; such a result is a text too."""
    known = [_number(number) for number in numbers if number is not None]
    if len(known) < len(numbers) or (operation in {"DIV", "MOD"} and not known[1]):
        return None
    found = _OPERATIONS[operation](*known)
    if isinstance(found, Decimal):
        return float(found)
    return str(found) if found > _LARGEST else found


def _number(number: str | float) -> int | Decimal:
    return int(number) if isinstance(number, int) or is_whole(str(number)) else Decimal(str(number))


def keyed(count: int, *texts: Value) -> int:
    """In which of `count` KEY partitions a row is, by the texts of its columns."""
    digest = 0
    for text in texts:
        part = b"\0" if text is None else text if isinstance(text, bytes) else str(text).encode()
        digest = zlib.crc32(part, digest)
    return digest % count

"""Values as MySQL compares and computes with them, read from the texts of messages by their `mysqlType`.

Source: MySQL 8.0 Reference Manual, 12.3 "Type Conversion in Expression Evaluation". Texts compare as under
`utf8mb4_bin`, TiDB's default collation: by code point, upper case unlike lower case, spaces at the end without meaning.
No message names a column's collation.
"""

import re
import struct
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from math import isinf
from typing import Any

from sinks.rows import plain_values

_INTEGERS = {"tinyint", "smallint", "mediumint", "int", "integer", "bigint", "bool", "boolean"}
_BYTES = {"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"}
_MOMENTS = {"date", "datetime", "timestamp"}
_NUMBERED = {"enum", "set"}
_OPAQUE = {"json", "vector", "geometry"}
_PREFIX = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_MOMENT = re.compile(
    r"(\d{4})-(\d{1,2})-(\d{1,2})(?:[ T](\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,6})\d*)?)?)?\s*", re.ASCII
)
_SPAN = re.compile(r"(-?)(\d{1,3}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,6})\d*)?)?\s*", re.ASCII)
BLANKS = " \t\n\v\f\r"
_CENTURY, _TURN = 100, 70
_MOST_DIGITS = 800
"""More of a text than this is not read as a number: the time that it takes grows with the square."""
_LARGEST = Decimal(repr(sys.float_info.max))
_EXACT = 2.0**53
"""From here on whole numbers are no DOUBLEs of their own."""
_WIDTH = re.compile(r"\((\d+)\)")
_MEMBERS = re.compile(r"'((?:''|[^'])*)'")


class EvaluationError(Exception):
    """A value can't be read or compared as the condition asks."""


@dataclass(frozen=True, slots=True)
class Moment:
    """A DATE, DATETIME or TIMESTAMP: its text, and year to microsecond as numbers. Zero and partial dates are fine."""

    text: str
    parts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TimeSpan:
    """A TIME: its text and its length in microseconds."""

    text: str
    microseconds: int


@dataclass(frozen=True, slots=True)
class Member:
    """An ENUM or SET: its number and, where the members are known, its name."""

    number: int
    name: str | None


@dataclass(frozen=True, slots=True)
class Opaque:
    """A value of a type with rules of its own (JSON): no more than whether it is NULL is known of it."""

    type: str


class Year(int):
    """A YEAR. Beside it a constant of two digits is a year of this century or the last (see `year_beside`)."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Bit:
    """A BIT: a number, which as a text is its bytes. `size`: how many, None where the type does not say."""

    number: int
    size: int | None


class Bits(bytes):
    """A hexadecimal or bit literal: bytes that count as a number beside a number."""


Value = None | int | Decimal | float | str | bytes | Moment | TimeSpan | Member | Bit | Opaque
Number = int | Decimal | float


def value_of(text: str | None, mysql_type: str, members: Sequence[str | None] = ()) -> Value:
    """The value of a column of this type. `members`: an ENUM's or SET's, where the type itself does not list them.

    None stands for a name that is not known.

    Raises EvaluationError if the text is no value of the type.
    """
    if text is None:
        return None
    base, listed = _read_type(mysql_type)
    try:
        if base in _NUMBERED:
            return _member(base, int(plain_values.unsigned(text)), listed or members)
        if base in _OPAQUE:
            return Opaque(base)
        if base == "bit":
            width = _WIDTH.search(mysql_type)
            return Bit(int(plain_values.unsigned(text)), -(-int(width[1]) // 8) if width else None)
        return _READERS.get(base, str)(text)
    except (ValueError, ArithmeticError, UnicodeEncodeError) as error:
        raise EvaluationError(f"{text[:100]!r} is no value of type {mysql_type}") from error


@lru_cache(maxsize=10_000)
def _read_type(mysql_type: str) -> tuple[str, tuple[str, ...]]:
    """A type's name, and the members that it lists: `enum('a','B')`, as `content-compatible` sends it."""
    base = re.split(r"[ (]", mysql_type.lower(), maxsplit=1)[0]
    members = _MEMBERS.findall(mysql_type) if base in _NUMBERED else []
    return base, tuple(name.replace("''", "'") for name in members)


def base_of(mysql_type: str) -> str:
    """The name of a type: `int` of `int(11) unsigned`."""
    return _read_type(mysql_type)[0]


def _member(base: str, number: int, members: Sequence[str | None]) -> Member:
    if number == 0:
        return Member(0, "")
    if base == "enum":
        return Member(number, members[number - 1] if number <= len(members) else None)
    if number >> len(members):
        return Member(number, None)
    names = [name for i, name in enumerate(members) if number >> i & 1]
    known = [name for name in names if name is not None]
    return Member(number, ",".join(known) if len(known) == len(names) else None)


def _single(text: str) -> float:
    """A FLOAT: the shortest text of a 32-bit number, as the 64-bit number that MySQL computes with."""
    return float(struct.unpack("f", struct.pack("f", plain_values.double(text)))[0])


def moment(text: str) -> Moment:
    """A date with or without a time. Raises EvaluationError."""
    match = _MOMENT.fullmatch(text)
    if match is None:
        raise EvaluationError(f"{text[:100]!r} is no date")
    *parts, fraction = match.groups(default="0")
    return Moment(text, (*map(int, parts), int(fraction.ljust(6, "0"))))


def span(text: str) -> TimeSpan:
    """A TIME. Raises EvaluationError."""
    match = _SPAN.fullmatch(text)
    if match is None:
        raise EvaluationError(f"{text[:100]!r} is no time")
    sign, hours, minutes, seconds, fraction = match.groups(default="0")
    whole = (int(hours) * 60 + int(minutes)) * 60 + int(seconds)
    length = whole * 1_000_000 + int(fraction.ljust(6, "0"))
    return TimeSpan(text, -length if sign == "-" else length)


_READERS: dict[str, Callable[[str], Value]] = {
    **dict.fromkeys(_INTEGERS, plain_values.integer),
    **dict.fromkeys(_BYTES, lambda text: text.encode("latin-1")),
    **dict.fromkeys(_MOMENTS, moment),
    "decimal": plain_values.decimal,
    "numeric": plain_values.decimal,
    "double": plain_values.double,
    "real": plain_values.double,
    "float": _single,
    "time": span,
    "year": lambda text: Year(plain_values.integer(text)),
}


def number_of(value: Value) -> Number:
    """The value as a number; a text by the number that it begins with, or 0. Raises EvaluationError."""
    if isinstance(value, int | Decimal | float):
        return value
    reading = _NUMBERS.get(type(value))
    if reading is None:
        raise EvaluationError(f"{_named(value)} can't be taken for a number here")
    return reading(value)


def _moment_number(value: Moment) -> Number:
    year, month, day, hour, minute, second, micro = value.parts
    date = (year * 100 + month) * 100 + day
    whole = date if len(value.text) <= len("2026-01-02") else _clock(date * 100 + hour, minute, second)
    return whole if micro == 0 else Decimal(whole) + Decimal(micro).scaleb(-6)


def _clock(hours: int, minutes: int, seconds: int) -> int:
    return (hours * 100 + minutes) * 100 + seconds


def _span_number(value: TimeSpan) -> Number:
    seconds, micro = divmod(abs(value.microseconds), 1_000_000)
    whole = _clock(seconds // 3600, seconds // 60 % 60, seconds % 60)
    found = whole if micro == 0 else Decimal(whole) + Decimal(micro).scaleb(-6)
    return -found if value.microseconds < 0 else found


def leading(text: str) -> Decimal:
    """The number that a text begins with, or 0. Raises EvaluationError.

    A DOUBLE's largest value stands for one beyond it, as in TiDB (`types.StrToFloat`), 0 for one below its smallest.
    """
    match = _PREFIX.match(text.lstrip(BLANKS)[:_MOST_DIGITS])
    if match is None:
        return Decimal(0)
    if match.end() == _MOST_DIGITS:
        raise EvaluationError(f"{text[:50]!r}... is too long for a number")
    near = float(match[0])
    if isinf(near):
        return _LARGEST if near > 0 else -_LARGEST
    return Decimal(match[0]) if near else Decimal(0)


_NUMBERS: dict[type, Callable[[Any], Number]] = {
    Bits: int.from_bytes,
    str: leading,
    bytes: lambda value: leading(value.decode("latin-1")),
    Member: lambda value: value.number,
    Bit: lambda value: value.number,
    Moment: _moment_number,
    TimeSpan: _span_number,
}


def text_of(value: Value) -> str:
    """The value as a text. Raises EvaluationError."""
    reading = _TEXTS.get(type(value))
    if reading is None:
        raise EvaluationError(f"{_named(value)} can't be taken for a text here")
    return reading(value)


def _name(value: Member) -> str:
    if value.name is None:
        raise EvaluationError(f"the name of member {value.number} is not known: compare with its number")
    return value.name


def _bytes_of(value: Bit) -> bytes:
    if value.size is None:
        raise EvaluationError("a BIT can't be taken for a text: its message does not say how wide it is")
    return value.number.to_bytes(value.size)


def year_beside(value: Value, constant: Value) -> Value:
    """A constant as it is compared with a column's value: two digits beside a YEAR are one of the nearest century."""
    if not isinstance(value, Year) or not isinstance(constant, int | float | str):
        return constant
    if isinstance(constant, str) and re.fullmatch(r"\d{1,4}", constant, re.ASCII) is None:
        raise EvaluationError(f"a YEAR can't be compared with {constant[:50]!r} here")
    number = int(constant)
    if number != float(constant):
        raise EvaluationError(f"a YEAR can't be compared with {constant} here")
    if not 0 <= number < _CENTURY or (number == 0 and not isinstance(constant, str)):
        return constant
    return number + (2000 if number < _TURN else 1900)


def _decoded(value: bytes) -> str:
    """Bytes that are letters: of others TiDB counts and compares the bytes."""
    try:
        return value.decode("ascii")
    except UnicodeDecodeError as error:
        raise EvaluationError("bytes that are no ASCII can't be taken for a text") from error


_TEXTS: dict[type, Callable[[Any], str]] = {
    str: str,
    Bits: _decoded,
    bytes: _decoded,
    int: str,
    Year: lambda value: f"{value:04}",
    Bit: lambda value: _decoded(_bytes_of(value)),
    Decimal: lambda value: format(value, "f"),
    float: lambda value: format(Decimal(repr(value)).normalize(), "f"),
    Moment: lambda value: value.text,
    TimeSpan: lambda value: value.text,
    Member: _name,
}


def truth_of(value: Value) -> bool | None:
    """Whether the value is true; None for NULL. Raises EvaluationError."""
    return None if value is None else number_of(value) != 0


def compare(left: Value, right: Value) -> int:
    """Below, equal to or above 0 as `left` is to `right`; neither is NULL. Raises EvaluationError."""
    if isinstance(left, Opaque) or isinstance(right, Opaque):
        raise EvaluationError(f"{_named(left if isinstance(left, Opaque) else right)} can't be compared")
    one, other = _comparable(left, right)
    return int(one > other) - int(one < other)


def _comparable(left: Value, right: Value) -> tuple[Any, ...]:
    """Both as what they are compared as."""
    both = (left, right)
    if type(left) is int and type(right) is int:
        return both
    if any(isinstance(v, Moment) for v in both) and all(isinstance(v, Moment | str) for v in both):
        return tuple((v if isinstance(v, Moment) else moment(text_of(v))).parts for v in both)
    if any(isinstance(v, TimeSpan) for v in both) and all(isinstance(v, TimeSpan | str) for v in both):
        return tuple((v if isinstance(v, TimeSpan) else span(text_of(v))).microseconds for v in both)
    if any(isinstance(v, bytes) for v in both) and all(isinstance(v, bytes | str | Member) for v in both):
        return tuple(v if isinstance(v, bytes) else text_of(v).encode() for v in both)
    if all(isinstance(v, str | Member) for v in both):
        return tuple(text_of(v).rstrip(" ") for v in both)
    return _as_numbers(*both)


def _as_numbers(left: Value, right: Value) -> tuple[Number, Number]:
    """Both as numbers. Raises EvaluationError where they differ, but not as DOUBLEs: TiDB compares some as such."""
    one, other = number_of(left), number_of(right)
    is_double = any(isinstance(v, float | str | bytes) for v in (left, right))
    if is_double and one != other and float(one) == float(other) and abs(float(one)) >= _EXACT:
        raise EvaluationError(f"{one} and {other} are one DOUBLE")
    return same_kind(one, other)


def same_kind(left: Number, right: Number) -> tuple[Number, Number]:
    """Both as exact numbers, or both as floating ones if either is."""
    if isinstance(left, float) or isinstance(right, float):
        return float(left), float(right)
    return left, right


def _named(value: Value) -> str:
    return f"a {value.type} value" if isinstance(value, Opaque) else f"a {type(value).__name__.lower()} value"

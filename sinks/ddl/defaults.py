"""What rows show in a column that they got by DDL: its default, or its type's zero, as a message would spell it.

Every later row comes whole, so a default matters only for the rows that are there when the column is added; they get no
event of their own. What upstream computes at that moment (the time, a sequence) is in no message: TiDB takes the time
at which the statement began, a DDL's commitTs is the end of its work. `moment` takes the one for the other, unless
`target.volatile-defaults` forbids it.
"""

import re
import struct
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal

from ordering.errors import TargetError
from sinks.ddl.definition import ColumnDef, TypeDef
from sinks.ddl.literals import Number
from sinks.ddl.moments import date_and_time, full_year, time_span

INTEGERS = {"tinyint", "smallint", "mediumint", "int", "bigint"}
REALS = {"float", "double"}
BYTES = {"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"}
DATES = {"date", "datetime", "timestamp"}
_ZEROS = {
    "decimal": "0", "year": "0000", "bit": Number("0"), "enum": "1", "set": "0", "json": "null", "date": "0000-00-00",
    "datetime": "0000-00-00 00:00:00", "timestamp": "0000-00-00 00:00:00", "time": "00:00:00",
    **dict.fromkeys(INTEGERS | REALS, "0"),
}  # fmt: skip
_EXACT = Context(prec=100)
"""For 65 digits and more: the usual context has 28."""
NOW = re.compile(r"(?:CURRENT_TIMESTAMP|NOW|LOCALTIME|LOCALTIMESTAMP)\s*(?:\(\s*(\d?)\s*\))?", re.IGNORECASE)
"""The moment as a default, with the digits of its fraction."""


def shown(column: ColumnDef, moment: str = "") -> str | None:
    """The text of the column in rows that are there when it is added; None is NULL.

    `moment`: what the time upstream is taken for, to the microsecond. Raises TargetError if only upstream can know it.
    """
    default = column.default
    if column.automatic or (default is not None and default.expression):
        source = "AUTO_INCREMENT" if column.automatic else default.expression if default else ""
        if not is_volatile(column) or not moment:
            raise unknown_here(column.name, source)
        return _moment(
            column.type, moment[: len("2024-01-02 03:04:05.") + column.type.number(0, 0)]
        )  # cut, not rounded
    if default is None or default.value is None:
        return None if column.nullable else spelled(column.type, _ZEROS.get(column.type.base, ""))
    return spelled(column.type, default.value)


def is_volatile(column: ColumnDef) -> bool:
    """Whether the column's default is the moment."""
    default = column.default
    source = "" if column.automatic or default is None else default.expression or ""
    return NOW.fullmatch(source) is not None and column.type.base in DATES


def moment_note(column: str) -> str:
    """What the DDL log says about rows that got the commit time for a default of the moment."""
    return f"rows that were there show the commit time in {column!r}: upstream's value is earlier by what the DDL took"


def unknown_here(column: str, source: str) -> TargetError:
    """What rows show can't be known, or may not be taken to be the commit time."""
    return TargetError(
        f"what rows show in the new column {column!r} is known upstream only: it is {source[:200]}",
        hint="add the column in the target by hand, filled as it is upstream, or, for a default of the moment,"
        ' set target.volatile-defaults = "commit-time": as late as the change upstream took',
    )


def spelled(kind: TypeDef, value: str | bytes) -> str:
    """A literal as a message spells the value that it becomes in a column of this type. Raises TargetError."""
    try:
        if kind.base in BYTES:
            return _bytes(kind, value if isinstance(value, bytes) else _as_text(value).encode())
        if isinstance(value, bytes):
            numeric = kind.base in INTEGERS | REALS | {"decimal", "bit", "year", "enum", "set"}
            value = Number(int.from_bytes(value)) if numeric else value.decode()
        return _text(kind, value)
    except (ArithmeticError, ValueError) as error:
        raise TargetError(f"{value[:100]!r} is no value of the type {kind}") from error


def _text(kind: TypeDef, text: str) -> str:
    if kind.base in DATES | {"time"}:
        return _moment(kind, text)
    if kind.base == "enum":
        return str(_member(kind, text))
    if kind.base == "set":
        return _mask(kind, text)
    if kind.base in _NUMBERS:
        return _NUMBERS[kind.base](kind, text)
    shown_as = _as_text(text)
    return shown_as.rstrip(" ") if kind.base == "char" else shown_as


def _whole(_: TypeDef, text: str) -> str:
    """Halves go away from zero, those of a float to the even number."""
    if "e" in text.lower():
        return str(round(float(text)))
    return str(int(Decimal(text).quantize(Decimal(1), ROUND_HALF_UP, _EXACT)))


def _year(_: TypeDef, text: str) -> str:
    return str(full_year(text))


def _bits(_: TypeDef, text: str) -> str:
    """A text is its bytes."""
    return str(int(text) if isinstance(text, Number) else int.from_bytes(text.encode()))


def _decimal(kind: TypeDef, text: str) -> str:
    return format(Decimal(text).quantize(Decimal((0, (1,), -kind.number(1, 0))), ROUND_HALF_UP, _EXACT), "f")


def _real(kind: TypeDef, text: str) -> str:
    """With (M,D) rounded, halves to even; a FLOAT has 32 bits."""
    number = float(text)
    if (digits := kind.number(1, 0)) or kind.number(0, 0):
        number = round(number * 10**digits) / 10**digits
    if kind.base == "float":
        number = struct.unpack("f", struct.pack("f", number))[0]
        number = next(short for n in range(1, 10) if _same_float(short := float(f"{number:.{n}g}"), number))
    return format(Decimal(repr(number)), "f")


def _same_float(one: float, other: float) -> bool:
    return struct.pack("f", one) == struct.pack("f", other)


_NUMBERS: dict[str, Callable[[TypeDef, str], str]] = {
    **dict.fromkeys(INTEGERS, _whole), "year": _year, "bit": _bits, "decimal": _decimal, **dict.fromkeys(REALS, _real)
}  # fmt: skip


def _as_text(value: str) -> str:
    """A literal as a text: of a float its shortest form."""
    if isinstance(value, Number) and "e" in value.lower():
        return format(Decimal(repr(float(value))).normalize(), "f")
    return value


def _mask(kind: TypeDef, text: str) -> str:
    """A SET's bits: by its members' names, or else by their number."""
    folded = {member.casefold() for member in kind.members}
    names = {name.casefold() for name in text.split(",") if name}
    if isinstance(text, Number) or (text.isdecimal() and not names <= folded):
        return text
    return str(sum({1 << (_member(kind, name) - 1) for name in text.split(",") if name}))


def _member(kind: TypeDef, text: str) -> int:
    """The number of a member, from 1; under most collations 'A' names the member 'a'."""
    if isinstance(text, Number):
        return int(text)
    if text in kind.members:
        return kind.members.index(text) + 1
    folded = [member.casefold() for member in kind.members]
    return folded.index(text.casefold()) + 1 if text.casefold() in folded else int(text)


def _bytes(kind: TypeDef, value: bytes) -> str:
    padded = value.ljust(kind.number(0, 1), b"\0") if kind.base == "binary" else value
    return padded.decode("latin-1")


def _moment(kind: TypeDef, text: str) -> str:
    digits = kind.number(0, 0)
    if kind.base == "time":
        return time_span(text, digits)
    moment = date_and_time(text, digits)
    return moment[: len("2024-01-02")] if kind.base == "date" else moment

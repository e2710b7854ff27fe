"""What rows show in a column that they got by DDL: its default, or its type's zero, as a message would spell it.

Every later row comes whole, so a default matters only for the rows that are there when the column is added; they get no
event of their own. What upstream computes at that moment (the time, a sequence) is in no message: TiDB takes the time
at which the statement began, a DDL's commitTs is the end of its work. `moment` takes the one for the other, unless
`target.volatile-defaults` forbids it.
"""

import re
from decimal import ROUND_HALF_UP, Context, Decimal

from ordering.errors import TargetError
from sinks.ddl.definition import ColumnDef, TypeDef

INTEGERS = {"tinyint", "smallint", "mediumint", "int", "bigint"}
REALS = {"float", "double"}
BYTES = {"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"}
DATES = {"date", "datetime", "timestamp"}
_ZEROS = {
    "decimal": "0", "year": "0", "bit": "0", "enum": "1", "set": "0", "json": "null", "date": "0000-00-00",
    "datetime": "0000-00-00 00:00:00", "timestamp": "0000-00-00 00:00:00", "time": "00:00:00",
    **dict.fromkeys(INTEGERS | REALS, "0"),
}  # fmt: skip
_EXACT = Context(prec=100)
"""For 65 digits and more: the usual context has 28."""
NOW = re.compile(r"(?:CURRENT_TIMESTAMP|NOW|LOCALTIME|LOCALTIMESTAMP)\s*(?:\(\s*(\d?)\s*\))?", re.IGNORECASE)
"""The moment as a default, with the digits of its fraction."""
_DATE = re.compile(r"(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})(.*)", re.DOTALL)


def shown(column: ColumnDef, moment: str = "") -> str | None:
    """The text of the column in rows that are there when it is added; None is NULL.

    `moment`: what the time upstream is taken for, to the microsecond. Raises TargetError if only upstream can know it.
    """
    default = column.default
    if column.automatic or (default is not None and default.expression):
        source = "AUTO_INCREMENT" if column.automatic else default.expression if default else ""
        if not is_volatile(column) or not moment:
            raise unknown_here(column.name, source)
        return _moment(column.type, moment)
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
    if kind.base in BYTES:
        return _bytes(kind, value if isinstance(value, bytes) else value.encode())
    if isinstance(value, bytes):
        numeric = kind.base in INTEGERS | REALS | {"decimal", "bit", "year", "enum", "set"}
        value = str(int.from_bytes(value)) if numeric else value.decode()
    try:
        return _text(kind, value)
    except (ArithmeticError, ValueError) as error:
        raise TargetError(f"{value[:100]!r} is no value of the type {kind}") from error


def _text(kind: TypeDef, text: str) -> str:  # noqa: PLR0911 a line a kind of type
    if kind.base in INTEGERS or kind.base in {"bit", "year"}:
        return str(int(Decimal(text).quantize(Decimal(1), ROUND_HALF_UP, _EXACT)))
    if kind.base == "decimal":
        return format(Decimal(text).quantize(Decimal((0, (1,), -kind.number(1, 0))), ROUND_HALF_UP, _EXACT), "f")
    if kind.base in REALS:
        return format(Decimal(repr(float(text))), "f")
    if kind.base == "enum":
        return str(_member(kind, text))
    if kind.base == "set":
        return text if text.isdecimal() else str(sum(1 << (_member(kind, m) - 1) for m in text.split(",") if m))
    if kind.base in DATES | {"time"}:
        return _moment(kind, text)
    return text.rstrip(" ") if kind.base == "char" else text


def _member(kind: TypeDef, text: str) -> int:
    """The number of a member, from 1; under most collations 'A' names the member 'a'."""
    if text in kind.members:
        return kind.members.index(text) + 1
    folded = [member.casefold() for member in kind.members]
    return folded.index(text.casefold()) + 1 if text.casefold() in folded else int(text)


def _bytes(kind: TypeDef, value: bytes) -> str:
    padded = value.ljust(kind.number(0, 1), b"\0") if kind.base == "binary" else value
    return padded.decode("latin-1")


def _moment(kind: TypeDef, text: str) -> str:
    parts = _DATE.fullmatch(text)
    if parts:
        text = f"{parts[1]}-{parts[2]:0>2}-{parts[3]:0>2}{parts[4]}"
    if kind.base == "date":
        return text[:10]
    if kind.base != "time" and " " not in text:
        text = f"{text} 00:00:00"
    digits = kind.number(0, 0)
    whole, _, fraction = text.partition(".")
    return f"{whole}.{fraction[:digits]:0<{digits}}" if digits else whole

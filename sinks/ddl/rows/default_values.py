"""What rows show in a column that they got by DDL: its default, or its type's zero, as a message would spell it.

Every later row comes whole, so a default matters only for the rows that are there when the column is added; they get no
event of their own. What upstream computes at that moment (the time, a sequence) is in no message: TiDB takes the time
at which the statement began, in its session's zone; a DDL's commitTs is the end of its work. Upstream itself is asked
where the config names it (`consumer.ddl.ask_upstream`); else the one is taken for the other, unless
`target.volatile-defaults` forbids it.
"""

import re
import struct
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Context, Decimal

from ordering.errors import TargetError
from ordering.events import DdlEvent
from ordering.timestamps import physical_ms
from sinks.ddl.collations import ANY
from sinks.ddl.model import AddColumn, Change, ColumnDef, TypeDef
from sinks.ddl.parse.defaults import Number
from sinks.ddl.rows.members import enum_number, set_number
from sinks.ddl.rows.temporal import date_and_time, date_of_number, full_year, time_span
from sinks.rows.plain_values import real
from sinks.rows.values import ValueRules

INTEGERS = {"tinyint", "smallint", "mediumint", "int", "bigint"}
REALS = {"float", "double"}
BYTES = {"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"}
DATES = {"date", "datetime", "timestamp"}
_ZEROS = {
    "decimal": "0", "year": "0000", "bit": Number("0"), "enum": Number("1"), "set": Number("0"), "json": "null",
    "date": "0000-00-00", "datetime": "0000-00-00 00:00:00", "timestamp": "0000-00-00 00:00:00", "time": "00:00:00",
    **dict.fromkeys(INTEGERS | REALS, "0"),
}  # fmt: skip
_YEARS_OF_CENTURY = 100
_EXACT = Context(prec=100)
"""For 65 digits and more: the usual context has 28."""
_NO_UTF8 = re.compile("[\udc80-\udcff]")
NOW = re.compile(r"(?:CURRENT_TIMESTAMP|NOW|LOCALTIME|LOCALTIMESTAMP)\s*(?:\(\s*(\d?)\s*\))?", re.IGNORECASE)
"""The moment as a default, with the digits of its fraction."""


@dataclass(frozen=True, slots=True)
class Filling:
    """What rows that are there show in new columns whose default upstream computes.

    `moment`: what the time upstream is taken for, to the microsecond; "" where that is an error. `told`: what upstream
    says, by lower-case name; `untold`: why it does not, where it was asked.
    """

    moment: str = ""
    told: Mapping[str, str | None] = field(default_factory=dict)
    untold: str = ""

    def knows(self, column: ColumnDef) -> bool:
        """Whether upstream told it."""
        return column.name.lower() in self.told

    def of(self, column: ColumnDef) -> str | None:
        """The text of the column in these rows. Raises TargetError if only upstream can know it."""
        if self.knows(column):
            return self.told[column.name.lower()]
        if not is_volatile(column) or not self.moment:
            source = "AUTO_INCREMENT" if column.automatic or column.default is None else column.default.expression
            raise unknown_here(column.name, source, self.untold)
        return at_moment(column, self.moment)

    def note(self, column: ColumnDef) -> str:
        """What the DDL log says about these rows; "" for a default that the statement tells."""
        if column.default is None or not column.default.expression:
            return ""
        if self.knows(column):
            return f"rows that were there show in {column.name!r} what upstream's show"
        if is_today(column):
            return f"rows that were there show the day of the commit in {column.name!r}: TiDB shows the day of a SELECT"
        because = f"; upstream was asked: {self.untold}" if self.untold else ""
        return (
            f"rows that were there show the commit time in {column.name!r}: upstream's value is earlier by what the"
            f" DDL took{because}"
        )


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What a statement does not say. `session`: the database of names that a view's query leaves without one.

    `filling`: what is known of values that upstream computed.
    """

    session: str
    filling: Filling


NOTHING_KNOWN = Filling()


def filling_of(ddl: DdlEvent, rules: ValueRules) -> Filling:
    """What is known of the rows that a DDL finds."""
    return Filling(rules.moment(physical_ms(ddl.commit_ts)), dict(ddl.shown), ddl.unshown)


def computed_columns(changes: Iterable[Change]) -> list[ColumnDef]:
    """The columns that are added with a default that upstream computes."""
    added = (change.column for change in changes if isinstance(change, AddColumn))
    return [c for c in added if not c.automatic and c.default is not None and c.default.expression]


def shown(column: ColumnDef, filling: Filling = NOTHING_KNOWN) -> str | None:
    """The text of the column in rows that are there when it is added; None is NULL.

    Raises TargetError if only upstream can know it.
    """
    default = column.default
    if column.automatic or (default is not None and default.expression):
        return filling.of(column)
    if default is None or default.value is None:
        return None if column.nullable else spelled(column.type, _ZEROS.get(column.type.base, ""))
    return held(column.type, default.value)


def is_volatile(column: ColumnDef) -> bool:
    """Whether the column's default is the moment, or its day."""
    default = column.default
    source = "" if column.automatic or default is None else default.expression or ""
    if source.startswith("(") and source.endswith(")"):
        source = source[1:-1].strip()
    is_now = NOW.fullmatch(source) is not None and column.type.base in DATES
    return is_now or is_today(column)


def is_today(column: ColumnDef) -> bool:
    """Whether the column's default is the day, which TiDB computes again for each SELECT."""
    source = column.default.expression.strip("( )") if column.default else ""
    return column.type.base == "date" and source.upper() in {"CURRENT_DATE", "CURDATE"}


def at_moment(column: ColumnDef, moment: str) -> str:
    """What a default of the moment shows, of one to the microsecond: cut, not rounded."""
    return _moment(column.type, moment[: len("2024-01-02 03:04:05.") + column.type.number(0, 0)])


def unknown_here(column: str, source: str, untold: str = "") -> TargetError:
    """What rows show can't be known, or may not be taken to be the commit time."""
    because = f"; upstream was asked: {untold}" if untold else ""
    return TargetError(
        f"what rows show in the new column {column!r} is known upstream only: it is {source[:200]}{because}",
        hint="set source.upstream.uri, so that upstream is asked, or add the column in the target by hand, filled as it"
        ' is upstream, or, for a default of the moment, set target.volatile-defaults = "commit-time": as late as the'
        " change upstream took",
    )


def held(kind: TypeDef, value: str | bytes) -> str:
    """As `spelled`, of a column's default: upstream keeps it in JSON, where each byte that is no UTF-8 is a U+FFFD.

    What is longer then than the column is cut.
    """
    if kind.base in BYTES and isinstance(value, bytes):
        value = _NO_UTF8.sub("\ufffd", value.decode(errors="surrogateescape")).encode()
        value = value[: kind.number(0, 1) if kind.base in {"binary", "varbinary"} else None]
    return spelled(kind, value)


def spelled(kind: TypeDef, value: str | bytes) -> str:
    """A literal as a message spells the value that it becomes in a column of this type. Raises TargetError."""
    try:
        if kind.base in BYTES:
            return _bytes(kind, value if isinstance(value, bytes) else _as_text(value).encode())
        if isinstance(value, bytes):
            numeric = kind.base in INTEGERS | REALS | {"decimal", "bit", "year"}
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
        return str(round(float(real(text.strip()))))
    return str(int(Decimal(real(text.strip())).quantize(Decimal(1), ROUND_HALF_UP, _EXACT)))


def _year(_: TypeDef, text: str) -> str:
    """Up to three digits are of the nearest century, also a number that is 0."""
    shown_as = _as_text(text).strip()
    digits = len(shown_as.partition(".")[0])
    year = int(Decimal(real(shown_as)).quantize(Decimal(1), ROUND_HALF_UP, _EXACT))
    if digits > len("2024") or year < 0:
        message = f"{text!r} is no year"
        raise ValueError(message)
    return str(full_year(str(year)) if year < _YEARS_OF_CENTURY and digits < len("2024") else year)


def _bits(_: TypeDef, text: str) -> str:
    """A text is its bytes."""
    return str(int(text) if isinstance(text, Number) else int.from_bytes(text.encode()))


def _decimal(kind: TypeDef, text: str) -> str:
    number = Decimal(real(text.strip())).quantize(Decimal((0, (1,), -kind.number(1, 0))), ROUND_HALF_UP, _EXACT)
    return format(number or abs(number), "f")  # a zero without a sign


def _real(kind: TypeDef, text: str) -> str:
    """With (M,D) rounded, halves to even; a FLOAT has 32 bits."""
    number = float(real(text.strip()))
    if (digits := kind.number(1, 0)) or kind.number(0, 0):
        number = round(number * 10**digits) / 10**digits
    if kind.base == "float":
        number = struct.unpack("f", struct.pack("f", number))[0]
        number = next(short for n in range(1, 10) if _same_float(short := float(f"{number:.{n}g}"), number))
    return format(Decimal(repr(number + 0.0)), "f")  # TiDB stores no zero with a sign


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
    return text if isinstance(text, Number) else str(set_number(kind, text, kind.collation or ANY))


def _member(kind: TypeDef, text: str) -> int:
    """The number of a member, from 1; upstream took the default, so that one is meant under some collation."""
    return int(text) if isinstance(text, Number) else enum_number(kind, text, kind.collation or ANY)


def _bytes(kind: TypeDef, value: bytes) -> str:
    padded = value.ljust(kind.number(0, 1), b"\0") if kind.base == "binary" else value
    return padded.decode("latin-1")


def _moment(kind: TypeDef, text: str) -> str:
    digits = kind.number(0, 0)
    is_number = isinstance(text, Number)
    if is_number:
        text = _as_text(text)
    if kind.base == "time":
        return time_span(text, digits)
    moment = date_and_time(date_of_number(text) if is_number else text, digits)
    return moment[: len("2024-01-02")] if kind.base == "date" else moment

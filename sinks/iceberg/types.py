"""Which Iceberg type holds every value of a MySQL type exactly, and how its values are made.

What has no such type is text, never rounded: DECIMAL of more than 38 digits, TIME, ENUM and SET (their members' names).
"""

from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from pyiceberg import types as t

from ordering.errors import TargetError
from sinks.ddl.model import ColumnDef, TypeDef
from sinks.ddl.rows.default_values import BYTES
from sinks.ddl.rows.modify_column import TEXTS, keeps_values
from sinks.rows.schema import Column, Shape

_MOST_DIGITS = 38
_INT = {"tinyint", "smallint", "mediumint", "year"}
_SHAPES = {
    "enum": Shape.ENUM,
    "set": Shape.SET,
    "json": Shape.JSON,
    "timestamp": Shape.TIMESTAMP,
    "datetime": Shape.DATETIME,
    "date": Shape.DATE,
    "float": Shape.REAL,
    "double": Shape.REAL,
    **dict.fromkeys(("int", "bigint", *_INT), Shape.INTEGER),
    **dict.fromkeys(BYTES, Shape.BYTES),
}
_PLAIN: dict[str, t.IcebergType] = {
    "float": t.FloatType(),
    "double": t.DoubleType(),
    "date": t.DateType(),
    "datetime": t.TimestampType(),
    "timestamp": t.TimestamptzType(),
    **dict.fromkeys(BYTES, t.BinaryType()),
    **dict.fromkeys(_INT, t.IntegerType()),
    **dict.fromkeys(
        ("char", "varchar", "tinytext", "text", "mediumtext", "longtext", "json", "enum", "set", "time", "vector"),
        t.StringType(),
    ),
}


def type_of(kind: TypeDef) -> t.IcebergType:
    """The type. Raises TargetError for one that is not known."""
    if kind.base in {"int", "bigint"}:
        wide = t.DecimalType(20, 0) if kind.unsigned else t.LongType()
        return wide if kind.base == "bigint" else t.LongType() if kind.unsigned else t.IntegerType()
    if kind.base == "bit":
        return t.DecimalType(20, 0)
    if kind.base == "decimal":
        digits = kind.number(0, 10)
        return t.DecimalType(digits, kind.number(1, 0)) if digits <= _MOST_DIGITS else t.StringType()
    if kind.base not in _PLAIN:
        raise TargetError(
            f"the type {kind} has no counterpart in Iceberg", hint="leave the table out with filter.rules"
        )
    return _PLAIN[kind.base]


def keeps_rows(old: TypeDef, new: TypeDef) -> bool:
    """Whether each value of one type is, as data files hold it, that of the other: no row has to be converted."""
    same = old.base == new.base
    if "decimal" in (old.base, new.base):
        return same and old.number(1, 0) == new.number(1, 0) and old.number(0, 10) <= new.number(0, 10)
    if "bit" in (old.base, new.base):
        return same and old.number(0, 1) <= new.number(0, 1)
    if same and old.base in {"datetime", "timestamp"}:
        return old.number(0, 0) <= new.number(0, 0)
    if old.members:
        longest = max(map(len, old.members)) if old.base == "enum" else sum(len(name) + 1 for name in old.members)
        return (same and old.members == new.members[: len(old.members)]) or (
            new.base in TEXTS - {"char"} and longest <= new.number(0, longest)
        )
    if new.base in BYTES - {"binary"}:
        return old.base in BYTES and old.number(0, 1 << 32) <= new.number(0, 1 << 32)
    widened = old.base == "float" and new.base == "double" and not (old.numbers or new.numbers)
    return widened or keeps_values(old, new)


def column_of(column: ColumnDef) -> Column:
    """The column as the catalog shows it."""
    kind = column.type
    made = type_of(kind)
    shape = Shape.EXACT if isinstance(made, t.DecimalType) and kind.base != "decimal" else _SHAPES.get(kind.base)
    return Column(column.name, str(made), shape or Shape.TEXT, column.nullable, members=kind.members)


def _instant(value: str) -> datetime:
    return datetime.fromisoformat(value).replace(tzinfo=UTC)


_MADE: dict[type[t.IcebergType], Callable[[Any], Any]] = {
    t.DecimalType: Decimal,
    t.DateType: date.fromisoformat,
    t.TimestampType: datetime.fromisoformat,
    t.TimestamptzType: _instant,
}


def maker(kind: t.IcebergType) -> Callable[[Any], Any] | None:
    """From a value as the encoder leaves it to the one that Arrow takes; None where they are the same."""
    return _MADE.get(type(kind))

"""Which PostgreSQL type holds every value of a MySQL type exactly, and what stands for a default."""

import re

from ordering.errors import TargetError
from sinks.ddl.model import ColumnDef, Default, TypeDef
from sinks.ddl.rows.default_values import BYTES, DATES, NOW, held
from sinks.postgres.encoder import spelling
from sinks.postgres.names import literal
from sinks.rows.schema import Column, Shape
from sinks.rows.values import ValueRules

_SIGNED = {"tinyint": "smallint", "smallint": "smallint", "mediumint": "integer", "int": "integer", "bigint": "bigint"}
_UNSIGNED = {
    "tinyint": "smallint",
    "smallint": "integer",
    "mediumint": "integer",
    "int": "bigint",
    "bigint": "numeric(20,0)",
}
_PLAIN = {
    "year": "smallint",
    "float": "real",
    "double": "double precision",
    "date": "date",
    "json": "jsonb",
    "enum": "text",
    "set": "text",
    "vector": "text",
    **dict.fromkeys(("tinytext", "text", "mediumtext", "longtext"), "text"),
    **dict.fromkeys(BYTES, "bytea"),
}
_WITH_FRACTION = {
    "datetime": "timestamp({}) without time zone",
    "timestamp": "timestamp({}) with time zone",
    "time": "interval({})",
}
_SHAPES = {
    "bit": Shape.BIT,
    "enum": Shape.ENUM,
    "set": Shape.SET,
    "date": Shape.DATE,
    "datetime": Shape.DATETIME,
    "timestamp": Shape.TIMESTAMP,
    "time": Shape.TIME,
    "json": Shape.JSON,
    **dict.fromkeys(BYTES, Shape.BYTES),
}
_TODAY = re.compile(r"\(?\s*(?:CURRENT_DATE|CURDATE)\s*(?:\(\s*\))?\s*\)?", re.IGNORECASE)
_UUID = re.compile(r"\(?\s*UUID\s*\(\s*\)\s*\)?", re.IGNORECASE)


def type_of(kind: TypeDef) -> str:
    """The type as `format_type` spells it. Raises TargetError for one that can't be held exactly."""
    if kind.base in _SIGNED:
        return (_UNSIGNED if kind.unsigned else _SIGNED)[kind.base]
    if kind.base == "decimal":
        return f"numeric({kind.number(0, 10)},{kind.number(1, 0)})"
    if kind.base == "bit":
        return f"bit({kind.number(0, 1)})"
    if kind.base in {"char", "varchar"}:
        length = kind.number(0, 1)
        return f"character varying({length})" if length else "text"
    if kind.base in _WITH_FRACTION:
        return _WITH_FRACTION[kind.base].format(kind.number(0, 0))
    if kind.base not in _PLAIN:
        raise TargetError(
            f"the type {kind} has no counterpart in PostgreSQL here",
            hint="leave the table out with filter.rules, or use a MySQL-family target",
        )
    return _PLAIN[kind.base]


def column_of(column: ColumnDef) -> Column:
    """The column as the catalog will show it."""
    kind = column.type
    return Column(column.name, type_of(kind), _SHAPES.get(kind.base, Shape.TEXT), column.nullable, members=kind.members)


def value_of(column: ColumnDef, text: str | None, rules: ValueRules) -> str:
    """A text as a message spells it, as SQL. Raises TargetError for a date that is none, by the rules."""
    if text is None:
        return "NULL"
    made = column_of(column)
    try:
        written = spelling(made, rules)(text)
    except ValueError as error:
        raise TargetError(f"column {column.name!r}: {error}") from error
    return "NULL" if written is None else f"{literal(written)}::{made.type}"


def default_of(column: ColumnDef, default: Default, rules: ValueRules) -> str | None:
    """A default as SQL, for rows that someone else inserts; None for one that PostgreSQL can't express."""
    if default.expression:
        return _computed(column, default.expression)
    if default.value is None:
        return None
    try:
        return value_of(column, held(column.type, default.value), rules)
    except TargetError:
        return None


def _computed(column: ColumnDef, expression: str) -> str | None:
    base = column.type.base
    now = NOW.fullmatch(expression.strip("() ")) or NOW.fullmatch(expression)
    if now and base in DATES:
        digits = int(now[1] or 0)
        return f"CURRENT_TIMESTAMP({digits})" if base == "timestamp" else f"LOCALTIMESTAMP({digits})"
    if _TODAY.fullmatch(expression) and base in DATES:
        return "CURRENT_DATE"
    if _UUID.fullmatch(expression) and base in {"char", "varchar"}:
        return "gen_random_uuid()::text"
    return None

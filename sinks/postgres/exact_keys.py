"""Of which types keys may be: those under whose equality no two values of upstream are one (R11)."""

import re

from sinks.postgres.names import place, quoted
from sinks.rows.schema import Column, Shape, TableSchema, Unfit

_EXACT = {
    "smallint", "integer", "bigint", "numeric", "real", "double precision", "boolean", "uuid", "bytea", "bit", "date",
    "timestamp without time zone", "timestamp with time zone", "time without time zone", "interval",
    "character", "character varying", "text", "name",
}  # fmt: skip
_MODIFIER = re.compile(r"\([\d,-]+\)")


def base_type(kind: str) -> str:
    """A type without its length, precision and scale."""
    return kind if kind.startswith('"') else _MODIFIER.sub("", kind)


def unfit_key(table: TableSchema) -> Unfit | None:
    """Why the table's key can't be compared exactly."""
    for name in table.handle_key:
        column = table.column(name)
        if column is not None and column.generated:
            return Unfit(f"computes its key's column {name!r} by itself", _altered(table, column, "DROP EXPRESSION"))
        if column is not None and not _is_exact(column):
            fact = f"has the key column {name!r} of type {column.type}, which is not compared as upstream compares it"
            return Unfit(fact, _altered(table, column, f"TYPE text USING {quoted(name)}::text"))
    return None


def _is_exact(column: Column) -> bool:
    """What folds is compared as a text too, see `sinks.postgres.writer`; an enum's values are its labels."""
    return base_type(column.type) in _EXACT or column.folds or column.shape is Shape.ENUM


def _altered(table: TableSchema, column: Column, change: str) -> str:
    return f"run on the target: ALTER TABLE {place(table.name)} ALTER COLUMN {quoted(column.name)} {change}"

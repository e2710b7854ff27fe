"""Rows converted by way of their texts: where no cast of PostgreSQL's gives what upstream's conversion gives.

Each distinct value is converted here as TiDB does it (`sinks.ddl.rows.modify_column`); temporary tables hold what
becomes what.
"""

import json
from collections.abc import Callable, Iterator
from decimal import Decimal

from ordering.errors import TargetError
from sinks.ddl.model import ColumnDef, TypeDef
from sinks.ddl.rows.modify_column import converter, number_of, spelled_json
from sinks.postgres.connection import PostgresConnection
from sinks.postgres.names import literal, zone
from sinks.postgres.types import value_of
from sinks.rows.schema import Column, Shape
from sinks.rows.values import ValueRules

_FROM, _TO = "pg_temp.ticdc_reconciler_from", "pg_temp.ticdc_reconciler_to"
_PAGE = 5_000
"""Values converted at once."""


def rewritten(
    table: str, column: Column, kind: TypeDef, goal: ColumnDef, db: PostgresConnection, rules: ValueRules
) -> Iterator[str]:
    """Statements that convert a column `kind` to `goal`; its default and checks are gone already. Raises TargetError.

    `table` and the column's name are quoted by the caller.
    """
    name = column.name
    convert = _conversion(kind, goal, rules)
    yield (
        f"CREATE TEMPORARY TABLE ticdc_reconciler_from ON COMMIT DROP AS SELECT row_number() OVER () AS id, old"  # noqa: S608 quoted
        f" FROM (SELECT DISTINCT {_shown(column, rules)} AS old FROM {table} WHERE {name} IS NOT NULL) AS found"
    )
    yield "CREATE TEMPORARY TABLE ticdc_reconciler_to (old text PRIMARY KEY, new text) ON COMMIT DROP"
    yield from _pages(db, lambda text: convert(_message_text(text, column, kind)))
    yield f"ALTER TABLE {table} ALTER COLUMN {name} TYPE text USING {_shown(column, rules)}"
    yield f"UPDATE {table} AS own SET {name} = found.new FROM {_TO} AS found WHERE own.{name} = found.old"  # noqa: S608 quoted
    yield f"DROP TABLE {_FROM}, {_TO}"


def _pages(db: PostgresConnection, convert: Callable[[str], str]) -> Iterator[str]:
    """Fill the table of what becomes what."""
    at = 0
    while rows := db.query(f"SELECT id, old FROM {_FROM} WHERE id > %s ORDER BY id LIMIT {_PAGE}", (at,)):  # noqa: S608 a constant
        values = ", ".join(f"({literal(old)}, {convert(old)})" for _, old in rows)
        db.run(f"INSERT INTO {_TO} VALUES {values}")  # noqa: S608 quoted
        at = rows[-1][0]
    yield f"ANALYZE {_TO}"


def _conversion(kind: TypeDef, goal: ColumnDef, rules: ValueRules) -> Callable[[str], str]:
    """From a message's text to a literal of the new value as text."""
    convert = converter(kind, goal.type)

    def converted(text: str) -> str:
        try:
            spelled = value_of(goal, convert(text), rules)
        except (ArithmeticError, LookupError, ValueError) as error:
            hint = "make the rows as they are upstream, then run again"
            raise TargetError(
                f"{text[:100]!r} can't be converted from {kind} to {goal.type}: {error}", hint=hint
            ) from error
        return f"({spelled})::text"

    return converted


def _shown(column: Column, rules: ValueRules) -> str:
    """A column's values as texts from which messages' texts can be made."""
    if column.shape is Shape.BYTES:
        return f"encode({column.name}, 'hex')"
    if column.shape is Shape.TIMESTAMP:
        return f"({column.name} AT TIME ZONE {zone(rules.time_zone)})::text"
    return f"{column.name}::text"


def _message_text(text: str, column: Column, kind: TypeDef) -> str:
    """A value as a message would spell it."""
    if column.shape is Shape.BYTES:
        return bytes.fromhex(text).decode("latin-1")
    if column.shape is Shape.BIT:
        return str(int(text, 2))
    if column.shape in {Shape.ENUM, Shape.SET}:
        return number_of(kind, text)
    if column.shape is Shape.JSON:
        return spelled_json(json.loads(text))
    if kind.base in {"datetime", "timestamp", "time"} and (digits := kind.number(0, 0)):
        whole, _, fraction = text.partition(".")
        return f"{whole}.{fraction:0<{digits}}"
    return format(Decimal(text), "f") if column.type in {"real", "double precision"} else text

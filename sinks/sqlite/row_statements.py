"""The statements that delete and write rows of a SQLite table; values are bound in the order of the columns."""

from sinks.rows.schema import Column, Shape, TableSchema
from sinks.sqlite.catalog import place_of
from sinks.sqlite.ddl.schema_text import quoted
from sinks.sqlite.sql_functions import MET

_NOTHING = " DO NOTHING"
_ALIAS = '"ticdc_reconciler row"'
"""What a statement calls the table: in one that is named `excluded`, that word would mean the row that is there."""
_NUMBERS = {Shape.INTEGER, Shape.REAL, Shape.EXACT}
"""Of these no collation counts."""


def delete(schema: TableSchema, key: tuple[str, ...]) -> str:
    """Delete the row of a key."""
    where = " AND ".join(_equal(quoted(c), i, schema.column(c)) for i, c in enumerate(key, 1))
    return f"DELETE FROM {place_of(schema.name)} WHERE {where}"  # noqa: S608 quoted


def insert(schema: TableSchema, columns: tuple[str, ...], *, plain: bool, counted: bool = False) -> str:
    """Write a row; one that is there is replaced, unless `plain` says that none is. `counted`: it calls `MET` then.

    OR ABORT: whatever the table's own ON CONFLICT clauses say, no row is passed over or put in another's place.
    """
    names, marks = ", ".join(map(quoted, columns)), ", ".join("?" * len(columns))
    into = f"INSERT OR ABORT INTO {place_of(schema.name)} AS {_ALIAS} ({names}) VALUES ({marks})"  # noqa: S608 quoted
    return into if plain else into + _on_conflict(schema, columns, f" WHERE {MET}() >= 0" if counted else "")


def writes_each(statement: str) -> bool:
    """Whether an `insert` changes one row for each that is given."""
    return not statement.endswith(_NOTHING)


def _on_conflict(schema: TableSchema, columns: tuple[str, ...], condition: str) -> str:
    key = ", ".join(map(quoted, schema.handle_key))
    others = [c for c in columns if c not in schema.handle_key]
    if not others:
        return f" ON CONFLICT ({key}){_NOTHING}"
    changes = ", ".join(f"{quoted(c)} = excluded.{quoted(c)}" for c in others)
    return f" ON CONFLICT ({key}) DO UPDATE SET {changes}{condition}"


def _equal(name: str, number: int, column: Column | None) -> str:
    """A key's condition: exactly this text, whatever the collation; the table's own lets its index help."""
    text = f"{name} = ?{number}"
    if column is not None and column.shape in _NUMBERS and not column.folds:
        return text
    exactly = f"{text} COLLATE BINARY"
    return f"{text} AND {exactly}" if column is not None and column.folds else exactly

"""Indexes and keys of upstream as PostgreSQL's: what can be expressed is, the rest is noted and left out.

A unique index that is left out, or is wider here, lets more rows in than upstream, never fewer: nothing is refused that
upstream holds.
"""

from collections.abc import Mapping

from ordering.events import TableName
from sinks.ddl.model import IndexDef, IndexKind, IndexPart
from sinks.postgres.connection import PostgresConnection
from sinks.postgres.names import index_name, place, quoted
from sinks.rows.schema import Column, Shape

NOTE = "-- "
"""How a line begins that tells what was left out, and why."""


def note(text: str) -> str:
    """A line of the DDL log that is no statement."""
    return NOTE + " ".join(text.split())


def has_index(db: PostgresConnection, table: TableName, index: str) -> bool:
    """Whether a table has upstream's index."""
    name = f"{quoted(table.database)}.{quoted(index_name(table, index))}"
    return db.value("SELECT to_regclass(%s)", (name,)) is not None


def created(table: TableName, index: IndexDef, columns: Mapping[str, Column]) -> str:
    """The statement that makes an index, or a note."""
    missing = [part.column for part in index.parts if part.column and part.column not in columns]
    expressions = [part.expression for part in index.parts if part.expression]
    if index.kind is IndexKind.OTHER or expressions or missing:
        why = f"over {expressions[0]}" if expressions else f"over the virtual column {missing[0]!r}" if missing else ""
        return note(f"left out: {index.kind.value} {index.known_as!r} {why}")
    name = quoted(index_name(table, index.known_as))
    if index.kind is IndexKind.PRIMARY:
        # all of a column instead of its beginning: what is unique there is unique here
        keys = ", ".join(quoted(part.column) for part in index.parts)
        return f"ALTER TABLE {place(table)} ADD CONSTRAINT {name} PRIMARY KEY ({keys})"
    unique = "UNIQUE " if index.kind is IndexKind.UNIQUE else ""
    parts = ", ".join(_part(part, columns[part.column]) for part in index.parts)
    return f"CREATE {unique}INDEX {name} ON {place(table)} ({parts})"


def _part(part: IndexPart, column: Column) -> str:
    key = quoted(part.column)
    if part.length is not None and f"({part.length})" not in column.type:
        key = f"substring({key}, 1, {part.length})" if column.shape is Shape.BYTES else f"left({key}, {part.length})"
    return key + (" DESC" if part.descending else "")

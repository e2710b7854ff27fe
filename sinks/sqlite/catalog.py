"""Reads the tables of all attached databases; quotes names."""

import sqlite3
from pathlib import Path
from urllib.parse import quote, unquote

from ordering.events import TableName
from sinks.schema import Catalog, Column, Shape, TableSchema, choose_handle_key

_SHAPES = {"INTEGER": Shape.INTEGER, "REAL": Shape.REAL, "TEXT": Shape.TEXT, "BLOB": Shape.BYTES, "": Shape.EXACT}
_GENERATED = (2, 3)


def quoted(name: str) -> str:
    """A name as an identifier. SQLite doubles the quotes inside."""
    return '"' + name.replace('"', '""') + '"'


def file_of(directory: Path, database: str) -> Path:
    """The file of a database; characters that file names can't hold are percent-encoded."""
    return directory / f"{quote(database, safe=' $@!#,;=+()[]{}~')}.sqlite"


def databases_in(directory: Path) -> list[str]:
    """The databases that have a file."""
    return sorted(unquote(path.stem) for path in directory.glob("*.sqlite"))


def read_catalog(connection: sqlite3.Connection, databases: list[str]) -> Catalog:
    """All tables of these attached databases."""
    tables: dict[TableName, TableSchema] = {}
    for database in databases:
        names = connection.execute(
            f"SELECT name FROM {quoted(database)}.sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"  # noqa: S608, E501 quoted
        ).fetchall()
        for (table,) in names:
            name = TableName(database, table)
            tables[name] = _read_table(connection, name)
    return Catalog(tables)


def _read_table(connection: sqlite3.Connection, name: TableName) -> TableSchema:
    columns, primary = [], {}
    pragma = f"PRAGMA {quoted(name.database)}.table_xinfo({quoted(name.table)})"
    for _, column, kind, not_null, _, pk, hidden in connection.execute(pragma):
        nullable = not (not_null or pk)
        columns.append(Column(column, kind, _SHAPES.get(kind.upper(), Shape.TEXT), nullable, hidden in _GENERATED))
        if pk:
            primary[pk] = column
    uniques = _unique_indexes(connection, name)
    key = tuple(primary[i] for i in sorted(primary))
    handle = choose_handle_key(key, uniques, {c.name: c for c in columns})
    return TableSchema(name, tuple(columns), handle, tuple({*uniques.values(), *([key] if key else [])}))


def _unique_indexes(connection: sqlite3.Connection, name: TableName) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    listing = f"PRAGMA {quoted(name.database)}.index_list({quoted(name.table)})"
    for _, index, unique, *_ in connection.execute(listing).fetchall():
        if unique:
            parts = connection.execute(f"PRAGMA {quoted(name.database)}.index_info({quoted(index)})").fetchall()
            found[index] = tuple(column for _, _, column in parts)
    return found

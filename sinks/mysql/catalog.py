"""Reads tables, columns and unique keys from information_schema; quotes names."""

from collections.abc import Callable, Iterable
from itertools import groupby
from typing import Any

from ordering.events import TableName
from sinks.schema import Catalog, Column, Shape, TableSchema, choose_handle_key

Query = Callable[[str], Iterable[tuple[Any, ...]]]

_SYSTEM = "('mysql', 'information_schema', 'performance_schema', 'sys', 'ticdc_reconciler')"
_COLUMNS = f"""
SELECT c.TABLE_SCHEMA, c.TABLE_NAME, c.COLUMN_NAME, c.COLUMN_TYPE, c.IS_NULLABLE, c.EXTRA
FROM information_schema.COLUMNS c JOIN information_schema.TABLES t
  ON t.TABLE_SCHEMA = c.TABLE_SCHEMA AND t.TABLE_NAME = c.TABLE_NAME AND t.TABLE_TYPE = 'BASE TABLE'
WHERE c.TABLE_SCHEMA NOT IN {_SYSTEM}
ORDER BY c.TABLE_SCHEMA, c.TABLE_NAME, c.ORDINAL_POSITION"""  # noqa: S608 a constant
_UNIQUES = f"""
SELECT TABLE_SCHEMA, TABLE_NAME, INDEX_NAME, COLUMN_NAME FROM information_schema.STATISTICS
WHERE NON_UNIQUE = 0 AND TABLE_SCHEMA NOT IN {_SYSTEM}
ORDER BY TABLE_SCHEMA, TABLE_NAME, INDEX_NAME, SEQ_IN_INDEX"""  # noqa: S608 a constant
_INTEGERS = ("tinyint", "smallint", "mediumint", "int", "bigint", "year")
_NAMED = {shape.value for shape in Shape} - {Shape.TEXT.value, "integer", "bytes", "exact", "real"}
_BYTES = ("binary", "varbinary", "blob", "tinyblob", "mediumblob", "longblob")


def quoted(name: str) -> str:
    """A name as an identifier. MySQL doubles the backticks inside."""
    return "`" + name.replace("`", "``") + "`"


def shape_of(column_type: str) -> Shape:
    """How texts from messages become values of a column of this type."""
    base = column_type.lower().split("(")[0].split()[0]
    if base in _INTEGERS:
        return Shape.INTEGER
    if base in _BYTES:
        return Shape.BYTES
    if base in {"float", "double"}:
        return Shape.REAL
    return Shape(base) if base in _NAMED else Shape.TEXT


def read_catalog(query: Query) -> Catalog:
    """All base tables but the system's and our own."""
    uniques: dict[TableName, dict[str, tuple[str, ...]]] = {}
    for database, table, index, column in query(_UNIQUES):
        keys = uniques.setdefault(TableName(database, table), {})
        keys[index] = (*keys.get(index, ()), column)
    tables = {}
    for (database, table), rows in groupby(query(_COLUMNS), key=lambda row: (row[0], row[1])):
        name = TableName(database, table)
        tables[name] = _table(name, [_column(*row[2:]) for row in rows], uniques.get(name, {}))
    return Catalog(tables)


def _column(name: str, column_type: str, is_nullable: str, extra: str) -> Column:
    generated = "GENERATED" in extra.upper().replace("DEFAULT_GENERATED", "")
    return Column(name, column_type, shape_of(column_type), is_nullable == "YES", generated)


def _table(name: TableName, columns: list[Column], keys: dict[str, tuple[str, ...]]) -> TableSchema:
    primary = keys.get("PRIMARY", ())
    secondary = {index: key for index, key in keys.items() if index != "PRIMARY"}
    handle = choose_handle_key(primary, secondary, {c.name: c for c in columns})
    return TableSchema(name, tuple(columns), handle, tuple(keys.values()))

"""The DDL that this target takes: databases and tables come and go, columns are added and dropped."""

from collections.abc import Iterator

from ordering.errors import TargetError
from ordering.events import TableName
from sinks.ddl.model import AddColumn, Change, ColumnDef, DropColumn, IndexKind
from sinks.ddl.parse.statement import DdlKind, Statement, named
from sinks.ddl.parse.tables import read_changes, read_table
from sinks.ddl.rows.default_values import shown

_TYPES = {
    "tinyint": "BIGINT", "smallint": "BIGINT", "mediumint": "BIGINT", "int": "BIGINT", "bigint": "BIGINT",
    "double": "DOUBLE", "float": "DOUBLE", "binary": "BLOB", "varbinary": "BLOB", "blob": "BLOB",
    "char": "VARCHAR", "varchar": "VARCHAR", "text": "VARCHAR", "decimal": "VARCHAR", "date": "VARCHAR",
}  # fmt: skip


def quoted(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def place(table: TableName) -> str:
    return f"{quoted(table.database)}.{quoted(table.table)}"


def translated(statement: Statement) -> Iterator[str]:
    """What DuckDB is given for a statement with the database of every name. Raises TargetError for others."""
    tables = [named(reference) for reference in statement.tables]
    match statement.kind:
        case DdlKind.CREATE_DATABASE:
            yield f"CREATE SCHEMA IF NOT EXISTS {quoted(statement.database or '')}"
        case DdlKind.DROP_DATABASE:
            yield f"DROP SCHEMA IF EXISTS {quoted(statement.database or '')} CASCADE"
        case DdlKind.CREATE_TABLE if statement.like is None:
            yield _create(tables[0], statement.sql)
        case DdlKind.DROP_TABLE:
            yield from (f"DROP TABLE IF EXISTS {place(table)}" for table in tables)
        case DdlKind.TRUNCATE_TABLE:
            yield f"DELETE FROM {place(tables[0])}"
        case DdlKind.ALTER_TABLE:
            yield from (_change(tables[0], change) for change in read_changes(statement.sql))
        case _:
            raise _unknown(statement.sql)


def _unknown(what: object) -> TargetError:
    return TargetError(f"DuckDB is not given this: {what}", hint="make the change by hand, then `reconciler ddl done`")


def _create(table: TableName, sql: str) -> str:
    found = read_table(sql)
    parts = [
        f"{_column(c)}{'' if c.nullable and c.name not in found.primary_key else ' NOT NULL'}" for c in found.columns
    ]
    for index in found.indexes:
        if index.kind.unique:
            word = "PRIMARY KEY" if index.kind is IndexKind.PRIMARY else "UNIQUE"
            parts.append(f"{word} ({', '.join(quoted(part.column) for part in index.parts)})")
    return f"CREATE TABLE {place(table)} ({', '.join(parts)})"


def _change(table: TableName, change: Change) -> str:
    match change:
        case AddColumn(column):  # DuckDB adds none that is NOT NULL: what it is filled with is not NULL
            return f"ALTER TABLE {place(table)} ADD COLUMN {_column(column)} DEFAULT {_default(column)}"
        case DropColumn(name):
            return f"ALTER TABLE {place(table)} DROP COLUMN {quoted(name)}"
        case _:
            raise _unknown(change)


def _column(column: ColumnDef) -> str:
    unsigned = column.type.base == "bigint" and column.type.unsigned
    declared = "UBIGINT" if unsigned else _TYPES.get(column.type.base)
    if declared is None or column.generated:
        raise _unknown(column)
    return f"{quoted(column.name)} {declared}"


def _default(column: ColumnDef) -> str:
    """What rows that are there get: upstream's default, or what upstream shows where it is NOT NULL without one."""
    text = shown(column)
    if text is None:
        return "NULL"
    if _TYPES.get(column.type.base) == "BLOB":
        return f"from_hex('{text.encode('latin-1').hex()}')"
    doubled = text.replace("'", "''")
    return f"'{doubled}'"

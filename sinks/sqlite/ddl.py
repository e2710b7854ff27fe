"""TiDB's DDL for SQLite: statements made from the neutral definitions of `sinks.ddl`, one by one.

Secondary indexes are named `table.index`, for SQLite's index names are global to a file. What SQLite can't express and
what changes no row is left out; the DDL log names it behind `--`.
"""

from collections.abc import Callable, Iterator
from typing import Protocol

from ordering.errors import TargetError
from ordering.events import TableName
from sinks.ddl.defaults import shown
from sinks.ddl.definition import (
    AddColumn,
    AddIndex,
    Change,
    ChangeColumn,
    ChangePartitions,
    ColumnDef,
    DropColumn,
    DropIndex,
    IndexDef,
    IndexKind,
    IndexPart,
    Passed,
    RenameColumn,
    RenameIndex,
    SetComment,
    SetDefault,
    TableDef,
    Unknown,
)
from sinks.ddl.reading import read_changes, read_dropped_index, read_index, read_table
from sinks.ddl.statement import DdlKind, Statement, named
from sinks.schema import Catalog, Column
from sinks.sqlite.catalog import index_name, place_of, quoted_database
from sinks.sqlite.encode import SqliteEncoder
from sinks.sqlite.schema_text import body_of, literal, quoted
from sinks.sqlite.types import column_of, default_clause, type_clause, value_of


class Texts(Protocol):
    """Where the SQL text that SQLite keeps is read from."""

    def __call__(self, table: TableName) -> dict[str, str]:
        """Of a table and its indexes, by name; the table's own is under ""."""
        ...


class Translation:
    """One placed statement for SQLite."""

    def __init__(self, statement: Statement, catalog: Catalog, texts: Texts, encoder: SqliteEncoder) -> None:
        self._statement, self._catalog, self._texts, self._encoder = statement, catalog, texts, encoder

    def statements(self) -> list[str]:
        """What to execute; none where there is nothing to do. Raises TargetError for what SQLite can't do."""
        rules: dict[DdlKind, Callable[[], Iterator[str]]] = {
            DdlKind.ALTER_DATABASE: lambda: iter(()),
            DdlKind.CREATE_TABLE: self._create_table,
            DdlKind.DROP_TABLE: self._drop_table,
            DdlKind.TRUNCATE_TABLE: self._truncate,
            DdlKind.RENAME_TABLE: self._rename,
            DdlKind.ALTER_TABLE: self._alter,
            DdlKind.CREATE_INDEX: self._create_index,
            DdlKind.DROP_INDEX: self._drop_index,
        }
        rule = rules.get(self._statement.kind)
        if rule is None:
            raise self._unsupported()
        return list(rule())

    def _unsupported(self, detail: str = "") -> TargetError:
        return TargetError(
            f"this DDL can't be executed on SQLite yet{detail}: {self._statement.sql[:500]}",
            hint="make the change in the target by hand if it is needed there, or leave the table out by filter.rules",
        )

    def _own(self) -> TableName:
        return named(self._statement.tables[0])

    def _create_table(self) -> Iterator[str]:
        name = named(self._statement.tables[0])
        if any(_folded(name) == _folded(known) for known in self._catalog.tables):
            hint = "drop it, or set start-ts above this CREATE TABLE; SQLite takes names that differ by case for one"
            raise TargetError(f"table {name} is there already", hint=hint)
        if self._statement.like is not None:
            yield from self._copied(named(self._statement.like), name)
            return
        yield from self._created(name, read_table(self._statement.sql))

    def _created(self, name: TableName, table: TableDef) -> Iterator[str]:
        columns = {column.name.lower(): column for column in table.columns if not column.virtual}
        primary = [columns[key.lower()].name for key in table.primary_key]
        rowid = primary[0] if len(primary) == 1 and column_of(columns[primary[0].lower()]).type == "INTEGER" else None
        parts = [self._column(column, primary, rowid) for column in columns.values()]
        if primary and rowid is None:
            parts.append(f"PRIMARY KEY ({', '.join(map(quoted, primary))})")
        yield f"CREATE TABLE {place_of(name)} ({', '.join(parts)})"
        for index in table.indexes:
            yield from _index(name, index, set(columns))
        yield from (_left_out(f"virtual column {c.name!r}") for c in table.columns if c.virtual)
        yield from (_left_out(part.text) for part in table.passed)

    def _column(self, column: ColumnDef, primary: list[str], rowid: str | None) -> str:
        text = type_clause(column_of(column))
        if column.name == rowid:
            return f"{text} PRIMARY KEY NOT NULL"
        if column.name in primary or not column.nullable:
            text += " NOT NULL"
        return text + default_clause(column, self._encoder)

    def _copied(self, model: TableName, name: TableName) -> Iterator[str]:
        """The statements that make a table and its indexes like another one."""
        texts = self._texts(model)
        if not texts:
            raise TargetError(f"table {model} is missing in the target", hint=f"{name} is to be created like it")
        yield f"CREATE TABLE {place_of(name)} {body_of(texts.pop(''))}"
        for index, sql in texts.items():
            yield _remade(name, index.removeprefix(f"{model.table}."), sql)

    def _drop_table(self) -> Iterator[str]:
        for reference in self._statement.tables:
            if self._catalog.get(named(reference)):
                yield f"DROP TABLE {place_of(named(reference))}"

    def _truncate(self) -> Iterator[str]:
        yield f"DELETE FROM {place_of(self._own())}"  # noqa: S608 quoted

    def _rename(self) -> Iterator[str]:
        for old, new in self._statement.renames:
            source, goal = named(old), named(new)
            if source.database == goal.database:
                yield f"ALTER TABLE {place_of(source)} RENAME TO {quoted(goal.table)}"
                for index, sql in self._indexes(source):
                    yield f"DROP INDEX {_index_place(goal.database, index)}"
                    yield _remade(goal, index.removeprefix(f"{source.table}."), sql)
                continue
            yield from self._copied(source, goal)
            yield f"INSERT INTO {place_of(goal)} SELECT * FROM {place_of(source)}"  # noqa: S608 quoted
            yield f"DROP TABLE {place_of(source)}"

    def _indexes(self, table: TableName) -> list[tuple[str, str]]:
        return [(index, sql) for index, sql in self._texts(table).items() if index]

    def _alter(self) -> Iterator[str]:
        name = self._own()
        for change in read_changes(self._statement.sql):
            yield from self._changed(name, change)

    def _changed(self, name: TableName, change: Change) -> Iterator[str]:  # noqa: C901 a case a kind of change
        head = f"ALTER TABLE {place_of(name)}"
        match change:
            case AddColumn(column):
                yield self._added(head, column)
            case DropColumn(column):
                yield from self._dropped(name, column)
            case RenameColumn(old, new):
                yield f"{head} RENAME COLUMN {quoted(old)} TO {quoted(new)}"
            case ChangeColumn(old, column):
                yield from self._retyped(name, old, column)
            case AddIndex(index):
                yield from self._add_index(name, index)
            case DropIndex(index) if index.upper() != "PRIMARY":
                yield f"DROP INDEX IF EXISTS {_index_name(name, index)}"
            case RenameIndex(old, new):
                sql = self._texts(name).get(index_name(name, old))
                if sql is not None:
                    yield f"DROP INDEX {_index_name(name, old)}"
                    yield _remade(name, new, sql)
            case Passed(text) | SetComment(text) | ChangePartitions(text, removes_rows=False):
                yield _left_out(text)
            case SetDefault(column):
                yield _left_out(f"default of column {column!r}")
            case ChangePartitions(text) | Unknown(text):
                raise self._unsupported(f" ({text[:100]})")
            case _:
                raise self._unsupported()

    def _added(self, head: str, column: ColumnDef) -> str:
        """A column as ADD COLUMN takes it: rows that are there already show its default, or its type's zero."""
        if column.virtual:
            return _left_out(f"virtual column {column.name!r}")
        text = f"{head} ADD COLUMN {type_clause(column_of(column))}{'' if column.nullable else ' NOT NULL'}"
        value = value_of(column, shown(column), self._encoder)
        return text if value is None else f"{text} DEFAULT {literal(value)}"

    def _dropped(self, name: TableName, column: str) -> Iterator[str]:
        """SQLite keeps a column that an index needs: the index goes with it, as upstream's does."""
        if self._column_of(name, column) is None:
            yield _left_out(f"column {column!r}, which is not there")
            return
        for index, sql in self._indexes(name):
            if quoted(column).lower() in body_of(sql).lower():
                yield f"DROP INDEX {_index_place(name.database, index)}"
        yield f"ALTER TABLE {place_of(name)} DROP COLUMN {quoted(column)}"

    def _column_of(self, name: TableName, column: str) -> Column | None:
        schema = self._catalog.get(name)
        return next((c for c in schema.columns if c.name.lower() == column.lower()), None) if schema else None

    def _retyped(self, name: TableName, old: str, column: ColumnDef) -> Iterator[str]:
        """MODIFY and CHANGE COLUMN, where the change is none to SQLite but for the name."""
        before, after = self._column_of(name, old), column_of(column)
        same = before is not None and (before.type, before.shape, before.members, before.nullable) == (
            after.type, after.shape, after.members, after.nullable,
        )  # fmt: skip
        if not same:
            raise self._unsupported()
        if old != column.name:
            yield f"ALTER TABLE {place_of(name)} RENAME COLUMN {quoted(old)} TO {quoted(column.name)}"
        yield _left_out(f"column {column.name!r} is {column.type} upstream, the same to SQLite")

    def _add_index(self, name: TableName, index: IndexDef) -> Iterator[str]:
        if index.kind is IndexKind.PRIMARY:
            raise self._unsupported(" (a primary key of a table that is there)")
        schema = self._catalog.get(name)
        yield from _index(name, index, {c.name.lower() for c in schema.columns} if schema else set())

    def _create_index(self) -> Iterator[str]:
        yield from self._add_index(self._own(), read_index(self._statement.sql))

    def _drop_index(self) -> Iterator[str]:
        yield f"DROP INDEX IF EXISTS {_index_name(self._own(), read_dropped_index(self._statement.sql))}"


def _folded(name: TableName) -> tuple[str, str]:
    return name.database, name.table.lower()


def _left_out(what: str) -> str:
    return f"-- left out: {' '.join(what.split())}"


def _index_place(database: str, index: str) -> str:
    return f"{quoted_database(database)}.{quoted(index)}"


def _index_name(table: TableName, index: str) -> str:
    return _index_place(table.database, index_name(table, index))


def _remade(table: TableName, index: str, sql: str) -> str:
    """An index's text for a table or an index of another name."""
    unique = "UNIQUE " if sql.upper().startswith("CREATE UNIQUE") else ""
    return f"CREATE {unique}INDEX {_index_name(table, index)} ON {quoted(table.table)} {body_of(sql)}"


def _index(table: TableName, index: IndexDef, columns: set[str]) -> Iterator[str]:
    """A secondary index; a prefix becomes an expression, what SQLite can't index is left out."""
    if index.kind is IndexKind.PRIMARY:
        return
    unknown = any(part.expression or part.column.lower() not in columns for part in index.parts)
    if index.kind is IndexKind.OTHER or unknown:
        yield _left_out(f"index {index.known_as!r} over what SQLite can't index")
        return
    unique = "UNIQUE " if index.kind is IndexKind.UNIQUE else ""
    parts = ", ".join(map(_part, index.parts))
    yield f"CREATE {unique}INDEX {_index_name(table, index.known_as)} ON {quoted(table.table)} ({parts})"


def _part(part: IndexPart) -> str:
    text = quoted(part.column) if part.length is None else f"substr({quoted(part.column)}, 1, {part.length})"
    return f"{text} DESC" if part.descending else text

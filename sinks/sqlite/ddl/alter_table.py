"""The clauses of ALTER TABLE as SQLite's statements.

What SQLite's ALTER TABLE can't do makes a new table, inside the transaction: a table of the new definition, the rows
converted into it, then its name, indexes and triggers.
"""

from collections.abc import Iterator

from ordering.errors import TargetError
from ordering.events import TableName, folded
from sinks.ddl.model import (
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
    Passed,
    RenameColumn,
    RenameIndex,
    SetComment,
    SetDefault,
    TypeDef,
    Unknown,
)
from sinks.ddl.rows.default_values import Filling, shown
from sinks.ddl.rows.modify_column import keeps_values
from sinks.ddl.rows.null_moments import fills_in_now, not_sent
from sinks.rows.schema import Column, Shape
from sinks.sqlite.catalog import index_name, place_of
from sinks.sqlite.ddl.indexes import created, index_place, left_out, made_again, noted, remade
from sinks.sqlite.ddl.live_schema import Site
from sinks.sqlite.ddl.schema_text import TOKEN, body_of, literal, quoted
from sinks.sqlite.ddl.table_clauses import TableText, read_table_text
from sinks.sqlite.sql_functions import conversion
from sinks.sqlite.types import column_of, default_clause, type_clause, value_of

_GUESSED = {
    Shape.INTEGER: TypeDef("bigint"),
    Shape.EXACT: TypeDef("bigint", unsigned=True),
    Shape.REAL: TypeDef("double"),
    Shape.BYTES: TypeDef("longblob"),
    Shape.TIMESTAMP: TypeDef("timestamp", (6,)),
    Shape.JSON: TypeDef("json"),
}
"""Types of columns whose type upstream is not known: as their values are kept."""


class SqliteAlteration:
    """The changes of one ALTER TABLE, each read off the table as the one before it has left it."""

    def __init__(self, table: TableName, site: Site, filling: Filling) -> None:
        self._table, self._site, self._filling = table, site, filling
        self._head = f"ALTER TABLE {place_of(table)}"

    def statements(self, change: Change) -> Iterator[str]:  # noqa: C901 a case a kind of change
        """What executes a change. Raises TargetError for what SQLite can't do."""
        match change:
            case AddColumn(column, if_missing):
                if if_missing and self._known_type(column.name):
                    yield left_out(f"column {column.name!r}, which upstream has")
                    return
                yield from self._added(column)
            case DropColumn(name):
                yield from self._dropped(name)
            case RenameColumn(old, new):
                yield from self._renamed(old, new)
            case ChangeColumn(old, column):
                yield from self._changed(old, column)
            case AddIndex(index):
                yield from self._add_index(index)
            case DropIndex(name):
                yield from self._drop_index(name)
            case RenameIndex(old, new):
                yield from self._rename_index(old, new)
            case SetDefault():
                yield from self._set_default(change)
            case Passed(text) | SetComment(text) | ChangePartitions(text):
                yield left_out(text)
            case Unknown(text):
                raise TargetError(
                    f"this clause is not known: {text[:200]}",
                    hint="make the change in the target by hand if it is needed there, or leave it out by a filter",
                )

    def _column(self, name: str) -> Column | None:
        return next((c for c in self._site.schema(self._table).columns if c.name.lower() == name.lower()), None)

    def _added(self, column: ColumnDef) -> Iterator[str]:
        """A column as ADD COLUMN takes it: rows that are there already show its default, or its type's zero."""
        if column.virtual:
            yield left_out(f"virtual column {column.name!r}")
            return
        clause = self._clause(column)
        if not self._site.has_rows(self._table):
            yield from self._rebuilt(self._text().with_column(clause), {})
            return
        text = f"{self._head} ADD COLUMN {type_clause(column_of(column))}{'' if column.nullable else ' NOT NULL'}"
        value = value_of(column, shown(column, self._filling), self._site.encoder)
        yield text if value is None else f"{text} DEFAULT {literal(value)}"
        if told := self._filling.note(column):
            yield noted(told)
        if column.default is not None and column.default.expression:
            later = default_clause(column, self._site.encoder)
            yield from self._rebuilt(self._text().with_default(column.name, later), {})

    def _dropped(self, name: str) -> Iterator[str]:
        """SQLite keeps a column that an index needs: the index goes with it, as upstream's does."""
        if self._column(name) is None:
            yield left_out(f"column {name!r}, which is not there")
            return
        for index, sql in self._site.texts(self._table).items():
            if index and quoted(name).lower() in TOKEN.findall(body_of(sql).lower()):
                yield f"DROP INDEX {index_place(self._table.database, index)}"
        yield f"{self._head} DROP COLUMN {quoted(name)}"

    def _renamed(self, old: str, new: str) -> Iterator[str]:
        if self._column(old) is None:
            yield left_out(f"virtual column {old!r}")
        else:
            yield f"{self._head} RENAME COLUMN {quoted(old)} TO {quoted(new)}"

    def _changed(self, old: str, column: ColumnDef) -> Iterator[str]:
        """MODIFY and CHANGE COLUMN."""
        before = self._column(old)
        if before is None or column.virtual:
            yield left_out(f"virtual column {old!r}")
            return
        kind = self._type_of(before)
        if fills_in_now(kind.base, column) and self._site.has_null(self._table, before.name):
            raise not_sent(self._table, before.name)
        if before.name != column.name:
            yield f"{self._head} RENAME COLUMN {quoted(before.name)} TO {quoted(column.name)}"
        table = self._text()
        clause = self._clause(column)
        converts = not keeps_values(kind, column.type)
        if not converts and clause.split() == table.clause(column.name).split():
            yield left_out(f"column {column.name!r} is {column.type} upstream, the same to SQLite")
            return
        values = {}
        if converts and self._site.has_rows(self._table):
            values = {column.name: conversion(quoted(column.name), kind, column.type)}
        yield from self._rebuilt(table.changed(column.name, clause), values)

    def _known_type(self, column: str) -> TypeDef | None:
        """A column's type upstream, also of a virtual one, which is not there."""
        known = self._site.known(self._table)
        return known.type_of(column) if known else None

    def _type_of(self, column: Column) -> TypeDef:
        found = self._known_type(column.name)
        if found is None and column.members:
            found = TypeDef("enum" if column.shape is Shape.ENUM else "set", members=column.members)
        return found or _GUESSED.get(column.shape, TypeDef("longtext"))

    def _clause(self, column: ColumnDef) -> str:
        keys = {name.lower() for name in self._site.schema(self._table).primary_key()}
        not_null = "" if column.nullable and column.name.lower() not in keys else " NOT NULL"
        return type_clause(column_of(column)) + not_null + default_clause(column, self._site.encoder)

    def _text(self) -> TableText:
        return read_table_text(self._site.texts(self._table)[""])

    def _rebuilt(self, goal: TableText, values: dict[str, str]) -> Iterator[str]:
        """The table again; `values`: expressions for columns whose rows are converted."""
        indexes = [sql for index, sql in self._site.texts(self._table).items() if index]
        triggers = self._site.triggers(self._table)
        between = TableName(self._table.database, f"ticdc_reconciler {self._table.table}")
        columns = [c.name for c in self._site.schema(self._table).columns if not c.generated]
        names = ", ".join(map(quoted, columns))
        selected = ", ".join(values.get(name, quoted(name)) for name in columns)
        yield f"CREATE TABLE {place_of(between)} {goal.body()}"
        yield f"INSERT OR ABORT INTO {place_of(between)} ({names}) SELECT {selected} FROM {place_of(self._table)}"  # noqa: S608 quoted
        yield f"DROP TABLE {place_of(self._table)}"
        yield f"ALTER TABLE {place_of(between)} RENAME TO {quoted(self._table.table)}"
        for sql in (*indexes, *triggers):
            yield made_again(self._table.database, sql)

    def _set_default(self, change: SetDefault) -> Iterator[str]:
        column = self._column(change.name)
        if column is None:
            yield left_out(f"virtual column {change.name!r}")
            return
        given = ColumnDef(column.name, self._type_of(column), default=change.default)
        yield from self._rebuilt(self._text().with_default(column.name, default_clause(given, self._site.encoder)), {})

    def _add_index(self, index: IndexDef) -> Iterator[str]:
        schema = self._site.schema(self._table)
        if index.kind is not IndexKind.PRIMARY:
            if index.if_missing and self._indexes(index.name):
                yield left_out(f"index {index.name!r}, which is there")
                return
            index = index.named(lambda name: bool(self._indexes(name)))
            yield from self._drop_index(index.name)  # upstream's was dropped, here it was kept
            yield from created(self._table, index, {c.name.lower() for c in schema.columns})
            return
        spelled = {c.name.lower(): c.name for c in schema.columns}
        key = [spelled[part.column.lower()] for part in index.parts]
        table = self._text().with_primary_key(key)
        for name in key:
            table = table.with_not_null(name)
        yield from self._rebuilt(table, {})

    def _drop_index(self, name: str) -> Iterator[str]:
        if name.upper() == "PRIMARY":
            yield from self._rebuilt(self._text().with_primary_key(()), {})
        else:
            yield from (f"DROP INDEX {index_place(self._table.database, own)}" for own in self._indexes(name))

    def _indexes(self, name: str) -> list[str]:
        """An index as the table has it, if it does: upstream's names don't tell case apart."""
        own = folded(index_name(self._table, name))
        return [index for index in self._site.texts(self._table) if folded(index) == own]

    def _rename_index(self, old: str, new: str) -> Iterator[str]:
        """Made again, and with it the unique ones made later: their order decides which is the handle key."""
        texts = self._site.texts(self._table)
        own = next(iter(self._indexes(old)), "")
        if not own:
            return
        later = list(texts)[list(texts).index(own) + 1 :]
        for name in (own, *(index for index in later if texts[index].upper().startswith("CREATE UNIQUE"))):
            yield f"DROP INDEX {index_place(self._table.database, name)}"
            kept = name.removeprefix(f"{self._table.table}.")
            yield remade(self._table, new if name == own else kept, texts[name])

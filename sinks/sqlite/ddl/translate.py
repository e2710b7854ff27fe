"""TiDB's DDL for SQLite: statements made from the neutral definitions of `sinks.ddl`, one by one.

Secondary indexes are named `table.index`, for SQLite's index names are global to a file. What SQLite can't express and
what changes no row is left out; the DDL log names it behind `--`.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

from ordering.errors import TargetError
from ordering.events import TableName
from sinks.ddl.kept_definitions import in_charset
from sinks.ddl.model import AddIndex, ChangePartitions, ColumnDef, DropIndex, TableDef
from sinks.ddl.parse.partitions import read_change
from sinks.ddl.parse.statement import CHANGING_VIEWS, DdlKind, Statement, TableReference, named
from sinks.ddl.parse.tables import read_changes, read_dropped_index, read_index
from sinks.ddl.parse.views import CannotSayError, concerned, is_written_here, read_view, tables_of, translated
from sinks.ddl.rows.default_values import Circumstances
from sinks.ddl.rows.partition_moves import TablePlace, moved_rows
from sinks.ddl.view_columns import ViewColumns
from sinks.rows.schema import Catalog
from sinks.sqlite.catalog import place_of, quoted_database
from sinks.sqlite.ddl.alter_table import SqliteAlteration
from sinks.sqlite.ddl.indexes import NOTE, created, index_place, left_out, made_again, remade
from sinks.sqlite.ddl.live_schema import Site
from sinks.sqlite.ddl.partition_condition import SqliteSpeller
from sinks.sqlite.ddl.schema_text import body_of, quoted
from sinks.sqlite.types import column_of, default_clause, type_clause

_OTHER = frozenset({
    "decimal", "decimal unsigned", "bigint unsigned", "bit", "enum", "set", "json", "time", "timestamp",
})  # fmt: skip
"""Types of columns that are texts here, or may be, and are compared otherwise upstream."""


class SqliteTranslation:
    """One placed statement on its way into the target."""

    def __init__(self, statement: Statement, catalog: Catalog, site: Site, circumstances: Circumstances) -> None:
        self._statement, self._catalog, self._site = statement, catalog, site
        self._session, self._filling = circumstances.session, circumstances.filling

    def executed(self) -> Iterator[str]:
        """Execute; yields each statement once it has run, and notes on what was left out.

        Raises TargetError for what SQLite can't do.
        """
        for sql in self._around_views():
            if not sql.startswith(NOTE):
                self._site.run(sql)
            yield sql
        self._site.definitions.follow(self._statement)
        yield from self._without_changed_views()

    def _without_changed_views(self) -> Iterator[str]:
        """Take views away whose columns have other types now: they would mean something else than upstream's."""
        if self._statement.kind not in CHANGING_VIEWS:
            return
        pairs = (reference for pair in self._statement.renames for reference in pair)
        touched = {named(reference) for reference in (*self._statement.tables, *pairs)}
        tables = {name: schema for name, schema in self._catalog.tables.items() if name not in touched}
        tables |= {name: self._site.schema(name) for name in touched if self._site.texts(name)}
        catalog = replace(self._catalog, tables=tables)
        there = {name: self._site.view_text(name) for name in self._site.views({one.database for one in touched})}
        for name in (one for one in concerned(there, touched) if one not in touched):
            columns = ViewColumns(
                catalog, self._site.definitions, name.database, _OTHER, "sqlite", self._site.view_text
            )
            reason = columns.why_not_any_more(there[name])
            if reason and is_written_here(there[name], "sqlite"):
                self._site.run(f"DROP VIEW {place_of(name)}")
                yield left_out(f"view {name}, which was there: {reason}")

    def _around_views(self) -> Iterator[str]:
        """Views go by names and may be over what is not there: SQLite looks at all of them when it changes a table."""
        changed = self._statement.kind in {DdlKind.ALTER_TABLE, DdlKind.RENAME_TABLE}
        names = {named(r).database for pair in self._statement.renames for r in pair}
        databases = names or {named(r).database for r in self._statement.tables} if changed else set()
        views = self._site.view_texts(databases)
        triggers = [(name.database, sql) for name, _ in views for sql in self._site.triggers(name)]
        yield from (f"DROP VIEW {place_of(name)}" for name, _ in views)
        yield from self._statements()
        yield from (f"CREATE VIEW {place_of(name)} {sql}" for name, sql in views)
        yield from (made_again(database, sql) for database, sql in triggers)

    def _statements(self) -> Iterator[str]:
        rules: dict[DdlKind, Callable[[], Iterator[str]]] = {
            DdlKind.CREATE_DATABASE: self._create_database,
            DdlKind.DROP_DATABASE: lambda: iter(()),
            DdlKind.ALTER_DATABASE: lambda: iter((left_out("alter database"),)),
            DdlKind.CREATE_TABLE: self._create_table,
            DdlKind.DROP_TABLE: self._drop_table,
            DdlKind.TRUNCATE_TABLE: self._truncate,
            DdlKind.RENAME_TABLE: self._rename,
            DdlKind.ALTER_TABLE: self._alter,
            DdlKind.CREATE_INDEX: self._create_index,
            DdlKind.DROP_INDEX: self._drop_index,
            DdlKind.CREATE_VIEW: self._create_view,
            DdlKind.DROP_VIEW: self._drop_view,
        }
        rule = rules.get(self._statement.kind)
        if rule is None:
            raise TargetError(
                f"this DDL can't be executed on SQLite: {self._statement.sql[:500]}",
                hint="make the change in the target by hand if it is needed there, or leave it out by a filter",
            )
        return rule()

    def _create_database(self) -> Iterator[str]:
        """An empty file is a database without tables: this makes SQLite write it."""
        yield f"PRAGMA {quoted_database(self._statement.database or '')}.user_version = 0"

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
        yield from self._created(name, self._site.definitions.read_table(self._statement))

    def _created(self, name: TableName, table: TableDef) -> Iterator[str]:
        columns = {column.name.lower(): column for column in table.columns if not column.virtual}
        primary = [columns[key.lower()].name for key in table.primary_key]
        rowid = primary[0] if len(primary) == 1 and column_of(columns[primary[0].lower()]).type == "INTEGER" else None
        parts = [self._column(column, primary, rowid) for column in columns.values()]
        if primary and rowid is None:
            parts.append(f"PRIMARY KEY ({', '.join(map(quoted, primary))})")
        yield f"CREATE TABLE {place_of(name)} ({', '.join(parts)})"
        for index in table.indexes:
            yield from created(name, index, set(columns))
        yield from (left_out(f"virtual column {c.name!r}") for c in table.columns if c.virtual)
        yield from (left_out(part.text) for part in table.passed)

    def _column(self, column: ColumnDef, primary: list[str], rowid: str | None) -> str:
        text = type_clause(column_of(column))
        if column.name == rowid:
            return f"{text} PRIMARY KEY NOT NULL"
        if column.name in primary or not column.nullable:
            text += " NOT NULL"
        return text + default_clause(column, self._site.encoder)

    def _copied(self, model: TableName, name: TableName) -> Iterator[str]:
        """The statements that make a table and its indexes like another one."""
        texts = self._site.texts(model)
        if not texts:
            raise TargetError(f"table {model} is missing in the target", hint=f"{name} is to be created like it")
        yield f"CREATE TABLE {place_of(name)} {body_of(texts.pop(''))}"
        for index, sql in texts.items():
            yield remade(name, index.removeprefix(f"{model.table}."), sql)

    def _drop_table(self) -> Iterator[str]:
        for reference in self._statement.tables:
            if self._catalog.get(named(reference)):
                yield f"DROP TABLE {place_of(named(reference))}"

    def _create_view(self) -> Iterator[str]:
        """A view of SQLite's goes by names as upstream's do, but sees its own database alone."""
        name, view = self._own(), read_view(self._statement.sql)
        yield f"DROP VIEW IF EXISTS {place_of(name)}"
        try:
            others = {table.database for table in tables_of(view, self._session)} - {name.database}
            if others:
                yield left_out(f"view {name}: SQLite's views can't read other databases: {', '.join(sorted(others))}")
                return
            known = self._site.definitions
            settle = ViewColumns(self._catalog, known, self._session, _OTHER, "sqlite", self._site.view_text).settle
            query = translated(view, self._session, "sqlite", qualified=False, settle=settle)
        except CannotSayError as error:
            yield left_out(f"view {name}: {error}")
            return
        columns = f"({', '.join(map(quoted, view.columns))}) " if view.columns else ""
        sql = f"CREATE VIEW {place_of(name)} {columns}AS {query}"
        if reason := self._site.why_not(sql):
            yield left_out(f"view {name}: {reason}")
            return
        yield sql
        if reason := self._site.why_not(f"SELECT * FROM {place_of(name)}"):  # noqa: S608 quoted
            yield f"DROP VIEW {place_of(name)}"
            yield left_out(f"view {name}: {reason}")

    def _drop_view(self) -> Iterator[str]:
        yield from (f"DROP VIEW IF EXISTS {place_of(named(reference))}" for reference in self._statement.tables)

    def _truncate(self) -> Iterator[str]:
        yield f"DELETE FROM {place_of(self._own())}"  # noqa: S608 quoted

    def _rename(self) -> Iterator[str]:
        for old, new in self._statement.renames:
            source, goal = named(old), named(new)
            if source.database == goal.database:
                indexes = self._indexes(source)
                yield f"ALTER TABLE {place_of(source)} RENAME TO {quoted(goal.table)}"
                for index, sql in indexes:
                    yield f"DROP INDEX {index_place(goal.database, index)}"
                    yield remade(goal, index.removeprefix(f"{source.table}."), sql)
                continue
            yield from self._copied(source, goal)
            yield f"INSERT OR ABORT INTO {place_of(goal)} SELECT * FROM {place_of(source)}"  # noqa: S608 quoted
            yield f"DROP TABLE {place_of(source)}"

    def _indexes(self, table: TableName) -> list[tuple[str, str]]:
        return [(index, sql) for index, sql in self._site.texts(table).items() if index]

    def _alter(self) -> Iterator[str]:
        alteration = SqliteAlteration(self._own(), self._site, self._filling)
        known = self._site.known(self._own())
        for given in read_changes(self._statement.sql):
            change = in_charset(given, known.collation if known else "")
            if isinstance(change, ChangePartitions):
                yield from self._partitions(change.text)
            else:
                yield from alteration.statements(change)

    def _partitions(self, text: str) -> Iterator[str]:
        """Rows go or are swapped as with upstream's partitions; there are none here."""
        known = self._site.known(self._own())
        change = read_change(text, known.partitions if known else None)
        other = self._place(self._placed(change.exchanged[1])) if change.exchanged else None
        zone, encoder = self._site.rules.time_zone, self._site.encoder
        table, own = self._own(), self._place(self._own())
        columns = [column.name for column in self._site.schema(table).columns]
        yield from moved_rows(
            change, known, own, other, lambda found: SqliteSpeller(found, table.table, columns, encoder, zone)
        )
        yield left_out(text)

    def _placed(self, reference: TableReference) -> TableName:
        return self._catalog.spelled(TableName(reference.database or self._own().database, reference.table))

    def _place(self, table: TableName) -> TablePlace:
        columns = self._site.schema(table).columns
        return TablePlace(place_of(table), [quoted(c.name) for c in columns if not c.generated])

    def _create_index(self) -> Iterator[str]:
        yield from SqliteAlteration(self._own(), self._site, self._filling).statements(
            AddIndex(read_index(self._statement.sql))
        )

    def _drop_index(self) -> Iterator[str]:
        yield from SqliteAlteration(self._own(), self._site, self._filling).statements(
            DropIndex(read_dropped_index(self._statement.sql))
        )


def _folded(name: TableName) -> tuple[str, str]:
    return name.database, name.table.lower()

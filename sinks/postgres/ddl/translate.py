"""Upstream's DDL executed on PostgreSQL, statement by statement, inside the caller's transaction.

Definitions come from `sinks.ddl.parse.tables`; what changes no row and has no counterpart (partitions, storage, foreign
keys) is noted in the DDL log, what would change rows in a way that is not known here is refused by name.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain

from ordering.errors import TargetError
from ordering.events import TableName
from sinks.ddl.kept_definitions import Definitions, in_charset
from sinks.ddl.model import AddIndex, ChangePartitions, IndexDef, Passed, TableDef, Unknown
from sinks.ddl.parse.partitions import read_change
from sinks.ddl.parse.statement import DdlKind, Statement, named
from sinks.ddl.parse.tables import read_changes, read_dropped_index, read_index
from sinks.ddl.rows.default_values import Circumstances
from sinks.ddl.rows.partition_condition import moments_of
from sinks.ddl.rows.partition_moves import TablePlace, moved_rows
from sinks.postgres.connection import PostgresConnection
from sinks.postgres.ddl.alter_table import PostgresAlteration, column_clause, comments, members_clause
from sinks.postgres.ddl.indexes import NOTE, created, note
from sinks.postgres.ddl.partition_condition import CREATE_CRC, PostgresSpeller
from sinks.postgres.ddl.views import Views
from sinks.postgres.names import checked, fits, index_name, is_reserved, literal, place, quoted, renamed_index
from sinks.postgres.types import column_of
from sinks.rows.schema import Catalog, Column
from sinks.rows.values import ValueRules

DEFINITION = "ticdc_reconciler.definition"


def definitions_in(db: PostgresConnection, changefeed: str) -> Definitions:
    """What is kept in this target, as a changefeed may take it."""
    return Definitions(db.run, db.query, DEFINITION, "%s", changefeed)


class PostgresTranslation:
    """One placed statement on its way into the target."""

    def __init__(
        self,
        statement: Statement,
        catalog: Catalog,
        db: PostgresConnection,
        rules: ValueRules,
        circumstances: Circumstances,
        definitions: Definitions,
    ) -> None:
        self._statement, self._catalog, self._db, self._rules = statement, catalog, db, rules
        self._circumstances = circumstances
        self._definitions = definitions
        self._views = Views(statement, self._definitions, db)

    def executed(self) -> Iterator[str]:
        """Execute; yields each statement once it has run, and notes on what was left out.

        Raises TargetError for what PostgreSQL can't do.
        """
        for sql in chain(self._views.dropped(), self._statements()):
            if not sql.startswith(NOTE):
                self._db.run(sql)
            yield sql
        self._definitions.follow(self._statement)
        yield from self._views.made(self._catalog)

    def indexes(self) -> list[str]:
        """The statements of one that adds indexes and does nothing else; none for any other."""
        changes = read_changes(self._statement.sql) if self._statement.kind is DdlKind.ALTER_TABLE else []
        adds = bool(changes) and all(isinstance(change, AddIndex) for change in changes)
        return list(self._statements()) if adds or self._statement.kind is DdlKind.CREATE_INDEX else []

    def follow(self) -> None:
        """Note what a statement changed that was executed apart."""
        self._definitions.follow(self._statement)

    def _statements(self) -> Iterator[str]:
        rules: dict[DdlKind, Callable[[], Iterator[str]]] = {
            DdlKind.CREATE_DATABASE: self._create_database,
            DdlKind.DROP_DATABASE: self._drop_database,
            DdlKind.ALTER_DATABASE: self._passed,
            DdlKind.CREATE_TABLE: self._create_table,
            DdlKind.DROP_TABLE: self._drop_table,
            DdlKind.TRUNCATE_TABLE: self._truncate,
            DdlKind.RENAME_TABLE: self._rename,
            DdlKind.ALTER_TABLE: self._alter,
            DdlKind.CREATE_INDEX: self._create_index,
            DdlKind.DROP_INDEX: self._drop_index,
            DdlKind.CREATE_VIEW: lambda: self._views.keep(self._statement, self._circumstances.session, self._catalog),
            DdlKind.DROP_VIEW: self._drop_view,
        }
        rule = rules.get(self._statement.kind)
        if rule is None:
            raise self._unsupported("")
        return rule()

    def _unsupported(self, detail: str) -> TargetError:
        return TargetError(
            f"this DDL can't be executed on PostgreSQL yet{detail}: {self._statement.sql[:500]}",
            hint="make the change in the target by hand if it is needed there, or leave the table out by filter.rules",
        )

    def _passed(self) -> Iterator[str]:
        """Defaults of databases change no row."""
        yield note(f"left out: {self._statement.kind.value}")

    def _known(self, name: TableName) -> TableName:
        """The table as the target spells it: upstream's names don't tell case apart."""
        if self._catalog.get(name) is not None:
            return name
        folded = [n for n in self._catalog.tables if n.folded == name.folded]
        return folded[0] if len(folded) == 1 else name

    def _own(self) -> TableName:
        return self._known(named(self._statement.tables[0]))

    def _create_database(self) -> Iterator[str]:
        schema = self._statement.database or ""
        if is_reserved(schema):
            hint = "leave the database out with filter.rules, or use another target"
            raise TargetError(f"PostgreSQL keeps the schema {schema!r} for itself or others", hint=hint)
        yield f"CREATE SCHEMA IF NOT EXISTS {quoted(schema)}"

    def _drop_database(self) -> Iterator[str]:
        """Without CASCADE: what others made of these tables stays, and is named by the server's error."""
        schema = self._statement.database or ""
        tables = [place(name) for name in self._catalog.tables if name.database == schema]
        if tables:
            yield f"DROP TABLE {', '.join(tables)}"
        yield f"DROP SCHEMA IF EXISTS {quoted(schema)}"

    def _create_table(self) -> Iterator[str]:
        name = named(self._statement.tables[0])
        if self._catalog.get(name):
            raise TargetError(f"table {name} is there already", hint="drop it, or set start-ts above this CREATE TABLE")
        checked(name.table)
        if self._statement.like is not None:
            yield from self._create_like(name, self._known(named(self._statement.like)))
            return
        yield from self._created(name, self._definitions.read_table(self._statement))

    def _created(self, name: TableName, table: TableDef) -> Iterator[str]:
        columns = [c for c in table.columns if not c.virtual]
        keys = {part.column.lower() for index in table.indexes for part in index.parts if index.kind.unique}
        clauses = [column_clause(c, self._rules, in_key=c.name.lower() in keys) for c in columns]
        clauses += [members_clause(c) for c in columns if c.type.members]
        yield f"CREATE TABLE {place(name)} ({', '.join(clauses)})"
        made = {c.name: column_of(c) for c in columns}
        for index in table.indexes:
            yield created(name, _in_case(index, made), made)
        yield from comments(name, columns)
        if table.comment:
            yield f"COMMENT ON TABLE {place(name)} IS {literal(table.comment)}"
        yield from (note(f"left out: {part.text}") for part in table.passed)
        yield from (note(f"left out: virtual column {c.name!r}") for c in table.columns if c.virtual)

    def _create_like(self, name: TableName, model: TableName) -> Iterator[str]:
        if self._catalog.get(model) is None:
            raise TargetError(f"table {model} is missing in the target", hint=f"{name} is to be created like it")
        options = "INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING COMMENTS INCLUDING GENERATED INCLUDING IDENTITY"
        yield f"CREATE TABLE {place(name)} (LIKE {place(model)} {options})"
        for index, primary, unique, parts in self._indexes(model):
            own = quoted(renamed_index(index, model, name) or index_name(name, index))
            if primary:
                yield f"ALTER TABLE {place(name)} ADD CONSTRAINT {own} PRIMARY KEY ({parts})"
            else:
                yield f"CREATE {'UNIQUE ' if unique else ''}INDEX {own} ON {place(name)} ({parts})"

    def _indexes(self, table: TableName) -> list[tuple[str, bool, bool, str]]:
        """Name, whether primary, whether unique, and what it is over: of all indexes without a condition."""
        parts = (
            "(SELECT string_agg(pg_get_indexdef(i.indexrelid, k, false) || CASE WHEN i.indoption[k - 1] & 1 = 1"
            " THEN ' DESC' ELSE '' END, ', ' ORDER BY k) FROM generate_series(1, i.indnkeyatts) k)"
        )
        return self._db.query(
            f"SELECT c.relname, i.indisprimary, i.indisunique, {parts} FROM pg_index i"  # noqa: S608 a constant
            " JOIN pg_class c ON c.oid = i.indexrelid WHERE i.indrelid = %s::regclass AND i.indpred IS NULL"
            " ORDER BY c.relname",
            (place(table),),
        )

    def _drop_table(self) -> Iterator[str]:
        for reference in self._statement.tables:
            yield f"DROP TABLE IF EXISTS {place(self._known(named(reference)))}"

    def _drop_view(self) -> Iterator[str]:
        """Those that are kept are gone already, or wait: then a view of their name is somebody's own."""
        kept = self._definitions.views()
        names = (name for name in map(named, self._statement.tables) if name not in kept)
        yield from (f"DROP VIEW IF EXISTS {place(name)}" for name in names if fits(name.table))

    def _truncate(self) -> Iterator[str]:
        yield f"TRUNCATE TABLE {place(self._own())}"

    def _rename(self) -> Iterator[str]:
        for old, new in self._statement.renames:
            yield from self._renamed(self._known(named(old)), named(new))

    def _renamed(self, old: TableName, new: TableName) -> Iterator[str]:
        for index, *_ in self._indexes(old):
            if own := renamed_index(index, old, new):
                yield f"ALTER INDEX {quoted(old.database)}.{quoted(index)} RENAME TO {quoted(own)}"
        if old.database == new.database:
            yield f"ALTER TABLE {place(old)} RENAME TO {quoted(new.table)}"
            return
        # under a name that neither schema holds: each may have a table of the other name
        between = TableName(old.database, index_name(new, old.table))
        yield f"ALTER TABLE {place(old)} RENAME TO {quoted(between.table)}"
        yield f"ALTER TABLE {place(between)} SET SCHEMA {quoted(new.database)}"
        yield f"ALTER TABLE {place(TableName(new.database, between.table))} RENAME TO {quoted(new.table)}"

    def _alter(self) -> Iterator[str]:
        alteration = self._alteration(self._own())
        known = self._definitions.get(self._own())
        for given in read_changes(self._statement.sql):
            change = in_charset(given, known.collation if known else "")
            if isinstance(change, ChangePartitions):
                yield from self._partitions(change.text)
            elif isinstance(change, Passed):
                yield note(f"left out: {change.text}")
            elif isinstance(change, Unknown):
                raise self._unsupported(f" ({change.text[:100]})")
            else:
                yield from alteration.statements(change)

    def _alteration(self, name: TableName) -> PostgresAlteration:
        known = self._definitions.get(name)
        return PostgresAlteration(name, self._columns(name), self._db, self._rules, known, self._circumstances.filling)

    def _partitions(self, text: str) -> Iterator[str]:
        """Rows go or are swapped as with upstream's partitions; there are none here."""
        name = self._own()
        known = self._definitions.get(name)
        change = read_change(text, known.partitions if known else None)
        if known and known.partitions and known.partitions.method == "KEY" and (change.removed or change.exchanged):
            yield CREATE_CRC
        columns = self._columns(name)
        if known and (change.removed or change.exchanged) and self._rules.invalid_dates == "null":
            self._refuse_lost_dates(name, moments_of(known), columns)
        other = None
        if change.exchanged:
            reference = change.exchanged[1]
            other = self._place(self._known(TableName(reference.database or name.database, reference.table)))
        yield from moved_rows(
            change, known, self._place(name), other, lambda found: PostgresSpeller(found, columns, self._rules)
        )
        yield note(f"left out: {text}")

    def _refuse_lost_dates(self, name: TableName, dates: Sequence[str], columns: Iterable[str]) -> None:
        """Raise TargetError for a row of which it is not known which partition upstream has it in."""
        folded = {column.lower() for column in dates}
        for column in (one for one in columns if one.lower() in folded):
            if self._db.value(f"SELECT EXISTS (SELECT FROM {place(name)} WHERE {quoted(column)} IS NULL)"):  # noqa: S608 quoted
                raise TargetError(
                    f"rows of table {name} are NULL in column {column!r}, by which it is partitioned: upstream they may"
                    ' hold zero or partial dates, of other partitions (target.invalid-dates = "null")',
                    hint="delete or move the partition's rows in the target by hand, as upstream has them",
                )

    def _place(self, table: TableName) -> TablePlace:
        columns = self._columns(table).values()
        written = [quoted(column.name) for column in columns if not column.generated]
        return TablePlace(place(table), written, " OVERRIDING SYSTEM VALUE")

    def _columns(self, name: TableName) -> dict[str, Column]:
        schema = self._catalog.get(name)
        if schema is None:
            raise TargetError(f"table {name} is missing in the target")
        return {column.name: column for column in schema.columns}

    def _create_index(self) -> Iterator[str]:
        yield from self._alteration(self._own()).statements(AddIndex(read_index(self._statement.sql)))

    def _drop_index(self) -> Iterator[str]:
        name = self._own()
        index = index_name(name, read_dropped_index(self._statement.sql))
        yield f"DROP INDEX IF EXISTS {quoted(name.database)}.{quoted(index)}"


def _in_case(index: IndexDef, columns: Mapping[str, Column]) -> IndexDef:
    """The index with its columns as the table spells them."""
    return index.with_columns({name.lower(): name for name in columns})

"""What is kept of tables' definitions upstream that a target's own schema does not tell.

The types of columns decide how MODIFY COLUMN converts rows, and how partitions say which rows go with one of them. A
database's collation, which is that of its tables to come, is kept under an empty name. It
lies in `ticdc_reconciler.definition`, changes in the transaction of the DDL that it comes from, and is missing for
tables that came into the target in another way: a dump, or by hand.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, NamedTuple

import msgspec
import structlog

from ordering.errors import InputError
from ordering.events import DdlEvent, TableName
from sinks.ddl.collations import DEFAULTS
from sinks.ddl.model import (
    AddColumn,
    Change,
    ChangeColumn,
    ChangePartitions,
    ColumnDef,
    DropColumn,
    Passed,
    RenameColumn,
    TableDef,
    TypeDef,
    Unknown,
)
from sinks.ddl.name_resolution import respelled
from sinks.ddl.parse.options import read_collation, read_database_collation
from sinks.ddl.parse.partitions import Partitioning, read_change
from sinks.ddl.parse.statement import MALFORMED, DdlKind, Statement, named, read_statement
from sinks.ddl.parse.tables import column_in, in_database, read_changes, read_table
from sinks.rows.schema import Catalog, Column

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Known:
    """A table: the types of its columns, its collation ("" where it is not known), its partitions."""

    columns: dict[str, TypeDef] = field(default_factory=dict)
    collation: str = ""
    partitions: Partitioning | None = None
    changefeed: str = ""
    """Whose DDLs the partitions come from; "" for a database, and where an earlier version kept it."""
    moved: bool = False
    """Whether upstream has its columns in another order, for a DDL gave one a place."""

    def type_of(self, column: str) -> TypeDef | None:
        """A column's type; upstream's names don't tell case apart."""
        return next((kind for name, kind in self.columns.items() if name.lower() == column.lower()), None)


@dataclass(frozen=True, slots=True)
class KnownView:
    """A view: the target's statement that makes it, and what it reads."""

    view: str
    reads: frozenset[tuple[str, str]] = frozenset()
    there: bool = True
    """Whether it was made: while it waits, a view of its name is somebody's own."""


_encode, _decode = msgspec.json.Encoder(enc_hook=str).encode, msgspec.json.Decoder(Known).decode
_decode_view = msgspec.json.Decoder(KnownView).decode
_VIEWS = '{"view":%'


def is_of_view(definition: str) -> bool:
    """Whether what is kept is a view's."""
    return definition.startswith(_VIEWS[:-1])


def changefeed_of(definition: str) -> str:
    """Which changefeed has kept it; "" where that is not known: a view's, a database's, one of an earlier version."""
    return _decode(definition).changefeed


def known_of(table: TableDef) -> Known:
    """What is to be kept of a CREATE TABLE. KEY partitions without columns go by the primary key."""
    partitions = table.partitions
    if partitions is not None and partitions.method == "KEY" and not partitions.columns:
        partitions = replace(partitions, columns=table.primary_key)
    return Known({column.name: column.type for column in table.columns}, table.collation, partitions)


def altered(known: Known, changes: Iterable[Change]) -> Known:
    """What is known after the clauses of an ALTER TABLE."""
    for given in changes:
        if isinstance(given, AddColumn | ChangeColumn) and given.moved:
            known = replace(known, moved=True)
        match in_charset(given, known.collation):
            case AddColumn(column, if_missing) if not (if_missing and known.type_of(column.name)):
                known = replace(known, columns={**known.columns, column.name: column.type})
            case DropColumn(name):
                columns = {n: kind for n, kind in known.columns.items() if n.lower() != name.lower()}
                known = replace(known, columns=columns)
            case ChangeColumn(old, column):
                known = _renamed(known, old, column.name, column.type)
            case RenameColumn(old, new):
                known = _renamed(known, old, new, None)
            case ChangePartitions(text):
                known = replace(known, partitions=read_change(text, known.partitions).after)
            case Passed(text) if collation := read_collation(text):
                known = _collated(known, collation, everywhere=text.upper().startswith("CONVERT"))
            case Unknown(text) if "PARTITION" in text.upper():
                known = replace(known, partitions=None)
            case _:
                pass
    return known


def left_behind(known: Known, changes: Iterable[Change]) -> Known:
    """What is known after clauses that upstream has executed and the target has not.

    Which partitions there are is upstream's business; of a column that may differ now the type is not known any more.
    """
    for change in changes:
        match change:
            case ChangePartitions() | Unknown():
                known = altered(known, [change])
            case DropColumn(name) | ChangeColumn(name) | RenameColumn(name):
                known = altered(known, [DropColumn(name)])
            case Passed(text) if read_collation(text):
                known = replace(known, columns={}, collation="")
            case _:
                pass
    return known


def in_charset(change: Change, collation: str) -> Change:
    """A clause with what the table's character set makes of a column for which none is said: see `column_in`."""
    if isinstance(change, AddColumn | ChangeColumn):
        return replace(change, column=column_in(change.column, collation))
    return change


def _collated(known: Known, collation: str, *, everywhere: bool) -> Known:
    """A table's collation is that of columns to come; CONVERT TO gives it to all that are there."""
    columns = {n: replace(k, charset="", collation="") for n, k in known.columns.items()} if everywhere else {}
    made = {n: column_in(ColumnDef(n, kind), collation).type for n, kind in columns.items()}
    return replace(known, columns=made or known.columns, collation=collation)


def _renamed(known: Known, old: str, new: str, kind: TypeDef | None) -> Known:
    same = [name for name in known.columns if name.lower() == old.lower()]
    return replace(
        known, columns={(new if n in same else n): (kind or k if n in same else k) for n, k in known.columns.items()}
    )


def _database(name: str | None) -> TableName:
    """Under what a database is kept."""
    return TableName(name or "", "")


class PlacedDdl(NamedTuple):
    """A statement by the target's names. `database`: of what it names without one; `table`: what it is about."""

    sql: str
    database: str
    table: str


NOTHING_HERE = PlacedDdl("", "", "")
"""Of a DDL that changes no table of the target's, also if it is executed."""


def placed(ddl: DdlEvent) -> PlacedDdl:
    """Of a DDL whose statement is by the target's names; the message's name of its table is upstream's."""
    tables = read_statement(ddl.routed).tables if ddl.routed else ()
    return PlacedDdl(ddl.statement, ddl.own_database, tables[0].table if tables else ddl.table)


Run = Callable[[str, tuple[Any, ...]], Any]
"""Executes a statement with values."""
Query = Callable[[str, tuple[Any, ...]], Iterable[tuple[Any, ...]]]
TABLE = "(database TEXT NOT NULL, name TEXT NOT NULL, definition TEXT NOT NULL, PRIMARY KEY (database, name))"
"""The columns of the table that holds them."""


def _readable(sql: str) -> Statement:
    """The statement. Raises InputError also where there is none: what it said by the target's names is not known."""
    if not sql:
        raise InputError("it has no statement by the target's names")
    return read_statement(sql)


class Definitions:
    """The kept definitions of a target, for a changefeed. `mark` stands for a value in its statements."""

    def __init__(self, run: Run, query: Query, table: str, mark: str, changefeed: str) -> None:
        self._run, self._query, self._table, self._mark, self._changefeed = run, query, table, mark, changefeed
        self._where = f"WHERE database = {mark} AND name = {mark}"

    def get(self, table: TableName) -> Known | None:
        """What is known of a table; not its partitions where another changefeed has followed them."""
        found = list(self._query(f"SELECT definition FROM {self._table} {self._where}", tuple(table)))  # noqa: S608 a constant
        known = _decode(found[0][0]) if found else None
        return replace(known, partitions=None) if known and known.changefeed not in {"", self._changefeed} else known

    def views(self) -> dict[TableName, KnownView]:
        """All views that are kept."""
        look = f"SELECT database, name, definition FROM {self._table} WHERE definition LIKE {self._mark}"  # noqa: S608 a constant
        return {TableName(d, name): _decode_view(text) for d, name, text in self._query(look, (_VIEWS,))}

    def read_table(self, statement: Statement) -> TableDef:
        """The table of a placed CREATE TABLE with a list of columns, in its database. Raises InputError."""
        known = self.get(_database(statement.tables[0].database))
        return in_database(read_table(statement.sql), known.collation if known else "")

    def put(self, table: TableName, known: Known | KnownView) -> None:
        """Keep this of a table or view."""
        self.drop(table)
        known = replace(known, changefeed=self._changefeed) if isinstance(known, Known) and table.table else known
        marks = ", ".join([self._mark] * 3)
        self._run(f"INSERT INTO {self._table} VALUES ({marks})", (*table, _encode(known).decode()))  # noqa: S608 a constant

    def drop(self, table: TableName) -> None:
        """Forget a table."""
        self._run(f"DELETE FROM {self._table} {self._where}", tuple(table))  # noqa: S608 a constant

    def drop_database(self, database: str) -> None:
        """Forget all tables of a database."""
        self._run(f"DELETE FROM {self._table} WHERE database = {self._mark}", (database,))  # noqa: S608 a constant

    def forget(self, table: TableName) -> None:
        """Know nothing of a table any more; a view stays as it was made."""
        self._run(f"DELETE FROM {self._table} {self._where} AND definition NOT LIKE {self._mark}", (*table, _VIEWS))  # noqa: S608 a constant

    def follow_made(self, made: PlacedDdl, catalog: Catalog) -> None:
        """Keep what a statement has changed that was made by hand; after one that can't be read nothing is known."""
        self._take_in(made, catalog, self.follow)

    def pass_over(self, left_out: PlacedDdl, catalog: Catalog) -> None:
        """Keep what is known after a statement that upstream has executed and the target has not."""
        self._take_in(left_out, catalog, self._pass_over)

    def _take_in(self, ddl: PlacedDdl, catalog: Catalog, rule: Callable[[Statement], None]) -> None:
        own = catalog.database(ddl.database)
        if ddl == NOTHING_HERE:
            return
        try:
            rule(_readable(respelled(ddl.sql, own, catalog)).placed(own, lambda _: own))
        except (InputError, *MALFORMED) as error:
            log.warning("what a DDL that was not executed has changed is not known", because=str(error))
            if ddl.table:  # else it is about a database, whose tables it leaves as they are
                self.forget(catalog.spelled(TableName(own, ddl.table)))

    def _pass_over(self, statement: Statement) -> None:
        kind = statement.kind
        if kind in {DdlKind.CREATE_DATABASE, DdlKind.ALTER_DATABASE}:
            self._follow_database(statement)
        elif kind is DdlKind.DROP_DATABASE:
            look = f"SELECT name FROM {self._table} WHERE database = {self._mark}"  # noqa: S608 a constant
            for (name,) in list(self._query(look, (statement.database or "",))):
                self.forget(TableName(statement.database or "", name))
        elif kind in {DdlKind.CREATE_TABLE, DdlKind.DROP_TABLE, DdlKind.RENAME_TABLE}:
            for reference in chain(statement.tables, *statement.renames):
                self.forget(named(reference))
        elif kind is DdlKind.ALTER_TABLE:
            name = named(statement.tables[0])
            if (known := self.get(name)) is not None:
                self.put(name, left_behind(known, read_changes(statement.sql)))

    def define(self, there: PlacedDdl, catalog: Catalog, column_of: Callable[[ColumnDef], Column]) -> None:
        """Keep what a CREATE TABLE says of a table that is there, but for columns that it would make otherwise."""
        own = catalog.database(there.database)
        statement = read_statement(respelled(there.sql, own, catalog)).placed(own, lambda _: own)
        name = named(statement.tables[0])
        schema, table = catalog.get(name), self.read_table(statement)
        types = {} if schema is None else {column.name.lower(): column.type for column in schema.columns}
        fitting = (c for c in table.columns if types.get(c.name.lower()) == column_of(c).type)
        self.put(name, replace(known_of(table), columns={column.name: column.type for column in fitting}))

    def follow(self, statement: Statement) -> None:
        """Keep what a placed statement that was executed has changed."""
        kind = statement.kind
        if kind is DdlKind.DROP_DATABASE:
            self.drop_database(statement.database or "")
        elif kind in {DdlKind.CREATE_DATABASE, DdlKind.ALTER_DATABASE}:
            self._follow_database(statement)
        elif kind in {DdlKind.DROP_TABLE, DdlKind.DROP_VIEW}:
            for reference in statement.tables:
                self.drop(named(reference))
        elif kind is DdlKind.RENAME_TABLE:
            for old, new in statement.renames:
                self._copy(named(old), named(new))
                self.drop(named(old))
        elif kind is DdlKind.CREATE_TABLE and statement.like is not None:
            self._copy(named(statement.like), named(statement.tables[0]))
        elif kind is DdlKind.CREATE_TABLE:
            self.put(named(statement.tables[0]), known_of(self.read_table(statement)))
        elif kind is DdlKind.ALTER_TABLE:
            self._alter(named(statement.tables[0]), statement.sql)

    def _follow_database(self, statement: Statement) -> None:
        """An ALTER DATABASE may be about something else; without one named, upstream creates one in its default."""
        otherwise = DEFAULTS["utf8mb4"] if statement.kind is DdlKind.CREATE_DATABASE else ""
        if collation := read_database_collation(statement.sql) or otherwise:
            self.put(_database(statement.database), Known(collation=collation))

    def _copy(self, old: TableName, new: TableName) -> None:
        known = self.get(old)
        if known is None:
            self.drop(new)
        else:
            self.put(new, known)

    def _alter(self, table: TableName, sql: str) -> None:
        """A table of which nothing is known has partitions that are told only if it gets them by this statement."""
        known = self.get(table)
        now = altered(known or Known(), read_changes(sql))
        if known is not None or now.partitions is not None:
            self.put(table, now)

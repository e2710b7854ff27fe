"""Reads the head of a DDL statement: its kind and the tables it names.

The grammar of the heads is TiDB's, which prints statements anew and so in few forms (TiDB documentation, "SQL
Statements"). What follows the head is read by whoever needs it.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum

from ordering.events import TableName
from sinks.ddl.words import Words


class DdlKind(Enum):
    """What a statement does, as far as ordering and execution have to know."""

    CREATE_DATABASE = "create database"
    DROP_DATABASE = "drop database"
    ALTER_DATABASE = "alter database"
    CREATE_TABLE = "create table"
    DROP_TABLE = "drop table"
    TRUNCATE_TABLE = "truncate table"
    RENAME_TABLE = "rename table"
    ALTER_TABLE = "alter table"
    CREATE_INDEX = "create index"
    DROP_INDEX = "drop index"
    CREATE_VIEW = "create view"
    DROP_VIEW = "drop view"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Reference:
    """A table as a statement names it; `database` is None where it is not said."""

    database: str | None
    table: str


Resolver = Callable[[Reference], str]
"""Finds the database of an unqualified old name."""


@dataclass(frozen=True, slots=True)
class Statement:
    """The head of a DDL statement. `tables`: those it is about; `renames`: pairs of old and new; `like`: the model."""

    sql: str
    kind: DdlKind
    database: str | None = None
    tables: tuple[Reference, ...] = ()
    renames: tuple[tuple[Reference, Reference], ...] = ()
    like: Reference | None = None
    if_exists: bool = False

    def placed(self, database: str, older: Resolver) -> "Statement":
        """The statement with the database of every name.

        `database` is the message's: that of the table after the DDL, so of all names but those that were there before
        it under another one, the old names of a RENAME and the model of a CREATE LIKE. `older` finds theirs.
        """

        def own(reference: Reference) -> Reference:
            return Reference(reference.database or database, reference.table)

        def old(reference: Reference) -> Reference:
            return Reference(reference.database or older(reference), reference.table)

        return replace(
            self,
            tables=tuple(map(own, self.tables)),
            renames=tuple((old(before), own(after)) for before, after in self.renames),
            like=None if self.like is None else old(self.like),
        )

    def removes(self) -> tuple[TableName, ...]:
        """Tables that are gone under their name afterwards; of a placed statement."""
        if self.kind is DdlKind.DROP_TABLE:
            return tuple(map(named, self.tables))
        return tuple(named(old) for old, _ in self.renames)

    def adds(self) -> tuple[TableName, ...]:
        """Tables that are there under a new name afterwards; of a placed statement."""
        if self.kind is DdlKind.CREATE_TABLE:
            return tuple(map(named, self.tables))
        return tuple(named(new) for _, new in self.renames)


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What a statement does not say. `session`: the database of names that a view's query leaves without one.

    `moment`: what stands for the time at which it ran upstream; "" if nothing does.
    """

    session: str
    moment: str


def named(reference: Reference) -> TableName:
    """The table of a reference of a placed statement."""
    return TableName(reference.database or "", reference.table)


def exchange_of(statement: Statement) -> tuple[str, Reference] | None:
    """Partition and other table of an EXCHANGE PARTITION; None for other statements. Raises InputError."""
    head = _Head(statement.sql)
    if statement.kind is not DdlKind.ALTER_TABLE or not head.skip_to("EXCHANGE") or not head.skip("PARTITION"):
        return None
    partition = head.name()
    head.expect("WITH", "TABLE")
    return partition, head.reference()


class _Head(Words):
    """The words of a head: they name tables."""

    def reference(self) -> Reference:
        first = self.name()
        return Reference(first, self.name()) if self.skip(".") else Reference(None, first)

    def references(self) -> tuple[Reference, ...]:
        found = [self.reference()]
        while self.skip(","):
            found.append(self.reference())
        return tuple(found)


def read_statement(sql: str) -> Statement:
    """The head of a statement. Raises InputError if it can't be read."""
    head = _Head(sql)
    sql = head.sql
    if head.skip("RENAME", "TABLE"):
        return Statement(sql, DdlKind.RENAME_TABLE, renames=_renames(head))
    if head.skip("TRUNCATE"):
        head.skip("TABLE")
        return Statement(sql, DdlKind.TRUNCATE_TABLE, tables=(head.reference(),))
    if head.skip("CREATE"):
        return _create(sql, head)
    if head.skip("DROP"):
        return _drop(sql, head)
    if head.skip("ALTER"):
        return _alter(sql, head)
    return _recovered(sql, head)


def _recovered(sql: str, head: _Head) -> Statement:
    """RECOVER TABLE, also by the number of a job, which names none; FLASHBACK TABLE ... TO a new name."""
    known = head.skip("RECOVER", "TABLE") or head.skip("FLASHBACK", "TABLE")
    if not known or head.skip("BY"):
        return Statement(sql, DdlKind.OTHER)
    table = head.reference()
    return Statement(sql, DdlKind.OTHER, tables=(head.reference() if head.skip("TO") else table,))


def _create(sql: str, head: _Head) -> Statement:
    if head.skip("DATABASE") or head.skip("SCHEMA"):
        head.skip("IF", "NOT", "EXISTS")
        return Statement(sql, DdlKind.CREATE_DATABASE, database=head.name())
    if head.skip("TABLE"):
        head.skip("IF", "NOT", "EXISTS")
        table = head.reference()
        like = head.reference() if head.skip("LIKE") or head.skip("(", "LIKE") else None
        return Statement(sql, DdlKind.CREATE_TABLE, tables=(table,), like=like)
    if skip_to_view(head):
        return Statement(sql, DdlKind.CREATE_VIEW, tables=(head.reference(),))
    if skip_to_index(head):
        return Statement(sql, DdlKind.CREATE_INDEX, tables=(head.reference(),))
    return Statement(sql, DdlKind.OTHER)


def skip_to_view(words: Words) -> bool:
    """Behind CREATE: step over what may stand before a view's name, in the grammar's order, if it is a view's."""
    start = words.at
    words.skip("OR", "REPLACE")
    if words.skip("ALGORITHM", "="):
        words.name()
    if words.skip("DEFINER", "="):
        words.name()
        if words.skip("@"):
            words.name()
        elif words.skip("("):
            words.expect(")")
    if words.skip("SQL", "SECURITY"):
        words.name()
    if words.skip("VIEW"):
        words.skip("IF", "NOT", "EXISTS")
        return True
    words.at = start
    return False


def skip_to_index(words: Words) -> bool:
    """Behind CREATE: step over what stands before the table of an index, if it is an index's."""
    start = words.at
    words.skip_any("UNIQUE", "FULLTEXT", "SPATIAL", "VECTOR", "COLUMNAR")
    if not words.skip("INDEX"):
        words.at = start
        return False
    words.skip("IF", "NOT", "EXISTS")
    words.name()
    if words.skip_any("USING", "TYPE"):
        words.name()
    words.expect("ON")
    return True


def _drop(sql: str, head: _Head) -> Statement:
    if head.skip("DATABASE") or head.skip("SCHEMA"):
        exists = head.skip("IF", "EXISTS")
        return Statement(sql, DdlKind.DROP_DATABASE, database=head.name(), if_exists=exists)
    if head.skip("TABLE"):
        exists = head.skip("IF", "EXISTS")
        return Statement(sql, DdlKind.DROP_TABLE, tables=head.references(), if_exists=exists)
    if head.skip("VIEW"):
        exists = head.skip("IF", "EXISTS")
        return Statement(sql, DdlKind.DROP_VIEW, tables=head.references(), if_exists=exists)
    if head.skip("INDEX"):
        head.skip("IF", "EXISTS")
        head.name()
        head.expect("ON")
        return Statement(sql, DdlKind.DROP_INDEX, tables=(head.reference(),))
    return Statement(sql, DdlKind.OTHER)


def _alter(sql: str, head: _Head) -> Statement:
    if head.skip("DATABASE") or head.skip("SCHEMA"):
        return Statement(sql, DdlKind.ALTER_DATABASE, database=head.name())
    if not head.skip("TABLE"):
        return Statement(sql, DdlKind.OTHER)
    table = head.reference()
    if head.skip("RENAME") and head.peek() not in {"COLUMN", "INDEX", "KEY"}:
        if not head.skip("TO"):
            head.skip("AS")
        return Statement(sql, DdlKind.RENAME_TABLE, renames=((table, head.reference()),))
    return Statement(sql, DdlKind.ALTER_TABLE, tables=(table,))


def _renames(head: _Head) -> tuple[tuple[Reference, Reference], ...]:
    pairs = []
    while True:
        old = head.reference()
        head.skip("TO")
        pairs.append((old, head.reference()))
        if not head.skip(","):
            return tuple(pairs)

"""Reads the head of a DDL statement: its kind and the tables it names.

The grammar of the heads is TiDB's, which rewrites statements, and so in few forms (TiDB documentation, "SQL
Statements"). What follows the head is read by whoever needs it.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache
from typing import NamedTuple

from ordering.errors import InputError
from ordering.events import TableName
from sinks.ddl.parse.words import Word, WordKind, Words

MALFORMED = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError)
"""What reading a statement may raise where it is none of the known forms."""
_LONGEST_NAMING = 4096
"""Characters of an ALTER DATABASE, generously."""


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


CHANGING_VIEWS = frozenset({DdlKind.CREATE_TABLE, DdlKind.ALTER_TABLE, DdlKind.RENAME_TABLE, DdlKind.CREATE_VIEW})
"""By which the columns under a view may become others, so that what it means here has to be judged again."""


@dataclass(frozen=True, slots=True)
class TableReference:
    """A table as a statement names it; `database` is None where it is not said."""

    database: str | None
    table: str


Resolver = Callable[[TableReference], str]
"""Finds the database of an unqualified old name."""


@dataclass(frozen=True, slots=True)
class Statement:
    """The head of a DDL statement. `tables`: those it is about; `renames`: pairs of old and new; `like`: the model.

    `read`: how many of its words that took.
    """

    sql: str
    kind: DdlKind
    database: str | None = None
    tables: tuple[TableReference, ...] = ()
    renames: tuple[tuple[TableReference, TableReference], ...] = ()
    like: TableReference | None = None
    if_exists: bool = False
    read: int = 0

    def placed(self, database: str, older: Resolver) -> "Statement":
        """The statement with the database of every name.

        `database` is the message's: that of the table after the DDL, so of all names but those that were there before
        it under another one, the old names of a RENAME and the model of a CREATE LIKE. `older` finds theirs.
        """

        def own(reference: TableReference) -> TableReference:
            return TableReference(reference.database or database, reference.table)

        def old(reference: TableReference) -> TableReference:
            return TableReference(reference.database or older(reference), reference.table)

        return replace(
            self,
            tables=tuple(map(own, self.tables)),
            renames=tuple((old(before), own(after)) for before, after in self.renames),
            like=None if self.like is None else old(self.like),
        )

    def removes(self) -> tuple[TableName, ...]:
        """Tables and views that are gone under their name afterwards; of a placed statement."""
        if self.kind in {DdlKind.DROP_TABLE, DdlKind.DROP_VIEW}:
            return tuple(map(named, self.tables))
        return tuple(named(old) for old, _ in self.renames)

    def adds(self) -> tuple[TableName, ...]:
        """Tables and views that are there under a new name afterwards; of a placed statement."""
        if self.kind in {DdlKind.CREATE_TABLE, DdlKind.CREATE_VIEW}:
            return tuple(map(named, self.tables))
        return tuple(named(new) for _, new in self.renames)


def named(reference: TableReference) -> TableName:
    """The table of a reference of a placed statement."""
    return TableName(reference.database or "", reference.table)


_OF_ITS_TABLES = frozenset({
    DdlKind.ALTER_TABLE, DdlKind.CREATE_INDEX, DdlKind.CREATE_TABLE, DdlKind.DROP_INDEX, DdlKind.DROP_TABLE,
    DdlKind.TRUNCATE_TABLE,
})  # fmt: skip


def changed_tables(sql: str, database: str) -> frozenset[TableName] | None:
    """The only tables whose definitions a statement can change, and the model of a copy; None: it may change others.

    Those that leave out the database are of `database`. Raises InputError.
    """
    statement = read_statement(sql)
    if statement.kind not in _OF_ITS_TABLES or statement.renames or exchange_of(statement) is not None:
        return None
    placed = statement.placed(database, lambda _: database)
    return frozenset(map(named, filter(None, (*placed.tables, placed.like))))


def exchange_of(statement: Statement) -> tuple[str, TableReference] | None:
    """Partition and other table of an EXCHANGE PARTITION; None for other statements. Raises InputError."""
    head = _Head(statement.sql)
    return _exchange(head) if statement.kind is DdlKind.ALTER_TABLE else None


def _exchange(head: "_Head") -> tuple[str, TableReference] | None:
    if not head.skip_to("EXCHANGE") or not head.skip("PARTITION"):
        return None
    partition = head.name()
    head.expect("WITH", "TABLE")
    return partition, head.reference()


class NamedTable(NamedTuple):
    """A table, or the database that a statement is about, and where its name stands in the text as it came."""

    reference: TableReference
    start: int
    stop: int


def named_tables(sql: str) -> tuple[Statement, list[NamedTable]]:
    """A statement's head, and each table or database that it names: of the head in its order, then behind it.

    Behind it stand what a foreign key refers to and the other table of an EXCHANGE. A view's query is not looked at.
    Raises InputError.
    """
    head = _Head(sql)
    statement = replace(_statement(head.sql, head), read=head.at)
    if statement.kind in {DdlKind.CREATE_TABLE, DdlKind.ALTER_TABLE}:
        for at in range(statement.read, len(head.words)):
            head.at = at
            if head.skip("REFERENCES"):
                head.reference()
    if statement.kind is DdlKind.ALTER_TABLE:
        head.at = 0
        _exchange(head)
    if statement.database is not None:
        name = head.words[statement.read - 1]
        head.named.append((TableReference(None, name.text), (name, name)))
    spans = [(found, words[0].origin, words[-1]) for found, words in head.named]
    return statement, [NamedTable(found, at, last.origin + last.stop - last.start) for found, at, last in spans]


_NO_NAMES = frozenset({"IF", "EXISTS", "TABLE", "LIKE", "SELECT", "TO", "AS", "ON", "WITH", "IGNORE"})
"""Reserved in TiDB: without quotes they are no names, and a server may read what it only knows itself."""


class _Head(Words):
    """The words of a head: they name tables. `named`: the words of each table, as they were met."""

    def __init__(self, sql: str) -> None:
        super().__init__(sql)
        self.named: list[tuple[TableReference, tuple[Word, ...]]] = []

    def name(self) -> str:
        """The next word as a name. Raises InputError if it can't be one."""
        word = self.take()
        plain = word.kind is WordKind.PLAIN and (word.text[0].isalnum() or word.text[0] in "_$")
        if word.kind is not WordKind.NAME and (not plain or word.text.upper() in _NO_NAMES):
            self.at -= 1
            raise self.unexpected("expected a name")
        return word.text

    def reference(self) -> TableReference:
        start, first = self.at, self.name()
        found = TableReference(first, self.name()) if self.skip(".") else TableReference(None, first)
        self.named.append((found, (self.words[start], self.words[self.at - 1])))
        return found

    def references(self) -> tuple[TableReference, ...]:
        found = [self.reference()]
        while self.skip(","):
            found.append(self.reference())
        return tuple(found)


def read_statement(sql: str) -> Statement:
    """The head of a statement. Raises InputError if it can't be read."""
    head = _Head(sql)
    return replace(_statement(head.sql, head), read=head.at)


_DATABASE_OPTIONS = ("DEFAULT", "CHARACTER", "CHARSET", "COLLATE")


def as_meant(sql: str, database: str) -> str:
    """A DDL's text as messages and files of all versions mean it: two messages are one DDL if these texts are equal.

    TiCDC's new architecture leaves a `;` behind each part of a statement about several tables. `database`: see
    `naming_database`. What can't be read, or is too long to be an ALTER DATABASE, keeps its text.
    """
    text = sql.rstrip("; \t\r\n") if sql.rstrip().endswith(";") else sql
    return _named(text, database) if len(text) <= _LONGEST_NAMING and _may_be_about_database(text) else text


def _may_be_about_database(text: str) -> bool:
    """Whether a statement can be an ALTER DATABASE: thousands may wait that are none, and to read each takes long."""
    upper = text.upper()
    return "DATABASE" in upper or "SCHEMA" in upper


@lru_cache(maxsize=256)
def _named(sql: str, database: str) -> str:
    try:
        return naming_database(sql, database)
    except (InputError, *MALFORMED):
        return sql


def naming_database(sql: str, database: str) -> str:
    """The statement itself, or an ALTER DATABASE that leaves out the session's with this one's name in it.

    TiCDC sends it as TiDB prints it, without a name, and names the database in the message. An option's word without
    quotes is never taken for a name: were it one, what comes out is no statement for any server.
    """
    head = _Head(sql)
    if not _leaves_out_database(head):
        return sql
    start = head.words[head.at].start
    return f"{head.sql[:start]}`{database.replace('`', '``')}` {head.sql[start:]}"


def names_no_database(sql: str) -> bool:
    """Whether it is an ALTER DATABASE that leaves out the session's."""
    try:
        return _leaves_out_database(_Head(sql))
    except (InputError, *MALFORMED):
        return False


def _leaves_out_database(head: _Head) -> bool:
    about = head.skip("ALTER") and (head.skip("DATABASE") or head.skip("SCHEMA"))
    return about and head.peek() in _DATABASE_OPTIONS


def _statement(sql: str, head: _Head) -> Statement:
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
        head.skip_any("TO", "AS", "=")
        return Statement(sql, DdlKind.RENAME_TABLE, renames=((table, head.reference()),))
    return Statement(sql, DdlKind.ALTER_TABLE, tables=(table,))


def _renames(head: _Head) -> tuple[tuple[TableReference, TableReference], ...]:
    pairs = []
    while True:
        old = head.reference()
        head.expect("TO")
        pairs.append((old, head.reference()))
        if not head.skip(","):
            return tuple(pairs)

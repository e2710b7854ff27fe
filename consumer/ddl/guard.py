"""What a DDL of a message may be about: the databases that are upstream's to change, and what the message says itself.

A message names a table, its statement may name others. The filter judges the message and the names that the statement
is about; here it is seen that both agree, and that no name leads to the progress or into a server's own databases.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from consumer.ddl.names_beside import names_beside, qualified
from consumer.ddl.trial_parse import check_time
from consumer.filters.tables import SYSTEM_SCHEMAS, TableFilter
from ordering.errors import InputError
from ordering.events import DdlEvent, TableName
from sinks.bookkeeping.tables import PROGRESS_DATABASE
from sinks.ddl.parse.statement import (
    MALFORMED,
    DdlKind,
    Statement,
    TableReference,
    exchange_of,
    named,
    read_statement,
)
from sinks.ddl.parse.tidb_grammar import check_grammar
from sinks.ddl.parse.words import Words
from sinks.ddl.ticdc_allow_list import Event, clauses_of

_CLOSED = {PROGRESS_DATABASE, *SYSTEM_SCHEMAS}
"""Databases that no DDL of a message may change, in small letters."""
_SECRET = {PROGRESS_DATABASE, "mysql"}
"""Databases that no DDL may as much as name."""
_OPEN = "information_schema"
"""A view of it shows only what whoever asks may see."""
_ALTERS = frozenset({DdlKind.ALTER_TABLE})
_KINDS = {
    Event.CREATE_DATABASE: {DdlKind.CREATE_DATABASE}, Event.DROP_DATABASE: {DdlKind.DROP_DATABASE},
    Event.ALTER_DATABASE_CHARSET: {DdlKind.ALTER_DATABASE}, Event.CREATE_TABLE: {DdlKind.CREATE_TABLE},
    Event.DROP_TABLE: {DdlKind.DROP_TABLE}, Event.TRUNCATE_TABLE: {DdlKind.TRUNCATE_TABLE},
    Event.RENAME_TABLE: {DdlKind.RENAME_TABLE}, Event.RECOVER_TABLE: {DdlKind.OTHER},
    Event.CREATE_VIEW: {DdlKind.CREATE_VIEW}, Event.DROP_VIEW: {DdlKind.DROP_VIEW},
    Event.CREATE_INDEX: {DdlKind.CREATE_INDEX, DdlKind.ALTER_TABLE},
    Event.DROP_INDEX: {DdlKind.DROP_INDEX, DdlKind.ALTER_TABLE},
}  # fmt: skip
"""What a statement that does this is, where it is not an ALTER TABLE."""
_HINT = "not written by TiCDC as documented"


@contextmanager
def reading(ddl: DdlEvent) -> Iterator[None]:
    """Raise InputError with the DDL's position for whatever is wrong with its statement."""
    try:
        check_time(ddl.sql)
        yield
    except InputError as error:
        raise InputError(error.fact, where=error.where or str(ddl.position), hint=error.hint) from error
    except MALFORMED as error:
        fact = f"a DDL statement can't be read ({type(error).__name__}): {ddl.sql[:200]!r}"
        raise InputError(fact, where=str(ddl.position), hint=_HINT) from error


def refuse_what_is_not_theirs(ddl: DdlEvent) -> None:
    """Raise InputError for a DDL that is about what is not upstream's, or about something else than its message."""
    with reading(ddl):
        statement = read_statement(ddl.sql)
        _check_databases(ddl, statement)
        events = clauses_of(ddl.sql).events
        _check_reading(ddl, statement, events)
        if not ddl.database or any("\0" in name for name in (ddl.database, ddl.table, *_names(ddl, statement))):
            fact = f"a DDL names no database, or one with U+0000 in its name: {ddl.sql[:200]!r}"
            raise InputError(fact, hint=_HINT)
        _check_features(ddl.sql, statement)
        _check_agreement(ddl, statement)


def _check_reading(ddl: DdlEvent, statement: Statement, events: Sequence[Event]) -> None:
    """Both readers, of what it is about and of what it does, take it for the same, and TiDB could have printed it."""
    if events and not all(statement.kind in _KINDS.get(event, _ALTERS) for event in events):
        raise InputError(f"a DDL is not read as one kind of statement: {ddl.sql[:200]!r}", hint=_HINT)
    if Event.RENAME_TABLE in events and len(events) > 1:
        raise InputError(f"a table is renamed by one of several clauses: {ddl.sql[:200]!r}", hint=_HINT)
    check_grammar(statement, ddl.sql)


def _names(ddl: DdlEvent, statement: Statement) -> Iterator[str]:
    """Every database and table that the head of the statement names."""
    yield from filter(None, (ddl.database, statement.database))
    for reference in (*_references(statement), *filter(None, [statement.like])):
        yield from filter(None, (reference.database, reference.table))


def _references(statement: Statement) -> Iterator[TableReference]:
    yield from statement.tables
    for pair in statement.renames:
        yield from pair


def _check_databases(ddl: DdlEvent, statement: Statement) -> None:
    about = {ddl.database, statement.database or "", *(r.database or "" for r in _references(statement))}
    closed = {name for name in about if name.lower() in _CLOSED or name.lower().startswith("pg_")}
    closed |= {found.word.text for found in qualified(ddl.sql) if found.word.text.lower() in _SECRET}
    if closed:
        raise InputError(
            f"a DDL is about the database {min(closed)}, which is not upstream's to change: {ddl.sql[:200]}",
            hint="exclude this database in the changefeed's filter rules",
        )


def _check_features(sql: str, statement: Statement) -> None:
    """A comment of TiDB says how a table is stored: it may not change what the statement is about."""
    other = read_statement(Words(sql, features=True).sql)
    if _meaning(other) != _meaning(statement):
        raise InputError(f"a comment changes what a DDL statement is about: {sql[:200]!r}", hint=_HINT)


def _meaning(statement: Statement) -> tuple[object, ...]:
    return statement.kind, statement.database, statement.tables, statement.renames, statement.like


def _check_agreement(ddl: DdlEvent, statement: Statement) -> None:
    """The message's table, or database, is one that the statement is about."""
    if statement.database is not None:
        if statement.database.lower() != ddl.database.lower():
            raise _disagreement(ddl, statement.database)
        return
    tables = {one.folded for one in subjects(ddl, statement)}
    if tables and ddl.table and TableName(ddl.database, ddl.table).folded not in tables:
        raise _disagreement(ddl, ", ".join(sorted(map(str, tables))))


def _disagreement(ddl: DdlEvent, about: str) -> InputError:
    said = f"{ddl.database}.{ddl.table}".rstrip(".")
    return InputError(f"a message is about {said}, its DDL about {about}: {ddl.sql[:200]!r}", hint=_HINT)


def subjects(ddl: DdlEvent, statement: Statement) -> tuple[TableName, ...]:
    """The tables that a statement changes, by their names before and after it."""
    placed = statement.placed(ddl.database, lambda _: ddl.database)
    return tuple(map(named, (*_references(placed), *exchanged(ddl, statement))))


def exchanged(ddl: DdlEvent, statement: Statement) -> tuple[TableReference, ...]:
    """The other table of an EXCHANGE PARTITION."""
    found = exchange_of(statement)
    return () if found is None else (TableReference(found[1].database or ddl.database, found[1].table),)


def check_whole(ddl: DdlEvent, statement: Statement, tables: TableFilter) -> None:
    """Raise InputError where a statement is about tables that the rules leave out, beside some that they take in."""
    left = [name for name in subjects(ddl, statement) if not tables(*name)]
    if left and not statement.renames:
        hint = "take all of them into the filter, or none"
        raise InputError(f"a DDL is about {left[0]} too, which filter.rules leave out: {ddl.sql[:200]!r}", hint=hint)
    check_names(ddl, statement, tables)


def check_names(ddl: DdlEvent, statement: Statement, tables: TableFilter) -> None:
    """Raise InputError where a statement names a table that the rules leave out, in a foreign key or a view's query."""
    for name in names_beside(ddl, statement):
        if not tables(*name) and name.database.lower() != _OPEN:
            hint = "take it into the filter; or decide about the statement: `reconciler ddl list CONFIG`"
            raise InputError(f"a DDL names {name}, which filter.rules leave out: {ddl.sql[:200]!r}", hint=hint)

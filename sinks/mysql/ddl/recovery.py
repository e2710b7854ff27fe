"""DDL on the MySQL family: executed as it came, in the right database, and once, though it commits by itself.

    intent (with the definitions before) -> execute -> done + progress, in one transaction

After a crash the intent decides, by what is there now: as before it, so it did not run; as the statement makes it, so
it ran; anything else somebody did by hand, and an operator has to decide. What leaves all definitions as they are
is run again, which is safe, for no later row is written before `done`; but for EXCHANGE PARTITION, which would undo
itself: there the rows of both sides are part of what was noted.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from datetime import UTC
from enum import Enum
from typing import Any

from ordering.errors import TargetError
from ordering.events import DdlEvent, TableName
from ordering.timestamps import physical_ms
from sinks.ddl.model import AddColumn, AddIndex, Change, ChangeColumn, ColumnDef, DropColumn, DropIndex
from sinks.ddl.name_resolution import older_database, session_of
from sinks.ddl.parse.statement import DdlKind, Statement, TableReference, exchange_of, named
from sinks.ddl.parse.tables import read_changes, read_dropped_index, read_index, read_table
from sinks.ddl.parse.words import WordKind, Words
from sinks.ddl.rows.default_values import computed_columns
from sinks.mysql.catalog import quoted
from sinks.mysql.connection import MysqlConnection
from sinks.mysql.ddl.filling import clock, reproducible
from sinks.mysql.ddl.rehearsal import Rehearsal, Settings, alike, definition
from sinks.rows.schema import Catalog, Shape
from sinks.rows.values import zone_of

_NOW = re.compile(r"CURRENT_TIMESTAMP|\bNOW\s*\(|\bCURRENT_DATE\b|\bCURDATE\b", re.IGNORECASE)
_INSTANTS = {"UNIX_TIMESTAMP", "FROM_UNIXTIME"}
"""Functions whose values go by the session's time zone, as bounds of partitions."""
Definitions = dict[str, Any]
"""Name -> definition, None where it is not there; and what is noted beside them, under the names that follow."""

SESSION = "/session"
"""The database that names without one belong to."""

ROWS = "/rows"
"""What tells the two sides of an exchange apart."""

_DROPS = {DdlKind.DROP_DATABASE, DdlKind.DROP_TABLE, DdlKind.DROP_VIEW}
_RUNS_AGAIN = {DdlKind.TRUNCATE_TABLE, DdlKind.ALTER_DATABASE}


class DdlFate(Enum):
    """What became of a statement whose run was cut."""

    NOT_RUN = "not run"
    RAN = "ran"
    UNKNOWN = "unknown"


def session_database(statement: Statement, ddl: DdlEvent, catalog: Catalog) -> str | None:
    """Under which database the statement means what it meant upstream; None for statements about a database.

    `database` in a message is the table's, not the session's: a name without database that is not there may be another
    database's. Raises InputError where two readings are possible.
    """
    if statement.database is not None:
        return None
    olds = [old for old, _ in statement.renames] or ([statement.like] if statement.like else [])
    for reference in olds:
        if reference.database is None:
            return older_database(statement, reference, ddl, catalog)
    return session_of(statement, ddl, catalog, tuple) or None


def subjects(statement: Statement, session: str | None) -> list[TableName]:
    """The tables whose definitions tell whether the statement ran."""
    placed = statement.placed(session or "", lambda _: session or "")
    return [named(reference) for reference in (*placed.tables, *(name for pair in placed.renames for name in pair))]


def definitions(connection: MysqlConnection, statement: Statement, session: str | None) -> Definitions:
    """What is there of what the statement is about."""
    found: Definitions = {SESSION: session}
    if statement.database is not None:
        return {**found, statement.database: _database(connection, statement.database)}
    return {**found, **{str(name): definition(connection, name) for name in subjects(statement, session)}}


def _tables(found: Definitions) -> dict[str, str | None]:
    """The definitions alone."""
    return {name: text for name, text in found.items() if name not in {SESSION, ROWS}}


def _database(connection: MysqlConnection, database: str) -> str | None:
    rows = connection.query(
        "SELECT DEFAULT_CHARACTER_SET_NAME, DEFAULT_COLLATION_NAME FROM information_schema.SCHEMATA"
        " WHERE SCHEMA_NAME = %s",
        (database,),
    )
    return "/".join(rows[0]) if rows else None


def exchanged(statement: Statement, session: str | None) -> tuple[TableName, str, TableName] | None:
    """Table, partition and other table of an EXCHANGE PARTITION."""
    found = exchange_of(statement)
    if found is None:
        return None
    partition, other = found
    return subjects(statement, session)[0], partition, TableName(other.database or session or "", other.table)


def checksum(connection: MysqlConnection, table: TableName, partition: str = "") -> str:
    """Of the rows of a table or of one of its partitions: how many, and a sum of their contents, of equal rows too.

    Each value is hashed by itself: what is longer than max_allowed_packet becomes NULL, which is no part of a sum.
    Raises TargetError where a row's digest is NULL even so.
    """
    look = "SELECT COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s"
    names = [quoted(name) for (name,) in connection.query(f"{look} ORDER BY ORDINAL_POSITION", table)]
    columns = [f"IF({name} IS NULL, '-', SHA2({name}, 256))" for name in names]
    digest = f"CAST(CONV(LEFT(SHA2(CONCAT({', '.join(columns) or repr('')}), 256), 15), 16, 10) AS UNSIGNED)"
    place = f"{quoted(table.database)}.{quoted(table.table)}" + (
        f" PARTITION ({quoted(partition)})" if partition else ""
    )
    look = f"SELECT COUNT(*), COUNT({digest}), SUM({digest}) FROM {place}"  # noqa: S608 quoted
    ((count, known, total),) = connection.query(look)
    if count != known:
        raise TargetError(
            f"{count - known} rows of {table} are too long for the server to compute a digest of them",
            hint="raise its max_allowed_packet (SET GLOBAL, and its file), then start again",
        )
    return f"{count}/{total}"


def fate(rehearsal: Rehearsal, statement: Statement, sql: str, before: Definitions, now: Definitions) -> DdlFate:
    """Whether an intent that was not marked as done was executed. `sql`: the statement as it is executed here."""
    if before == now or statement.kind in _RUNS_AGAIN:
        return DdlFate.NOT_RUN
    return DdlFate.RAN if _is_made(rehearsal, statement, sql, before, now) else DdlFate.UNKNOWN


def _is_made(rehearsal: Rehearsal, statement: Statement, sql: str, before: Definitions, now: Definitions) -> bool:
    """Whether what is there is what the statement makes of what was there."""
    if statement.kind in _DROPS:
        return already_so(statement, now)
    if statement.kind in {DdlKind.CREATE_DATABASE, DdlKind.OTHER}:  # RECOVER TABLE: as it was when it was dropped
        return all(_tables(now).values())
    if ROWS in before:
        return now == {**before, ROWS: before[ROWS][::-1]}
    if statement.renames:
        return _by_name(_named(now)) == _by_name(_renamed(statement, before))
    (name,) = _tables(before)
    creates = statement.kind in {DdlKind.CREATE_TABLE, DdlKind.CREATE_VIEW}
    return rehearsal.makes(now[name], None if creates else before[name], sql)


def _renamed(statement: Statement, before: Definitions) -> dict[str, tuple[str, str] | None]:
    """What is there after a RENAME: the definition that a table had, and its name then."""

    def known(reference: TableReference) -> str:
        return f"{reference.database or before[SESSION]}.{reference.table}"

    after = _named(before)
    for old, new in statement.renames:
        after[known(new)], after[known(old)] = after[known(old)], None
    return after


def _named(found: Definitions) -> dict[str, tuple[str, str] | None]:
    """Definitions with their tables' names."""
    tables = _tables(found).items()
    return {name: None if text is None else (text, name.split(".", 1)[1]) for name, text in tables}


def _by_name(found: Mapping[str, tuple[str, str] | None]) -> dict[str, list[str] | None]:
    return {name: None if text is None else alike(*text) for name, text in found.items()}


def already_so(statement: Statement, now: Definitions) -> bool:
    """Whether what the statement is to remove is gone already."""
    return statement.kind in _DROPS and _none(_tables(now).values())


def made_already(
    connection: MysqlConnection, rehearsal: Rehearsal, statement: Statement, sql: str, now: Definitions
) -> bool:
    """Whether a refused statement asks for what is there: the very same, and with the rows that it would have.

    Only where that can be proved: one table, and one thing that is added or dropped.
    """
    tables = _tables(now)
    if len(tables) != 1 or not all(tables.values()):
        return False
    ((place, found),) = tables.items()
    name = TableName(*place.split(".", 1))
    if statement.kind is DdlKind.CREATE_TABLE:
        return rehearsal.makes(found, None, sql) and not _has_rows(connection, name)
    change = _only_change(statement)
    if isinstance(change, DropColumn | DropIndex):
        return not _has(connection, name, change)
    if isinstance(change, AddIndex):
        key = "PRIMARY KEY" if change.index.known_as == "PRIMARY" else f"INDEX {quoted(change.index.name)}"
        return rehearsal.makes(found, found, f"ALTER TABLE `t` DROP {key}", sql)
    if isinstance(change, AddColumn):
        column = quoted(change.column.name)
        same = rehearsal.makes(found, found, f"ALTER TABLE `t` DROP COLUMN {column}", sql)
        return same and not _has_rows(connection, name, f"NOT {column} <=> DEFAULT({column})")
    return False


def _only_change(statement: Statement) -> Change | None:
    if statement.kind is DdlKind.CREATE_INDEX:
        return AddIndex(read_index(statement.sql))
    if statement.kind is DdlKind.DROP_INDEX:
        return DropIndex(read_dropped_index(statement.sql))
    changes = read_changes(statement.sql) if statement.kind is DdlKind.ALTER_TABLE else []
    return changes[0] if len(changes) == 1 else None


def _has(connection: MysqlConnection, table: TableName, change: DropColumn | DropIndex) -> bool:
    is_column = isinstance(change, DropColumn)
    view, column = ("COLUMNS", "COLUMN_NAME") if is_column else ("STATISTICS", "INDEX_NAME")
    look = (
        f"SELECT COUNT(*) FROM information_schema.{view} WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s AND {column} = %s"  # noqa: S608 constants
    )
    return bool(connection.value(look, (*table, change.name)))


def _has_rows(connection: MysqlConnection, table: TableName, where: str = "TRUE") -> bool:
    place = f"{quoted(table.database)}.{quoted(table.table)}"
    return bool(connection.query(f"SELECT 1 FROM {place} WHERE {where} LIMIT 1"))  # noqa: S608 quoted


def altered_database(sql: str) -> str:
    """What makes a database that is there as CREATE DATABASE would have made it."""
    words = Words(sql)
    words.skip_to("DATABASE", "SCHEMA")
    words.skip("IF", "NOT", "EXISTS")
    name = words.name()
    options = words.sql[words.words[words.at - 1].stop :].strip() or "CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"
    return f"ALTER DATABASE {quoted(name)} {options}"


def session_settings(statement: Statement, ddl: DdlEvent, time_zone: str, catalog: Catalog) -> Settings:
    """Settings under which rows that are there get the values that upstream gave them: the moment, the time zone.

    What upstream's session had is in no message; the DDL's commitTs and the source's zone are the nearest known.
    """
    if told := clock(moment_columns(statement), dict(ddl.shown), time_zone):
        return told
    settings: dict[str, str | float] = {}
    fills_rows = fills_with_moment(statement.sql)
    if fills_rows:
        settings["timestamp"] = physical_ms(ddl.commit_ts) / 1000
    if zone_of(time_zone) is not UTC and (fills_rows or _by_zone(statement, ddl, catalog)):
        settings["time_zone"] = time_zone
    return settings


def _by_zone(statement: Statement, ddl: DdlEvent, catalog: Catalog) -> bool:
    """Whether what it makes of rows, or which rows it puts into a partition, goes by the session's time zone."""
    if any(word.kind is WordKind.PLAIN and word.text.upper() in _INSTANTS for word in Words(statement.sql).words):
        return True
    if statement.kind is DdlKind.CREATE_TABLE and statement.like is None:
        return any(map(_has_instant, read_table(statement.sql).columns))
    if statement.kind is not DdlKind.ALTER_TABLE:
        return False
    (own,) = map(named, statement.placed(ddl.own_database, lambda _: ddl.own_database).tables)
    schema = catalog.get(catalog.spelled(own))
    moments = {c.name.lower() for c in schema.columns if c.shape is Shape.TIMESTAMP} if schema else set()
    return any(_converts_instant(change, moments) for change in read_changes(statement.sql))


def _has_instant(column: ColumnDef) -> bool:
    """Whether its default is a moment of a zone."""
    return column.type.base == "timestamp" and column.default is not None and column.default.value is not None


def _converts_instant(change: Change, moments: Collection[str]) -> bool:
    """Whether a clause reads or writes TIMESTAMPs as texts. `moments`: those that are there, in lower case."""
    if isinstance(change, ChangeColumn):
        becomes = change.column.type.base == "timestamp"
        return becomes != (change.old.lower() in moments) or _has_instant(change.column)
    return isinstance(change, AddColumn) and _has_instant(change.column)


def moment_columns(statement: Statement) -> list[ColumnDef]:
    """The columns that an ALTER TABLE adds with a default that the server computes from the moment."""
    if statement.kind is not DdlKind.ALTER_TABLE or not fills_with_moment(statement.sql):
        return []
    computed = computed_columns(read_changes(statement.sql))
    return [column for column in computed if column.default is not None and _NOW.search(column.default.expression)]


def with_known(statement: Statement, ddl: DdlEvent, time_zone: str, catalog: Catalog) -> DdlEvent:
    """The DDL without what upstream told of rows, where no settings make the server give them just that."""
    return reproducible(ddl, moment_columns(statement), time_zone, fixed=_by_zone(statement, ddl, catalog))


def fills_with_moment(sql: str) -> bool:
    """Whether rows that are there may get the moment at which the statement runs."""
    return sql.upper().startswith("ALTER") and _NOW.search(sql) is not None


def _none(values: Iterable[str | None]) -> bool:
    return all(value is None for value in values)

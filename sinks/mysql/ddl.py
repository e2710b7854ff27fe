"""DDL on the MySQL family: executed as it came, in the right database, and once, though it commits by itself.

    intent (with the definitions before) -> execute -> done + progress, in one transaction

After a crash the intent decides: definitions that differ from those before mean that the statement ran. A TRUNCATE
leaves the definition as it is; it is run again, which is safe, for no later row is written before `done`.
"""

import re
from collections.abc import Iterable

from ordering.events import DdlEvent, TableName
from ordering.timestamps import CommitTs, physical_ms
from sinks.ddl.names import older_database, session_of
from sinks.ddl.statement import DdlKind, Statement, named
from sinks.mysql.catalog import quoted
from sinks.mysql.connection import MysqlConnection
from sinks.schema import Catalog

_NOW = re.compile(r"CURRENT_TIMESTAMP|\bNOW\s*\(", re.IGNORECASE)
_LITERAL = re.compile(r"\bTIMESTAMP\b[^,]*\bDEFAULT\s+(_UTF8MB4)?'", re.IGNORECASE)
_COUNTERS = ("AUTO_INCREMENT=", "AUTO_RANDOM_BASE=")


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


def definitions(connection: MysqlConnection, statement: Statement, session: str | None) -> dict[str, str | None]:
    """Name -> definition (None: not there) of what the statement is about."""
    if statement.database is not None:
        return {statement.database: _database(connection, statement.database)}
    return {str(name): _table(connection, name) for name in subjects(statement, session)}


def _database(connection: MysqlConnection, database: str) -> str | None:
    rows = connection.query(
        "SELECT DEFAULT_CHARACTER_SET_NAME, DEFAULT_COLLATION_NAME FROM information_schema.SCHEMATA"
        " WHERE SCHEMA_NAME = %s",
        (database,),
    )
    return "/".join(rows[0]) if rows else None


def _table(connection: MysqlConnection, name: TableName) -> str | None:
    present = connection.value(
        "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s", name
    )
    if not present:
        return None
    text = str(connection.query(f"SHOW CREATE TABLE {quoted(name.database)}.{quoted(name.table)}")[0][1])
    # rows change the counter, a statement does not
    return " ".join(word for word in text.split(" ") if not word.startswith(_COUNTERS))


def ran(statement: Statement, before: dict[str, str | None], now: dict[str, str | None]) -> bool:
    """Whether an intent that was not marked as done was executed."""
    return statement.kind is not DdlKind.TRUNCATE_TABLE and before != now


def already_so(statement: Statement, now: dict[str, str | None]) -> bool:
    """Whether the schema is what the statement would make it: a database or table that is there, or gone, already."""
    if statement.kind is DdlKind.CREATE_DATABASE:
        return all(now.values())
    if statement.kind in {DdlKind.DROP_DATABASE, DdlKind.DROP_TABLE}:
        return _none(now.values())
    return False


def session_settings(sql: str, commit_ts: CommitTs, time_zone: str) -> dict[str, str | float]:
    """Settings under which rows that are there get the values that upstream gave them: the moment, the time zone.

    What upstream's session had is in no message; the DDL's commitTs and the source's zone are the nearest known.
    """
    settings: dict[str, str | float] = {}
    fills_rows = fills_with_moment(sql)
    if fills_rows:
        settings["timestamp"] = physical_ms(commit_ts) / 1000
    if time_zone.upper() != "UTC" and (fills_rows or _LITERAL.search(sql)):
        settings["time_zone"] = time_zone
    return settings


def fills_with_moment(sql: str) -> bool:
    """Whether rows that are there may get the moment at which the statement runs."""
    return sql.upper().startswith("ALTER") and _NOW.search(sql) is not None


def _none(values: Iterable[str | None]) -> bool:
    return all(value is None for value in values)

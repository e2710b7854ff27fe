"""The SQLite target: see the package's docstring for the layout."""

import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path

from ordering.drift import Met
from ordering.events import TableName
from ordering.progress import Progress
from sinks.bookkeeping.applied import SQLITE_VIEW
from sinks.bookkeeping.tables import BookTypes
from sinks.ddl.kept_definitions import TABLE
from sinks.rows.accounting import check_changed
from sinks.rows.schema import Catalog, TableSchema
from sinks.rows.spool import Group
from sinks.rows.values import ValueRules
from sinks.sqlite import preflight, row_statements
from sinks.sqlite.catalog import place_of, read_catalog
from sinks.sqlite.ddl.execution import DEFINITION, SqliteDdl
from sinks.sqlite.ddl.schema_text import quoted
from sinks.sqlite.delete_copies import delete_by_content
from sinks.sqlite.digests import SqliteReader
from sinks.sqlite.encoder import SqliteEncoder, decode_rows
from sinks.sqlite.leader_file import CLOCK, LeaderFile, SideFile
from sinks.sqlite.session import SqliteSession, as_error
from sinks.target_session import TargetSession
from sinks.uri import TargetUri

_COUNTED_ROWS = 50_000
"""Of so many rows it is counted which were there before: that takes a tenth of their writing."""


class SqliteDialect:
    """A directory of SQLite files. See `sinks.dialect.Dialect`."""

    books = BookTypes(
        short="TEXT",
        text="TEXT",
        binary="BLOB",
        tso="INTEGER",
        moment="TEXT",
        identity="INTEGER",
        clock=CLOCK,
        schema="main",
        mark="?",
        first=(f"CREATE TABLE IF NOT EXISTS {DEFINITION} {TABLE}",),
        instances_apart=True,
        keeps_definitions=True,
    )
    has_savepoints = True

    def __init__(self, uri: TargetUri, rules: ValueRules) -> None:
        self._directory, self._rules = Path(uri.path), rules
        self.name = f"SQLite in {self._directory}"
        self.encoder = SqliteEncoder(rules)

    def connect(self) -> SqliteSession:
        """See `Connector.connect`."""
        return SqliteSession(self._directory, self.encoder, self._rules)

    def connect_beside(self) -> SideFile:
        """See `Dialect.connect_beside`: the list lies in a file of its own."""
        return SideFile(self._directory, as_error)

    def prepare(self, at: TargetSession[SqliteSession]) -> None:
        """See `Dialect.prepare`; what others have made in the directory meanwhile is attached."""
        at.close()
        at.book.make()
        at.books.ddl_log.complete()
        at.books.quarantine.make()
        at.books.proofs.make()
        at.db.run(SQLITE_VIEW)

    def check(self, at: TargetSession[SqliteSession]) -> list[str]:
        """See `Dialect.check`."""
        del at
        return list(preflight.findings(self._directory))

    def catalog(self, session: SqliteSession) -> Catalog:
        """See `Connector.catalog`."""
        return read_catalog(session.connection, session.attached)

    def leadership(self, at: TargetSession[SqliteSession]) -> LeaderFile:
        """See `Dialect.leadership`."""
        del at
        return LeaderFile(self._directory)

    def ddl(self, at: TargetSession[SqliteSession]) -> SqliteDdl:
        """See `Dialect.ddl`."""
        return SqliteDdl(at, self.encoder, self._rules)

    def delete(self, session: SqliteSession, group: Group, schema: TableSchema) -> Met:
        """See `Dialect.delete`."""
        if group.first.by_content:
            return delete_by_content(session.execute, place_of(schema.name), group, schema)
        deleted = _load(session, group, schema, row_statements.delete(schema, group.first.columns))
        return Met(deleted, deleted)

    def write(self, session: SqliteSession, group: Group, schema: TableSchema) -> Met:
        """See `Dialect.write`."""
        first = group.first
        counted = group.met is not None and group.rows <= _COUNTED_ROWS
        statement = row_statements.insert(schema, first.columns, plain=first.plain_insert, counted=counted)
        calls, is_each = session.functions.calls(), row_statements.writes_each(statement)
        changed = _load(session, group, schema, statement, exactly=is_each)
        met = calls() if is_each else group.rows - changed
        return Met(met, met if counted or first.plain_insert or not is_each else group.rows)

    def finish_rows(self, session: SqliteSession, progress: Progress, confirm: Callable[[], None]) -> None:
        """See `Connector.finish_rows`: rows are written at once."""

    def is_empty(self, session: SqliteSession, table: TableName) -> bool:
        """See `Dialect.is_empty`."""
        return session.value(f"SELECT 1 FROM {place_of(table)} LIMIT 1") is None  # noqa: S608 quoted

    def spelled(self, table: TableName, columns: Sequence[str]) -> tuple[str, list[str]]:
        """See `Dialect.spelled`."""
        return place_of(table), [quoted(column) for column in columns]

    def reader(self, at: TargetSession[SqliteSession]) -> SqliteReader:
        """See `Dialect.reader`."""
        return SqliteReader(at, self._directory)


def _load(session: SqliteSession, group: Group, schema: TableSchema, statement: str, *, exactly: bool = False) -> int:
    """Execute a statement for each row; rows changed."""
    total = 0
    for payload in group.payloads():
        rows = decode_rows(payload)
        try:
            changed = session.connection.executemany(statement, rows).rowcount
        except sqlite3.Error as error:
            refused = as_error(error, f"{session.where}, table {group.first.table}")
            conflict = getattr(error, "sqlite_errorname", "").startswith("SQLITE_CONSTRAINT_")
            refused.hint = refused.hint or schema.conflict_hint(is_conflict=conflict)
            raise refused from error
        least = len(rows) if exactly else 0
        check_changed(max(changed, 0), len(rows), group.first.table, rows, session.where, at_least=least)
        total += max(changed, 0)
    return total

"""The PostgreSQL target: see the package's docstring for the layout."""

from collections.abc import Callable, Sequence

from ordering.drift import Met
from ordering.events import TableName
from ordering.progress import Progress
from sinks.bookkeeping.applied import POSTGRES_VIEW, VIEW
from sinks.bookkeeping.tables import PROGRESS_DATABASE, BookTypes
from sinks.ddl.kept_definitions import TABLE
from sinks.postgres import preflight
from sinks.postgres.advisory_lock import AdvisoryLock
from sinks.postgres.catalog import read_catalog
from sinks.postgres.connection import PostgresConnection
from sinks.postgres.ddl.execution import PostgresDdl
from sinks.postgres.ddl.translate import DEFINITION
from sinks.postgres.delete_copies import delete_by_content
from sinks.postgres.digests import PostgresReader
from sinks.postgres.encoder import PostgresEncoder
from sinks.postgres.names import place, quoted
from sinks.postgres.preconditions import firing_triggers, unfit_tables
from sinks.postgres.writer import Writer
from sinks.rows.schema import Catalog, TableSchema
from sinks.rows.spool import Group
from sinks.rows.values import ValueRules
from sinks.target_session import TargetSession
from sinks.uri import TargetUri

MAKING = 0x7469_6364_6300_0001
"""An advisory lock: of two that make the tables at once one would be told that they exist."""


class PostgresDialect:
    """A PostgreSQL database: schema `d`, table `t`. See `sinks.dialect.Dialect`."""

    books = BookTypes(
        short="text",
        text="text",
        binary="bytea",
        tso="bigint",
        moment="timestamptz",
        identity="bigint GENERATED ALWAYS AS IDENTITY",
        clock="extract(epoch FROM clock_timestamp())::float8",
        first=(
            f"CREATE SCHEMA IF NOT EXISTS {PROGRESS_DATABASE}",
            f"CREATE TABLE IF NOT EXISTS {DEFINITION} {TABLE}",
        ),
        row_locks=True,
        keeps_definitions=True,
    )
    has_savepoints = True

    def __init__(self, uri: TargetUri, rules: ValueRules) -> None:
        self.name = f"{uri.kind} at {uri.place}"
        self.encoder = PostgresEncoder(rules)
        self._uri, self._rules = uri, rules

    def connect(self) -> PostgresConnection:
        """See `Connector.connect`."""
        return PostgresConnection(self._uri)

    def connect_beside(self) -> PostgresConnection:
        """See `Dialect.connect_beside`."""
        return self.connect()

    def prepare(self, at: TargetSession[PostgresConnection]) -> None:
        """See `Dialect.prepare`."""
        preflight.refuse_what_acts_on_rows(at.db)
        if not all(map(at.book.has, ("instance", "definition", "quarantine", VIEW))):
            with at.transaction():
                at.db.value("SELECT pg_advisory_xact_lock(%s)", (MAKING,))
                at.book.make()
                at.books.quarantine.make()
                if not at.book.has(VIEW):
                    at.db.run(POSTGRES_VIEW.format(database=PROGRESS_DATABASE))
        at.books.ddl_log.complete()

    def check(self, at: TargetSession[PostgresConnection]) -> list[str]:
        """See `Dialect.check`."""
        return preflight.findings(at.db, self.name)

    def catalog(self, session: PostgresConnection) -> Catalog:
        """See `Connector.catalog`."""
        return read_catalog(session.query, unfit_tables(session), firing_triggers(session))

    def leadership(self, at: TargetSession[PostgresConnection]) -> AdvisoryLock:
        """See `Dialect.leadership`."""
        return AdvisoryLock(at)

    def ddl(self, at: TargetSession[PostgresConnection]) -> PostgresDdl:
        """See `Dialect.ddl`."""
        return PostgresDdl(at, self._rules, concurrently=self._uri.concurrent_indexes)

    def delete(self, session: PostgresConnection, group: Group, schema: TableSchema) -> Met:
        """See `Dialect.delete`."""
        if group.first.by_content:
            return delete_by_content(session, group, schema)
        return Writer(session, schema).delete(group)

    def write(self, session: PostgresConnection, group: Group, schema: TableSchema) -> Met:
        """See `Dialect.write`."""
        return Writer(session, schema).write(group)

    def finish_rows(self, session: PostgresConnection, progress: Progress, confirm: Callable[[], None]) -> None:
        """See `Connector.finish_rows`: rows are written at once."""

    def is_empty(self, session: PostgresConnection, table: TableName) -> bool:
        """See `Dialect.is_empty`."""
        return not session.query(f"SELECT 1 FROM {place(table)} LIMIT 1")  # noqa: S608 quoted

    def spelled(self, table: TableName, columns: Sequence[str]) -> tuple[str, list[str]]:
        """See `Dialect.spelled`."""
        return place(table), [quoted(column) for column in columns]

    def reader(self, at: TargetSession[PostgresConnection]) -> PostgresReader:
        """See `Dialect.reader`."""
        return PostgresReader(at.db)

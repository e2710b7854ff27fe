"""A catalog in a PostgreSQL database, in the schema `ticdc_reconciler`: readers need no file of the leader's machine.

    BEGIN -> epoch read and locked -> files written -> pointers, progress -> COMMIT

The lock of the epoch's row is held while files are written, as in every target on a server; a leader that was stopped
there keeps nobody out, because who takes over ends its connection (`sinks.postgres.advisory_lock`).
"""

from dataclasses import dataclass, replace
from typing import Any

from ordering.errors import TargetError
from sinks.bookkeeping.tables import PROGRESS_DATABASE
from sinks.iceberg.catalogs import TABLES, CatalogDatabase, creations
from sinks.postgres.advisory_lock import CREATION, LAKES, AdvisoryLock
from sinks.postgres.connection import PostgresConnection
from sinks.postgres.dialect import MAKING, PostgresDialect
from sinks.postgres.preflight import usable_server
from sinks.target_session import TargetSession
from sinks.uri import TargetUri


@dataclass(frozen=True, slots=True)
class PostgresCatalogs:
    """See `Catalogs`."""

    uri: TargetUri
    books = replace(
        PostgresDialect.books, first=(f"CREATE SCHEMA IF NOT EXISTS {PROGRESS_DATABASE}",), keeps_definitions=False
    )

    def open(self) -> "PostgresCatalog":
        """See `Catalogs.open`."""
        return PostgresCatalog(self.uri)

    def leadership(self, at: TargetSession[Any]) -> AdvisoryLock:
        """See `Catalogs.leadership`."""
        return AdvisoryLock(at, is_lake=True)

    def check(self, database: CatalogDatabase) -> None:
        """See `Catalogs.check`."""
        _, name = usable_server(database, database.where)
        there, may_create, may_use = database.query(
            "SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = %s),"
            " has_database_privilege(current_database(), 'CREATE'),"
            " COALESCE((SELECT has_schema_privilege(oid, 'CREATE') FROM pg_namespace WHERE nspname = %s), true)",
            (PROGRESS_DATABASE, PROGRESS_DATABASE),
        )[0]
        if not (there or may_create):
            hint = f"GRANT CREATE ON DATABASE ... TO the user, or make the schema {PROGRESS_DATABASE} and let it own it"
            raise TargetError(f"the user may not create schemas in database {name!r}", where=database.where, hint=hint)
        if not may_use:
            hint = f"make the user the owner of schema {PROGRESS_DATABASE}"
            raise TargetError(f"the user may not use schema {PROGRESS_DATABASE}", where=database.where, hint=hint)


class PostgresCatalog(PostgresConnection):
    """See `CatalogDatabase`."""

    def make_catalog(self) -> None:
        """See `CatalogDatabase.make_catalog`."""
        if self.has_table(TABLES) and self.has_table(LAKES):
            return
        self.begin()
        try:
            self.make_alone()
            for statement in (*creations(), CREATION):
                self.run(statement)
        except BaseException:
            self.rollback()
            raise
        self.commit()

    def changefeeds(self) -> set[str]:
        """See `CatalogDatabase.changefeeds`."""
        found = self.query(f"SELECT changefeed FROM {PROGRESS_DATABASE}.{LAKES}") if self.has_table(LAKES) else []  # noqa: S608 constants
        return {name for (name,) in found}

    def make_alone(self) -> None:
        """See `CatalogDatabase.make_alone`."""
        self.value("SELECT pg_advisory_xact_lock(%s)", (MAKING,))

    def begin_alone(self) -> None:
        """See `CatalogDatabase.begin_alone`."""
        self.begin()
        self.run(f"LOCK TABLE {PROGRESS_DATABASE}.{TABLES} IN SHARE ROW EXCLUSIVE MODE")

    def begin_to_write(self) -> bool:
        """See `CatalogDatabase.begin_to_write`: the epoch's row is locked since the transaction began."""
        return False

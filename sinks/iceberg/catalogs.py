"""What a catalog's database has to do: pointers to tables lie in it beside our own tables, under one transaction.

Its tables `iceberg_tables` and `iceberg_namespace_properties` are those of the SQL catalogs that Iceberg's own
libraries read (Java's JdbcCatalog, pyiceberg's SqlCatalog, its version 1).
"""

from collections.abc import Collection, Iterator
from typing import Any, Protocol

from sinks.bookkeeping.tables import PROGRESS_DATABASE, BookTypes
from sinks.leadership import Leadership
from sinks.target_session import DatabaseSession, TargetSession

CATALOG = "ticdc"
"""The catalog's name in its rows: what readers call it."""
TABLES, NAMESPACES = "iceberg_tables", "iceberg_namespace_properties"


class CatalogDatabase(DatabaseSession, Protocol):
    """A connection to it. Raises TargetError and its kinds."""

    where: str

    def make_catalog(self) -> None:
        """Make the catalog's tables where they are missing; outside of any transaction."""
        ...

    def changefeeds(self) -> Collection[str] | None:
        """Those whose tables are in the catalog; None where the database holds no others."""
        ...

    def make_alone(self) -> None:
        """Let nobody else make tables of ours until this transaction ends."""
        ...

    def begin_alone(self) -> None:
        """Begin a transaction beside which no pointer moves."""
        ...

    def begin_to_write(self) -> bool:
        """Hold what others wait for; whether they may have changed anything since the transaction began."""
        ...


class Catalogs(Protocol):
    """One kind of catalog, at one place; can be pickled."""

    @property
    def books(self) -> BookTypes:
        """Types of our own tables."""
        ...

    def open(self) -> CatalogDatabase:
        """A new connection."""
        ...

    def leadership(self, at: TargetSession[Any]) -> Leadership:
        """Who leads, as this session sees it."""
        ...

    def check(self, database: CatalogDatabase) -> None:
        """Raise TargetError for a database that can't hold the catalog; changes nothing."""
        ...


def creations() -> Iterator[str]:
    """The statements that make the catalog's tables, each fine when repeated."""
    yield (
        f"CREATE TABLE IF NOT EXISTS {PROGRESS_DATABASE}.{TABLES} (catalog_name VARCHAR(255) NOT NULL,"
        " table_namespace VARCHAR(255) NOT NULL, table_name VARCHAR(255) NOT NULL, metadata_location VARCHAR(1000),"
        " previous_metadata_location VARCHAR(1000), iceberg_type VARCHAR(5),"
        " PRIMARY KEY (catalog_name, table_namespace, table_name))"
    )
    yield (
        f"CREATE TABLE IF NOT EXISTS {PROGRESS_DATABASE}.{NAMESPACES} (catalog_name VARCHAR(255) NOT NULL,"
        " namespace VARCHAR(255) NOT NULL, property_key VARCHAR(255) NOT NULL, property_value VARCHAR(1000),"
        " PRIMARY KEY (catalog_name, namespace, property_key))"
    )

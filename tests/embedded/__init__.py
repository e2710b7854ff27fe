"""Servers that only tests and benchmarks need, as `consumer.embedded` has them: MariaDB, PostgreSQL, TiDB."""

from tests.embedded.mariadb import MariaDbServer
from tests.embedded.postgres import PostgresServer
from tests.embedded.tidb import TidbServer

__all__ = ["MariaDbServer", "PostgresServer", "TidbServer"]

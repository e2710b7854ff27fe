"""Servers that only tests and benchmarks need, as `consumer.embedded` has them: MariaDB, MySQL, PostgreSQL, TiDB."""

from tests.embedded.mariadb import MariaDbServer
from tests.embedded.mysql import MySqlServer
from tests.embedded.postgres import PostgresServer
from tests.embedded.tidb import TidbServer

__all__ = ["MariaDbServer", "MySqlServer", "PostgresServer", "TidbServer"]

"""One connection to a MySQL-family server: session settings, streaming LOAD DATA, and errors by who must act."""

from collections.abc import Iterable
from contextlib import closing
from typing import Any

import pymysql
from pymysql.constants import CLIENT

from ordering.errors import TargetError, TargetUnreachableError
from sinks.uri import TargetUri

_LOST = {1040, 1053, 1077, 1152, 1158, 1159, 1160, 1161, 1203, 1927, 2002, 2003, 2006, 2013, 2014, 2055, 3169, 4031}
_AGAIN = {1020, 1205, 1213, 1689, 8022, 9007}
_NO_LOCAL_INFILE = {1148, 3948, 2068}
_CONNECT_TIMEOUT_S = 10
_LOCK_WAIT_S = 50
SQL_MODE = "STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION,NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES"
"""Strict, so that no value is changed silently; zero dates and a zero AUTO_INCREMENT as upstream holds them."""


class MysqlConnection:
    """A PyMySQL connection that raises our errors. Transactions are the caller's."""

    def __init__(self, uri: TargetUri, time_zone: str) -> None:
        self.where = uri.place
        self._loading: str | None = None
        try:
            self._connection = pymysql.connect(
                host=uri.host,
                port=uri.port,
                user=uri.user,
                password=uri.password,
                charset="utf8mb4",
                autocommit=True,
                local_infile=True,
                connect_timeout=_CONNECT_TIMEOUT_S,
                program_name="ticdc-reconciler",
                client_flag=CLIENT.FOUND_ROWS,
                max_allowed_packet=1 << 30,
            )
        except pymysql.MySQLError as error:
            raise self._as_error(error) from error
        self._set_up(time_zone)
        self.takes_load_data = self.value("SELECT @@local_infile") == 1

    def _set_up(self, time_zone: str) -> None:
        zone = "+00:00" if time_zone.upper() == "UTC" else time_zone
        self.run("SET NAMES utf8mb4 COLLATE utf8mb4_bin")
        try:
            self.run("SET SESSION time_zone = %s", (zone,))
        except TargetError as error:
            hint = "load the server's time zone tables (mysql_tzinfo_to_sql) or use an offset such as +08:00"
            raise TargetError(f"time zone {zone!r} is unknown to the target", where=self.where, hint=hint) from error
        # what TiDB makes a new database with; the target's own default may take 'a' and 'A' for one key
        self.run("SET SESSION collation_server = utf8mb4_bin")
        self.run("SET SESSION sql_mode = %s", (SQL_MODE,))
        # upstream sends the rows that its foreign keys cascaded to: cascading here would do it twice
        self.run("SET SESSION foreign_key_checks = 0")
        self.run("SET SESSION innodb_lock_wait_timeout = %s", (_LOCK_WAIT_S,))

    def run(self, sql: str, parameters: Iterable[Any] | None = None) -> int:
        """Execute a statement; rows affected."""
        try:
            with self._connection.cursor() as cursor:
                return int(cursor.execute(sql, None if parameters is None else tuple(parameters)))
        except pymysql.MySQLError as error:
            raise self._as_error(error) from error

    def query(self, sql: str, parameters: Iterable[Any] | None = None) -> list[tuple[Any, ...]]:
        """Execute a query; all rows."""
        try:
            with self._connection.cursor() as cursor:
                cursor.execute(sql, None if parameters is None else tuple(parameters))
                return list(cursor.fetchall())
        except pymysql.MySQLError as error:
            raise self._as_error(error) from error

    def value(self, sql: str, parameters: Iterable[Any] | None = None) -> Any:
        """The first column of the first row, or None."""
        rows = self.query(sql, parameters)
        return rows[0][0] if rows else None

    def load(self, sql: str, path: str) -> int:
        """Execute a LOAD DATA LOCAL statement whose file is bound as its one parameter.

        With LOCAL, bad values and conflicts become warnings (MySQL documentation, "LOAD DATA"): each is an error.
        """
        affected = self.run(sql, (path,))
        warnings = self.query("SHOW WARNINGS LIMIT 3")
        if warnings:
            raise TargetError(
                "the target refuses rows: " + "; ".join(f"{code} {text}" for _, code, text in warnings),
                where=self.where,
            )
        return affected

    def end_connection(self, connection_id: int) -> None:
        """Kill a connection of our own user; one that is gone meanwhile is what was wanted."""
        try:
            self.run(f"KILL {connection_id:d}")
        except TargetError:
            if self.value("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE ID = %s", (connection_id,)):
                raise

    def commit(self) -> None:
        """End the transaction; autocommit is on outside of one."""
        self.run("COMMIT")

    def rollback(self) -> None:
        """Drop the transaction; a connection that is gone has dropped it already."""
        if self._connection.open:
            try:
                self._connection.rollback()
            except pymysql.MySQLError:
                self._connection.close()

    def close(self) -> None:
        """Close the socket."""
        if self._connection.open:
            with closing(self._connection):
                return

    def _as_error(self, error: pymysql.MySQLError) -> TargetError:
        code = error.args[0] if error.args and isinstance(error.args[0], int) else 0
        text = error.args[1] if len(error.args) > 1 else str(error)
        if code in _LOST or isinstance(error, pymysql.InterfaceError):
            return TargetUnreachableError(f"the target is out of reach: {code} {text}", where=self.where)
        if code in _AGAIN:
            return TargetUnreachableError(f"the target asks to try again: {code} {text}", where=self.where)
        return TargetError(f"the target refuses: {code} {text}", where=self.where)

"""One connection to a MySQL-family server: session settings, streaming LOAD DATA, and errors by who must act."""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any

import pymysql
from pymysql.constants import CLIENT
from pymysql.cursors import Cursor, SSCursor
from pymysql.protocol import MysqlPacket

from ordering.errors import TargetBusyError, TargetError, TargetUnreachableError
from ordering.events import TableName
from sinks.bookkeeping.tables import PROGRESS_DATABASE
from sinks.mysql.login import HINT as LOGIN_HINT
from sinks.mysql.login import PasswordKeptError
from sinks.mysql.tls import HINT, is_tls_fault
from sinks.mysql.wire import Line
from sinks.server_error_hints import mysql_advice
from sinks.uri import TargetUri

_LOST = {
    1040,
    1053,
    1077,
    1152,
    1158,
    1159,
    1160,
    1161,
    1203,
    1927,
    2002,
    2003,
    2006,
    2013,
    2014,
    2055,
    3032,
    3169,
    4031,
}
_AGAIN = {1020, 1205, 1213, 1317, 1689, 3100, 3101, 8002, 8005, 8022, 8027, 8028, 9001, 9002, 9003, 9004, 9005, 9007}
"""Also where somebody ends a statement (KILL QUERY), and where members of a group do not agree on a transaction."""
_NOT_READY = 1047
"""A member of a Galera cluster that has lost the others says this of each statement."""
_READ_ONLY, _OPTION = 1836, 1290
"""A server that takes no writes now, as in a failover: a new connection may reach another one."""
_NOT_ASKED = 2068
_DIGITS = re.compile(r"\d+")
_LOCK_WAIT_S = 50
_UNENDING = {
    "wait_timeout": 2_147_483,  # s, 24 days: what a server on any system takes
    "max_execution_time": 0,
    "max_statement_time": 0,
    "idle_transaction_timeout": 0,
    "idle_readonly_transaction_timeout": 0,
    "idle_write_transaction_timeout": 0,
    "tidb_idle_transaction_timeout": 0,
}
"""Leadership is a named lock of the session, and it may rest for hours; 0 is without end."""
_OFF = ("tidb_enable_external_ts_read", "tidb_low_resolution_tso", "sql_if_exists")
"""Reads of the past, in which TiDB writes nothing: a target of syncpoints may be set so, for its readers. MariaDB's IF
EXISTS in statements that say none: a DDL that finds nothing would be done."""
_WARNINGS = 64
"""So many of a statement are kept at least."""
_ROW_ALIAS = (8, 0, 20)
"""From this MySQL on VALUES(column) is deprecated, with a warning; the new row has a name of its own."""
_PACKET_MARGIN = 64
"""What a server's `max_allowed_packet` holds besides the statement's text, and a little more."""
SQL_MODE = "STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION,NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES"
"""Strict, so that no value is changed silently; zero dates and a zero AUTO_INCREMENT as upstream holds them."""
ROUNDING_MODE = f"{SQL_MODE},TIME_ROUND_FRACTIONAL"
"""For changes of columns in MariaDB: digits of a second that are lost are rounded, as upstream and MySQL do."""


def _number_of(version: str) -> tuple[int, ...]:
    return tuple(map(int, _DIGITS.findall(version)[:3]))


def size_of(text: str) -> int:
    """A statement's bytes."""
    return len(text) if text.isascii() else len(text.encode(errors="surrogateescape"))


def is_lost(error: pymysql.MySQLError) -> bool:
    """Whether the server is gone or does not answer."""
    code = error.args[0] if error.args else 0
    return code in _LOST or isinstance(error, pymysql.InterfaceError)


class _Connection(Line):
    """Sends a server that asks for a local file the one that we named, and no other.

    PyMySQL would open whatever file the server's answer names (MySQL documentation, "Security Considerations for LOAD
    DATA LOCAL").
    """

    allowed: bytes | None = None
    _awaited = False

    def _read_query_result(self, unbuffered: bool = False) -> int:
        self._awaited = True
        return int(super()._read_query_result(unbuffered))

    def _read_packet(self, packet_type: Any = MysqlPacket) -> Any:
        packet = super()._read_packet(packet_type)
        first, self._awaited = self._awaited, False
        if first and packet.is_load_local_packet() and packet.get_all_data()[1:] != self.allowed:
            self._force_close()
            raise pymysql.err.InternalError(_NOT_ASKED, "the server asked for a file that was not offered to it")
        return packet


class MysqlConnection:
    """A PyMySQL connection that raises our errors. Transactions are the caller's. The session's time zone is UTC."""

    _is_tidb = False
    _kill = "KILL"

    def __init__(self, uri: TargetUri) -> None:
        self.where = uri.place
        self.statement_bytes = 1 << 30
        """The longest statement that the server takes; a longer one would end the connection."""
        try:
            self._connection = _Connection(uri, local_infile=True, client_flag=CLIENT.FOUND_ROWS)
        except PasswordKeptError as error:
            raise TargetError(f"no login: {error.args[1]}", where=uri.place, hint=LOGIN_HINT) from error
        except pymysql.MySQLError as error:
            if is_tls_fault(error):
                raise TargetError(f"no encrypted connection: {error.args[-1]}", where=uri.place, hint=HINT) from error
            raise self._as_error(error) from error
        self.version = str(self.value("SELECT VERSION()"))
        if ("tidb" in self.version.lower()) != self._is_tidb:
            right = "mysql" if self._is_tidb else "tidb"
            hint = f"write target.uri = {right}://... for it"
            raise TargetError(f"the target is another server: {self.version}", where=self.where, hint=hint)
        self.is_mariadb = "mariadb" in self.version.lower()
        self.has_row_alias = not (self._is_tidb or self.is_mariadb) and _number_of(self.version) >= _ROW_ALIAS
        self._set_up()
        self.has_full_collation_names = self.is_mariadb and self._has_full_collation_names()
        ((local_infile, packet),) = self.query("SELECT @@local_infile, @@max_allowed_packet")
        self.takes_load_data = local_infile == 1
        self.statement_bytes = int(packet) - _PACKET_MARGIN

    def _has_full_collation_names(self) -> bool:
        """Whether collations go by two names, as MariaDB's do since 10.10: without and with their character set."""
        look = (
            "SELECT COUNT(*) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'information_schema'"
            " AND TABLE_NAME = 'COLLATION_CHARACTER_SET_APPLICABILITY' AND COLUMN_NAME = 'FULL_COLLATION_NAME'"
        )
        return bool(self.value(look))

    def made_indexes(self, table: TableName) -> list[str]:
        """The names of a table's indexes in the order in which they were made, as far as the server keeps it."""
        place = ".".join("`" + part.replace("`", "``") + "`" for part in table)
        return list(dict.fromkeys(str(row[2]) for row in self.query(f"SHOW INDEX FROM {place}")))

    def holds_text(self, charset: str, text: str) -> bool:
        """Whether a character set has all letters of a text; one that the server does not know is not used."""
        look = "SHOW CHARACTER SET WHERE Charset IN (%s, %s)"  # newer servers list no utf8, which they know
        if not charset.isalnum() or not self.value(look, (charset, "utf8mb3" if charset == "utf8" else charset)):
            return True
        there_and_back = f"CONVERT(CONVERT(%s USING {charset}) USING utf8mb4)"
        return bool(self.value(f"SELECT HEX({there_and_back}) = HEX(%s)", (text, text)))

    def _set_up(self) -> None:
        self.run("SET NAMES utf8mb4 COLLATE utf8mb4_bin")
        self.run("SET SESSION time_zone = '+00:00'")
        # what TiDB makes a new database with; the target's own default may take 'a' and 'A' for one key
        self.run("SET SESSION collation_server = utf8mb4_bin")
        self.run("SET SESSION sql_mode = %s", (SQL_MODE,))
        # warnings tell of values that the server would change; to set it needs rights of an administrator in MySQL 8
        if int(self.value("SELECT @@max_error_count")) < _WARNINGS:
            self.run("SET SESSION max_error_count = %s", (_WARNINGS,))
        # upstream sends the rows that its foreign keys cascaded to: cascading here would do it twice
        self.run("SET SESSION foreign_key_checks = 0")
        # a server that is set otherwise leaves the rest of what is read out without a word
        self.run("SET SESSION sql_select_limit = 18446744073709551615")
        if not self._is_tidb:
            # what a server is set to, and rows would silently differ by
            self.run(
                "SET SESSION default_storage_engine = InnoDB, completion_type = NO_CHAIN, unique_checks = 1,"
                " sql_notes = 1, sql_safe_updates = 0, sql_big_selects = 1"
            )
        if self.is_mariadb:
            # TiDB parses CHECK and by default does not enforce it: what rows may hold is the upstream's business
            self.run("SET SESSION check_constraint_checks = 0")
        self.run("SET SESSION innodb_lock_wait_timeout = %s", (_LOCK_WAIT_S,))
        self._stay()
        self._read_the_present()

    def _stay(self) -> None:
        """Set off what ends a session, its transaction or a long statement by itself, where the server has it."""
        marks = ", ".join(["%s"] * len(_UNENDING))
        for name, value in self.query(f"SHOW VARIABLES WHERE Variable_name IN ({marks})", _UNENDING):
            # TiDB lists MariaDB's max_statement_time with nothing in it
            if value and float(value) != _UNENDING[name.lower()]:
                self.run(f"SET SESSION {name.lower()} = {_UNENDING[name.lower()]:d}")

    def _read_the_present(self) -> None:
        """Set off what makes statements mean something else, where the server has it."""
        marks = ", ".join(["%s"] * len(_OFF))
        for name, value in self.query(f"SHOW VARIABLES WHERE Variable_name IN ({marks})", _OFF):
            if str(value).upper() not in {"OFF", "0"}:
                self.run(f"SET SESSION {name.lower()} = 0")

    def run(self, sql: str, parameters: Iterable[Any] | None = None) -> int:
        """Execute a statement; rows affected."""
        try:
            with self._connection.cursor() as cursor:
                return self._executed(cursor, sql, parameters)
        except pymysql.MySQLError as error:
            raise self._as_error(error) from error

    def query(self, sql: str, parameters: Iterable[Any] | None = None) -> list[tuple[Any, ...]]:
        """Execute a query; all rows."""
        try:
            with self._connection.cursor() as cursor:
                self._executed(cursor, sql, parameters)
                return list(cursor.fetchall())
        except pymysql.MySQLError as error:
            raise self._as_error(error) from error

    def stream(self, sql: str) -> Iterator[tuple[Any, ...]]:
        """Execute a query; its rows as they come, and nothing else until the last one."""
        try:
            with self._connection.cursor(SSCursor) as cursor:
                cursor.execute(sql)
                yield from cursor.fetchall_unbuffered()
        except pymysql.MySQLError as error:
            raise self._as_error(error) from error

    def value(self, sql: str, parameters: Iterable[Any] | None = None) -> Any:
        """The first column of the first row, or None."""
        rows = self.query(sql, parameters)
        return rows[0][0] if rows else None

    def _executed(self, cursor: Cursor, sql: str, parameters: Iterable[Any] | None) -> int:
        """Execute a statement that the server can take; rows affected."""
        text = cursor.mogrify(sql, None if parameters is None else tuple(parameters))
        self._check_size(text)
        return int(cursor.execute(text))

    def _check_size(self, text: str) -> None:
        if len(text) * 4 <= self.statement_bytes or (size := size_of(text)) <= self.statement_bytes:
            return
        raise TargetError(
            f"a statement of {size} bytes is more than the server takes ({self.statement_bytes}): {text[:60]!r}...",
            where=self.where,
            hint=f"set max_allowed_packet of the server to {size + _PACKET_MARGIN} or more (SET GLOBAL, and its file)",
        )

    def spelled(self, marks: str, values: Iterable[Any]) -> str:
        """A text in which literals stand for its `%s`."""
        escape, encoders = self._connection.escape, self._connection.encoders
        return marks % tuple([escape(value, encoders) for value in values])

    def write(self, sql: str) -> int:
        """Execute a statement that writes rows; rows affected. A value that the server would change is an error."""
        try:
            with self._connection.cursor() as cursor:
                affected = self._executed(cursor, sql, None)
                warned = cursor.warning_count
        except pymysql.MySQLError as error:
            raise self._as_error(error) from error
        if warned:
            self._refuse_warnings()
        return affected

    def load(self, into: str, path: str) -> int:
        """Execute LOAD DATA LOCAL of a file, with all that the statement says behind the file's name; rows affected.

        With LOCAL, bad values and conflicts become warnings (MySQL documentation, "LOAD DATA"): each is an error.
        """
        self._connection.allowed = path.encode()
        try:
            affected = self.run("LOAD DATA LOCAL INFILE %s " + into.replace("%", "%%"), (path,))
        finally:
            self._connection.allowed = None
        self._refuse_warnings()
        return affected

    def _refuse_warnings(self) -> None:
        warnings = self.query("SHOW WARNINGS")[:3]
        if warnings:
            raise TargetError(
                "the target refuses rows: " + "; ".join(f"{code} {text}" for _, code, text in warnings),
                where=self.where,
            )

    @contextmanager
    def set_for_now(self, settings: Mapping[str, str | float]) -> Iterator[None]:
        """Set the session's timestamp, time_zone or sql_mode meanwhile. Raises TargetError for an unknown zone."""
        try:
            for name, value in settings.items():
                self.run(f"SET SESSION {name} = %s", (value,))
        except TargetError as error:
            hint = (
                "load the server's time zone tables (mysql_tzinfo_to_sql): this DDL needs the zone of TIMESTAMP texts"
            )
            raise type(error)(error.fact, where=error.where, hint=hint) from error
        try:
            yield
        finally:
            if self._connection.open and settings:
                self.run("SET SESSION timestamp = DEFAULT, time_zone = '+00:00', sql_mode = %s", (SQL_MODE,))

    @contextmanager
    def loosely(self) -> Iterator[None]:
        """Take the nearest value meanwhile for one that a type does not hold, as a session that is not strict does."""
        mode = str(self.value("SELECT @@SESSION.sql_mode"))
        kept = (part for part in mode.split(",") if not part.startswith("STRICT_"))
        self.run("SET SESSION sql_mode = %s", (",".join(kept),))
        try:
            yield
        finally:
            if self._connection.open:
                self.run("SET SESSION sql_mode = %s", (mode,))

    def end_connection(self, connection_id: int) -> None:
        """Kill a connection of our own user; one that is gone meanwhile is what was wanted."""
        try:
            self.run(f"{self._kill} {connection_id:d}")
        except TargetError:
            if self.value("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE ID = %s", (connection_id,)):
                raise

    def has_table(self, name: str) -> bool:
        """See `DatabaseSession.has_table`."""
        look = "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s"
        return bool(self.value(look, (PROGRESS_DATABASE, name)))

    def begin(self) -> None:
        """See `DatabaseSession.begin`."""
        self.run("START TRANSACTION")

    def save_point(self) -> None:
        """See `DatabaseSession.save_point`."""
        self.run("SAVEPOINT group_of_rows")

    def back_to_point(self) -> None:
        """See `DatabaseSession.back_to_point`."""
        self.run("ROLLBACK TO SAVEPOINT group_of_rows")

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
        waits = code == _READ_ONLY or (code == _OPTION and "read" in text.lower())
        if is_lost(error) or waits or (code == _NOT_READY and "WSREP" in text):
            fact = f"the target is out of reach: {code} {text}"
            return TargetUnreachableError(fact, where=self.where, hint=mysql_advice(code))
        if code in _AGAIN:
            fact = f"the target asks to try again: {code} {text}"
            return TargetBusyError(fact, where=self.where, hint=mysql_advice(code))
        return TargetError(f"the target refuses: {code} {text}", where=self.where, hint=mysql_advice(code))

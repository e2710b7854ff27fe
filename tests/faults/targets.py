"""Looks into a target from outside, by its driver alone: no code of the sinks is used."""

import sqlite3
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import urlsplit

import psycopg
import pymysql

from tests.bench.measure import mysql_connection

Rows: TypeAlias = list[tuple[tuple[str, str | None], ...]]
Tables: TypeAlias = dict[str, Rows]
"""{"database.table": rows}, each row as its (column, text) pairs; all sorted, so that equal content is equal."""

PROGRESS = "ticdc_reconciler"
_BUSY_S = 30.0
_SCHEMA_CHANGED = {1146, 1412, 1054}  # a DDL came between: no table, definition changed, no column
_DEADLINE_S = 180.0


def comparable(tables: Mapping[str, Any]) -> Tables:
    """What the simulator's oracle knows, in the form in which targets are read."""
    return {name: sorted((_pairs(row) for row in rows.values()), key=repr) for name, rows in tables.items()}


def _pairs(row: Mapping[str, Any]) -> tuple[tuple[str, str | None], ...]:
    return tuple(sorted((name, None if value is None else str(value)) for name, value in row.items()))


class View(ABC):
    """One target, and in it the database and the changefeed that a test is about."""

    def __init__(self, uri: str, database: str, changefeed: str) -> None:
        self.uri, self.database, self.changefeed = uri, database, changefeed

    @abstractmethod
    def state(self) -> tuple[int, Tables]:
        """The checkpoint and all tables, in one consistent read; (0, {}) before there is any."""

    @abstractmethod
    def totals(self, tables: Sequence[str]) -> tuple[int, int] | None:
        """The checkpoint and the sum of all balances, in one statement; None while the tables are not all there."""

    def checkpoint(self) -> int:
        """The checkpoint alone."""
        found = self.totals(())
        return found[0] if found else 0

    @abstractmethod
    def instances(self) -> list[tuple[int, int]]:
        """Process ids and epochs of those on the list of instances, the leader first."""

    @abstractmethod
    def drop(self) -> None:
        """Leave nothing behind."""


def _sum(tables: Sequence[str], database: str, quote: str) -> str:
    parts = [f"(SELECT SUM(bal) FROM {quote}{database}{quote}.{quote}{table}{quote})" for table in tables]
    return " + ".join(parts) or "0"


_INSTANCES = "SELECT name, epoch FROM {} WHERE changefeed = '{}' ORDER BY epoch DESC"


def _told(rows: Iterable[tuple[Any, ...]]) -> list[tuple[int, int]]:
    return [(int(name.split(":")[1]), int(epoch)) for name, epoch in rows]


class MysqlView(View):
    """A database of a MySQL-family server."""

    def state(self) -> tuple[int, Tables]:
        """See `View.state`."""
        with closing(mysql_connection(self.uri)) as connection, connection.cursor() as cursor:
            names = self._names(cursor)
            cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
            checkpoint = self._checkpoint(cursor) if self._has(cursor, PROGRESS, "checkpoint") else 0
            return checkpoint, {f"{self.database}.{name}": self._rows(cursor, name) for name in names}

    def _names(self, cursor: Any) -> list[str]:
        cursor.execute("SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s", (self.database,))
        return [row[0] for row in cursor.fetchall()]

    def _has(self, cursor: Any, database: str, table: str) -> bool:
        look = "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s"
        cursor.execute(look, (database, table))
        return bool(cursor.fetchone()[0])

    def _checkpoint(self, cursor: Any) -> int:
        cursor.execute(f"SELECT checkpoint_ts FROM {PROGRESS}.checkpoint WHERE changefeed = %s", (self.changefeed,))
        row = cursor.fetchone()
        return int(row[0]) if row else 0

    def _rows(self, cursor: Any, table: str) -> Rows:
        cursor.execute(f"SELECT * FROM `{self.database}`.`{table}`")
        names = [column[0] for column in cursor.description]
        return sorted((_pairs(dict(zip(names, row, strict=True))) for row in cursor.fetchall()), key=repr)

    @contextmanager
    def _kept(self) -> Iterator["pymysql.Connection"]:
        """A connection for many small reads; created again after an error."""
        connection = getattr(self, "_connection", None) or mysql_connection(self.uri)
        try:
            yield connection
        except BaseException:
            self._connection = None
            connection.close()
            raise
        self._connection: pymysql.Connection | None = connection

    def totals(self, tables: Sequence[str]) -> tuple[int, int] | None:
        """See `View.totals`: one SELECT has one read view."""
        one = f"SELECT (SELECT checkpoint_ts FROM {PROGRESS}.checkpoint WHERE changefeed = %s), "
        try:
            with self._kept() as connection, connection.cursor() as cursor:
                cursor.execute(one + _sum(tables, self.database, "`"), (self.changefeed,))
                checkpoint, total = cursor.fetchone() or (None, None)
        except pymysql.MySQLError as error:
            if error.args[0] in _SCHEMA_CHANGED:
                return None
            raise
        return None if total is None else (int(checkpoint or 0), int(total))

    def instances(self) -> list[tuple[int, int]]:
        """See `View.instances`."""
        with self._kept() as connection, connection.cursor() as cursor:
            cursor.execute(_INSTANCES.format(f"{PROGRESS}.instance", self.changefeed))
            return _told(cursor.fetchall())

    def drop(self) -> None:
        """See `View.drop`."""
        with closing(mysql_connection(self.uri)) as connection, connection.cursor() as cursor:
            cursor.execute(f"DROP DATABASE IF EXISTS `{self.database}`")


class SqliteView(View):
    """A directory of SQLite files."""

    @property
    def directory(self) -> Path:
        """Where the files are."""
        return Path(urlsplit(self.uri).path[1:])

    def _there(self) -> bool:
        return self._file(PROGRESS).exists()

    def _file(self, database: str) -> Path:
        return self.directory / f"{database}.sqlite"

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self._file(PROGRESS), timeout=_BUSY_S, isolation_level=None)) as connection:
            if self._file(self.database).exists():
                connection.execute("ATTACH DATABASE ? AS d", (str(self._file(self.database)),))
            yield connection

    def state(self) -> tuple[int, Tables]:
        """See `View.state`."""
        if not self._there():
            return 0, {}
        with self._opened() as connection:
            connection.execute("BEGIN")
            checkpoint = self._checkpoint(connection)
            attached = {row[1] for row in connection.execute("PRAGMA database_list")}
            if "d" not in attached:
                return checkpoint, {}
            names = connection.execute("SELECT name FROM d.sqlite_master WHERE type = 'table'").fetchall()
            return checkpoint, {f"{self.database}.{name}": self._rows(connection, name) for (name,) in names}

    def _checkpoint(self, connection: sqlite3.Connection) -> int:
        if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'checkpoint'").fetchone():
            return 0
        select = "SELECT checkpoint_ts FROM checkpoint WHERE changefeed = ?"
        row = connection.execute(select, (self.changefeed,)).fetchone()
        return int(row[0]) if row else 0

    @staticmethod
    def _rows(connection: sqlite3.Connection, table: str) -> Rows:
        found = connection.execute(f'SELECT * FROM d."{table}"')
        names = [column[0] for column in found.description]
        return sorted((_pairs(dict(zip(names, row, strict=True))) for row in found), key=repr)

    def totals(self, tables: Sequence[str]) -> tuple[int, int] | None:
        """See `View.totals`: one statement locks all its files before it reads any."""
        if not (self._there() and (not tables or self._file(self.database).exists())):
            return None
        one = f"SELECT (SELECT checkpoint_ts FROM main.checkpoint WHERE changefeed = ?), {_sum(tables, 'd', '')}"
        try:
            with self._opened() as connection:
                row = connection.execute(one, (self.changefeed,)).fetchone()
        except sqlite3.OperationalError as error:
            if "no such" in str(error) or "unknown database" in str(error):
                return None
            raise
        return None if row[1] is None else (int(row[0] or 0), int(row[1]))

    def instances(self) -> list[tuple[int, int]]:
        """See `View.instances`."""
        with closing(sqlite3.connect(self.directory / f"{PROGRESS}.instances", timeout=_BUSY_S)) as connection:
            return _told(connection.execute(_INSTANCES.format("instance", self.changefeed)))

    def drop(self) -> None:
        """See `View.drop`: the directory is the test's."""


class PostgresView(View):
    """A schema of a PostgreSQL database."""

    def state(self) -> tuple[int, Tables]:
        """See `View.state`."""
        with psycopg.connect(self.uri) as connection:
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            has = connection.execute("SELECT to_regclass(%s) IS NOT NULL", (f"{PROGRESS}.checkpoint",)).fetchone()
            checkpoint = self._checkpoint(connection) if has == (True,) else 0
            look = "SELECT tablename FROM pg_tables WHERE schemaname = %s"
            names = [name for (name,) in connection.execute(look, (self.database,)).fetchall()]
            return checkpoint, {f"{self.database}.{name}": self._rows(connection, name) for name in names}

    def _checkpoint(self, connection: "psycopg.Connection[Any]") -> int:
        look = f"SELECT checkpoint_ts FROM {PROGRESS}.checkpoint WHERE changefeed = %s"
        row = connection.execute(look.encode(), (self.changefeed,)).fetchone()
        return int(row[0]) if row else 0

    def _rows(self, connection: "psycopg.Connection[Any]", table: str) -> Rows:
        found = connection.execute(f'SELECT * FROM "{self.database}"."{table}"'.encode())
        names = [column.name for column in found.description or ()]
        return sorted((_pairs(dict(zip(names, row, strict=True))) for row in found), key=repr)

    def totals(self, tables: Sequence[str]) -> tuple[int, int] | None:
        """See `View.totals`: one SELECT has one snapshot."""
        one = f"SELECT (SELECT checkpoint_ts FROM {PROGRESS}.checkpoint WHERE changefeed = %s), "
        try:
            with self._kept() as connection:
                row = connection.execute(
                    (one + _sum(tables, self.database, '"')).encode(), (self.changefeed,)
                ).fetchone()
        except (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName, psycopg.errors.UndefinedColumn):
            return None
        checkpoint, total = row or (None, None)
        return None if total is None else (int(checkpoint or 0), int(total))

    @contextmanager
    def _kept(self) -> Iterator["psycopg.Connection[Any]"]:
        """A connection for many small reads; created again after an error."""
        connection = getattr(self, "_connection", None) or psycopg.connect(
            self.uri, autocommit=True, prepare_threshold=None
        )
        try:
            yield connection
        except BaseException:
            self._connection = None
            connection.close()
            raise
        self._connection: psycopg.Connection[Any] | None = connection

    def instances(self) -> list[tuple[int, int]]:
        """See `View.instances`."""
        with self._kept() as connection:
            look = _INSTANCES.format(f"{PROGRESS}.instance", self.changefeed)
            return _told(connection.execute(look.encode()).fetchall())

    def drop(self) -> None:
        """See `View.drop`."""
        with psycopg.connect(self.uri) as connection:
            connection.execute(f'DROP SCHEMA IF EXISTS "{self.database}" CASCADE'.encode())


def view_of(uri: str, database: str, changefeed: str) -> View:
    """The view of a target's URI."""
    kinds: dict[str, type[View]] = {"sqlite": SqliteView, "postgresql": PostgresView}
    return kinds.get(uri.partition(":")[0], MysqlView)(uri, database, changefeed)


def wait_until(condition: Any, what: str, deadline_s: float = _DEADLINE_S) -> None:
    """Poll until the condition holds; TimeoutError names what was waited for."""
    until = time.monotonic() + deadline_s
    while not condition():
        if time.monotonic() > until:
            raise TimeoutError(f"{what}: not within {deadline_s:.0f} s")
        time.sleep(0.02)

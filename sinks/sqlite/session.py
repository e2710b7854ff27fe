"""A connection to a directory of SQLite files: the progress file is its main database, all others are attached."""

import os
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ordering.errors import TargetBusyError, TargetError, TargetUnreachableError
from sinks.bookkeeping.tables import PROGRESS_DATABASE
from sinks.private_files import make_directory, make_file
from sinks.rows.values import ValueRules
from sinks.sqlite import journal
from sinks.sqlite.catalog import databases_in, file_of, quoted_database
from sinks.sqlite.encoder import SqliteEncoder
from sinks.sqlite.leader_file import instances_file
from sinks.sqlite.sql_functions import Functions

BUSY_TIMEOUT_S = 30.0


class SqliteSession:
    """See `sinks.target_session.DatabaseSession`; bound values are `?`. Opens, and makes, the files when first needed.

    `attached`: the databases beside the progress.
    """

    def __init__(self, directory: Path, encoder: SqliteEncoder, rules: ValueRules) -> None:
        self.directory, self.where = directory, f"SQLite in {directory}"
        self.functions = Functions(encoder, rules)
        self.attached: list[str] = []
        self._open: sqlite3.Connection | None = None

    @property
    def connection(self) -> sqlite3.Connection:
        """The connection."""
        if self._open is None:
            self._open = self._opened()
        return self._open

    def _opened(self) -> sqlite3.Connection:
        path = file_of(self.directory, PROGRESS_DATABASE)
        try:
            make_directory(self.directory)
            make_file(path)
            connection = sqlite3.connect(
                path.absolute().as_uri(), timeout=BUSY_TIMEOUT_S, isolation_level=None, uri=True
            )
            connection.execute("PRAGMA foreign_keys = OFF")  # upstream sends the rows that its own cascaded to
            connection.execute("PRAGMA legacy_alter_table = ON")  # views keep to names, as upstream's do
            journal.prepare(connection, journal.MAIN)
        except (OSError, sqlite3.Error) as error:
            if isinstance(error, sqlite3.Error) and _is_passing(error, path):
                raise as_error(error, self.where) from error
            raise TargetError(
                f"can't open {self.directory}: {error}", hint="check that the path is writable"
            ) from error
        self.functions.register(connection)
        self.attached = []
        for database in databases_in(self.directory):
            if database != PROGRESS_DATABASE:
                self._attach(connection, database)
        return connection

    def attach(self, database: str) -> None:
        """Attach a database that has a file. Raises TargetError."""
        self._attach(self.connection, database)

    def _attach(self, connection: sqlite3.Connection, database: str) -> None:
        if database in self.attached:
            return
        path = file_of(self.directory, database).absolute()
        try:
            # a file that another leader has removed meanwhile is not made again
            connection.execute(f"ATTACH DATABASE ? AS {quoted_database(database)}", (f"{path.as_uri()}?mode=rw",))
            journal.prepare(connection, quoted_database(database))
        except sqlite3.OperationalError as error:
            if not path.exists():
                hint = "another instance has dropped the database just now, or it is a link that leads nowhere"
                raise TargetBusyError(
                    f"the file of database {database!r} is gone", where=str(path), hint=hint
                ) from error
            if _is_passing(error, path):
                raise as_error(error, self.where) from error
            hint = "SQLite attaches 10 databases at most: use several changefeeds with filter rules, or another target"
            raise TargetError(f"can't attach database {database!r}: {error}", where=self.where, hint=hint) from error
        self.attached.append(database)

    def detach(self, database: str) -> None:
        """Let go of a database's file."""
        if database in self.attached:
            self.execute(f"DETACH DATABASE {quoted_database(database)}")
            self.attached.remove(database)

    def execute(self, statement: str, parameters: Sequence[Any] = ()) -> sqlite3.Cursor:
        """Execute a statement. Raises TargetError, with what a function of ours that failed had to say."""
        try:
            return self.connection.execute(statement, tuple(parameters))
        except sqlite3.Error as error:
            refused = as_error(error, self.where)
            if told := self.functions.taken_failure():
                refused.fact, refused.hint = told, "make the rows as they are upstream, then run again"
            raise refused from error

    def run(self, sql: str, parameters: Sequence[Any] | None = None) -> int:
        """See `DatabaseSession.run`."""
        return self.execute(sql, parameters or ()).rowcount

    def query(self, sql: str, parameters: Sequence[Any] | None = None) -> list[tuple[Any, ...]]:
        """See `DatabaseSession.query`."""
        return self.execute(sql, parameters or ()).fetchall()

    def stream(self, sql: str) -> Iterator[tuple[Any, ...]]:
        """Execute a query; its rows as they come. Raises TargetError."""
        try:
            yield from self.execute(sql)
        except sqlite3.Error as error:
            raise as_error(error, self.where) from error

    def value(self, sql: str, parameters: Sequence[Any] | None = None) -> Any:
        """See `DatabaseSession.value`."""
        row = self.execute(sql, parameters or ()).fetchone()
        return None if row is None else row[0]

    def has_table(self, name: str) -> bool:
        """See `DatabaseSession.has_table`; the list of instances has a file of its own."""
        if name == "instance":
            return instances_file(self.directory).exists()
        if self._open is None and not file_of(self.directory, PROGRESS_DATABASE).exists():
            return False
        return bool(self.value("SELECT COUNT(*) FROM main.sqlite_master WHERE name = ?", (name,)))

    def begin(self) -> None:
        """See `DatabaseSession.begin`."""
        try:
            journal.begin(self.connection, self.attached, self.directory)
        except sqlite3.Error as error:
            raise as_error(error, self.where) from error

    def commit(self) -> None:
        """See `DatabaseSession.commit`."""
        self.execute("COMMIT")

    def rollback(self) -> None:
        """See `DatabaseSession.rollback`."""
        if self._open is not None and self._open.in_transaction:
            self._open.rollback()

    def save_point(self) -> None:
        """See `DatabaseSession.save_point`."""
        self.execute("SAVEPOINT group_of_rows")

    def back_to_point(self) -> None:
        """See `DatabaseSession.back_to_point`."""
        self.execute("ROLLBACK TO SAVEPOINT group_of_rows")

    def close(self) -> None:
        """See `DatabaseSession.close`."""
        if self._open is not None:
            self._open.close()
            self._open = None


def _is_passing(error: sqlite3.Error, path: Path) -> bool:
    """Whether a file that can't be opened may be opened in a moment: it is there, and this user may write to it."""
    may_pass = journal.is_held(error) or journal.meets_recovery(error)
    return may_pass and path.is_file() and os.access(path, os.R_OK | os.W_OK) and os.access(path.parent, os.W_OK)


def as_error(error: sqlite3.Error, where: str) -> TargetError:
    """The error by who must act, of a file that was opened."""
    if journal.is_held(error):
        return TargetBusyError(f"SQLite: {error}", where=where, hint="another process holds the file")
    if journal.meets_recovery(error):
        hint = "another process recovers the file after a crash, or this process has too many open files"
        return TargetBusyError(f"SQLite: {error}", where=where, hint=hint)
    if getattr(error, "sqlite_errorname", "").startswith("SQLITE_IOERR"):
        return TargetUnreachableError(f"SQLite: {error}", where=where)
    return TargetError(f"SQLite refuses: {error}", where=where)

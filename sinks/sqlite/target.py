"""The SQLite target: see the package's docstring for the layout."""

import sqlite3
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from ordering.drift import Met
from ordering.errors import TargetBusyError, TargetError, TargetUnreachableError
from ordering.events import DdlEvent, TableName
from ordering.progress import Progress
from ordering.timestamps import physical_ms
from sinks.accounting import check_changed
from sinks.ddl.known import TABLE, Definitions
from sinks.ddl.names import older_database, respelled, session_of
from sinks.ddl.statement import Circumstances, DdlKind, Statement, read_statement
from sinks.ddl_log import DdlRecord, DdlState, milliseconds_since
from sinks.instances import Instance, Instances
from sinks.private_files import make_directory, make_file
from sinks.quarantine import QuarantineTypes
from sinks.saving import Row, progress_of, select_of
from sinks.schema import Catalog, TableSchema
from sinks.spool import Group
from sinks.sqlite import checking, journal, statements
from sinks.sqlite.catalog import (
    databases_in,
    file_of,
    make_database,
    place_of,
    quoted_database,
    read_catalog,
    remove_database,
)
from sinks.sqlite.copies import delete_by_content
from sinks.sqlite.ddl import Translation
from sinks.sqlite.encode import SqliteEncoder, decode_rows
from sinks.sqlite.functions import Functions
from sinks.sqlite.leading import DIALECT, LeaderFile, SideFile, instances_file
from sinks.sqlite.reading import SqliteReader
from sinks.sqlite.site import Site
from sinks.target import PROGRESS_DATABASE, Lease, Observer, Step, Stored, Target
from sinks.values import ValueRules

BUSY_TIMEOUT_S = 30.0
_COUNTED_ROWS = 50_000
"""Of so many rows it is counted which were there before: that takes a tenth of their writing."""
_TABLES = """
CREATE TABLE IF NOT EXISTS checkpoint (
  changefeed TEXT PRIMARY KEY NOT NULL, checkpoint_ts INTEGER NOT NULL, offsets TEXT NOT NULL, state TEXT NOT NULL,
  epoch INTEGER NOT NULL, updated_at TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS window_start (
  changefeed TEXT PRIMARY KEY NOT NULL, digest TEXT NOT NULL, offsets TEXT NOT NULL, state TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS writer (
  changefeed TEXT NOT NULL, part INTEGER NOT NULL, phase TEXT NOT NULL, attempt INTEGER NOT NULL,
  PRIMARY KEY (changefeed, part));
CREATE TABLE IF NOT EXISTS ddl (
  id INTEGER PRIMARY KEY, changefeed TEXT NOT NULL, commit_ts INTEGER NOT NULL, database TEXT NOT NULL,
  name TEXT NOT NULL, statement TEXT NOT NULL, executed TEXT NOT NULL, state TEXT NOT NULL, updated_at TEXT NOT NULL,
  before_it TEXT NOT NULL DEFAULT '', duration_ms INTEGER, reason TEXT NOT NULL DEFAULT '');
"""
_ADDED = {
    "before_it": "TEXT NOT NULL DEFAULT ''",
    "duration_ms": "INTEGER",
    "reason": "TEXT NOT NULL DEFAULT ''",
}
"""Columns that the DDL log of an earlier version lacks."""
DEFINITION = "main.definition"
_DEFINITIONS = f"CREATE TABLE IF NOT EXISTS definition {TABLE}"

_QUARANTINE = QuarantineTypes("main.quarantine", short="TEXT", text="TEXT", binary="BLOB", tso="INTEGER")


def _now() -> str:
    return datetime.now(UTC).isoformat()


class SqliteTarget(Target):
    """A directory of SQLite files. DDL and progress share a transaction, so a DDL happens once or not at all."""

    encoder: SqliteEncoder

    def __init__(self, directory: Path, rules: ValueRules) -> None:
        self.directory, self._rules = directory, rules
        self.name = f"SQLite in {directory}"
        self.encoder = SqliteEncoder(rules)
        self._functions = Functions(self.encoder, rules)
        self._connection: sqlite3.Connection | None = None
        self._attached: list[str] = []
        self._leading = LeaderFile(directory)

    def opener(self) -> Callable[[], Target]:
        """See `Target.opener`."""
        return partial(SqliteTarget, self.directory, self._rules)

    def reader(self) -> SqliteReader:
        """See `Target.reader`."""
        return SqliteReader(self._run, self.catalog, self.directory)

    @property
    def _db(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = self._opened()
        return self._connection

    def connect(self) -> None:
        """Open the progress file and attach every database of the directory."""
        self._disconnect()
        self._catalog = None
        self._db.execute("SELECT 1")

    def _opened(self) -> sqlite3.Connection:
        try:
            make_directory(self.directory)
            path = file_of(self.directory, PROGRESS_DATABASE)
            make_file(path)
            connection = sqlite3.connect(
                path.absolute().as_uri(), timeout=BUSY_TIMEOUT_S, isolation_level=None, uri=True
            )
            connection.execute("PRAGMA foreign_keys = OFF")  # upstream sends the rows that its own cascaded to
            connection.execute("PRAGMA legacy_alter_table = ON")  # views keep to names, as upstream's do
            journal.prepare(connection, journal.MAIN)
            connection.executescript(_TABLES + _DEFINITIONS)
            connection.execute(_QUARANTINE.creation)
            known = [row[1] for row in connection.execute("PRAGMA table_info(ddl)")]
            for column in _ADDED.keys() - set(known):
                connection.execute(f"ALTER TABLE ddl ADD COLUMN {column} {_ADDED[column]}")
        except (OSError, sqlite3.Error) as error:
            raise TargetError(
                f"can't open {self.directory}: {error}", hint="check that the path is writable"
            ) from error
        self._functions.register(connection)
        self._attached = []
        for database in databases_in(self.directory):
            if database != PROGRESS_DATABASE:
                self._attach(connection, database)
        return connection

    def close(self) -> None:
        """See `Target.close`."""
        self._disconnect()
        self._leading.release()

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def try_lead(self, changefeed: str) -> bool:
        """See `Target.try_lead`."""
        return self._leading.try_hold(changefeed)

    def instances(self, changefeed: str) -> Instances:
        """See `Target.instances`."""
        return Instances(lambda: SideFile(self.directory, _as_error), DIALECT, changefeed)

    def running(self, changefeed: str) -> list[Instance]:
        """See `Target.running`."""
        if not instances_file(self.directory).exists():
            return []
        found = self.instances(changefeed)
        try:
            return found.all()
        finally:
            found.close()

    def check(self) -> list[str]:
        """See `Target.check`."""
        return list(checking.findings(self.directory))

    def _attach(self, connection: sqlite3.Connection, database: str) -> None:
        if database in self._attached:
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
            hint = "SQLite attaches 10 databases at most: use several changefeeds with filter rules, or another target"
            raise TargetError(f"can't attach database {database!r}: {error}", where=self.name, hint=hint) from error
        self._attached.append(database)

    def catalog(self) -> Catalog:
        """See `Target.catalog`."""
        if self._catalog is None:
            self._catalog = read_catalog(self._db, self._attached)
        return self._catalog

    def forget_catalog(self) -> None:
        """See `Target.forget_catalog`."""
        self._catalog = None

    def stored(self, changefeed: str) -> Stored | None:
        """See `Target.stored`; opens nothing that is not there."""
        path = file_of(self.directory, PROGRESS_DATABASE)
        if self._connection is None and not path.exists():
            return None
        row = self._run(select_of("checkpoint", self._start_table), (changefeed,)).fetchone()
        if row is None:
            return None
        epoch, updated_at = row[3:5]
        return Stored(progress_of(row, self.name), epoch, datetime.fromisoformat(updated_at))

    def _fence(self, holder: str) -> None:
        """No connection can be ended here: who is alive is kept out by epoch and permits."""

    def _fence_leader(self, changefeed: str) -> None:
        self._leading.hold(changefeed)

    def _release(self, holder: str) -> None:
        """Nothing is held."""

    def is_led(self, changefeed: str) -> bool:
        """See `Target.is_led`."""
        return self._leading.is_held_elsewhere(changefeed)

    _start_table = "window_start"
    _ddl_table = "ddl"
    _quarantine_types = _QUARANTINE
    _definition_table = "main.definition"

    def _log_run(self, sql: str, parameters: Sequence[object]) -> int:
        return self._run(sql, tuple(parameters)).rowcount

    def _log_query(self, sql: str, parameters: Sequence[object]) -> list[tuple[Any, ...]]:
        return self._run(sql, tuple(parameters)).fetchall()

    def _set_permits(self, changefeed: str, name: str, parts: int) -> None:
        self._run("DELETE FROM writer WHERE changefeed = ?", (changefeed,))
        for part in range(parts):
            self._run("INSERT INTO writer VALUES (?, ?, ?, 0)", (changefeed, part, name))

    def _permits(self, changefeed: str) -> list[int]:
        return [part for (part,) in self._run("SELECT part FROM writer WHERE changefeed = ?", (changefeed,))]

    def _locked_permit(self, changefeed: str, part: int) -> tuple[str, int] | None:
        select = "SELECT phase, attempt FROM writer WHERE changefeed = ? AND part = ?"
        row: tuple[str, int] | None = self._run(select, (changefeed, part)).fetchone()
        return row

    def _take_permit(self, changefeed: str, part: int, attempt: int) -> None:
        self._run("UPDATE writer SET attempt = ? WHERE changefeed = ? AND part = ?", (attempt, changefeed, part))

    def _add_row(self, changefeed: str) -> None:
        self._run("INSERT INTO checkpoint VALUES (?, 0, '{}', '{}', 0, ?)", (changefeed, _now()))

    def _raise_epoch(self, changefeed: str) -> None:
        self._run("UPDATE checkpoint SET epoch = epoch + 1 WHERE changefeed = ?", (changefeed,))

    def _begin(self) -> None:
        try:
            journal.begin(self._db, self._attached, self.directory)
        except sqlite3.Error as error:
            raise _as_error(error, self.name) from error

    def _locked_epoch(self, changefeed: str) -> int | None:
        row = self._run("SELECT epoch FROM checkpoint WHERE changefeed = ?", (changefeed,)).fetchone()
        return row[0] if row else None

    def _save_point(self) -> None:
        self._run("SAVEPOINT group_of_rows")

    def _back_to_point(self) -> None:
        self._run("ROLLBACK TO SAVEPOINT group_of_rows")

    def _commit(self) -> None:
        self._run("COMMIT")

    def _rollback(self) -> None:
        if self._connection is not None and self._connection.in_transaction:
            self._connection.rollback()

    def _put(self, row: Row, changefeed: str) -> None:
        self._run(
            "UPDATE checkpoint SET checkpoint_ts = ?, offsets = ?, state = ?, updated_at = ? WHERE changefeed = ?",
            (row.checkpoint_ts, row.offsets, row.state, _now(), changefeed),
        )

    def _delete(self, group: Group) -> Met:
        schema = self._schema(group.first.table)
        if group.first.by_content:
            return delete_by_content(self._run, place_of(schema.name), group, schema)
        deleted = self._load(group, statements.delete(schema, group.first.columns))
        return Met(deleted, deleted)

    def _write(self, group: Group) -> Met:
        schema, first = self._schema(group.first.table), group.first
        counted = group.met is not None and group.rows <= _COUNTED_ROWS
        statement = statements.insert(schema, first.columns, plain=first.plain_insert, counted=counted)
        calls, is_each = self._functions.calls(), statements.writes_each(statement)
        changed = self._load(group, statement, exactly=is_each)
        met = calls() if is_each else group.rows - changed
        return Met(met, met if counted or first.plain_insert or not is_each else group.rows)

    def _schema(self, table: TableName) -> TableSchema:
        schema = self.catalog().get(table)
        if schema is None:
            raise TargetError(f"table {table} is missing in the target", where=self.name)
        return schema

    def _load(self, group: Group, statement: str, *, exactly: bool = False) -> int:
        total = 0
        for payload in group.payloads():
            rows = decode_rows(payload)
            try:
                changed = self._db.executemany(statement, rows).rowcount
            except sqlite3.Error as error:
                refused = _as_error(error, f"{self.name}, table {group.first.table}")
                conflict = getattr(error, "sqlite_errorname", "").startswith("SQLITE_CONSTRAINT_")
                refused.hint = refused.hint or self._schema(group.first.table).conflict_hint(is_conflict=conflict)
                raise refused from error
            least = len(rows) if exactly else 0
            check_changed(max(changed, 0), len(rows), group.first.table, rows, self.name, at_least=least)
            total += max(changed, 0)
        return total

    def _run(self, statement: str, parameters: tuple[object, ...] = ()) -> sqlite3.Cursor:
        try:
            return self._db.execute(statement, parameters)
        except sqlite3.Error as error:
            refused = _as_error(error, self.name)
            if told := self._functions.taken_failure():
                refused.fact, refused.hint = told, "make the rows as they are upstream, then run again"
            raise refused from error

    def _follow(self, line: DdlRecord) -> None:
        Definitions(self._run, self._run, DEFINITION, "?").follow_made(line.sql, self.catalog().database(line.database))

    def execute_ddl(self, ddl: DdlEvent, progress: Progress, lease: Lease, observe: Observer) -> None:
        """See `Target.execute_ddl`.

        A database is a file: making or removing one can be done twice, and is done only while a transaction holds the
        epoch: a leader that was stopped and goes on would remove its successor's. The rest is one transaction with the
        progress.
        """
        statement = read_statement(respelled(ddl.statement, ddl.database, self.catalog()))
        with self._transaction():
            self.check_epoch(lease)
            entered = self._enter(ddl, "", lease.changefeed, {})
            if statement.kind is DdlKind.CREATE_DATABASE:
                make_database(self.directory, statement.database or "")
        observe(Step.DDL_RECORDED)
        begun = time.monotonic()
        if statement.kind is DdlKind.CREATE_DATABASE:
            self._attach(self._db, statement.database or "")
        if statement.kind is DdlKind.DROP_DATABASE:
            self._detach(statement.database or "")
        translation = self._translation(statement, ddl)
        try:
            with self._transaction():
                self.check_epoch(lease)
                if statement.kind is DdlKind.DROP_DATABASE:
                    remove_database(self.directory, statement.database or "")
                executed = list(translation.executed())
                observe(Step.DDL_EXECUTED)
                self._save(progress, lease)
                self._close_line(entered.id, DdlState.DONE, milliseconds_since(begun), "; ".join(executed))
        finally:
            self.forget_catalog()
        observe(Step.DDL_DONE)

    def _translation(self, statement: Statement, ddl: DdlEvent) -> Translation:
        own = self.catalog().database(ddl.database)
        placed = statement.placed(own, lambda old: older_database(statement, old, ddl, self.catalog()))
        definitions = Definitions(self._run, self._run, DEFINITION, "?")
        site = Site(self._db, self._run, definitions, self.encoder, self._rules)
        session = session_of(placed, ddl, self.catalog(), lambda: site.views(self._attached))
        circumstances = Circumstances(session, self._rules.moment(physical_ms(ddl.commit_ts)))
        return Translation(placed, self.catalog(), site, circumstances)

    def _detach(self, database: str) -> None:
        if database in self._attached:
            self._run(f"DETACH DATABASE {quoted_database(database)}")
            self._attached.remove(database)


def _as_error(error: sqlite3.Error, where: str) -> TargetError:
    code = getattr(error, "sqlite_errorname", "")
    if code.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return TargetBusyError(f"SQLite: {error}", where=where, hint="another process holds the file")
    if code.startswith("SQLITE_IOERR"):
        return TargetUnreachableError(f"SQLite: {error}", where=where)
    return TargetError(f"SQLite refuses: {error}", where=where)

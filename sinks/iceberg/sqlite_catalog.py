"""A catalog in a SQLite file: it is attached, as `ticdc_reconciler`, so names mean the same as on a server.

    BEGIN -> epoch read -> files written and synced -> BEGIN IMMEDIATE -> epoch read -> pointers, progress -> COMMIT

The file is in WAL mode: readers never wait, and while files are written the transaction holds no lock. So a leader that
was stopped there keeps nobody out; when it goes on, the epoch has changed.
"""

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ordering.errors import TargetBusyError, TargetError, TargetUnreachableError
from sinks.bookkeeping.tables import PROGRESS_DATABASE, BookTypes
from sinks.iceberg.catalogs import CatalogDatabase, creations
from sinks.leadership import EpochsAlone
from sinks.private_files import make_directory, make_file
from sinks.target_session import TargetSession

_WAIT_S = 60
sqlite3.register_converter("MOMENT", lambda text: datetime.fromisoformat(text.decode()).replace(tzinfo=UTC))


@dataclass(frozen=True, slots=True)
class SqliteCatalogs:
    """See `Catalogs`."""

    path: str
    books = BookTypes(
        short="TEXT",
        text="TEXT",
        binary="BLOB",
        tso="INTEGER",
        moment="MOMENT",
        identity="INTEGER",
        clock="((julianday('now') - 2440587.5) * 86400.0)",
        moment_format="%Y-%m-%d %H:%M:%S.%f",
    )

    def open(self) -> "SqliteCatalog":
        """See `Catalogs.open`."""
        return SqliteCatalog(self.path)

    def leadership(self, at: TargetSession[Any]) -> EpochsAlone:
        """See `Catalogs.leadership`."""
        del at
        return EpochsAlone()

    def check(self, database: CatalogDatabase) -> None:
        """See `Catalogs.check`: that it could be opened is all."""


class SqliteCatalog:
    """See `CatalogDatabase`."""

    def __init__(self, path: str) -> None:
        self.where = f"Iceberg catalog {path}"
        self._changes = 0
        """What the connection had changed when its transaction began."""
        try:
            make_directory(Path(path).parent)
            make_file(Path(path))
            self._connection = sqlite3.connect(
                ":memory:",
                timeout=_WAIT_S,
                isolation_level=None,
                detect_types=sqlite3.PARSE_DECLTYPES,
                check_same_thread=False,  # the list of instances is closed by another thread than wrote it
            )
            self._connection.execute(f"ATTACH ? AS {PROGRESS_DATABASE}", (path,))
            self._connection.execute(f"PRAGMA {PROGRESS_DATABASE}.synchronous = FULL")
        except (OSError, sqlite3.Error) as error:
            raise TargetUnreachableError(f"can't open the catalog: {error}", where=self.where) from error

    def make_catalog(self) -> None:
        """See `CatalogDatabase.make_catalog`; WAL stands in the file."""
        mode = self.value(f"PRAGMA {PROGRESS_DATABASE}.journal_mode = WAL")
        if mode != "wal":
            hint = "put it on a local disk: network file systems have no shared memory"
            raise TargetError(f"the catalog's journal mode is {mode}, not wal", where=self.where, hint=hint)
        for statement in creations():
            self.run(statement)

    def changefeeds(self) -> None:
        """See `CatalogDatabase.changefeeds`."""

    def make_alone(self) -> None:
        """See `CatalogDatabase.make_alone`: the file's lock does it."""

    def _execute(self, sql: str, parameters: Sequence[Any] | None) -> sqlite3.Cursor:
        try:
            return self._connection.execute(sql.replace("%s", "?"), list(parameters or ()))
        except sqlite3.OperationalError as error:
            if "locked" in str(error) or "busy" in str(error):
                raise TargetBusyError(f"the catalog is locked: {error}", where=self.where) from error
            raise TargetError(f"the catalog refuses: {error}", where=self.where) from error
        except sqlite3.Error as error:
            raise TargetError(f"the catalog refuses: {error}", where=self.where) from error

    def run(self, sql: str, parameters: Sequence[Any] | None = None) -> int:
        """See `DatabaseSession.run`."""
        return self._execute(sql, parameters).rowcount

    def query(self, sql: str, parameters: Sequence[Any] | None = None) -> list[tuple[Any, ...]]:
        """See `DatabaseSession.query`."""
        return self._execute(sql, parameters).fetchall()

    def value(self, sql: str, parameters: Sequence[Any] | None = None) -> Any:
        """See `DatabaseSession.value`."""
        rows = self.query(sql, parameters)
        return rows[0][0] if rows else None

    def has_table(self, name: str) -> bool:
        """See `DatabaseSession.has_table`."""
        look = f"SELECT COUNT(*) FROM {PROGRESS_DATABASE}.sqlite_master WHERE type = 'table' AND name = %s"  # noqa: S608
        return bool(self.value(look, (name,)))

    def begin(self) -> None:
        """See `DatabaseSession.begin`."""
        self._changes = self._connection.total_changes
        self.run("BEGIN")

    def begin_alone(self) -> None:
        """See `CatalogDatabase.begin_alone`."""
        self.run("BEGIN IMMEDIATE")

    def begin_to_write(self) -> bool:
        """See `CatalogDatabase.begin_to_write`."""
        if self._connection.total_changes != self._changes:
            return False  # it is held since the first change
        self.run("ROLLBACK")
        self.begin_alone()
        return True

    def commit(self) -> None:
        """See `DatabaseSession.commit`."""
        self.run("COMMIT")

    def rollback(self) -> None:
        """See `DatabaseSession.rollback`."""
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    def save_point(self) -> None:
        """See `DatabaseSession.save_point`: never called."""

    def back_to_point(self) -> None:
        """See `DatabaseSession.back_to_point`: never called."""

    def close(self) -> None:
        """See `DatabaseSession.close`."""
        self._connection.close()

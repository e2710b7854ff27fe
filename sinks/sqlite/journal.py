"""How commits over several files stay atomic: every file has a rollback journal, and what is written is synced.

In any other journal mode each file commits by itself (SQLite documentation, "Atomic Commit In SQLite", section 5, and
"Write-Ahead Logging", disadvantage 3): after a full disk or a crash the progress may be there without its rows. WAL
stands in the file, so whoever opens it may have set it, also while we run; the other modes are a connection's own.
"""

import sqlite3
from collections.abc import Iterable
from pathlib import Path

from ordering.errors import TargetError
from sinks.bookkeeping.tables import PROGRESS_DATABASE
from sinks.sqlite.catalog import file_of, quoted_database

_ATOMIC = {"delete", "truncate", "persist"}
MAIN = "main"
_WAL = 2
"""The file format version of a file in WAL mode (SQLite documentation, "Database File Format", section 1.3)."""
_VERSION_AT = 18


def is_held(error: sqlite3.Error) -> bool:
    """Whether another connection holds the file."""
    return getattr(error, "sqlite_errorname", "").startswith(("SQLITE_BUSY", "SQLITE_LOCKED"))


def meets_recovery(error: BaseException) -> bool:
    """Whether a file can't be opened, as where another process rolls the same torn commit over several files back.

    Of two that do so at once, readers too, one may find that a journal is gone that was there a moment before
    (`pager_delsuper` in SQLite's pager.c).
    """
    return getattr(error, "sqlite_errorname", "").startswith("SQLITE_CANTOPEN")


def prepare(connection: sqlite3.Connection, schema: str) -> None:
    """Let a file that was just opened be synced at each commit, however SQLite was built. `schema`: quoted."""
    connection.execute(f"PRAGMA {schema}.synchronous = FULL")
    if _mode(connection, schema) not in _ATOMIC:
        # who else has the file open keeps it from being changed: the next transaction's `begin` finds that
        _set_back(connection, schema)


def begin(connection: sqlite3.Connection, databases: Iterable[str], directory: Path) -> None:
    """Begin a transaction that commits in all files or in none: with it each file is locked, so its mode stays.

    Raises TargetError for a file whose mode can't be set back, sqlite3.Error.
    """
    files = {MAIN: PROGRESS_DATABASE, **{quoted_database(name): name for name in databases}}
    while wrong := _begun(connection, files):
        for schema in wrong:
            if not _set_back(connection, schema):
                raise _refused(_mode(connection, schema), file_of(directory, files[schema]))


def _begun(connection: sqlite3.Connection, schemas: Iterable[str]) -> list[str]:
    """Begin; rolled back again where a file is in a mode that is not atomic: which are."""
    connection.execute("BEGIN IMMEDIATE")
    wrong = [schema for schema in schemas if _mode(connection, schema) not in _ATOMIC]
    if wrong:
        connection.execute("ROLLBACK")
    return wrong


def in_wal_mode(path: Path) -> bool:
    """Whether a file says that it is in WAL mode; reads the file's head alone."""
    with path.open("rb") as file:
        head = file.read(_VERSION_AT + 2)
    return head[_VERSION_AT:] == bytes([_WAL, _WAL])


def _mode(connection: sqlite3.Connection, schema: str) -> str:
    (mode,) = connection.execute(f"PRAGMA {schema}.journal_mode").fetchone()
    return str(mode)


def _set_back(connection: sqlite3.Connection, schema: str) -> bool:
    """Set the mode to DELETE; False while another connection has the file open."""
    try:
        (mode,) = connection.execute(f"PRAGMA {schema}.journal_mode = DELETE").fetchone()
    except sqlite3.OperationalError as error:
        if is_held(error):
            return False
        raise
    return mode in _ATOMIC


def _refused(mode: str, path: Path) -> TargetError:
    return TargetError(
        f"{path.name} is in journal mode {mode}, in which a commit over several files is not atomic, and another"
        " connection keeps it from being changed",
        where=str(path),
        hint=f"close every other program that has the file open, then run: sqlite3 '{path}' 'PRAGMA journal_mode ="
        " DELETE'; and let no program set it to WAL again",
    )

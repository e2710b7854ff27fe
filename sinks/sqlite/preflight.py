"""What `check` looks for in a directory of SQLite files, changing nothing."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from ordering.errors import TargetError
from ordering.events import TableName
from sinks.bookkeeping.tables import PROGRESS_DATABASE
from sinks.rows.schema import trigger_acts
from sinks.sqlite import journal
from sinks.sqlite.catalog import databases_in, file_of

MOST_ATTACHED = 10


def findings(directory: Path) -> Iterator[str]:
    """Lines about what was found. Raises TargetError for the first thing that writing can't do with."""
    _check_place(directory)
    if not directory.exists():
        yield f"{directory} will be made"
        return
    databases = [name for name in databases_in(directory) if name != PROGRESS_DATABASE]
    if len(databases) > MOST_ATTACHED:
        raise TargetError(
            f"{directory} holds {len(databases)} databases, SQLite attaches {MOST_ATTACHED} at most",
            hint="use several changefeeds with filter rules and directories of their own, or another target",
        )
    yield f"{directory} holds {len(databases)} databases"
    for path in sorted(directory.glob("*.sqlite")):
        if journal.in_wal_mode(path):
            yield f"{path.name} is in WAL mode: a run sets it back to DELETE, or ends if another program has it open"
    yield from _triggers(directory, databases)


def _triggers(directory: Path, databases: list[str]) -> Iterator[str]:
    for database in databases:
        with closing(sqlite3.connect(file_of(directory, database))) as connection:
            found = connection.execute("SELECT name, tbl_name FROM sqlite_master WHERE type = 'trigger'").fetchall()
        yield from (trigger_acts(TableName(database, table), name) for name, table in found)


def _check_place(directory: Path) -> None:
    place = directory
    while not place.exists() and place != place.parent:
        place = place.parent
    if not place.is_dir() or not os.access(place, os.W_OK | os.X_OK):
        raise TargetError(f"can't write to {directory}", where=str(place), hint="name a directory to write to")

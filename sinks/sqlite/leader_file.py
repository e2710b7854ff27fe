"""Who leads where the target is a directory: the holder of a lock file, which the kernel frees when a process ends.

The list of instances is a SQLite file of its own, so that an instance can say that it lives while the leader's
transaction holds the others. Both end in no `.sqlite`: they are no databases of the target.
"""

import fcntl
import os
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ordering.errors import TargetError
from sinks.bookkeeping.instances import InstanceSql
from sinks.bookkeeping.tables import PROGRESS_DATABASE
from sinks.private_files import make_directory, make_file

CLOCK = "((julianday('now') - 2440587.5) * 86400)"
_BUSY_S = 5.0


def instances_file(directory: Path) -> Path:
    """Where the list of instances is."""
    return directory / f"{PROGRESS_DATABASE}.instances"


class SideFile:
    """A connection to the list of instances; makes the file where it is missing."""

    def __init__(self, directory: Path, as_error: Callable[[sqlite3.Error, str], TargetError]) -> None:
        self._where, self._as_error = str(instances_file(directory)), as_error
        try:
            make_directory(directory)
            make_file(instances_file(directory))
            self._connection = sqlite3.connect(
                self._where, timeout=_BUSY_S, isolation_level=None, check_same_thread=False
            )
        except (OSError, sqlite3.Error) as error:
            raise TargetError(f"can't open {self._where}: {error}") from error
        self.run("PRAGMA synchronous = OFF")  # it tells of living processes only: a machine's crash ends them all
        self.run(InstanceSql("instance", CLOCK).creation)

    def _executed(self, sql: str, parameters: Sequence[Any] | None) -> sqlite3.Cursor:
        try:
            return self._connection.execute(sql.replace("%s", "?"), tuple(parameters or ()))
        except sqlite3.Error as error:
            raise self._as_error(error, self._where) from error

    def run(self, sql: str, parameters: Sequence[Any] | None = None) -> int:
        """See `Beating.run`."""
        return self._executed(sql, parameters).rowcount

    def query(self, sql: str, parameters: Sequence[Any] | None = None) -> list[tuple[Any, ...]]:
        """See `Beating.query`."""
        return self._executed(sql, parameters).fetchall()

    def close(self) -> None:
        """See `Beating.close`."""
        self._connection.close()


class LeaderFile:
    """The lock of a changefeed's leader. See `sinks.leadership.Leadership`.

    No connection can be ended here: tasks that live are kept out by their permits.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._held: tuple[str, int] | None = None

    def try_lead(self, changefeed: str) -> bool:
        """See `Leadership.try_lead`: hold the lock unless a living process does; whether it is held now."""
        if self._held is not None and self._held[0] == changefeed:
            return True
        try:
            make_directory(self._directory)
            descriptor = os.open(self._path(changefeed), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise TargetError(f"can't open {self._path(changefeed)}: {error.strerror}") from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return False
        if not self._is_the_file(descriptor, changefeed):  # somebody put another one in its place meanwhile
            os.close(descriptor)
            return False
        self.close()
        self._held = (changefeed, descriptor)
        return True

    def take(self, changefeed: str) -> None:
        """See `Leadership.take`: from whoever has it. A stopped process keeps a file that nobody asks for any more."""
        while not self.try_lead(changefeed):
            self._path(changefeed).unlink(missing_ok=True)

    def is_led(self, changefeed: str) -> bool:
        """See `Leadership.is_led`: whether a living process holds the lock; changes nothing."""
        if self._held is not None and self._held[0] == changefeed:
            return False
        try:
            descriptor = os.open(self._path(changefeed), os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise TargetError(f"can't open {self._path(changefeed)}: {error.strerror}") from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
        return False

    def fence(self, holder: str) -> None:
        """See `Leadership.fence`: a task holds nothing."""

    def release(self, holder: str) -> None:
        """See `Leadership.release`: a task holds nothing."""

    def close(self) -> None:
        """See `Leadership.close`."""
        if self._held is not None:
            os.close(self._held[1])
            self._held = None

    def _path(self, changefeed: str) -> Path:
        return self._directory / f"{PROGRESS_DATABASE}.{changefeed}.leader"

    def _is_the_file(self, descriptor: int, changefeed: str) -> bool:
        try:
            return os.path.samestat(os.fstat(descriptor), self._path(changefeed).stat())
        except FileNotFoundError:
            return False

"""Who leads a changefeed into SQLite: nothing else tells, for a process holds no lock between two transactions.

Every leader shares a lock on a file beside the databases until its connection is closed; the kernel drops it when the
process ends, however it ends. Who gets the lock alone knows that none is there.
"""

import fcntl
from pathlib import Path
from typing import IO

import xxhash

from ordering.errors import TargetError


class LeaderLock:
    """The lock of one target."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._held: dict[str, IO[bytes]] = {}

    def hold(self, changefeed: str) -> None:
        """Be one of those who lead it, or led it. Raises TargetError while a decision about it is being made."""
        if changefeed in self._held:
            return
        file = self._opened(changefeed)
        if not _locks(file, fcntl.LOCK_SH):
            file.close()
            raise TargetError(f"changefeed {changefeed!r} is being changed by an operator", where=str(self._directory))
        self._held[changefeed] = file

    def is_held_elsewhere(self, changefeed: str) -> bool:
        """Whether another one leads it, or led it and is still there."""
        with self._opened(changefeed) as file:
            return not _locks(file, fcntl.LOCK_EX)

    def release(self) -> None:
        """Lead nothing any more."""
        for file in self._held.values():
            file.close()
        self._held.clear()

    def _opened(self, changefeed: str) -> IO[bytes]:
        path = self._directory / f"ticdc_reconciler.{xxhash.xxh3_64_hexdigest(changefeed.encode())}.leader"
        try:
            return path.open("ab")
        except OSError as error:
            raise TargetError(f"can't open {path}: {error}", hint="check that the path is writable") from error


def _locks(file: IO[bytes], kind: int) -> bool:
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True

"""Locks between processes: two test runs, or a demo beside them, share one cache and one set of ports.

The kernel drops a lock when its holder ends, however it ends, so no stale lock file can block anyone. Servers do not
inherit the descriptors (Python closes them on exec), so a lock never lives as long as a server by accident.
"""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


@contextmanager
def file_lock(path: Path) -> Iterator[None]:
    """Hold `path` exclusively for the block; waits for whoever holds it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def try_lock(path: Path) -> IO[str] | None:
    """The open file that holds the lock until it is closed, or None where someone else holds it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return _locked(path.open("w"))


def try_lock_existing(path: Path) -> IO[str] | None:
    """As `try_lock`, of a file that is there. Raises OSError where it is not, or is not ours to lock."""
    return _locked(path.open("r+"))


def _locked(file: IO[str]) -> IO[str] | None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
    return file

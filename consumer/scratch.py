"""A directory for temporary files, one a process, that a crash does not leave behind for ever.

Spooled rows and Spark's shuffle lie in it. A process that was killed can't remove its own: the next one that starts
does, told by the lock that the dead no longer hold.
"""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from consumer.locks import try_lock

_PREFIX = "ticdc-reconciler-scratch-"
_LOCK = "lock"


@contextmanager
def scratch_directory() -> Iterator[Path]:
    """Make this process's directory and let `tempfile` use it; remove it at the end, and those of the dead now."""
    root = Path(tempfile.gettempdir())
    _remove_leftovers(root)
    directory = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=root))
    lock = try_lock(directory / _LOCK)
    before, tempfile.tempdir = tempfile.tempdir, str(directory)
    try:
        yield directory
    finally:
        tempfile.tempdir = before
        shutil.rmtree(directory, ignore_errors=True)
        if lock is not None:
            lock.close()


def _remove_leftovers(root: Path) -> None:
    for directory in root.glob(f"{_PREFIX}*"):
        # one that is just being made has no lock file yet
        lock = try_lock(directory / _LOCK) if (directory / _LOCK).exists() else None
        if lock is not None:
            shutil.rmtree(directory, ignore_errors=True)
            lock.close()

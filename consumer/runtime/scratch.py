"""A directory for temporary files, one a process, that a crash does not leave behind for ever.

Spooled rows and Spark's shuffle lie in it. Several changefeeds of a process share it: `tempfile` knows one place only.
A process that was killed can't remove its own: the next one that starts does, told by the lock that the dead no longer
hold.
"""

import atexit
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import IO

from consumer.runtime.file_locks import try_lock, try_lock_existing
from ordering.errors import LocalDiskError

_PREFIX = "ticdc-reconciler-scratch-"
_NEW = ".ticdc-reconciler-new-"
"""It gets the name above once its lock is held: until then another process would take it for one of the dead."""

_LOCK = "lock"


@dataclass
class _Scratch:
    """The process's directory, and how many use it."""

    users: int = 0
    directory: Path = Path()
    held: IO[str] | None = None
    before: str | None = None
    guard: Lock = field(default_factory=Lock)

    def enter(self) -> Path:
        with self.guard:
            if self.users == 0:
                self._make()
                self.before, tempfile.tempdir = tempfile.tempdir, str(self.directory)
            self.users += 1
            return self.directory

    def _make(self) -> None:
        try:
            self.directory, self.held = _made(Path(tempfile.gettempdir()))
        except OSError as error:
            hint = "make room there, or let TMPDIR name a directory that can be written to"
            raise LocalDiskError(f"there is no place for temporary files: {error}", hint=hint) from error

    def leave(self) -> None:
        with self.guard:
            self.users -= 1
            if self.users:
                return
            tempfile.tempdir = self.before
            shutil.rmtree(self.directory, ignore_errors=True)
            if self.held is not None:
                self.held.close()


_OURS = _Scratch()


class _Beside:
    """The process's directories below places that a config names, which stay until it ends."""

    def __init__(self) -> None:
        self._made: dict[Path, tuple[Path, IO[str] | None]] = {}
        self._guard = Lock()

    def below(self, root: Path) -> Path:
        with self._guard:
            known = self._made.get(root)
            if known is None or not known[0].is_dir():
                known = self._made[root] = _made(root)
                atexit.register(shutil.rmtree, known[0], ignore_errors=True)
            return known[0]


_BESIDE = _Beside()


def scratch_below(root: Path) -> Path:
    """This process's directory below another place than `tempfile`'s; it goes as that does. Raises OSError."""
    return root if root == _OURS.directory else _BESIDE.below(root)


@contextmanager
def scratch_directory() -> Iterator[Path]:
    """Make this process's directory and let `tempfile` use it; whoever leaves last removes it.

    Those that dead processes left are removed now. Raises LocalDiskError.
    """
    directory = _OURS.enter()
    try:
        yield directory
    finally:
        _OURS.leave()


def _made(root: Path) -> tuple[Path, IO[str] | None]:
    """A new directory below a place, and the lock on it; those of dead processes are removed. Raises OSError."""
    _remove_leftovers(root)
    made = Path(tempfile.mkdtemp(prefix=_NEW, dir=root))
    held = try_lock(made / _LOCK)
    return made.rename(root / f"{_PREFIX}{made.name.removeprefix(_NEW)}"), held


def _remove_leftovers(root: Path) -> None:
    for directory in root.glob(f"{_PREFIX}*"):
        with suppress(OSError):  # another user's, or another process removes it just now
            lock = try_lock_existing(directory / _LOCK)
            if lock is not None:
                shutil.rmtree(directory, ignore_errors=True)
                lock.close()

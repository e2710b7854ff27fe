"""Files that hold rows, and the directories that we make for them: their owner alone may read them.

A mode is set where a file is made, whatever the umask is; a file that is there keeps its own. SQLite gives its journals
the mode of their database (SQLite source, `findCreateFileMode` in os_unix.c).
"""

import os
from pathlib import Path
from typing import IO, Any

_FILE, _DIRECTORY = 0o600, 0o700


def make_file(path: Path) -> None:
    """Make an empty file where there is none. Raises OSError.

    One that is there is not even opened: closing it would free SQLite's locks on it (SQLite documentation, "How To
    Corrupt An SQLite Database File", section 2.2).
    """
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _FILE))
    except FileExistsError:
        return


def make_directory(path: Path) -> None:
    """Make a directory, and those above it, where there are none. Raises OSError."""
    if not path.parent.exists():
        make_directory(path.parent)
    path.mkdir(mode=_DIRECTORY, exist_ok=True)


def open_file(path: Path, mode: str, **more: Any) -> IO[Any]:
    """Open a file as `Path.open` does. Raises OSError."""
    return open(path, mode, opener=_opener, **more)


def _opener(path: str, flags: int) -> int:
    return os.open(path, flags, _FILE)

"""Files of a directory on a disk. Links are refused: they lead out of it, or round in circles; TiCDC makes none."""

import os
import stat
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ordering.errors import InputError

_LINK = "TiCDC makes none: mount what it leads to, or name the real directory in the config"


def listed(root: Path, directory: str) -> Iterator[Mapping[str, Any]]:
    """The files below a directory as a store lists objects. Raises InputError and OSError.

    What vanishes meanwhile is not there; a name that is no text is none of TiCDC's.
    """
    waiting = [directory]
    while waiting:
        here = waiting.pop()
        try:
            found = os.scandir(root / here)
        except (FileNotFoundError, NotADirectoryError):
            continue
        with found as entries:
            for entry in entries:
                path = f"{here}/{entry.name}" if here else entry.name
                about = _about(entry)
                if about is None or not _is_text(entry.name):
                    continue
                if stat.S_ISLNK(about.st_mode):
                    raise InputError("a symbolic link is not followed", where=str(root / path), hint=_LINK)
                if stat.S_ISDIR(about.st_mode):
                    waiting.append(path)
                elif stat.S_ISREG(about.st_mode):
                    modified = datetime.fromtimestamp(about.st_mtime, UTC)
                    yield {"path": path, "size": about.st_size, "last_modified": modified}


def _about(entry: "os.DirEntry[str]") -> os.stat_result | None:
    try:
        return entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return None


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def content_of(root: Path, path: str, most: int) -> tuple[bytes, int]:
    """A file's content, of which no more than `most` bytes and one are read, and when it was written, in ms since 1970.

    Raises InputError and OSError.
    """
    whole = root / path
    if whole.parent.resolve() != root.resolve() / Path(path).parent or whole.is_symlink():
        raise InputError("a symbolic link is not followed", where=str(whole), hint=_LINK)
    with open(whole, "rb", opener=_unlinked) as file:
        about = os.fstat(file.fileno())
        if not stat.S_ISREG(about.st_mode):
            raise InputError("a file was expected", where=str(whole))
        return file.read(most + 1), int(about.st_mtime * 1000)


def _unlinked(path: str, flags: int) -> int:
    """Open a file that is no link, and no pipe that nobody writes to."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)

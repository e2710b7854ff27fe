"""The warehouse's files as pyiceberg writes them: synced before a commit names them, and removed if none does."""

import os
from pathlib import Path

from pyiceberg.io.pyarrow import PyArrowFile, PyArrowFileIO

_SCHEME = "file://"


class LakeFiles(PyArrowFileIO):  # type: ignore[misc]  # pyiceberg's types are not looked at
    """Files in a directory of this machine, and which of them no commit names yet. Raises OSError."""

    def __init__(self, warehouse: Path) -> None:
        super().__init__()
        self._warehouse = warehouse.absolute()
        self._new: list[Path] = []

    def new_output(self, location: str) -> PyArrowFile:
        """A file to write."""
        self._new.append(local_path(location))
        return super().new_output(location)

    def sync(self) -> None:
        """Have the new files, and the directories that name them, on disk."""
        places: set[Path] = {self._warehouse, self._warehouse.parent}
        for path in self._new:
            _sync(path)
            places.update(parent for parent in path.parents if parent.is_relative_to(self._warehouse))
        for place in places if self._new else ():
            _sync(place)

    def keep(self) -> None:
        """A commit names the new files now, or may do so."""
        self._new.clear()

    def discard(self) -> None:
        """No commit will name the new files."""
        while self._new:
            self._new.pop().unlink(missing_ok=True)


def local_path(location: str) -> Path:
    """Where a file of the warehouse is."""
    return Path(location.removeprefix(_SCHEME))


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

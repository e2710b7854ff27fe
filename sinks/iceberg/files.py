"""The warehouse's files as pyiceberg writes them: kept before a commit names them, and removed if none does."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import structlog
from pyiceberg.io import InputFile, OutputFile
from pyiceberg.io.pyarrow import PyArrowFile, PyArrowFileIO

from sinks.iceberg.objects import StoreFiles
from sinks.private_files import make_directory
from sinks.uri import ObjectStore, WarehouseFile

log = structlog.get_logger()
_SCHEME = "file://"


class LakeFiles(PyArrowFileIO):  # type: ignore[misc]  # pyiceberg's types are not looked at
    """Files in a directory of this machine, and which of them no commit names yet. Raises OSError."""

    def __init__(self, warehouse: Path) -> None:
        super().__init__()
        self._warehouse = warehouse.absolute()
        self.root = f"{_SCHEME}{self._warehouse}"
        self._new: list[Path] = []

    def make(self) -> None:
        """Make the directory where it is missing."""
        make_directory(self._warehouse)

    def new_input(self, location: str) -> PyArrowFile:
        """A file to read."""
        _local(location)
        return super().new_input(location)

    def new_output(self, location: str) -> PyArrowFile:
        """A file to write."""
        self._new.append(_local(location))
        return super().new_output(location)

    def delete(self, location: str | InputFile | OutputFile) -> None:
        """Remove a file, if it is there."""
        self.remove([location if isinstance(location, str) else location.location])

    def remove(self, locations: Sequence[str]) -> None:
        """Remove files, where they are there."""
        for location in locations:
            _local(location).unlink(missing_ok=True)

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
        """No commit will name the new files. What can't be removed stays until it expires."""
        left, self._new, failed = self._new, [], []
        for path in left:
            try:
                path.unlink(missing_ok=True)
            except OSError as error:  # what made us discard them is told by its own error
                failed.append(error)
        if failed:
            log.warning("files that no table names stay in the warehouse", files=len(failed), why=str(failed[0]))

    def place(self, location: str) -> str:
        """A location as `listed` shows it."""
        return f"{_SCHEME}{_local(location)}"

    def listed(self, location: str) -> Iterator[WarehouseFile]:
        """The files below a directory."""
        for path in _local(location).rglob("*"):
            if path.is_file():
                found = path.stat()
                yield WarehouseFile(f"{_SCHEME}{path}", found.st_size, found.st_mtime)

    def written_s(self, location: str) -> float:
        """When a file was written, in seconds since 1970."""
        return _local(location).stat().st_mtime


def files_of(warehouse: str, objects: ObjectStore | None) -> LakeFiles | StoreFiles:
    """The files of a warehouse: a directory, or a place of an object store."""
    return LakeFiles(Path(warehouse)) if objects is None else StoreFiles(warehouse, objects)


def _local(location: str) -> Path:
    """Where a file of the warehouse is."""
    path = location.removeprefix(_SCHEME)
    if "://" in path:
        raise FileNotFoundError(f"{location[:300]} is not of this machine: the warehouse was another one")
    return Path(path)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

"""The warehouse's files in an object store: an object is there whole when its stream is closed, or not at all."""

from collections.abc import Iterator, Sequence
from io import BytesIO
from types import TracebackType

import pyarrow as pa
import structlog
from pyiceberg.io import FileIO, InputFile, OutputFile

from sinks.uri import ObjectStore, WarehouseFile

log = structlog.get_logger()


class StoreFiles(FileIO):  # type: ignore[misc]  # pyiceberg's types are not looked at
    """Objects below a place of a store, and which of them no commit names yet. Raises OSError."""

    def __init__(self, root: str, objects: ObjectStore) -> None:
        super().__init__()
        self.root, self._objects = root.rstrip("/"), objects
        self._new: list[str] = []

    def make(self) -> None:
        """Nothing: a store has no directories."""

    def new_input(self, location: str) -> InputFile:
        """An object to read."""
        return _ObjectRead(location, self._objects, self._path(location))

    def new_output(self, location: str) -> OutputFile:
        """An object to write."""
        self._new.append(self._path(location))
        return _ObjectWritten(location, self._objects, self._new[-1])

    def delete(self, location: str | InputFile | OutputFile) -> None:
        """Delete an object, if it is there."""
        self.remove([location if isinstance(location, str) else location.location])

    def remove(self, locations: Sequence[str]) -> None:
        """Delete objects, where they are there."""
        self._objects.delete([self._path(one) for one in locations])

    def sync(self) -> None:
        """Nothing: what a store has answered to, it keeps."""

    def keep(self) -> None:
        """A commit names the new objects now, or may do so."""
        self._new.clear()

    def discard(self) -> None:
        """No commit will name the new objects. Where the store does not answer, they stay until they expire."""
        left, self._new = self._new, []
        if not left:
            return
        try:
            self._objects.delete(left)
        except OSError as error:  # what made us discard them is told by its own error
            log.warning("files that no table names may stay in the warehouse", files=len(left), why=str(error))

    def place(self, location: str) -> str:
        """A location as `listed` shows it."""
        return f"{self.root}/{self._path(location)}"

    def _path(self, location: str) -> str:
        path = location.removeprefix(f"{self.root}/")
        if path == location:
            raise FileNotFoundError(f"{location[:300]} is not below {self.root}: the warehouse was another one")
        return path

    def listed(self, location: str) -> Iterator[WarehouseFile]:
        """The objects below a location, or below the root."""
        for found in self._objects.listed("" if location == self.root else self._path(location)):
            yield found._replace(place=f"{self.root}/{found.place}")

    def written_s(self, location: str) -> float:
        """When an object was written, in seconds since 1970, by the store's clock."""
        return self._objects.written_s(self._path(location))


class _ObjectRead(InputFile):  # type: ignore[misc]
    """An object, read as a whole: Parquet and Avro are read at several places."""

    def __init__(self, location: str, objects: ObjectStore, path: str) -> None:
        super().__init__(location)
        self._objects, self._path = objects, path

    def __len__(self) -> int:
        return len(self._objects.read(self._path))

    def exists(self) -> bool:
        """Whether it is there."""
        try:
            self._objects.written_s(self._path)
        except FileNotFoundError:
            return False
        return True

    def open(self, seekable: bool = True) -> pa.BufferReader:  # pyiceberg's signature
        """Its content."""
        del seekable
        return pa.BufferReader(self._objects.read(self._path))


class _ObjectWritten(OutputFile):  # type: ignore[misc]
    """An object that is being written."""

    def __init__(self, location: str, objects: ObjectStore, path: str) -> None:
        super().__init__(location)
        self._objects, self._path = objects, path
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def exists(self) -> bool:
        """See `_ObjectRead.exists`."""
        return bool(self.to_input_file().exists())

    def to_input_file(self) -> InputFile:
        """To read it."""
        return _ObjectRead(self.location, self._objects, self._path)

    def create(self, overwrite: bool = False) -> "_Stream":  # pyiceberg's signature
        """A stream whose end writes the object; names are never used twice."""
        del overwrite
        return _Stream(self)

    def put(self, content: bytes) -> None:
        """Write it."""
        self._objects.write(self._path, content)
        self._size = len(content)


class _Stream(BytesIO):
    """Collects an object. Where its context ends with an error, nothing is written."""

    def __init__(self, to: _ObjectWritten) -> None:
        super().__init__()
        self._to: _ObjectWritten | None = to

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if kind is not None:
            self._to = None
        self.close()

    def close(self) -> None:
        """Write the object, once."""
        to, self._to = self._to, None
        if to is not None and not self.closed:
            to.put(self.getvalue())
        super().close()

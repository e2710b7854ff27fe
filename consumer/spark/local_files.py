"""Rows in files of ours, where all of Spark's processes run on one machine.

What passes through Spark then is where they lie. Otherwise each block goes from a worker to the JVM, which compresses
and writes it, and back to a worker; and each chunk through the JVM to the driver. An attempt of a task writes a file of
its own, so what a lost attempt has left is never read.
"""

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import IO, Any, NamedTuple, Self
from uuid import uuid4
from weakref import finalize

from xxhash import xxh3_64_intdigest

from consumer.runtime.scratch import scratch_below
from consumer.tasks.shuffle_blocks import Record
from sinks.private_files import open_file
from sinks.rows.chunk import Chunk

_LEAST_BYTES = 1024
"""Fewer cost less on their way through Spark."""


class PlaceInFile(NamedTuple):
    """Where some bytes lie."""

    path: str
    at: int
    size: int
    digest: int
    """Of what was written: a file system may give back something else, and no error."""


@dataclass(frozen=True, slots=True)
class PlacedChunk:
    """A chunk whose payload lies in a file."""

    chunk: Chunk
    place: PlaceInFile


@dataclass(frozen=True, slots=True)
class LocalFiles:
    """A directory for the files of one job."""

    directory: str

    def kept_with(self, owner: object) -> None:
        """Be removed once nobody has this object any more."""
        finalize(owner, shutil.rmtree, self.directory, ignore_errors=True)

    def stored(self, records: Iterable[Record]) -> Iterator[Record]:
        """The records of a reading task, with places instead of blocks. Raises OSError."""
        with _Writer(self.directory) as writer:
            for bucket, payload in records:
                yield bucket, writer.placed(payload) if _is_large(payload) else payload

    @staticmethod
    def fetched(records: Iterable[Record]) -> Iterator[Record]:
        """The records as the reading tasks made them. Raises as `_Reader.bytes_at`."""
        with _Reader() as reader:
            for bucket, payload in records:
                yield bucket, reader.bytes_at(payload) if isinstance(payload, PlaceInFile) else payload

    def stored_chunks(self, outcomes: Iterable[Any]) -> Iterator[Any]:
        """The outcomes of an ordering task, with the payloads of chunks in a file. Raises OSError."""
        with _Writer(self.directory) as writer:
            for one in outcomes:
                if isinstance(one, Chunk) and _is_large(one.payload):
                    yield PlacedChunk(replace(one, payload=b""), writer.placed(one.payload))
                else:
                    yield one


def fetched_chunks(outcomes: Iterable[Any]) -> Iterator[Any]:
    """The outcomes as the ordering tasks made them; the files are gone afterwards. Raises as `_Reader.bytes_at`."""
    with _Reader() as reader:
        for one in outcomes:
            yield replace(one.chunk, payload=reader.bytes_at(one.place)) if isinstance(one, PlacedChunk) else one
        reader.remove()


@dataclass(slots=True)
class _Writer:
    directory: str
    _file: IO[bytes] | None = None
    _path: str = ""
    _at: int = 0

    def placed(self, payload: bytes) -> PlaceInFile:
        if self._file is None:
            self._path = str(Path(self.directory) / uuid4().hex)
            self._file = open_file(Path(self._path), "xb")
        self._file.write(payload)
        self._file.flush()
        self._at += len(payload)
        digest = xxh3_64_intdigest(payload)
        return PlaceInFile(self._path, self._at - len(payload), len(payload), digest)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._file is None:
            return
        with ExitStack() as closing:
            if kind is not None:  # of a task that fails nothing is read, and the next attempt may lack its room
                closing.callback(Path(self._path).unlink)
            self._file.close()


@dataclass(slots=True)
class _Reader:
    """Reads what lies in files, each of which it opens once."""

    _files: dict[str, int] = field(default_factory=dict)
    _open: ExitStack = field(default_factory=ExitStack)

    def bytes_at(self, place: PlaceInFile) -> bytes:
        """The bytes. Raises OSError, and EOFError for a file that was cut or changed."""
        if place.path not in self._files:
            file = self._open.enter_context(open_file(Path(place.path), "rb"))
            self._files[place.path] = file.fileno()
        found = os.pread(self._files[place.path], place.size, place.at)
        if len(found) != place.size or xxh3_64_intdigest(found) != place.digest:
            raise EOFError(f"rows in a file are missing, or not what was written: {place.path}")
        return found

    def remove(self) -> None:
        """Remove the files that were read. Raises OSError."""
        for path in self._files:
            Path(path).unlink()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._open.close()


def _is_large(payload: object) -> bool:
    return isinstance(payload, bytes) and len(payload) >= _LEAST_BYTES


def local_files(master: str, places: str) -> LocalFiles | None:
    """A new directory beside Spark's own files; None where tasks may run on other machines. Raises OSError.

    `places`: directories for Spark's files, with commas between them. As Spark does, it passes over those that can't be
    used, unless it is the last.
    """
    found = [Path(place.strip()) for place in places.split(",") if place.strip()]
    if not master.startswith("local") or not found:
        return None
    for place in found[:-1]:
        with suppress(OSError):
            return _below(place)
    return _below(found[-1])


def _below(place: Path) -> LocalFiles:
    return LocalFiles(tempfile.mkdtemp(prefix="rows-", dir=scratch_below(place)))

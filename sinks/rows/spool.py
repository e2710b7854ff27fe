"""Holds a unit's chunks until its deletes are known: in memory while small, in files when not.

All deletes go before all writes (R5), and tasks deliver both in any order. What is written waits here; nothing in it
outlives the unit.
"""

import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO, Self

import xxhash

from ordering.errors import LocalDiskError
from ordering.events import RowOp, TableName
from sinks.rows.chunk import Chunk

_IN_MEMORY_BYTES = 4 << 20
RowCounts = Mapping[TableName, int]
"""Rows deleted and written, by table."""


@contextmanager
def _disk() -> Iterator[None]:
    """Whatever the disk refuses, as LocalDiskError."""
    try:
        yield
    except OSError as error:
        raise LocalDiskError(
            f"rows can't be kept in a temporary file: {error.strerror or error}",
            where=str(error.filename or tempfile.gettempdir()),
            hint="make room there, or let TMPDIR name a larger disk; limits.window-bytes bounds what is kept",
        ) from error


@dataclass(slots=True)
class Group:
    """All chunks of one table, half and column list: what one bulk statement loads."""

    first: Chunk
    directory: Callable[[], Path]
    rows: int = 0
    met: int | None = 0
    """See `Chunk.met`."""
    sizes: list[int] = field(default_factory=list)
    digests: list[int] = field(default_factory=list)
    """Of each payload: what a disk gives back has to be what was written."""
    held: list[bytes] = field(default_factory=list)
    file: IO[bytes] | None = None

    def add(self, chunk: Chunk) -> None:
        """Take one more chunk."""
        self.rows += chunk.rows
        self.met = None if self.met is None or chunk.met is None else self.met + chunk.met
        self.sizes.append(len(chunk.payload))
        self.digests.append(xxhash.xxh3_64_intdigest(chunk.payload))
        if self.file is not None:
            with _disk():
                self.file.write(chunk.payload)
            return
        self.held.append(chunk.payload)
        if sum(self.sizes) > _IN_MEMORY_BYTES:
            self._to_file()

    def payloads(self) -> Iterator[bytes]:
        """The payloads, one a chunk. Raises LocalDiskError where a file gives back something else."""
        if self.file is None:
            yield from self.held
            return
        with _disk():
            self.file.flush()
        with Path(self.file.name).open("rb") as reader:
            for size, digest in zip(self.sizes, self.digests, strict=True):
                payload = reader.read(size)
                if xxhash.xxh3_64_intdigest(payload) != digest:
                    raise LocalDiskError("a temporary file gives back other rows than were written", where=reader.name)
                yield payload

    def path(self) -> str:
        """A file that holds all payloads, one after the other; raises as `payloads`."""
        file = self._to_file()
        for _ in self.payloads():
            pass
        return file.name

    def _to_file(self) -> IO[bytes]:
        if self.file is None:
            with _disk():
                self.file = tempfile.NamedTemporaryFile(dir=self.directory(), delete=False)  # noqa: SIM115 closed by Spool
                self.file.writelines(self.held)
            self.held = []
        return self.file


class Spool:
    """The chunks of one unit, by group; a context that leaves no file behind."""

    def __init__(self) -> None:
        self._directory: tempfile.TemporaryDirectory[str] | None = None
        self._groups: dict[tuple[TableName, RowOp, tuple[str, ...]], Group] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        for group in self._groups.values():
            if group.file is not None:
                with suppress(OSError):  # what a full disk did not take is not wanted any more
                    group.file.close()
        if self._directory is not None:
            self._directory.cleanup()

    def _made_directory(self) -> Path:
        if self._directory is None:
            self._directory = tempfile.TemporaryDirectory(prefix="spool-")
        return Path(self._directory.name)

    def add(self, chunk: Chunk) -> None:
        """Take one chunk."""
        key = (chunk.table, chunk.half, chunk.columns)
        if key not in self._groups:
            self._groups[key] = Group(chunk, self._made_directory)
        self._groups[key].add(chunk)

    def groups(self, half: RowOp) -> list[Group]:
        """The groups of one half, by table."""
        return [group for (_, kind, _), group in sorted(self._groups.items()) if kind is half]

    @property
    def is_small(self) -> bool:
        """Whether it can be written twice at little cost, as most transactions of upstream can."""
        return sum(sum(group.sizes) for group in self._groups.values()) <= _IN_MEMORY_BYTES

    @property
    def rows(self) -> int:
        """Rows deleted and written; deletes before plain inserts don't count."""
        return sum(self.by_table.values())

    @property
    def by_table(self) -> RowCounts:
        """`rows`, of each table."""
        found: Counter[TableName] = Counter()
        for group in self._groups.values():
            if group.first.half is RowOp.WRITE or not group.first.plain_insert:
                found[group.first.table] += group.rows
        return found

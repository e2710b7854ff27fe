"""Compaction: small data files of a table become larger ones, in a snapshot with the same rows, checkpoint and columns.

    files read, larger ones written and synced -> catalog locked -> whose files are still all there? -> a snapshot that
    names the larger ones -> pointers -> COMMIT

No lock is held while rows are read and written, so windows go on. Who locks the catalog sees what they have changed
meanwhile: files that a window has replaced have nothing to be merged for, and what was made of them is dropped; the
table is looked at again, a few times. A window that began before finds that a pointer has moved, and is done again.
The progress is not touched. What a crash leaves is files that nothing names, as everywhere here.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple
from uuid import uuid4

import pyarrow as pa
import structlog
from pyiceberg.io import FileIO
from pyiceberg.io.pyarrow import ParquetFormatWriter, schema_to_pyarrow
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.schema import sanitize_column_names
from pyiceberg.table.locations import load_location_provider
from pyiceberg.typedef import Record
from pyiceberg.types import IntegerType, LongType

from ordering.errors import TargetError
from ordering.events import TableName
from sinks.iceberg.expiry import YOUNGEST_S, checkpoint_of
from sinks.iceberg.session import LakeSession
from sinks.iceberg.table import COLUMNS, LakeTable

log = structlog.get_logger()
_TRIES = 3
_SMALL = 0.75
"""Files below this share of the size that is wanted are small: one that is nearly full is not written again for few."""
_PART_BYTES = 32 << 20
"""Rows in memory, at least, which are written as a row group; at most so many more as one file has."""
_COMMIT_BYTES, _COMMIT_TABLES = 1 << 30, 50
"""A commit may have windows done again: so much is gathered for one."""


@dataclass(frozen=True, slots=True)
class Compacted:
    """What was merged of a table."""

    table: TableName
    files: int = 0
    bytes: int = 0
    new_files: int = 0
    new_bytes: int = 0


class Compaction(NamedTuple):
    """What has come of it. `left`: files that windows have replaced, each time."""

    tables: tuple[Compacted, ...]
    left: int


def compact(session: LakeSession, wanted: Callable[[TableName], bool], file_bytes: int) -> Compaction:
    """Merge small files of tables into ones of about this size. Raises TargetError and its kinds."""
    work = _Work(session, file_bytes)
    names = [name for name in session.names() if wanted(name)]
    try:
        for _ in range(_TRIES):
            work.merge(names)
            names = list(work.lost)
            if not names:
                break
    except (pa.ArrowException, ArithmeticError, ValueError) as error:
        raise TargetError(f"rows can't be written: {error}", where=session.where) from error
    finally:
        session.rollback()  # of what was committed, nothing is left that it would discard
    return Compaction(tuple(work.done.values()), sum(work.lost.values()))


class _Merged(NamedTuple):
    """Files that were read, each with the files of deletes that it had; and what holds their rows now."""

    old: dict[str, frozenset[str]]
    size: int
    new: list[DataFile]


class _Work:
    """What was merged, and what was committed of it."""

    def __init__(self, session: LakeSession, file_bytes: int) -> None:
        self._session, self._file_bytes = session, file_bytes
        self._pending: dict[TableName, list[_Merged]] = {}
        self.done: dict[TableName, Compacted] = {}
        self.lost: dict[TableName, int] = {}
        """How many files of tables were merged in vain, the last time."""

    def merge(self, names: Iterable[TableName]) -> None:
        """Merge and commit what there is to be merged in tables."""
        self.lost, size = {}, 0
        for name in names:
            if name not in self._session.names():
                continue
            with self._session.using_warehouse():
                found = list(self._merged(self._session.table(name)))
            if found:
                self._pending[name] = found
                size += sum(one.size for one in found)
            if size >= _COMMIT_BYTES or len(self._pending) >= _COMMIT_TABLES:
                self._commit()
                size = 0
        if self._pending:
            self._commit()

    def _merged(self, table: LakeTable) -> Iterator[_Merged]:
        snapshot = table.metadata.current_snapshot()
        if snapshot is None or table.fact(COLUMNS) is None:  # no row, or another program's
            return
        if checkpoint_of(snapshot) is None or not table.metadata.spec().is_unpartitioned():
            log.warning(
                "a table was left as it is: another program has written or partitioned it", table=str(table.name)
            )
            return
        past = table.as_of_snapshot()
        for tasks in _groups(past.files(), _order(table), self._file_bytes):
            new = _data_file(past, self._session.io, _parts(past, tasks))
            yield _Merged({task.file.file_path: _deletes(task) for task in tasks}, _size(tasks), new)

    def _commit(self) -> None:
        """Have a snapshot of each table name what was merged, if what was read for it is still there."""
        session, pending, gone = self._session, self._pending, list[DataFile]()
        self._pending, done = {}, dict[TableName, Compacted]()
        with session.using_warehouse():
            session.io.sync()
        session.begin_alone()
        with session.using_warehouse():
            names = set(session.names())
            for name, merged in pending.items():
                valid = _named(session, session.table(name), merged) if name in names else []
                gone += chain.from_iterable(one.new for one in merged if one not in valid)
                if valid:
                    done[name] = _sum(name, self.done.get(name, Compacted(name)), valid)
                lost = sum(len(one.old) for one in merged if one not in valid)
                if lost:
                    self.lost[name] = lost
            if not done:
                session.rollback()
                return
            session.write_metadata()
        session.move_pointers()
        session.commit()
        self.done |= done
        with session.using_warehouse():
            session.io.remove([file.file_path for file in gone])


def _named(session: LakeSession, table: LakeTable, merged: Sequence[_Merged]) -> list[_Merged]:
    """Have a table name what replaces files that it still has; what that is."""
    snapshot = table.metadata.current_snapshot()
    checkpoint = None if snapshot is None else checkpoint_of(snapshot)
    new = list(chain.from_iterable(one.new for one in merged))
    if checkpoint is None or (new and _may_expire(session, table, new[0])):
        return []
    live = {task.file.file_path: task for task in table.files()}
    there = {path: _deletes(task) for path, task in live.items()}
    valid = [one for one in merged if one.old.items() <= there.items()]
    if valid:
        old = [live[path].file for one in valid for path in one.old]
        table.compact(old, list(chain.from_iterable(one.new for one in valid)), checkpoint)
    return valid


def _may_expire(session: LakeSession, table: LakeTable, first: DataFile) -> bool:
    """Whether an expiry that runs now may take a file for one that a crash has left (`sinks.iceberg.expiry`)."""
    return session.io.written_s(first.file_path) < session.io.written_s(table.pointer) - YOUNGEST_S / 2


def _groups(tasks: Iterable[Any], order: Callable[[Any], Any], file_bytes: int) -> Iterator[list[Any]]:
    """Small files that fit into one, neighbours in their order: later changes then touch few files."""
    group, size = list[Any](), 0
    for task in sorted((one for one in tasks if one.file.file_size_in_bytes < _SMALL * file_bytes), key=order):
        if size + task.file.file_size_in_bytes > file_bytes:
            if len(group) > 1:
                yield group
            group, size = [], 0
        group.append(task)
        size += task.file.file_size_in_bytes
    if len(group) > 1:
        yield group


def _order(table: LakeTable) -> Callable[[Any], tuple[int, bytes]]:
    """By the least value of the key's first column: a whole number, or the bytes that a file's metadata holds of it."""
    key = table.described().handle_key
    field = table.schema.find_field(key[0]) if key else None
    is_number = field is not None and isinstance(field.field_type, IntegerType | LongType)

    def order(task: Any) -> tuple[int, bytes]:
        least: bytes = (task.file.lower_bounds or {}).get(field.field_id, b"") if field is not None else b""
        return int.from_bytes(least, "little", signed=True) if is_number else 0, least

    return order


def _parts(table: LakeTable, tasks: Iterable[Any]) -> Iterator[pa.Table]:
    """The rows of files, of which as many are in memory as make a row group."""
    some, size = list[pa.Table](), 0
    for task in tasks:
        some.append(table.read(task))
        size += some[-1].nbytes
        if size >= _PART_BYTES:
            yield pa.concat_tables(some)
            some, size = [], 0
    if some:
        yield pa.concat_tables(some)


def _data_file(table: LakeTable, io: FileIO, parts: Iterable[pa.Table]) -> list[DataFile]:
    """One data file of rows that come in parts, written as they come; none where there is no row."""
    metadata, schema = table.metadata, sanitize_column_names(table.schema)
    filled = (part for part in parts if len(part))
    first = next(filled, None)
    if first is None:
        return []
    place, shape = load_location_provider(metadata.location, metadata.properties), schema_to_pyarrow(schema)
    output = io.new_output(place.new_data_location(f"00000-0-{uuid4()}.parquet"))
    with ParquetFormatWriter(output, schema, metadata.properties) as writer:
        for part in chain([first], filled):
            writer.write(pa.Table.from_arrays(part.columns, schema=shape))
    file = DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=output.location,
        file_format=FileFormat.PARQUET,
        partition=Record(),
        file_size_in_bytes=len(output),
        sort_order_id=None,
        spec_id=metadata.default_spec_id,
        equality_ids=None,
        key_metadata=None,
        **writer.result().to_serialized_dict(),
    )
    return [file]


def _deletes(task: Any) -> frozenset[str]:
    return frozenset(file.file_path for file in task.delete_files)


def _size(tasks: Iterable[Any]) -> int:
    return sum(task.file.file_size_in_bytes for task in tasks)


def _sum(name: TableName, before: Compacted, merged: Sequence[_Merged]) -> Compacted:
    new = list(chain.from_iterable(one.new for one in merged))
    return Compacted(
        name,
        before.files + sum(len(one.old) for one in merged),
        before.bytes + sum(one.size for one in merged),
        before.new_files + len(new),
        before.new_bytes + sum(file.file_size_in_bytes for file in new),
    )

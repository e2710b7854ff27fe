"""One table while a transaction changes it: metadata, and the rows that are to go and to come.

Copy on write: data files that hold a touched key are written again without its row, one after the other, so memory
holds one of them and the rows of the transaction. Files are pruned by the bounds of the handle key's first column, so
the cost grows with the files that are touched. Nothing is seen before the catalog's pointer moves; what a crash leaves
behind is files that no metadata names.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.io import FileIO
from pyiceberg.io.pyarrow import ArrowScan, _dataframe_to_data_files
from pyiceberg.manifest import DataFile
from pyiceberg.schema import Schema
from pyiceberg.table import Table, Transaction
from pyiceberg.table.locations import load_location_provider
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Operation, Summary
from pyiceberg.table.update import AddSnapshotUpdate, TableUpdate, update_table_metadata
from pyiceberg.table.update.snapshot import ExpireSnapshots
from pyiceberg.types import NestedField

from ordering.errors import TargetError
from ordering.events import TableName
from sinks.iceberg.types import maker
from sinks.rows.schema import Column, Shape, TableSchema, choose_handle_key, valid_indexes

COLUMNS, PRIMARY, UNIQUES, CHECKPOINT = "ticdc.columns", "ticdc.primary", "ticdc.uniques", "ticdc.checkpointTs"
PLAIN = "ticdc.plain"
"""Indexes that tell no rows apart; missing in tables that an earlier version made."""
PROPERTIES = {"write.target-file-size-bytes": str(128 << 20)}
"""Of new tables. pyiceberg measures rows in memory by it, where they take a few times the place of their file."""
_SMALL_BYTES, _MOST_SMALL = 1 << 20, 8
"""Files so small are written as one once there are more of them."""
Rows = list[list[Any]]


class _Coming(NamedTuple):
    """Rows that are to be there; `lacks`: the columns without a value, which rows that are there keep."""

    rows: pa.Table
    lacks: tuple[str, ...]


class LakeTable:
    """A table of the catalog."""

    def __init__(self, name: TableName, metadata: TableMetadata, pointer: str, io: FileIO) -> None:
        self.name, self.pointer, self._io = name, pointer, io
        self._table = Table((*name,), metadata, pointer, io, None)
        self.staged = Transaction(self._table)
        self._gone: list[pa.Table] = []
        self._rows: list[_Coming] = []
        self._fills: dict[int, Any] = {}
        self._is_cleared = False
        self.moved_to = ""
        """The metadata file that this transaction has written for the pointer."""

    @property
    def is_open(self) -> bool:
        """Whether there is something that no pointer was moved to."""
        staged = bool(self.staged._updates) and not self.moved_to  # noqa: SLF001
        return staged or bool(self._gone or self._rows or self._fills or self._is_cleared)

    @property
    def metadata(self) -> TableMetadata:
        """With what is staged."""
        return self.staged.table_metadata

    @property
    def schema(self) -> Schema:
        """Iceberg's."""
        return self.metadata.schema()

    def described(self) -> TableSchema:
        """The table as writing needs it."""
        facts = self.fact(COLUMNS)
        columns = {field.name: _column(field, facts.get(str(field.field_id))) for field in self.schema.fields}
        primary = self._names(self.fact(PRIMARY))
        uniques = {name: self._names(ids) for name, ids in self.fact(UNIQUES).items()}
        keys = (*uniques.values(), *([primary] if primary else []))
        handle = choose_handle_key(primary, uniques, columns)
        valid = valid_indexes(primary, uniques, columns)
        return TableSchema(self.name, tuple(columns.values()), handle, keys, valid, unique_indexes=uniques)

    def fact(self, name: str) -> Any:
        """What we keep of upstream's definition in the table's properties."""
        return json.loads(self.metadata.properties.get(name, "null"))

    def keep(self, **facts: Any) -> None:
        """Keep facts; names as in `COLUMNS`, without `ticdc.`."""
        self.staged.set_properties({f"ticdc.{name}": json.dumps(value) for name, value in facts.items()})

    def _names(self, ids: Iterable[int]) -> tuple[str, ...]:
        return tuple(self.schema.find_column_name(one) or "" for one in ids)

    def ids(self, names: Iterable[str]) -> list[int]:
        """Field ids of columns, in whatever case; 0 for what is no whole column, or a VIRTUAL one."""
        found = {field.name.lower(): field.field_id for field in self.schema.fields}
        return [found.get(name.lower(), 0) for name in names]

    def delete(self, columns: Sequence[str], rows: Rows) -> None:
        """Rows with these keys are to go."""
        self._gone.append(self._arrow(columns, rows, self.described().handle_key))

    def write(self, columns: Sequence[str], rows: Rows) -> None:
        """These rows are to be there, in the place of others with their keys."""
        lacks = tuple(name for name in self.schema.column_names if name not in columns)
        self._rows.append(_Coming(self._arrow(columns, rows, self.schema.column_names), lacks))

    def clear(self) -> None:
        """All rows are to go."""
        self._is_cleared = True

    def fill(self, column: int, value: Any) -> None:
        """Give all rows that are there a value in a new column."""
        self._fills[column] = value

    def apply(self, checkpoint_ts: int) -> None:
        """Write what is to come and to go, as snapshots that name their checkpoint."""
        if self._is_cleared:
            self._replace([task.file for task in self.files()], [], checkpoint_ts)
        if self._fills:
            self._fill(checkpoint_ts)
        if self._gone or self._rows:
            self._change(checkpoint_ts)
        self._gone, self._rows, self._fills, self._is_cleared = [], [], {}, False

    def _fill(self, checkpoint_ts: int) -> None:
        new: list[DataFile] = []
        values = {self.schema.find_field(field).name: value for field, value in self._fills.items()}
        tasks = list(self.files())
        for task in tasks:
            rows = self.read(task)
            for name, value in values.items():
                at = rows.schema.get_field_index(name)
                field = rows.schema.field(at)
                rows = rows.set_column(at, field, pa.array([value] * len(rows), field.type))
            new += self._data_files(rows)
        if tasks:
            self._replace([task.file for task in tasks], new, checkpoint_ts)

    def _change(self, checkpoint_ts: int) -> None:
        key = self.described().handle_key
        gone = pa.concat_tables([self._shape().empty_table().select(key), *self._gone])
        touched = pa.concat_tables([gone, *(coming.rows.select(key) for coming in self._rows)])
        lacked = list(dict.fromkeys(name for coming in self._rows for name in coming.lacks))
        tasks = list(self.files())
        small = [task.file for task in tasks if task.file.file_size_in_bytes < _SMALL_BYTES]
        merged, may_hold = set(small) if len(small) > _MOST_SMALL else set(), self._bounds(touched, key[0])
        old: list[DataFile] = []
        new: list[DataFile] = []
        together: list[pa.Table] = []
        before: list[pa.Table] = []
        for task in tasks:
            file = task.file
            if file not in merged and not may_hold(file):
                continue
            found = self.read(task)
            stays = _others(found, touched, key)
            kept = found.filter(stays)
            if lacked:
                before.append(found.filter(pc.invert(stays)).select([*key, *lacked]))
            if file in merged:
                together.append(kept)
            elif len(kept) < len(found):
                new += self._data_files(kept)
            else:
                continue
            old.append(file)
        together = [self._shape().empty_table(), *(_filled(one, before, gone, key) for one in self._rows), *together]
        new += self._data_files(pa.concat_tables(together))
        if old or new:
            self._replace(old, new, checkpoint_ts)

    def _arrow(self, columns: Sequence[str], rows: Rows, names: Sequence[str]) -> pa.Table:
        shape = pa.schema([self._shape().field(name) for name in names])
        values = dict(zip(columns, zip(*rows, strict=True), strict=True))
        try:
            arrays = [self._column(field, values.get(field.name, [None] * len(rows))) for field in shape]
        except (pa.ArrowException, ArithmeticError, ValueError) as error:
            raise TargetError(f"rows can't be written: {error}", where=f"table {self.name}") from error
        found = pa.Table.from_arrays(arrays, schema=shape)
        self._check_keys(found)
        return found

    def _check_keys(self, rows: pa.Table) -> None:
        """Raise TargetError for a key with NULL in it: as it equals none, the row that is there would not be found."""
        for name in self.described().handle_key:
            if rows[name].null_count:
                fact = f"a row has NULL in its key's column {name!r}: a date that Iceberg does not have is no key there"
                hint = "correct the value upstream, or leave the table out with filter.rules"
                raise TargetError(fact, where=f"table {self.name}", hint=hint)

    def _column(self, field: pa.Field, values: Sequence[Any]) -> pa.Array:
        made = maker(self.schema.find_field(field.name).field_type)
        return pa.array([v if v is None or made is None else made(v) for v in values], field.type)

    def _shape(self) -> pa.Schema:
        found: pa.Schema = self.schema.as_arrow()
        return pa.schema([field.remove_metadata() for field in found])

    def files(self) -> Iterator[Any]:
        """The data files of the newest snapshot, as pyiceberg reads them."""
        table = Table((*self.name,), self.metadata, self.pointer, self._io, None)
        return iter(table.scan().plan_files())

    def read(self, task: Any) -> pa.Table:
        """The rows of one of `files`."""
        found = ArrowScan(self.metadata, self._io, self.schema, AlwaysTrue()).to_table([task])
        return found.select(self.schema.column_names).cast(self._shape())

    def _data_files(self, rows: pa.Table) -> list[DataFile]:
        return list(_dataframe_to_data_files(self.metadata, rows, self._io)) if len(rows) else []

    def _bounds(self, gone: pa.Table, column: str) -> Callable[[DataFile], bool]:
        """Whether a file may hold one of these keys, by what its metadata says of the first key column."""
        values = [value for value in gone[column].to_pylist() if value is not None]
        field = self.schema.find_field(column)
        if not values or not isinstance(values[0], int):
            return lambda _: True
        least, most = min(values), max(values)

        def may_hold(file: DataFile) -> bool:
            low, high = (file.lower_bounds or {}).get(field.field_id), (file.upper_bounds or {}).get(field.field_id)
            if low is None or high is None or len(low) not in (4, 8):
                return True
            return bool(
                int.from_bytes(low, "little", signed=True) <= most
                and int.from_bytes(high, "little", signed=True) >= least
            )

        return may_hold

    def _replace(self, old: Iterable[DataFile], new: Iterable[DataFile], checkpoint_ts: int) -> None:
        with self.staged.update_snapshot(snapshot_properties={CHECKPOINT: str(checkpoint_ts)}).overwrite() as change:
            for file in old:
                change.delete_data_file(file)
            for file in new:
                change.append_data_file(file)

    def as_of_snapshot(self) -> "LakeTable":
        """The table with the columns of its newest snapshot: a DDL may have changed them since."""
        snapshot = self.metadata.current_snapshot()
        if snapshot is None or snapshot.schema_id is None:
            return self
        metadata = self.metadata.model_copy(update={"current_schema_id": snapshot.schema_id})
        return LakeTable(self.name, metadata, self.pointer, self._io)

    def compact(self, old: Iterable[DataFile], new: Iterable[DataFile], checkpoint_ts: int) -> None:
        """Name other files with the same rows, in a snapshot that has the columns of the newest one."""
        past = self.as_of_snapshot()
        past._replace(old, new, checkpoint_ts)
        past.staged._updates = tuple(map(_as_compaction, past.staged._updates))  # noqa: SLF001
        self.staged = past.staged

    def expire(self, snapshots: list[int]) -> None:
        """Drop snapshots."""
        with ExpireSnapshots(self.staged) as change:
            change.by_ids(snapshots)

    def finished(self) -> tuple[TableMetadata, str] | None:
        """The metadata to write, and where to; None if nothing was staged."""
        updates = self.staged._updates  # noqa: SLF001  # what pyiceberg's own catalogs take
        if not updates:
            return None
        metadata = update_table_metadata(self._table.metadata, updates, metadata_location=self.pointer)
        number = int(self.pointer.rpartition("/")[2].partition("-")[0]) + 1
        place = load_location_provider(metadata.location, metadata.properties)
        return metadata, place.new_table_metadata_file_location(number)

    def refuse(self, what: object) -> TargetError:
        """What to raise for what the format can't do."""
        hint = "make the change by hand, then `reconciler ddl done`; or leave the table out with filter.rules"
        return TargetError(f"Iceberg can't do this to table {self.name}: {what}", hint=hint)


def _as_compaction(update: TableUpdate) -> TableUpdate:
    """A snapshot that says that its rows are those of the one before: who reads changes passes it over."""
    if not isinstance(update, AddSnapshotUpdate):
        return update
    summary = Summary(Operation.REPLACE, **update.snapshot.summary.additional_properties)
    return AddSnapshotUpdate(snapshot=update.snapshot.model_copy(update={"summary": summary}))


def _column(field: NestedField, fact: Any) -> Column:
    """A column as writing needs it. `fact`: None of one that another engine has added, which upstream lacks."""
    if fact is None:
        return Column(field.name, str(field.field_type), Shape.TEXT, nullable=not field.required)
    members, shape = tuple(fact["members"]), Shape(fact["shape"])
    return Column(field.name, str(field.field_type), shape, nullable=fact["nullable"], members=members)


def _others(rows: pa.Table, some: pa.Table, key: Sequence[str]) -> pa.Array:
    """Which of the rows have none of these keys."""
    stays = np.ones(len(rows), dtype=bool)
    stays[_met(rows, some, key)["row"].to_numpy()] = False
    return pa.array(stays)


def _met(rows: pa.Table, some: pa.Table, key: Sequence[str]) -> pa.Table:
    """Which rows have the key of which others: their numbers, `row` and `other`.

    Columns are joined by number: Arrow reads some names as paths.
    """
    names = [str(number) for number in range(len(key))]
    left, right = (one.select(key).rename_columns(names) for one in (rows, some))
    left = left.append_column("row", pa.array(np.arange(len(rows))))
    return left.join(right.append_column("other", pa.array(np.arange(len(some)))), keys=names, join_type="inner")


def _filled(coming: _Coming, before: Sequence[pa.Table], gone: pa.Table, key: Sequence[str]) -> pa.Table:
    """The rows, with what the rows that were there held in the columns that they lack; not of one that went before."""
    rows = coming.rows
    if not coming.lacks or not before:
        return rows
    held = pa.concat_tables(before)
    held = held.filter(_others(held, gone, key))
    met, at = _met(rows, held, key), np.full(len(rows), -1)
    at[met["row"].to_numpy()] = met["other"].to_numpy()
    places = pa.array(at, mask=at < 0)
    for name in coming.lacks:
        number = rows.schema.get_field_index(name)
        rows = rows.set_column(number, rows.schema.field(number), held[name].take(places))
    return rows

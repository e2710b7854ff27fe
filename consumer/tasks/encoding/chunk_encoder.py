"""Netted rows to chunks, in Python: the reference for the compiled core, which leaves to it what is not usual."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from itertools import groupby, product
from operator import itemgetter
from typing import Any

from consumer.codec import canal_json
from consumer.large_messages.fetch import Bodies
from consumer.tuning import MEASURED
from ordering.drift import missed
from ordering.errors import InputError, ReconcilerError, TableMismatchError, TargetError
from ordering.events import RowOp, TableName
from ordering.rows.identity import fingerprint, key_values, table_of
from ordering.rows.net_effect import KeyChange
from sinks.rows.chunk import Chunk, Encoder, writable
from sinks.rows.schema import Column, TableSchema
from sinks.rows.values import hint_of

CHUNK_BYTES = 8 << 20
"""Bytes of images at which a chunk ends: in `row` a chunk is a transaction, and TiDB bounds those."""


class WhichRows(IntEnum):
    """Which of a table's rows: the same numbers stand in `native/order.h`."""

    ALL = 0
    GONE = 1
    WRITTEN = 2

    def of(self, halves: list[KeyChange]) -> list[KeyChange]:
        """Those of some halves."""
        if self is WhichRows.ALL:
            return halves
        return [half for half in halves if bool(half[1] & RowOp.WRITE) == (self is WhichRows.WRITTEN)]


class RowError(Exception):
    """One row can't be decoded or encoded; `row` is its message's fingerprint."""

    def __init__(self, error: ReconcilerError, row: int | None) -> None:
        super().__init__(error, row)
        self.error, self.row = error, row


@dataclass(frozen=True, slots=True)
class ChunkEncoder:
    """How netted rows become chunks."""

    schemas: Mapping[TableName, TableSchema]
    encoder: Encoder
    bodies: Bodies
    only: RowOp | None = None
    """Only the deletes, or only the writes."""
    again: bool = False
    """Of writes only: some may have been done, by an attempt that was lost, so plain inserts need their deletes."""
    judged: bool = False
    """Whether the chunks tell how many of their rows were there before (`ordering.drift`)."""
    chunk_rows: int = MEASURED.chunk_rows

    def chunks(self, halves: list[KeyChange], names: Mapping[str, tuple[str, ...]]) -> Iterator[Chunk]:
        """Encode netted rows, table by table. Raises RowError and ReconcilerError."""
        for name, some in _by_table(halves, names).items():
            key = names[f"{name.database}\0{name.table}"]
            schema = self.schema(name, key, some[0])
            try:
                for half, which in self.steps(plain=schema.deletes_first(key)):
                    for part in self._slices(which.of(some)):
                        yield from self.slice_chunks(schema, key, half, part)
            except UnencodedError as error:
                raise RowError(error.refusal, error.found_in(some, key)) from error

    def schema(self, name: TableName, key: tuple[str, ...], first: KeyChange) -> TableSchema:
        """The target's table. Raises RowError, about its first row, and TargetError where no row can be written."""
        try:
            return self._schema(name, key)
        except TargetError as error:
            raise RowError(error, fingerprint(first[0], first[1])) from error

    def _schema(self, name: TableName, key: tuple[str, ...]) -> TableSchema:
        schema = self.schemas.get(name)
        if schema is None:
            hint = "create it, or let the changefeed send its CREATE TABLE (start-ts 0 and a topic from its beginning)"
            raise TableMismatchError(f"table {name} is missing in the target", hint=hint)
        if set(schema.handle_key) != set(key):
            raise TableMismatchError(
                f"table {name} has the key {list(schema.handle_key)} in the target, {list(key)} upstream",
                hint="give the target's table the upstream's primary key",
            )
        schema.check_fit()
        return schema

    def steps(self, *, plain: bool) -> list[tuple[RowOp, WhichRows]]:
        """What is done with a table's rows, one after the other. `plain`: each row is deleted before any is written."""
        found: list[tuple[RowOp, WhichRows]] = []
        if self.only is not RowOp.WRITE:
            found.append((RowOp.DELETE, WhichRows.ALL if plain else WhichRows.GONE))
        elif self.again and plain:
            found.append((RowOp.DELETE, WhichRows.WRITTEN))
        if self.only is not RowOp.DELETE:
            found.append((RowOp.WRITE, WhichRows.WRITTEN))
        return found

    def slice_chunks(
        self, schema: TableSchema, key: tuple[str, ...], half: RowOp, some: list[KeyChange]
    ) -> Iterator[Chunk]:
        """The chunks of a slice. Raises UnencodedError, and RowError."""
        plain = schema.deletes_first(key)
        if half is RowOp.DELETE:
            keys = _distinct(key_values(one[0]) for one in some)
            yield self._chunk(schema, RowOp.DELETE, key, keys, plain=plain, met=self._met(some))
        else:
            yield from self._writes(schema, key, some, plain=plain)

    def _met(self, halves: list[KeyChange]) -> int | None:
        """How many of the rows were there before, as the events say."""
        return len(halves) - sum([missed(half[1], half[3]) for half in halves]) if self.judged else None

    def _writes(
        self, schema: TableSchema, key: tuple[str, ...], halves: list[KeyChange], *, plain: bool
    ) -> Iterator[Chunk]:
        whole = self.bodies.whole(schema.name, key, halves)
        for some in [halves] if whole is halves else self._slices(whole):
            groups = list(_by_columns(_decoded(schema.name, some)))
            met = None if plain or len(groups) > 1 else self._met(some)
            for columns, rows in groups:
                try:
                    positions = writable(schema, columns, deleted_first=plain)
                except TargetError as error:
                    raise UnencodedError(error, dict(zip(columns, rows[0], strict=True))) from error
                names = tuple(columns[i] for i in positions)
                picked = rows if len(positions) == len(columns) else [[row[i] for i in positions] for row in rows]
                yield self._chunk(schema, RowOp.WRITE, names, picked, plain=plain, met=met)

    def _slices(self, halves: Iterable[KeyChange]) -> Iterator[list[KeyChange]]:
        """Cut so that a chunk stays small in rows and in bytes."""
        some: list[KeyChange] = []
        held = 0
        for half in halves:
            some.append(half)
            held += len(half[2])
            if len(some) >= self.chunk_rows or held >= CHUNK_BYTES:
                yield some
                some, held = [], 0
        if some:
            yield some

    def _chunk(
        self, schema: TableSchema, half: RowOp, names: tuple[str, ...], rows: list[Any], *, plain: bool, met: int | None
    ) -> Chunk:
        columns = [column for name in names if (column := schema.column(name)) is not None]
        try:
            payload = self.encoder.encode(columns, rows)
        except ValueError as error:
            raise self._refused(schema, columns, rows, error) from error
        return Chunk(schema.name, half, names, len(rows), payload, plain, met=met)

    def _refused(
        self, schema: TableSchema, columns: list[Column], rows: list[Any], error: ValueError
    ) -> "UnencodedError":
        """Which column does not take its value, in which row."""
        for row, (i, column) in product(rows, enumerate(columns)):
            try:
                self.encoder.encode([column], [[row[i]]])
            except ValueError as refused:
                refusal = TargetError(
                    f"table {schema.name}: column {column.name!r} of type {column.type} can't hold what upstream sends:"
                    f" {str(refused)[:200]}",
                    hint=hint_of(
                        refused, "the column is not as it is upstream: change it, or apply the DDL that is missing"
                    ),
                )
                return UnencodedError(refusal, dict(zip((c.name for c in columns), row, strict=True)))
        return UnencodedError(TargetError(f"table {schema.name}: rows can't be encoded: {error}"), {})


class UnencodedError(Exception):
    """A row that the encoder refuses."""

    def __init__(self, refusal: TargetError, row: canal_json.Image) -> None:
        super().__init__(refusal, row)
        self.refusal, self.row = refusal, row

    def found_in(self, halves: list[KeyChange], key: tuple[str, ...]) -> int | None:
        """The fingerprint of the row's event."""
        values = [self.row.get(name) for name in key]
        return next((fingerprint(half[0], half[1]) for half in halves if key_values(half[0]) == values), None)


def _decoded(table: TableName, halves: list[KeyChange]) -> list[canal_json.Image]:
    try:
        return [canal_json.decode_image(half[2]) for half in halves]
    except canal_json.UNREADABLE:
        for key, order, image, _ in halves:
            try:
                canal_json.decode_image(image)
            except canal_json.UNREADABLE as error:
                hint = "values are texts or null in Canal-JSON: something other than TiCDC wrote this message"
                refusal = InputError(f"row of {table} can't be read: {error}", hint=hint)
                raise RowError(refusal, fingerprint(key, order)) from error
        raise


def _by_table(halves: list[KeyChange], names: Mapping[str, tuple[str, ...]]) -> Mapping[TableName, list[KeyChange]]:
    """Each table's rows in the order of their keys' bytes: a database writes neighbours faster."""
    by_key = itemgetter(0)
    if len(names) == 1 and halves:  # to ask each row takes as long as to decode it
        return {table_of(halves[0][0]): sorted(halves, key=by_key)}
    by_table: dict[TableName, list[KeyChange]] = {}
    for half in halves:
        by_table.setdefault(table_of(half[0]), []).append(half)
    return {name: sorted(some, key=by_key) for name, some in by_table.items()}


def _by_columns(decoded: list[canal_json.Image]) -> Iterator[tuple[tuple[str, ...], list[tuple[str | None, ...]]]]:
    """Rows by the columns that were sent; mostly one group."""
    if not _mixed(decoded):
        yield tuple(decoded[0]), [tuple(image.values()) for image in decoded]
        return
    names: Callable[[canal_json.Image], tuple[str, ...]] = tuple
    for columns, some in groupby(sorted(decoded, key=names), key=names):
        yield columns, [tuple(image.values()) for image in some]


def _mixed(images: list[canal_json.Image]) -> bool:
    return len({len(image) for image in images}) > 1 or len({tuple(image) for image in images}) > 1


def _distinct(keys: Iterable[list[str | None]]) -> list[tuple[str | None, ...]]:
    return list(dict.fromkeys(map(tuple, keys)))

"""The two stages of a window's Spark job: read and reduce, then order and encode.

    (ranges) -> [read, decode, reduce] -> (bucket, block) -> shuffle -> [net effect or commitTs order, encode] -> chunks

Both are plain picklable objects; errors travel as values, so that the driver raises them as they are.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby, islice, product
from typing import Any

from consumer import canal
from consumer.bodies.fetching import Bodies
from consumer.bodies.reference import is_reference
from consumer.doubts import is_in_doubt
from consumer.intake import REPORTS, Block, Intake, Record, manifests, refusals
from consumer.reader import Readers
from consumer.report import Report, digest_of
from consumer.scan import ReadSpec, Reduction
from consumer.tolerant import scan_of
from ordering.drift import missed
from ordering.errors import InputError, ReconcilerError, TableMismatchError, TargetError
from ordering.events import Half, TableName
from ordering.identity import fingerprint, key_values, table_of
from ordering.manifest import Accounts
from ordering.neteffect import Half as KeyedHalf
from ordering.neteffect import net_effect
from ordering.timestamps import CommitTs
from ordering.transactions import in_order, transactions
from ordering.window import Range, Window
from sinks.chunk import Chunk, Encoder, writable
from sinks.schema import Column, TableSchema

_CHUNK_ROWS = 20_000
_CHUNK_BYTES = 8 << 20
"""Bytes of images at which a chunk ends: in `row` a chunk is a transaction, and TiDB bounds those."""


@dataclass(frozen=True, slots=True)
class Part:
    """Chunks of (a part of) one upstream transaction, in `transaction` consistency."""

    commit_ts: CommitTs
    chunks: tuple["Chunk | Unfetched", ...]


@dataclass(frozen=True, slots=True)
class Failure:
    """What a task met while ordering rows: it counts once it is known that these rows are to be applied."""

    error: ReconcilerError
    row: int | None = None
    """Fingerprint of the message at fault, whose position the shuffle does not carry."""

    @property
    def raised(self) -> "ReconcilerError | RowError":
        """What to raise of it on the driver."""
        return self.error if self.row is None else RowError(self.error, self.row)


@dataclass(frozen=True, slots=True)
class Answered:
    """The end of a bucket that was complete: so many outcomes came of its rows."""

    bucket: int
    outcomes: int


@dataclass(frozen=True, slots=True)
class Unfetched:
    """Rows that are not in their message, left to the driver: they may be too large to pass through Spark's memory."""

    names: Mapping[str, tuple[str, ...]]
    halves: list[KeyedHalf]


class RowError(Exception):
    """One row can't be decoded or encoded; `row` is its message's fingerprint."""

    def __init__(self, error: ReconcilerError, row: int | None) -> None:
        super().__init__(error, row)
        self.error, self.row = error, row


@dataclass(frozen=True, slots=True)
class ReadTask:
    """First stage: reads its ranges from Kafka, decodes, reduces; yields blocks for the shuffle, manifests, reports.

    An error goes into every bucket: where the stage is done again, nobody looks at the reports once more.
    """

    spec: ReadSpec
    readers: Readers

    def __call__(self, groups: Iterable[tuple[int, tuple[Range, ...]]]) -> Iterator[Record]:
        """Run in a Spark task, for groups of ranges, each with its number among all groups of the window."""
        for number, ranges in groups:
            try:
                yield from self._read(number, ranges)
            except ReconcilerError as error:
                self.readers.forget()
                yield from refusals(self.spec.buckets, number, error)
                yield REPORTS, error

    def _read(self, number: int, ranges: tuple[Range, ...]) -> Iterator[Record]:
        reduction = Reduction(self.spec, number)
        scans = {r.partition: scan_of(self.spec, r, reduction) for r in ranges}
        reader = self.readers.get()
        for partition, run in reader.read([(r.partition, r.start, r.stop) for r in ranges]):
            if not scans[partition].take(run):
                reader.done(partition)
            if reduction.full():
                yield from reduction.blocks()
        yield from reduction.blocks()
        for partition, scan in scans.items():
            scan.account(reader.reached(partition))
        reports = [scan.finished() for scan in scans.values()]
        yield from manifests(self.spec.buckets, number, digest_of(reports), reduction.sent)
        yield from ((REPORTS, report) for report in reports)


@dataclass(frozen=True, slots=True)
class OrderTask:
    """Second stage: one bucket's rows in order, encoded for the target."""

    schemas: Mapping[TableName, TableSchema]
    encoder: Encoder
    bodies: Bodies
    whole_transactions: bool
    only: Half | None = None
    """Only the deletes, or only the writes."""
    again: bool = False
    """Of writes only: some may have been done, by an attempt that was lost, so plain inserts need their deletes."""
    doubtful: Window | None = None
    """The window, where it may yet be cut: with its reports at hand, nothing is encoded that will not be applied."""
    judged: bool = False
    """Whether the chunks tell how many of their rows were there before (`ordering.drift`)."""
    accounts: Accounts | None = None
    """What the reading tasks have to have delivered; None: there is one, and its reports come along."""

    def __call__(
        self, records: Iterable[Record]
    ) -> Iterator[Report | ReconcilerError | Chunk | Part | Unfetched | Failure | Answered]:
        """Run in a Spark task. Reports come first, for the driver decides by them what to do with the rows."""
        intake, reports = Intake(), []
        for bucket, payload in records:
            if bucket != REPORTS:
                intake.take((bucket, payload))
                continue
            if isinstance(payload, Report):
                reports.append(payload)
            yield payload
        if intake.bucket == REPORTS:
            return
        if self.doubtful is not None and is_in_doubt(reports, self.doubtful):
            yield Failure(ReconcilerError("rows of a window that has to be cut were asked for"))  # nobody asks for it
            return
        count = 0
        try:
            accounts = {0: digest_of(reports)} if self.accounts is None else self.accounts
            for count, outcome in enumerate(self._ordered(intake.blocks(accounts)), 1):  # noqa: B007 the last counts
                yield outcome
        except (ReconcilerError, RowError) as error:
            yield failure_of(error)
        else:
            yield Answered(intake.bucket, count)

    def _ordered(self, blocks: list[Block]) -> Iterator[Chunk | Part | Unfetched]:
        names = names_in(blocks)
        if self.whole_transactions:
            return self._transactions([block.halves for block in blocks], names)
        return self._to_driver(net_effect(half for block in blocks for half in block.halves), names)

    def _transactions(self, runs: list[list[KeyedHalf]], names: Mapping[str, tuple[str, ...]]) -> Iterator[Part]:
        for commit_ts, halves in transactions(in_order(runs)):
            while some := list(islice(halves, _CHUNK_ROWS)):
                for chunks in _grouped(self._to_driver(some, names)):
                    yield Part(commit_ts, chunks)

    def _to_driver(self, halves: list[KeyedHalf], names: Mapping[str, tuple[str, ...]]) -> Iterator[Chunk | Unfetched]:
        later = [half for half in halves if is_reference(half[2])]
        yield from self.chunks([half for half in halves if not is_reference(half[2])] if later else halves, names)
        if later:
            yield Unfetched(names, later)

    def encoded(self, outcome: object) -> Iterable[Chunk]:
        """The chunks of what a task left to the driver; nothing of anything that is no rows. Raises as `chunks`."""
        if isinstance(outcome, Unfetched):
            return self.chunks(outcome.halves, outcome.names)
        return (outcome,) if isinstance(outcome, Chunk) else ()

    def chunks(self, halves: list[KeyedHalf], names: Mapping[str, tuple[str, ...]]) -> Iterator[Chunk]:
        """Encode netted rows, table by table. Raises RowError and ReconcilerError."""
        for name, some in _by_table(halves, names).items():
            key = names[f"{name.database}\0{name.table}"]
            try:
                schema = self._schema(name, key)
            except TargetError as error:
                raise RowError(error, fingerprint(some[0][0], some[0][1])) from error
            yield from self._table_chunks(schema, key, some)

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

    def _table_chunks(self, schema: TableSchema, key: tuple[str, ...], halves: list[KeyedHalf]) -> Iterator[Chunk]:
        deleted_first = schema.deletes_first(key)
        try:
            yield from self._halves(schema, key, halves, plain=deleted_first)
        except _UnencodedError as error:
            raise RowError(error.refusal, error.found_in(halves, key)) from error

    def _halves(
        self, schema: TableSchema, key: tuple[str, ...], halves: list[KeyedHalf], *, plain: bool
    ) -> Iterator[Chunk]:
        if self.only is not Half.WRITE:
            yield from self._deletes(schema, key, halves, plain=plain)
        elif self.again and plain:
            written = [half for half in halves if half[1] & Half.WRITE]
            yield from self._deletes(schema, key, written, plain=True)
        if self.only is not Half.DELETE:
            yield from self._writes(schema, key, halves, plain=plain)

    def _deletes(
        self, schema: TableSchema, key: tuple[str, ...], halves: list[KeyedHalf], *, plain: bool
    ) -> Iterator[Chunk]:
        gone = [half for half in halves if plain or not half[1] & Half.WRITE]
        for some in _slices(gone):
            keys = _distinct(key_values(half[0]) for half in some)
            yield self._encoded(schema, Half.DELETE, key, keys, plain=plain, met=self._met(some))

    def _met(self, halves: list[KeyedHalf]) -> int | None:
        """How many of the rows were there before, as the events say."""
        return len(halves) - sum([missed(half[1], half[3]) for half in halves]) if self.judged else None

    def _writes(
        self, schema: TableSchema, key: tuple[str, ...], halves: list[KeyedHalf], *, plain: bool
    ) -> Iterator[Chunk]:
        written = [half for half in halves if half[1] & Half.WRITE]
        for some in _slices(self.bodies.whole(schema.name, key, written)):
            groups = list(_by_columns(_decoded(schema.name, some)))
            met = None if plain or len(groups) > 1 else self._met(some)
            for columns, rows in groups:
                try:
                    positions = writable(schema, columns, deleted_first=plain)
                except TargetError as error:
                    raise _UnencodedError(error, dict(zip(columns, rows[0], strict=True))) from error
                names = tuple(columns[i] for i in positions)
                picked = rows if len(positions) == len(columns) else [[row[i] for i in positions] for row in rows]
                yield self._encoded(schema, Half.WRITE, names, picked, plain=plain, met=met)

    def _encoded(
        self, schema: TableSchema, half: Half, names: tuple[str, ...], rows: list[Any], *, plain: bool, met: int | None
    ) -> Chunk:
        columns = [column for name in names if (column := schema.column(name)) is not None]
        try:
            payload = self.encoder.encode(columns, rows)
        except ValueError as error:
            raise self._refused(schema, columns, rows, error) from error
        return Chunk(schema.name, half, names, len(rows), payload, plain, met=met)

    def _refused(
        self, schema: TableSchema, columns: list[Column], rows: list[Any], error: ValueError
    ) -> "_UnencodedError":
        """Which column does not take its value, in which row."""
        for row, (i, column) in product(rows, enumerate(columns)):
            try:
                self.encoder.encode([column], [[row[i]]])
            except ValueError as refused:
                refusal = TargetError(
                    f"table {schema.name}: column {column.name!r} of type {column.type} can't hold what upstream sends:"
                    f" {str(refused)[:200]}",
                    hint="a DDL was missed or the target was changed by hand: make the column as it is upstream",
                )
                return _UnencodedError(refusal, dict(zip((c.name for c in columns), row, strict=True)))
        return _UnencodedError(TargetError(f"table {schema.name}: rows can't be encoded: {error}"), {})


@dataclass(frozen=True, slots=True)
class RowsOnly:
    """A second stage that passes the reports' bucket over."""

    order: OrderTask

    def __call__(self, records: Iterable[Record]) -> Iterator[Chunk | Part | Unfetched | Failure | Answered]:
        """Run in a Spark task."""
        return self.order(record for record in records if record[0] != REPORTS)  # type: ignore[return-value]


class _UnencodedError(Exception):
    """A row that the encoder refuses."""

    def __init__(self, refusal: TargetError, row: canal.Image) -> None:
        super().__init__(refusal, row)
        self.refusal, self.row = refusal, row

    def found_in(self, halves: list[KeyedHalf], key: tuple[str, ...]) -> int | None:
        """The fingerprint of the row's event."""
        values = [self.row.get(name) for name in key]
        return next((fingerprint(half[0], half[1]) for half in halves if key_values(half[0]) == values), None)


def names_in(blocks: Iterable[Block]) -> dict[str, tuple[str, ...]]:
    """The handle key columns of the tables in blocks."""
    return {table: tuple(key) for block in blocks for table, key in block.keys.items()}


def failure_of(error: ReconcilerError | RowError) -> Failure:
    """What a task tells of an error that it met while ordering."""
    return Failure(error.error, error.row) if isinstance(error, RowError) else Failure(error)


def _decoded(table: TableName, halves: list[KeyedHalf]) -> list[canal.Image]:
    try:
        return [canal.decode_image(half[2]) for half in halves]
    except canal.UNREADABLE:
        for key, order, image, _ in halves:
            try:
                canal.decode_image(image)
            except canal.UNREADABLE as error:
                hint = "values are texts or null in Canal-JSON: something other than TiCDC wrote this message"
                refusal = InputError(f"row of {table} can't be read: {error}", hint=hint)
                raise RowError(refusal, fingerprint(key, order)) from error
        raise


def _by_table(halves: list[KeyedHalf], names: Mapping[str, tuple[str, ...]]) -> Mapping[TableName, list[KeyedHalf]]:
    if len(names) == 1 and halves:  # to ask each row takes as long as to decode it
        return {table_of(halves[0][0]): halves}
    by_table: dict[TableName, list[KeyedHalf]] = {}
    for half in halves:
        by_table.setdefault(table_of(half[0]), []).append(half)
    return by_table


def _by_columns(decoded: list[canal.Image]) -> Iterator[tuple[tuple[str, ...], list[tuple[str | None, ...]]]]:
    """Rows by the columns that were sent; mostly one group."""
    if not _mixed(decoded):
        yield tuple(decoded[0]), [tuple(image.values()) for image in decoded]
        return
    names: Callable[[canal.Image], tuple[str, ...]] = tuple
    for columns, some in groupby(sorted(decoded, key=names), key=names):
        yield columns, [tuple(image.values()) for image in some]


def _mixed(images: list[canal.Image]) -> bool:
    return len({len(image) for image in images}) > 1 or len({tuple(image) for image in images}) > 1


def _distinct(keys: Iterable[list[str | None]]) -> list[tuple[str | None, ...]]:
    return list(dict.fromkeys(map(tuple, keys)))


def _grouped(chunks: Iterable[Chunk | Unfetched]) -> Iterator[tuple[Chunk | Unfetched, ...]]:
    """Chunks that travel together: several small ones, or one that is large."""
    some: list[Chunk | Unfetched] = []
    for chunk in chunks:
        some.append(chunk)
        if sum(len(one.payload) for one in some if isinstance(one, Chunk)) >= _CHUNK_BYTES:
            yield tuple(some)
            some = []
    if some:
        yield tuple(some)


def _slices(halves: Iterable[KeyedHalf]) -> Iterator[list[KeyedHalf]]:
    """Cut so that a chunk stays small in rows and in bytes."""
    some: list[KeyedHalf] = []
    held = 0
    for half in halves:
        some.append(half)
        held += len(half[2])
        if len(some) >= _CHUNK_ROWS or held >= _CHUNK_BYTES:
            yield some
            some, held = [], 0
    if some:
        yield some

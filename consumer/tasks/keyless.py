"""Tables without a valid index (`force-replicate`): their rows are read, counted and encoded apart from all others.

They bypass the shuffle: a reading task counts copies and reports them, the driver nets them and adds them to the unit
that moves the progress, for deleting and inserting copies is not idempotent. So such rows have to fit into the driver's
memory, and each partition is read by one task. `ordering.rows.keyless_rows` tells copies from repetitions.
"""

from array import array
from collections.abc import Iterable, Iterator, Sequence

from consumer.codec import canal_json
from ordering.errors import InputError, TargetError, UnfitRowError
from ordering.events import Kind, Position, RowOp, TableName
from ordering.rows.equal_rows import EqualRows, EqualRowsFinder
from ordering.rows.identity import fingerprint, key_values, ordinal, row_key, table_of
from ordering.rows.keyless_rows import Copies, CopyCounter, EventHalf, Passes, merged, net_copies
from ordering.timestamps import CommitTs
from sinks.rows.chunk import Chunk, Encoder, writable
from sinks.rows.schema import Catalog, TableSchema
from sinks.rows.values import hint_of

_CHUNK_ROWS = 20_000
_Row = tuple[str | None, ...]


class KeylessRows:
    """The rows without a key of one range."""

    def __init__(self, watermark: int | None) -> None:
        self.passes = Passes(watermark)
        self.watermarks = array("Q")
        """Two numbers each: offset, watermark."""
        self._counter, self._equal = CopyCounter(), EqualRowsFinder()
        self._in_pass = (0, 0)
        self._marks: dict[tuple[bytes, int], dict[bytes, int]] = {}

    def watermark(self, offset: int, ts: int) -> None:
        """Take a watermark."""
        self.passes.watermark(ts)
        self.watermarks.extend((offset, ts))

    def seen(self, name: TableName, commit_ts: int) -> None:
        """Take a row event's place in the order of passes: once for each that is read, before `add`."""
        self._in_pass = self.passes.row(name, commit_ts)

    def add(
        self, name: TableName, kind: Kind, message: canal_json.Envelope, position: Position, *, keep: bool
    ) -> list[int]:
        """Count a row event; the fingerprints of its halves. `keep`: else it is only fingerprinted."""
        ts = CommitTs(message.tidb.commit_ts) if message.tidb else CommitTs(0)
        mark = message.tidb.row_key if message.tidb else b""
        found, event = [], 0
        halves = _halves(name, kind, message, position)
        for (content, half), (other, _) in zip(halves, reversed(halves), strict=True):
            order = ordinal(ts, half)
            of = EventHalf(content, order, mark, other if len(halves) > 1 else b"")
            copy = self._counter.add(of, self._in_pass) if keep else 0
            found.append(_fingerprint(content, order, mark, copy))
            event ^= found[-1] if copy == 0 else _fingerprint(content, order, mark, 0)
        if keep and not mark:
            self._equal.add(name, ts, self._in_pass, position.offset, event)
        return found

    def repeated(
        self, name: TableName, kind: Kind, message: canal_json.Envelope, position: Position
    ) -> tuple[int, int]:
        """Two fingerprints of a row event that counts no more: its own, and what it had without its row key.

        TiCDC may have been told to send row keys since.
        """
        first = self.add(name, kind, message, position, keep=False)[0]
        if message.tidb is None or not message.tidb.row_key:
            return first, first
        content, half = _halves(name, kind, message, position)[0]
        order = ordinal(message.tidb.commit_ts, half)
        marks = self._marks.setdefault((content, order), {})
        return first, _fingerprint(content, order, b"", marks.setdefault(message.tidb.row_key, len(marks)))

    def found(self) -> list[Copies]:
        """What was counted."""
        return self._counter.found()

    def equal_rows(self) -> list[EqualRows]:
        """Where rows of one commitTs are equal."""
        return self._equal.found()


def _fingerprint(content: bytes, order: int, mark: bytes, copy: int) -> int:
    return fingerprint(content + mark + copy.to_bytes(4), order)


def _halves(name: TableName, kind: Kind, message: canal_json.Envelope, position: Position) -> list[tuple[bytes, RowOp]]:
    """What a message does to contents; the half that stands for the message first."""
    canal_json.check_row(message, position)
    if message.tidb is None or message.tidb.only_handle_key or message.tidb.claim_check_location or not message.data:
        hint = "raise max-message-bytes in the changefeed: such a row is its content, so it has to be in the message"
        fact = "a row of a table without a key is not in its message"
        raise UnfitRowError(fact, where=str(position), hint=hint)
    if message.tidb.only_new:
        hint = "let the changefeed send old values: without one nothing tells which row it was"
        raise UnfitRowError("an UPDATE of a table without a key lacks its old row", where=str(position), hint=hint)
    try:
        now = canal_json.decode_image(message.data[0])
        if kind is not Kind.UPDATE:
            return [(_content(name, now), RowOp.DELETE if kind is Kind.DELETE else RowOp.WRITE)]
        before = {**now, **canal_json.decode_image(message.old[0])} if message.old else now
    except canal_json.UNREADABLE as error:
        raise InputError(f"row of {name} can't be read: {error}", where=str(position)) from error
    return [(_content(name, now), RowOp.WRITE), (_content(name, before), RowOp.DELETE)]


def _content(name: TableName, image: canal_json.Image) -> bytes:
    return row_key(name, [part for item in sorted(image.items()) for part in item])


def net_chunks(found: Iterable[Copies], catalog: Catalog, encoder: Encoder) -> Iterator[Chunk]:
    """The net effect as chunks. Raises TargetError."""
    rows: dict[tuple[TableName, RowOp, tuple[str, ...]], list[_Row]] = {}
    for content, count in net_copies(merged(found)).items():
        parts = key_values(content)
        columns, row = tuple(map(str, parts[::2])), tuple(parts[1::2])
        half = RowOp.WRITE if count > 0 else RowOp.DELETE
        rows.setdefault((table_of(content), half, columns), []).extend([row] * abs(count))
    for (name, half, columns), some in sorted(rows.items(), key=lambda one: one[0]):
        schema = catalog.get(name)
        if schema is None:
            raise TargetError(f"table {name} is missing in the target", hint="create it as it is upstream")
        for start in range(0, len(some), _CHUNK_ROWS):
            yield _chunk(schema, half, columns, some[start : start + _CHUNK_ROWS], encoder)


def _chunk(schema: TableSchema, half: RowOp, columns: tuple[str, ...], rows: Sequence[_Row], encoder: Encoder) -> Chunk:
    positions = writable(schema, columns, deleted_first=True)
    names = tuple(columns[i] for i in positions)
    picked = [[row[i] for i in positions] for row in rows]
    try:
        payload = encoder.encode([column for name in names if (column := schema.column(name)) is not None], picked)
    except ValueError as error:
        hint = hint_of(error, "its columns are not as they are upstream: change them, or apply the DDL that is missing")
        raise TargetError(f"table {schema.name}: rows can't be encoded: {error}", hint=hint) from error
    deletes = half is RowOp.DELETE
    return Chunk(schema.name, half, names, len(rows), payload, plain_insert=not deletes, by_content=deletes)

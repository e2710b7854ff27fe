"""What Spark's tasks do for the data source: the row changes of a slice, as values.

An UPDATE that changes the handle key is a DELETE and an INSERT here, as TiCDC itself sends it by default: so raw and
split forms of one change agree, and what came in both forms counts once.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from consumer.codec import canal_json
from consumer.codec.canal_json import KINDS, Envelope, Image
from consumer.codec.row_images import TableKeys, unfit_images
from consumer.filters.tables import TableFilter
from consumer.kafka.account import check_account, epochs_upto
from consumer.kafka.reader import Readers
from consumer.spark_source.planning import Slice, check_leaders
from ordering.errors import InputError, ReconcilerError
from ordering.events import Kind, Position, RowOp, TableName
from ordering.rows.identity import fingerprint, key_values, ordinal
from sinks.rows.schema import spelled

DELETE, UPDATE, INSERT, DDL = "delete", "update", "insert", "ddl"
_decode_images = msgspec.json.Decoder(Image).decode


class FeedChange(NamedTuple):
    """One row change. `before`, `after`: whole rows, texts as TiCDC spells them; None where there is none."""

    table: TableName
    kind: str
    commit_ts: int
    op: RowOp
    key: Image
    before: Image | None
    after: Image | None
    position: Position


@dataclass(frozen=True, slots=True)
class SliceReader:
    """Reads slices; travels to the tasks. Raises ReconcilerError."""

    readers: Readers
    accepts: TableFilter
    handle_keys: Mapping[TableName, tuple[str, ...]]
    message_bytes: int

    def changes(self, part: Slice) -> Iterator[FeedChange]:
        """The changes of a slice, each once, in the order of its messages."""
        reader, read, taken = self.readers.get(), _SliceRead(self, part), 0
        where = part.range
        try:
            for _, run in reader.read([(where.partition, where.start, where.stop)]):
                taken += len(run)
                yield from read.taken(run)
            reached = reader.reached(where.partition)
            check_account(where, reached, taken)
            check_leaders(where, epochs_upto(reached.epochs, where.stop), part.epochs)
        except ReconcilerError:
            self.readers.forget()
            raise


class _SliceRead:
    """One slice, message by message."""

    def __init__(self, reader: SliceReader, part: Slice) -> None:
        self._reader, self._part = reader, part
        self._given: set[int] = set()
        self._keys: dict[tuple[str, str, tuple[str, ...] | None], TableKeys | None] = {}

    def taken(self, messages: Iterable[Any]) -> Iterator[FeedChange]:
        """The changes that these messages hold."""
        low, high, limit = self._part.low, self._part.high, self._reader.message_bytes
        for message in messages:
            position = Position(*self._part.range.partition, message.offset())
            event = canal_json.decode(canal_json.plain(message.value(), position, limit), position)
            if event.is_ddl or event.type == canal_json.WATERMARK:
                continue
            canal_json.check_row(event, position)
            if low < event.tidb.commit_ts <= high:  # type: ignore[union-attr]  # checked
                yield from self._changes(event, position)

    def _changes(self, event: Envelope, position: Position) -> Iterator[FeedChange]:
        keys = self._keys_of(event)
        if keys is None:
            return
        tidb: canal_json.Extension = event.tidb  # type: ignore[assignment]  # checked
        if tidb.only_handle_key or tidb.claim_check_location:
            hint = "the data source reads rows from their messages only: apply such a changefeed with a target"
            raise InputError(f"a row of {keys.name} is not in its message", where=str(position), hint=hint)
        old = None if event.old is None else event.old[0]
        image = event.data[0]  # type: ignore[index]  # checked
        try:
            for one in _halves(event.type, keys, image, old):
                if self._is_ours(one.row, ordinal(tidb.commit_ts, one.op)):
                    key = dict(zip(keys.names, key_values(one.row), strict=True))
                    yield FeedChange(keys.name, one.kind, tidb.commit_ts, one.op, key, one.before, one.after, position)
        except canal_json.UNREADABLE as error:
            images = [image] if old is None else [image, old]
            raise unfit_images(keys, images, error, str(position)) from None

    def _keys_of(self, event: Envelope) -> TableKeys | None:
        place = (event.database, event.table, event.primary_key)
        if place not in self._keys:
            name = spelled(TableName(event.database, event.table), self._reader.handle_keys)
            names = event.primary_key or self._reader.handle_keys.get(name, ())
            counts = names and self._reader.accepts(event.database, event.table)
            self._keys[place] = TableKeys(name, names) if counts else None
        return self._keys[place]

    def _is_ours(self, row: bytes, order: int) -> bool:
        """Whether a change is given here: a repetition is given once, by the first slice that has it."""
        part = self._part
        if not (part.elsewhere or part.twice):
            return True
        identity = fingerprint(row, order)
        if identity in part.elsewhere or identity in self._given:
            return False
        if identity in part.twice:
            self._given.add(identity)
        return True


class _Half(NamedTuple):
    """What a message says of one handle key."""

    row: bytes
    op: RowOp
    kind: str
    before: Image | None
    after: Image | None


def _halves(kind: str, keys: TableKeys, data: msgspec.Raw, old: msgspec.Raw | None) -> Iterator[_Half]:
    """What a message says of each handle key. Raises what `canal_json.UNREADABLE` names."""
    image = _decode_images(data)
    match KINDS[kind]:
        case Kind.INSERT:
            yield _Half(keys.key(data), RowOp.WRITE, INSERT, None, image)
        case Kind.DELETE:
            yield _Half(keys.key(data), RowOp.DELETE, DELETE, image, None)
        case _ if old is not None:
            key, left = keys.keys(data, old)
            before = image | _decode_images(old)
            if left is None:
                yield _Half(key, RowOp.WRITE, UPDATE, before, image)
            else:
                yield _Half(left, RowOp.DELETE, DELETE, before, None)
                yield _Half(key, RowOp.WRITE, INSERT, None, image)

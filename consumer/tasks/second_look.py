"""Other looks at messages than to apply them: mostly a second one, for what the first look did not keep.

`DdlTask`: a look ahead, for the DDLs of a window that is yet to be read. `DenseTask`: for batches that take much
memory.

`ContentTask`: the contents of a few fingerprints; only where two messages of one identity differ byte by byte, which is
rare and mostly harmless (another order of columns after a restart). `RowTask`: where the rows lie that a target refuses
or an encoder can't encode, for the shuffle carries no positions.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from consumer.codec import canal_json
from consumer.codec.row_images import TableKeys
from consumer.codec.watermarks import plain_or_none, seems_ddl
from consumer.formats.message_format import Untaken
from consumer.kafka.account import check_account, messages_in
from consumer.kafka.reader import Readers
from consumer.large_messages.fetch import Bodies
from consumer.large_messages.reference import reference
from consumer.tasks.read_spec import ReadSpec
from consumer.tasks.report import RawDdl
from consumer.tasks.scans.scan import ELSEWHERE
from ordering.errors import InputError, ReconcilerError
from ordering.events import Kind, Partition, Position, RowOp, TableName
from ordering.rows.identity import content_hash, fingerprint, key_values, ordinal, table_of
from ordering.rows.split_update import split
from ordering.timestamps import CommitTs, utc_text
from ordering.window import Range
from sinks.rows.chunk import Chunk, Encoder
from sinks.rows.schema import TableSchema, spelled

if TYPE_CHECKING:
    from consumer.kafka.admin import KafkaAdmin
    from consumer.kafka.bounded_reader import BoundedReader

_SHOWN = 100
"""Characters of a key's value in a message."""

_decode_columns = msgspec.msgpack.Decoder(list[tuple[str, str | None]]).decode


_kept: "dict[str, tuple[KafkaAdmin, BoundedReader]]" = {}


@dataclass(frozen=True, slots=True)
class BoundedReaders:
    """Bounded readers for tasks, one kept per process and settings."""

    settings: Mapping[str, Any]
    message_bytes: int

    def get(self) -> "BoundedReader":
        """See `Readers.get`. Few tasks need kafka-python, which takes long to load."""
        from consumer.kafka.admin import KafkaAdmin  # noqa: PLC0415
        from consumer.kafka.bounded_reader import BoundedReader  # noqa: PLC0415

        name = repr((sorted(self.settings.items()), self.message_bytes))
        if name not in _kept:
            control = KafkaAdmin(self.settings["bootstrap.servers"], self.settings)
            _kept[name] = control, BoundedReader(control, self.message_bytes)
        return _kept[name][1]

    def forget(self) -> None:
        """See `Readers.forget`."""
        while _kept:
            _kept.popitem()[1][0].close()


class Content(NamedTuple):
    """The content of one message: what it is called, its identity, its image with the columns sorted.

    `fingerprint`: of the identity. `spelling`: of its bytes, as the first look told contents apart. `partly`: only some
    columns are in the message, the row is elsewhere.
    """

    identity: bytes
    position: Position
    name: str
    image: bytes
    fingerprint: int
    spelling: int
    partly: bool = False

    def agrees(self, other: "Content") -> bool:
        """Whether nothing speaks against one row in both."""
        if not (self.partly or other.partly):
            return self.image == other.image
        mine, theirs = _columns(self.image), _columns(other.image)
        return all(mine[name] == theirs[name] for name in mine.keys() & theirs.keys())


class MessagePlace(NamedTuple):
    """Where a row event lies, what it is called, and its row's key: empty where the table has none."""

    commit_ts: int
    position: Position
    name: str
    row: bytes = b""
    deletes: bool = False


def place_of_row(places: Iterable[MessagePlace], applied: int, *, net_effect: bool) -> MessagePlace | None:
    """Which of several messages that hold a row is meant: the last of a net effect, else the first not applied."""
    waiting = sorted(place for place in places if place.commit_ts > applied)
    return waiting[-1 if net_effect else 0] if waiting else None


@dataclass(frozen=True, slots=True)
class Sought:
    """A row that is sought: by its message's fingerprint, or as the chunk that the encoder made of it alone."""

    fingerprint: int | None = None
    chunk: Chunk | None = None
    schema: TableSchema | None = None
    encoder: Encoder | None = None
    bodies: Bodies | None = None
    """Where the rows are that are not in their message."""

    def is_key(self, key: bytes, kind: Kind, ts: int) -> bool:
        """Whether the fingerprint is that of this event."""
        return self.fingerprint == fingerprint(key, split(kind, CommitTs(ts), moved=False)[0])

    def is_row(self, name: TableName, kind: Kind, image: msgspec.Raw) -> bool:
        """Whether this image is encoded as the chunk says."""
        chunk = self.chunk
        if chunk is None or chunk.table != name or (kind is Kind.DELETE) != (chunk.half is RowOp.DELETE):
            return False
        columns = [c for n in chunk.columns if self.schema is not None and (c := self.schema.column(n)) is not None]
        try:
            row = canal_json.decode_image(image)
            encoded = self.encoder.encode(columns, [[row[c.name] for c in columns]]) if self.encoder else b""
        except (ValueError, KeyError):  # a row that can't be encoded is not the one that was sent to the target
            return False
        return encoded == chunk.payload


def messages_of(
    spec: ReadSpec, readers: Readers, ranges: Iterable[Range]
) -> Iterator[tuple[Position, canal_json.Envelope]]:
    """All messages of some ranges, decoded. Raises SourceUnreachableError where a range was not read to its stop."""
    for part in ranges:
        reader, taken = spec.format.reading(readers.get(), spec.message_bytes), 0
        for partition, run in reader.read([(part.partition, part.start, part.stop)]):
            taken += messages_in(run) if spec.format.sends_batches else len(run)
            for message in run:
                position = Position(*partition, message.offset())
                try:
                    plain = canal_json.plain(message.value(), position, spec.message_bytes)
                    found = canal_json.decode(plain, position)
                except Untaken:
                    continue
                except InputError:
                    if not spec.marks.tolerant:
                        raise
                    continue  # the first look has told of it
                yield position, found
        check_account(part, reader.reached(part.partition), taken)


def ddls_of(partition: Partition, run: Iterable[Any], limit: int) -> Iterator[RawDdl]:
    """The DDLs among some messages. Of nearly all only a few bytes are looked at; what can't be read is passed over."""
    for message in run:
        try:
            plain = plain_or_none(message.value(), limit)
        except (InputError, Untaken):
            continue
        if plain is not None and seems_ddl(plain) and (found := _ddl_in(plain)) is not None:
            yield RawDdl(Position(*partition, message.offset()), *found)


@dataclass(frozen=True, slots=True)
class DdlTask:
    """Yields the DDLs; runs in Spark tasks, before a window is read.

    What it does not find is met when the window is read, which tells too of what is wrong with a message.
    """

    spec: ReadSpec
    readers: Readers

    def __call__(self, ranges: Iterable[Range]) -> Iterator[RawDdl]:
        """Read the ranges."""
        reader = self.spec.format.reading(self.readers.get(), self.spec.message_bytes)
        for part in ranges:
            for partition, run in reader.read([(part.partition, part.start, part.stop)]):
                yield from ddls_of(partition, run, self.spec.message_bytes)


@dataclass(frozen=True, slots=True)
class DenseTask:
    """Yields the partitions that are to be read batch by batch; runs in Spark tasks, after a reading lost its worker.

    Raises InputError for a batch that holds too much.
    """

    readers: BoundedReaders

    def __call__(self, ranges: Iterable[Range]) -> Iterator[Partition]:
        """Read the ranges again, slowly and within bounds."""
        reader = self.readers.get()
        for part in ranges:
            for _ in reader.read([(part.partition, part.start, part.stop)]):
                pass
            if reader.is_dense:
                yield part.partition


def _ddl_in(plain: bytes) -> tuple[int, str, str, str, str] | None:
    try:
        message = canal_json.envelope(plain)
    except canal_json.UNREADABLE:
        return None
    if not message.is_ddl or message.tidb is None or message.tidb.commit_ts <= 0:
        return None
    return message.tidb.commit_ts, message.type, message.database, message.table, message.sql


@dataclass(frozen=True, slots=True)
class RowTask:
    """Yields the places of the sought row; runs in Spark tasks."""

    spec: ReadSpec
    readers: Readers
    sought: Sought

    def __call__(self, ranges: Iterable[Range]) -> Iterator[MessagePlace]:
        """Read the ranges again."""
        for position, message in messages_of(self.spec, self.readers, ranges):
            kind = canal_json.KINDS.get(message.type)
            if kind is None or message.is_ddl or not message.data or message.tidb is None:
                continue
            name = spelled(TableName(message.database, message.table), self.spec.handle_keys)
            ts = message.tidb.commit_ts
            names = message.primary_key or self.spec.handle_keys.get(name, ())
            if not self.spec.window.base < ts <= self.spec.window.high:
                continue
            if not names:
                if self._is_sought_content(name, kind, message):
                    yield MessagePlace(ts, position, f"table {name}, commitTs {ts} ({utc_text(ts)} UTC)")
                continue
            key = _key(name, names, message)
            if key is None:
                continue
            image = self._whole(
                (key, ordinal(CommitTs(ts), RowOp.WRITE), message.data[0]), message.tidb, names, position
            )
            if self.sought.is_key(key, kind, ts) or self.sought.is_row(name, kind, image):
                yield MessagePlace(ts, position, named_row(name, names, key_values(key), ts), key, kind is Kind.DELETE)

    def _whole(
        self, half: tuple[bytes, int, msgspec.Raw], tidb: canal_json.Extension, names: Sequence[str], position: Position
    ) -> msgspec.Raw:
        """The row's image, fetched where the target refused one of its table."""
        key, order, image = half
        chunk, bodies = self.sought.chunk, self.sought.bodies
        elsewhere = bool(tidb.claim_check_location) or tidb.only_handle_key
        if not elsewhere or bodies is None or chunk is None or chunk.table != table_of(key):
            return image
        try:
            found = bodies.whole(chunk.table, names, [(key, order, reference(tidb.claim_check_location, position), 0)])
            return msgspec.Raw(next(whole for _, _, whole, _ in found))
        except ReconcilerError:  # a row that can't be had is not the one that was sent to the target
            return image

    def _is_sought_content(self, name: TableName, kind: Kind, message: canal_json.Envelope) -> bool:
        """Whether a message of a table without a key holds the row: deleted or written, or as an UPDATE both."""
        images = [(kind, message.data[0])] if message.data else []
        images += [(Kind.DELETE, message.old[0])] if kind is Kind.UPDATE and message.old else []
        return any(self.sought.is_row(name, half, image) for half, image in images)


def named_row(table: TableName, names: Sequence[str], values: Sequence[str | None], ts: int) -> str:
    """A row for people: its table, its key, its commitTs."""
    key = ", ".join(f"{name}={(value or '')[:_SHOWN]!r}" for name, value in zip(names, values, strict=True))
    return f"table {table}, key {key}, commitTs {ts} ({utc_text(ts)} UTC)"


@dataclass(frozen=True, slots=True)
class ContentTask:
    """Yields the contents of the wanted messages; runs in Spark tasks."""

    spec: ReadSpec
    readers: Readers
    wanted: frozenset[int]

    def __call__(self, ranges: Iterable[Range]) -> Iterator[Content]:
        """Read the ranges again."""
        for position, message in messages_of(self.spec, self.readers, ranges):
            found = self._content(message, position)
            if found is not None:
                yield found

    def _content(self, message: canal_json.Envelope, position: Position) -> Content | None:
        if message.is_ddl or message.type not in ("INSERT", "UPDATE") or not message.data or message.tidb is None:
            return None
        name = spelled(TableName(message.database, message.table), self.spec.handle_keys)
        names = message.primary_key or self.spec.handle_keys.get(name, ())
        ts = message.tidb.commit_ts
        if not names or not self.spec.window.base < ts <= self.spec.window.high:
            return None
        key = _key(name, names, message)
        if key is None or (found := fingerprint(key, ordinal(CommitTs(ts), RowOp.WRITE))) not in self.wanted:
            return None
        try:
            image = msgspec.msgpack.encode(sorted(canal_json.decode_image(message.data[0]).items()))
        except canal_json.UNREADABLE as error:
            hint = "values are texts or null in Canal-JSON: something other than TiCDC wrote this message"
            raise InputError(f"row of {name} can't be read: {error}", where=str(position), hint=hint) from error
        title = f"{name}, commitTs {ts} ({utc_text(ts)} UTC)"
        partly = message.tidb.only_handle_key or bool(message.tidb.claim_check_location)
        spelling = ELSEWHERE if partly else content_hash(bytes(message.data[0]))
        return Content(ts.to_bytes(8) + key, position, title, image, found, spelling, partly)


def _key(name: TableName, names: Sequence[str], message: canal_json.Envelope) -> bytes | None:
    """The row key of a message; None where it lacks it, of which the first look has told."""
    try:
        return TableKeys(name, names).key(message.data[0]) if message.data else None
    except msgspec.DecodeError:
        return None


def _columns(image: bytes) -> canal_json.Image:
    return dict(_decode_columns(image))

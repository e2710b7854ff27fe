"""TiCDC's Debezium format with TiDB's extension: one event a message, with the schema of its table in each.

Key: the handle key's columns; value: `payload` and `schema`. Facts: pingcap/ticdc, `pkg/sink/codec/debezium`. Neither
messages without `schema` nor such without `tidb_type` in it can be read: TEXT and BLOB, numbers with a sign and
without look alike there.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial

import msgspec

from consumer.codec.canal_json import ONLY_NEW, UNREADABLE, Tso
from consumer.codec.compression import BadCompressionError, decompressed, is_compressed
from consumer.codec.foreign import EXTENSION_HINT, refused
from consumer.formats.debezium.columns import DebeziumTable, Field, UnsureError, kind_of
from consumer.formats.joined import KeyedEvents, apart, joined, keyed_messages
from consumer.formats.sent_schema import SentSchema
from consumer.formats.translated import TranslatedMessages
from consumer.kafka.reader import Messages
from ordering.errors import AnotherProtocolError, InputError
from ordering.events import Position
from ordering.timestamps import ResolvedTs

_KINDS = {"c": "INSERT", "u": "UPDATE", "d": "DELETE"}
_WATERMARK = "m"
_MARK = b'"op":"m"'
_NOTHING, _NULL = msgspec.Raw(), b"null"
_ODD = "not written by TiCDC with protocol=debezium as documented"
_MOST_TABLES, _MOST_SCHEMAS = 10_000, 32 << 20
"""How many tables are remembered, and how many bytes of their schemas."""
_HEAD = 4096
_SCHEMA = "set debezium-disable-schema=false in the changefeed's sink URI, and begin with a new topic"
_encode = msgspec.json.Encoder().encode


class _Source(msgspec.Struct, gc=False):
    connector: str = ""
    db: str = ""
    table: str = ""
    commit_ts: Tso = 0


class _Payload(msgspec.Struct, gc=False):
    source: _Source
    op: str = ""
    before: msgspec.Raw = _NOTHING
    after: msgspec.Raw = _NOTHING
    ddl: str = ""


class _Message(msgspec.Struct, gc=False):
    payload: _Payload
    schema: msgspec.Raw = _NOTHING


class _Image(msgspec.Struct, gc=False):
    field: str
    fields: msgspec.Raw = _NOTHING


class _Schema(msgspec.Struct, gc=False):
    fields: list[_Image]


class _Key(msgspec.Struct, gc=False):
    payload: dict[str, msgspec.Raw]


_decode = msgspec.json.Decoder(_Message).decode
_decode_key = msgspec.json.Decoder(_Key).decode
_decode_schema = msgspec.json.Decoder(_Schema).decode
_decode_fields = msgspec.json.Decoder(list[Field]).decode
_decode_row = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def _plain(value: bytes, where: str, limit: int) -> bytes:
    """Decompressed, if it was compressed. Raises InputError with the position.

    A snappy block may begin with any byte, but not with `{"`: its second byte would copy what is not there yet.
    """
    if not value or value.startswith(b'{"'):
        return value
    try:
        return decompressed(value, limit)
    except BadCompressionError as error:
        if not is_compressed(value):
            return value  # what is wrong with it is said by the one who decodes it
        hint = "truncated, not written by TiCDC with protocol=debezium, or larger than limits.message-bytes"
        raise InputError(f"message can't be decompressed: {error}", where=where, hint=hint) from error


@dataclass(frozen=True, slots=True)
class Debezium:
    """`protocol=debezium` with `enable-tidb-extension=true`. See `MessageFormat`.

    `zone`: `source.time-zone`; `accepts`: whether values pass that TiCDC's encoder may have changed.
    """

    zone: str = "UTC"
    accepts: bool = False
    name: str = "debezium"
    keeps_schemas: bool = False
    sends_batches: bool = False

    def knowing(self, schemas: Iterable[SentSchema]) -> "Debezium":  # noqa: ARG002 each message tells its own
        """See `MessageFormat.knowing`."""
        return self

    def learned(self, reader: Messages) -> list[SentSchema]:  # noqa: ARG002
        """See `MessageFormat.learned`."""
        return []

    def reading(self, reader: Messages, limit: int) -> TranslatedMessages:
        """See `MessageFormat.reading`."""
        return keyed_messages(reader, _Events(self), limit)

    def content(self, key: bytes | None, value: bytes | None) -> bytes | None:
        """See `MessageFormat.content`."""
        return joined(key, value)

    def canal(self, value: bytes | None, position: Position, limit: int) -> bytes | None:
        """See `MessageFormat.canal`."""
        return _Events(self).canal(value, position, limit)

    def shown(self, value: bytes | None, position: Position, limit: int) -> Sequence[bytes | None]:
        """See `MessageFormat.shown`: values stand as the message holds them."""
        return [_Events(Debezium(self.zone, accepts=True)).canal(value, position, limit)]

    def watermark_in(self, value: bytes | None, limit: int) -> ResolvedTs | None:
        """See `MessageFormat.watermark_in`."""
        if not value or len(value) > limit:
            return None
        try:
            plain = _plain(apart(value)[1], "", limit)
            if _MARK not in plain:
                return None
            payload = _decode(plain).payload
        except (InputError, *UNREADABLE):
            return None  # what is wrong with it is said by the task that decodes it
        ts = payload.source.commit_ts
        return ResolvedTs(ts) if payload.op == _WATERMARK and ts > 0 else None


class _Events(KeyedEvents):
    """Brings messages into the form that tasks read, with the tables that were met on the way."""

    def __init__(self, format_: Debezium) -> None:
        self._convert = partial(kind_of, zone=format_.zone, accepts=format_.accepts)
        self._tables: dict[tuple[str, str, bytes, tuple[str, ...]], DebeziumTable] = {}
        self._held = 0

    def told(self, key: bytes, value: bytes, at: Position, limit: int) -> bytes:
        """See `KeyedEvents.told`."""
        where = str(at)
        plain = _plain(value, where, limit)
        try:
            message = _decode(plain)
        except UNREADABLE as error:
            start = plain[:80].decode("utf-8", "replace")
            fact = f"message is not of Debezium's format: {error}; it begins {start!r}"
            other = b"" if b'"payload"' in plain[:_HEAD] else plain
            raise refused(fact, other, where, f"truncated, or {_ODD}") from None
        source = message.payload.source
        if source.connector != "TiCDC":
            hint = "only TiCDC's messages are read: those of other connectors have neither commitTs nor watermarks"
            raise AnotherProtocolError(f"message is of connector {source.connector[:80]!r}", where=where, hint=hint)
        if source.commit_ts <= 0:
            raise InputError("message lacks commit_ts", where=where, hint=_ODD)
        try:
            return self._event_of(message, _plain(key, where, limit - len(plain)), where)
        except UnsureError as error:
            hint = 'source.lossy-values = "accept" takes what the message holds; no other protocol of TiCDC loses it'
            raise InputError(f"a row of {source.db}.{source.table}: {error}"[:400], where=where, hint=hint) from None
        except (*UNREADABLE, ValueError) as error:
            fact = f"an event of {source.db}.{source.table} can't be read: {error}"[:400]
            raise InputError(fact, where=where, hint=f"truncated, or {_ODD}") from None

    def _event_of(self, message: _Message, key: bytes, where: str) -> bytes:
        """Raises InputError, ValueError, and what a decoder raises."""
        payload, source = message.payload, message.payload.source
        if payload.op == _WATERMARK:
            return _encode({"type": "TIDB_WATERMARK", "_tidb": {"watermarkTs": source.commit_ts}})
        if payload.op in _KINDS:
            return self._row(message, key, where)
        if payload.op or not payload.ddl:
            fact = f"message has the unknown op {payload.op[:80]!r}" if payload.op else "message has neither op nor ddl"
            hint = "this reconciler is older than the TiCDC that wrote it, or something else writes to this topic"
            raise InputError(fact, where=where, hint=hint)
        told = {"database": source.db, "table": source.table, "isDdl": True, "type": "QUERY", "sql": payload.ddl}
        return _encode({**told, "_tidb": {"commitTs": source.commit_ts}})

    def _row(self, message: _Message, key: bytes, where: str) -> bytes:
        payload = message.payload
        table = self._table(message, tuple(_decode_key(key).payload), where)
        new, old = _row_of(payload.after), _row_of(payload.before)
        kind = _KINDS[payload.op]
        data, before = (old, None) if kind == "DELETE" else (new, old)
        if data is None or (kind == "INSERT" and before is not None):
            message_ = f"op {payload.op!r} lacks its row, or has one too many"
            raise ValueError(message_)
        more = b""
        if before is None and kind == "UPDATE":  # `output-old-value = false`
            before, more = {}, ONLY_NEW
        images = b',"old":[%b],"data":[%b]' % (table.image(before), table.image(data)) if before is not None else (
            b',"old":null,"data":[%b]' % table.image(data)
        )  # fmt: skip
        ts = payload.source.commit_ts
        return b'%b,"type":"%b"%b,"_tidb":{"commitTs":%d%b}}' % (table.head, kind.encode(), images, ts, more)

    def _table(self, message: _Message, key: tuple[str, ...], where: str) -> DebeziumTable:
        source, schema = message.payload.source, bytes(message.schema)
        identity = (source.db, source.table, schema, key)
        if identity not in self._tables:
            fields = _fields(schema, where)
            self._held += len(schema)
            if self._held > _MOST_SCHEMAS or len(self._tables) >= _MOST_TABLES:
                self._tables.clear()
                self._held = len(schema)
            self._tables[identity] = DebeziumTable((source.db, source.table), fields, list(key), self._convert)
        return self._tables[identity]


def _row_of(image: msgspec.Raw) -> dict[str, msgspec.Raw] | None:
    """The values of an image. From a copy of it: what is raw in something raw does not keep that alive."""
    raw = bytes(image)
    return None if raw in (b"", _NULL) else _decode_row(raw)


def _fields(schema: bytes, where: str) -> dict[str, Field]:
    """A row's columns by name. Raises InputError where the schema tells too little, and what a decoder raises."""
    if schema in (b"", _NULL):
        fact = "message lacks its schema, without which the types of its values are not known"
        raise AnotherProtocolError(fact, where=where, hint=_SCHEMA)
    images = {one.field: one.fields for one in _decode_schema(schema).fields}
    found = {field.field: field for field in _decode_fields(bytes(images.get("after", _NOTHING)))}
    if any(not field.tidb_type for field in found.values()):
        fact = "message lacks the TiDB extension (`tidb_type` in its schema): TEXT and BLOB look alike"
        raise AnotherProtocolError(fact, where=where, hint=EXTENSION_HINT)
    return found

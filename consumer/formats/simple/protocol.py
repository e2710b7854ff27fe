"""TiCDC's Simple protocol: one event a message, values by the schema that a row names.

Each message tells by its first bytes whether it is JSON or Avro, so no setting can be wrong, and a topic may hold both.

Schemas come in BOOTSTRAP messages and with DDLs. What is known of them travels with the format; what a task meets
besides it reports (`MessageFormat.learned`). A row whose schema is not known yet waits in Kafka (`Untaken`). Facts of
the format: TiCDC documentation, "TiCDC Simple Protocol"; TiCDC's encoder, `pkg/sink/codec/simple`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from consumer.codec.canal_json import UNREADABLE, Plain, Tso
from consumer.codec.compression import BadCompressionError, decompressed
from consumer.codec.foreign import SET_ASIDE, SIMPLE_AVRO, refused
from consumer.formats.message_format import Untaken, WaitingRow
from consumer.formats.sent_schema import SchemaIdentity, SentSchema, read_schema
from consumer.formats.simple.avro import avro_parts, is_avro, is_avro_watermark
from consumer.formats.simple.avro_rows import AvroRowReader, shown_image
from consumer.formats.simple.compiled import CompiledTranslation
from consumer.formats.simple.rows import RowReader
from consumer.formats.translated import TranslatedMessages
from consumer.kafka.reader import Messages
from consumer.native import Wanted, chosen
from consumer.native.simple_rows import RowLayout
from ordering.errors import InputError
from ordering.events import Partition, Position
from ordering.timestamps import ResolvedTs
from sinks.ddl.parse.statement import names_no_database

_WATERMARK, _BOOTSTRAP = "WATERMARK", "BOOTSTRAP"
_IMAGES = {"INSERT": (True, False), "UPDATE": (True, True), "DELETE": (False, True)}
"""Of each kind of row event, whether it holds the new row and the old one."""
_DDLS = {"CREATE", "RENAME", "CINDEX", "DINDEX", "ERASE", "TRUNCATE", "ALTER", "QUERY"}
_MARK = b'"WATERMARK"'
_PLAIN = (b'{"', *SIMPLE_AVRO)
_LZ4_MAGIC, _LONG_VARINT = b"\x04\x22\x4d\x18", 0x80
_DATABASE_DDL = re.compile(
    r"\s*(?:CREATE|DROP|ALTER)\s+(?:DATABASE|SCHEMA)\s+(?:IF\s+(?:NOT\s+)?EXISTS\s+)?(?:`((?:[^`]|``)+)`|([^\s;`]+))",
    re.IGNORECASE,
)
_ODD = "not written by TiCDC as documented"
_KNOWN_VERSION = 1
_NOTHING, _NULL = msgspec.Raw(), msgspec.Raw(b"null")
_UNUSUAL = (*UNREADABLE, KeyError, ValueError)
_encode = msgspec.json.Encoder().encode


class _Checksum(msgspec.Struct, gc=False):
    corrupted: bool = False
    current: int = 0
    previous: int = 0


class SimpleMessage(msgspec.Struct, gc=False):
    """A message; images and schemas stay raw, and empty where there are none."""

    type: str
    version: int = 0
    database: str = ""
    table: str = ""
    sql: str = ""
    commit_ts: Tso = msgspec.field(default=0, name="commitTs")
    schema_version: Tso = msgspec.field(default=0, name="schemaVersion")
    claim_check_location: str = msgspec.field(default="", name="claimCheckLocation")
    handle_key_only: bool = msgspec.field(default=False, name="handleKeyOnly")
    checksum: _Checksum | None = None
    data: msgspec.Raw = _NOTHING
    old: msgspec.Raw = _NOTHING
    schema: msgspec.Raw = msgspec.field(default=_NOTHING, name="tableSchema")
    before: msgspec.Raw = msgspec.field(default=_NOTHING, name="preTableSchema")

    @property
    def identity(self) -> SchemaIdentity:
        """The schema that a row names."""
        return SchemaIdentity(self.database, self.table, self.schema_version)


class AvroMessage(SimpleMessage, gc=False):
    """A message that came in Avro: its images are Avro, its schemas were made JSON."""


_decode = msgspec.json.Decoder(SimpleMessage).decode


def simple_plain(value: bytes, where: str, limit: int) -> bytes:
    """The JSON or Avro of a message. Raises InputError with the position.

    A compressed message is told by not beginning as a plain one: a snappy block may begin with any byte, for a
    watermark is shorter than the 128 bytes from which on its length fills more than one.
    """
    if len(value) > limit:
        hint = "raise limits.message-bytes if the message is genuine"
        raise InputError(f"message holds {len(value)} bytes, limits.message-bytes is {limit}", where=where, hint=hint)
    if value.startswith(_PLAIN):
        return value
    try:
        return decompressed(value, limit)
    except BadCompressionError as error:
        if value.startswith(_LZ4_MAGIC) or value[0] >= _LONG_VARINT:
            hint = "truncated, not written by TiCDC with protocol=simple, or larger than limits.message-bytes"
            raise InputError(f"message can't be decompressed: {error}", where=where, hint=hint) from error
        return value  # what is wrong with it is said by the one who decodes it


def simple_message(value: bytes | None, where: str, limit: int) -> SimpleMessage:
    """A message's parts. Raises InputError with the position."""
    if not value:
        what = "a tombstone (no value)" if value is None else "empty (0 bytes)"
        raise InputError(f"message is {what}", where=where, hint="something other than TiCDC writes to this topic")
    plain = simple_plain(value, where, limit)
    try:
        found = _from_avro(plain) if is_avro(plain) else _decode(plain)
    except (*UNREADABLE, ValueError) as error:
        raise _undecodable(plain, where, error) from None
    if found.version != _KNOWN_VERSION:
        otherwise = "not written by TiCDC with protocol=simple, or by one that is newer than this reconciler"
        raise refused(f"message is of version {found.version} of the Simple protocol", plain, where, otherwise)
    return found


def _from_avro(plain: bytes) -> SimpleMessage:
    """Raises ValueError, and what a decoder raises."""
    parts = avro_parts(plain)
    raws = {name: parts.pop(name) for name in ("data", "old", "tableSchema", "preTableSchema") if name in parts}
    found = msgspec.convert(parts, AvroMessage)
    found.data, found.old = raws.get("data", _NOTHING), raws.get("old", _NOTHING)
    found.schema, found.before = raws.get("tableSchema", _NOTHING), raws.get("preTableSchema", _NOTHING)
    return found


def _undecodable(value: bytes, where: str, error: Exception) -> InputError:
    start = value[:80].decode("utf-8", "replace")
    wrong_shape = isinstance(error, msgspec.ValidationError)
    fact = "message is JSON but not of the Simple protocol" if wrong_shape else "message is not valid JSON"
    if is_avro(value):
        raise InputError(f"message can't be read: {error}", where=where, hint=f"truncated, or {_ODD}")
    fact = "message is nested too deeply" if isinstance(error, RecursionError) else fact
    otherwise = f"truncated, or not written by TiCDC with protocol=simple; {SET_ASIDE}"
    return refused(f"{fact}: {error}; it begins {start!r}", value, where, otherwise)


@dataclass(frozen=True, slots=True)
class Simple:
    """`protocol=simple`. See `MessageFormat`. `zone`: `source.time-zone`."""

    zone: str = "UTC"
    schemas: Mapping[SchemaIdentity, SentSchema] = field(default_factory=dict)
    """Those that are known."""
    name: str = "simple"
    keeps_schemas: bool = True
    sends_batches: bool = False
    native: Wanted = "auto"
    """Whether the compiled core reads rows."""

    def knowing(self, schemas: Iterable[SentSchema]) -> "Simple":
        """See `MessageFormat.knowing`."""
        return replace(self, schemas={**self.schemas, **{one.identity: one for one in schemas}})

    def reading(self, reader: Messages, limit: int) -> "SimpleReading":
        """See `MessageFormat.reading`."""
        return SimpleReading(reader, self, limit)

    def learned(self, reader: Messages) -> list[SentSchema]:
        """See `MessageFormat.learned`."""
        return list(reader.events.learned.values()) if isinstance(reader, SimpleReading) else []

    def canal(self, value: bytes | None, position: Position, limit: int) -> bytes | None:
        """See `MessageFormat.canal`."""
        try:
            return _Events(self).canal(value, str(position), limit)
        except Untaken as untaken:
            raise untaken.refused(str(position)) from None

    def content(self, key: bytes | None, value: bytes | None) -> bytes | None:  # noqa: ARG002 TiCDC sends none
        """See `MessageFormat.content`."""
        return value

    def shown(self, value: bytes | None, position: Position, limit: int) -> Sequence[bytes | None]:
        """See `MessageFormat.shown`: binary values stay base64, a TIMESTAMP keeps its zone beside it."""
        message = simple_message(value, str(position), limit)
        if message.type not in _IMAGES:
            try:
                return [_Events(self).canal(value, str(position), limit)]
            except Untaken:
                return [_encode({"type": message.type, "_tidb": {}})]
        images = [_shown(message, raw, str(position)) if raw else None for raw in (message.data, message.old)]
        new, old = images if message.data else (images[1], None)
        told = {"database": message.database, "table": message.table, "type": message.type}
        tidb = {"commitTs": message.commit_ts}
        return [_encode({**told, "data": [new], "old": None if old is None else [old], "_tidb": tidb})]

    def watermark_in(self, value: bytes | None, limit: int) -> ResolvedTs | None:
        """See `MessageFormat.watermark_in`."""
        try:
            plain = simple_plain(value, "", limit) if value else b""
            if not is_avro_watermark(plain) and _MARK not in plain:
                return None
            message = _from_avro(plain) if is_avro(plain) else _decode(plain)
        except (InputError, ValueError, *UNREADABLE):
            return None  # what is wrong with it is said by the task that decodes it
        return ResolvedTs(message.commit_ts) if message.type == _WATERMARK and message.commit_ts > 0 else None


def _shown(message: SimpleMessage, raw: msgspec.Raw, where: str) -> dict[str, str | None]:
    try:
        if isinstance(message, AvroMessage):
            return shown_image(bytes(raw))
        row = msgspec.json.decode(raw, type=dict[str, str | dict[str, str] | None])
    except (*UNREADABLE, ValueError) as error:
        raise InputError(f"row can't be read: {error}", where=where, hint=_ODD) from None
    return {name: " ".join(value.values()) if isinstance(value, dict) else value for name, value in row.items()}


def _database_of(sql: str) -> str:
    """The database that a DDL is about whose message names no table; "" where the statement names none either."""
    found = _DATABASE_DDL.match(sql)
    return (found[1].replace("``", "`") if found[1] is not None else found[2]) if found else ""


class _Events:
    """Brings messages into the form that tasks read, with the schemas that are known, and those met on the way."""

    def __init__(self, format_: Simple) -> None:
        self._format = format_
        self.learned: dict[SchemaIdentity, SentSchema] = {}
        self._readers: dict[tuple[str, str, int], RowReader] = {}
        self._avro_readers: dict[tuple[str, str, int], RowReader] = {}
        self._met: list[RowReader] = []

    def canal(self, value: bytes | None, where: str, limit: int) -> bytes:
        """A message as Canal-JSON. Raises InputError with the position, and Untaken where there is nothing to take."""
        message = simple_message(value, where, limit)
        if message.type in _IMAGES:
            return self._row(message, where)
        if message.type == _WATERMARK:
            return _encode({"type": "TIDB_WATERMARK", "_tidb": {"watermarkTs": message.commit_ts}})
        if message.type == _BOOTSTRAP:
            if not message.schema:
                raise InputError("BOOTSTRAP lacks tableSchema", where=where, hint=_ODD)
            self._learn(read_schema(message.schema, where), where)
            raise Untaken(None)
        if message.type in _DDLS:
            return self._ddl(message, where)
        hint = "this reconciler is older than the TiCDC that wrote it, or something else writes to this topic"
        raise InputError(f"message has the unknown type {message.type!r}"[:200], where=where, hint=hint)

    def usual(self, value: bytes) -> bytes | None:
        """As `canal` for a row as nearly all are, in half the time; None for all else, and for what is wrong."""
        try:
            message = _decode(value)
            reader = self._readers[message.database, message.table, message.schema_version]
            if not _is_usual(message):
                return None
            if message.type == "INSERT":
                images = b',"old":null,"data":[%b]' % reader.usual(message.data)
            elif message.type == "UPDATE":
                images = b',"old":[%b],"data":[%b]' % (reader.usual(message.old), reader.usual(message.data))
            elif message.type == "DELETE":
                images = b',"old":null,"data":[%b]' % reader.usual(message.old)
            else:
                return None
        except _UNUSUAL:
            return None
        return b'%b%b,"_tidb":{"commitTs":%d}}' % (reader.heads[message.type], images, message.commit_ts)

    def _ddl(self, message: SimpleMessage, where: str) -> bytes:
        if not message.sql or message.commit_ts <= 0:
            lacking = "sql" if message.commit_ts > 0 else "commitTs"
            raise InputError(f"DDL lacks {lacking}", where=where, hint=_ODD)
        sent = [read_schema(raw, where) for raw in (message.before, message.schema) if raw and raw != _NULL]
        for schema in sent:
            if schema.columns:
                self._learn(schema, where)
        if not sent and names_no_database(message.sql):
            hint = "make the change in the target by hand; the quarantine takes this message"
            raise InputError(
                f"no part of a DDL says which database it is about: {message.sql[:200]!r}", where=where, hint=hint
            )
        database, table = (sent[-1].database, sent[-1].table) if sent else (_database_of(message.sql), "")
        told = {"database": database, "table": table, "isDdl": True, "type": message.type, "sql": message.sql}
        return _encode({**told, "_tidb": {"commitTs": message.commit_ts}})

    def _learn(self, schema: SentSchema, where: str) -> None:
        known = self._format.schemas.get(schema.identity) or self.learned.get(schema.identity)
        if known is None:
            self.learned[schema.identity] = schema
        elif known != schema:
            raise InputError(
                f"table {schema.database}.{schema.table} has two schemas of version {schema.version}"[:400],
                where=where,
                hint="several changefeeds, or table routes, write tables of one name to this topic: give each a topic",
            )

    def _row(self, message: SimpleMessage, where: str) -> bytes:
        reader = self._reader(message, where)
        wants_new, wants_old = _IMAGES[message.type]
        elsewhere = message.handle_key_only or message.claim_check_location
        if message.checksum is not None:
            self._verify(message, reader, where, whole=not elsewhere)
        new = reader.image(message.data, where) if wants_new else b""
        old = reader.image(message.old, where) if wants_old else b""
        images = b',"old":[%b],"data":[%b]' % (old, new) if new and old else b',"old":null,"data":[%b]' % (new or old)
        if elsewhere:
            location = {"claimCheckLocation": message.claim_check_location} if message.claim_check_location else {}
            tidb = {"commitTs": message.commit_ts, "onlyHandleKey": not location, **location}
            return b'%b%b,"_tidb":%b}' % (reader.heads[message.type], images, _encode(tidb))
        return b'%b%b,"_tidb":{"commitTs":%d}}' % (reader.heads[message.type], images, message.commit_ts)

    def _reader(self, message: SimpleMessage, where: str) -> RowReader:
        """What reads a row. Raises Untaken where its schema is not known."""
        fault = _fault(message)
        if fault:
            raise InputError(f"{message.type} {fault}", where=where, hint=_ODD)
        identity = message.identity
        schema = self._format.schemas.get(identity)
        if schema is None and not message.claim_check_location:  # its file is read elsewhere, with what is known there
            schema = self.learned.get(identity)
        if schema is None:
            raise Untaken(WaitingRow(message.commit_ts, *identity))
        is_avro_row = isinstance(message, AvroMessage)
        readers, kind = (self._avro_readers, AvroRowReader) if is_avro_row else (self._readers, RowReader)
        reader = readers.get(identity)
        if reader is None:
            reader = readers[identity] = kind(schema, self._format.zone)
            self._met += [] if is_avro_row else [reader]
        return reader

    def layouts_met(self) -> list[RowLayout]:
        """How rows in JSON are read whose schemas were met since this was last asked."""
        found = [layout for reader in self._met if (layout := reader.layout()) is not None]
        self._met = []
        return found

    def _verify(self, message: SimpleMessage, reader: RowReader, where: str, *, whole: bool) -> None:
        sent = message.checksum or _Checksum()
        if sent.corrupted:
            raise InputError(
                f"TiCDC marked a row of {message.database}.{message.table} as corrupted (`checksum.corrupted`)"[:400],
                where=where,
                hint="compare the row with the upstream: TiKV, or TiCDC, has damaged it",
            )
        for raw, checksum in ((message.data, sent.current), (message.old, sent.previous)):
            if whole and raw and checksum:
                reader.verify(raw, checksum, where)


def _is_usual(message: SimpleMessage) -> bool:
    elsewhere = message.handle_key_only or message.claim_check_location
    return message.version == _KNOWN_VERSION and message.commit_ts > 0 and message.checksum is None and not elsewhere


def _fault(message: SimpleMessage) -> str:
    """What a row event lacks; "" if nothing."""
    wants_new, wants_old = _IMAGES[message.type]
    if message.commit_ts <= 0:
        return "lacks commitTs"
    if message.schema_version <= 0:
        return "lacks schemaVersion"
    if wants_new and not message.data:
        return "lacks data"
    return "lacks old" if wants_old and not message.old else ""


class SimpleReading(TranslatedMessages):
    """Gives the messages of a reader in the form that tasks read, one for one."""

    def __init__(self, reader: Messages, format_: Simple, limit: int) -> None:
        self.events = events = _Events(format_)
        core = chosen(format_.native).core
        self._compiled = CompiledTranslation(core, events.layouts_met, limit) if core is not None else None

        def events_of(message: Any, partition: Partition) -> list[Plain]:
            offset, value = message.offset(), message.value()
            if value and len(value) <= limit and (found := events.usual(value)) is not None:
                return [Plain(offset, found)]
            return [Plain(offset, events.canal(value, f"{partition} offset={offset}", limit))]

        super().__init__(reader, events_of)

    def _runs(self, partition: Partition, run: Sequence[Any]) -> Iterator[Sequence[Any]]:
        if self._compiled is None:
            return super()._runs(partition, run)
        return self._compiled.runs(run, partition, super()._runs)

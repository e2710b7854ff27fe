"""TiCDC's Open Protocol: a message holds a batch of events, its key what they are about, its value what they hold.

Key: the version in 8 bytes, then of each event a length in 8 bytes and JSON; value: of each event a length and JSON.
Facts of the format: TiCDC documentation, "TiCDC Open Protocol"; TiCDC's encoder, `pkg/sink/codec/open`. What it does
not tell: that an INSERT was an UPDATE (`output-old-value = false`), and a row's schema, beside each value's type.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from struct import Struct
from typing import Any

import msgspec

from consumer.codec.canal_json import UNREADABLE, Plain, Tso
from consumer.codec.compression import BadCompressionError, decompressed
from consumer.codec.ddl_types import ddl_type
from consumer.codec.foreign import plain_or_itself, refused
from consumer.formats.joined import apart, joined
from consumer.formats.open_rows import OpenColumn, OpenTables
from consumer.formats.sent_schema import SentSchema
from consumer.formats.translated import TranslatedMessages
from consumer.kafka.reader import Messages
from ordering.errors import InputError
from ordering.events import Partition, Position
from ordering.timestamps import ResolvedTs

_ROW, _DDL, _RESOLVED = 1, 2, 3
_NUMBER = Struct(">Q")
_WIDTH = _NUMBER.size
_VERSION = 1
_ODD = "not written by TiCDC with protocol=open-protocol"
_NAMELESS = {"t", "f", "v"}
"""What the parts of a value are called."""
_encode = msgspec.json.Encoder().encode


class _Key(msgspec.Struct, gc=False):
    """What an event is about."""

    ts: Tso
    type: int = msgspec.field(name="t")
    database: str = msgspec.field(default="", name="scm")
    table: str = msgspec.field(default="", name="tbl")
    only_handle_key: bool = msgspec.field(default=False, name="ohk")
    claim_check_location: str = msgspec.field(default="", name="ccl")


class _Row(msgspec.Struct, gc=False):
    """A row's images."""

    new: dict[str, OpenColumn] | None = msgspec.field(default=None, name="u")
    old: dict[str, OpenColumn] | None = msgspec.field(default=None, name="p")
    gone: dict[str, OpenColumn] | None = msgspec.field(default=None, name="d")


class _LooseRow(msgspec.Struct, gc=False):
    """The same where an old value came without its column's name: its parts stand among the columns."""

    new: dict[str, OpenColumn] | None = msgspec.field(default=None, name="u")
    old: dict[str, OpenColumn | str | int | float | bool | None] | None = msgspec.field(default=None, name="p")
    gone: dict[str, OpenColumn] | None = msgspec.field(default=None, name="d")


class _Ddl(msgspec.Struct, gc=False):
    sql: str = msgspec.field(name="q")
    type: int = msgspec.field(default=0, name="t")


_decode_key = msgspec.json.Decoder(_Key).decode
_decode_row = msgspec.json.Decoder(_Row).decode
_decode_loose = msgspec.json.Decoder(_LooseRow).decode
_decode_ddl = msgspec.json.Decoder(_Ddl).decode


def _parts(packed: bytes, start: int, what: str) -> list[bytes]:
    """The texts that a key or a value holds behind their lengths. Raises ValueError."""
    found, at = [], start
    while at < len(packed):
        if at + _WIDTH > len(packed):
            message = f"{what} ends within a length"
            raise ValueError(message)
        (length,) = _NUMBER.unpack_from(packed, at)
        at += _WIDTH
        if length > len(packed) - at:
            message = f"{what} names {length} bytes and holds {len(packed) - at}"
            raise ValueError(message)
        found.append(packed[at : at + length])
        at += length
    return found


def _pairs(key: bytes, value: bytes) -> list[tuple[bytes, bytes]]:
    """Key and value of each event of a message. Raises ValueError."""
    if len(key) < _WIDTH:
        message = f"its key holds {len(key)} bytes" if key else "it has no key"
        raise ValueError(message)
    if key.startswith(b"{") or value.startswith(b"{"):
        message = f"it begins {(value or key)[:80].decode('utf-8', 'replace')!r}"
        raise ValueError(message)
    (version,) = _NUMBER.unpack_from(key)
    if version != _VERSION:
        message = f"it is of version {version}"
        raise ValueError(message)
    keys, values = _parts(key, _WIDTH, "its key"), _parts(value, 0, "its value")
    if len(keys) != len(values) or not keys:
        message = f"its key holds {len(keys)} events, its value {len(values)}"
        raise ValueError(message)
    return list(zip(keys, values, strict=True))


def _plain(value: bytes, where: str, limit: int) -> bytes:
    """An event's JSON, decompressed where it was compressed. Raises InputError with the position.

    A snappy block may begin with any byte, but not with `{"`: its second byte would copy what is not there yet.
    """
    if value.startswith(b'{"') or value in (b"", b"{}"):
        return value
    try:
        return decompressed(value, limit)
    except BadCompressionError as error:
        raise InputError(f"message can't be decompressed: {error}", where=where, hint=f"truncated, or {_ODD}") from None


@dataclass(frozen=True, slots=True)
class OpenProtocol:
    """`protocol=open-protocol`. See `MessageFormat`."""

    name: str = "open-protocol"
    keeps_schemas: bool = False
    sends_batches: bool = True

    def knowing(self, schemas: Iterable[SentSchema]) -> "OpenProtocol":  # noqa: ARG002 each value tells its type
        """See `MessageFormat.knowing`."""
        return self

    def learned(self, reader: Messages) -> list[SentSchema]:  # noqa: ARG002
        """See `MessageFormat.learned`."""
        return []

    def reading(self, reader: Messages, limit: int) -> "OpenReading":
        """See `MessageFormat.reading`."""
        return OpenReading(reader, limit)

    def content(self, key: bytes | None, value: bytes | None) -> bytes | None:
        """See `MessageFormat.content`."""
        return joined(key, value)

    def canal(self, value: bytes | None, position: Position, limit: int) -> bytes | None:
        """See `MessageFormat.canal`."""
        found = list(_Events().canal(value, str(position), limit))
        if len(found) != 1:
            raise InputError(f"message holds {len(found)} events, one was wanted", where=str(position))
        return found[0]

    def shown(self, value: bytes | None, position: Position, limit: int) -> Sequence[bytes | None]:
        """See `MessageFormat.shown`."""
        return list(_Events().canal(value, str(position), limit))

    def watermark_in(self, value: bytes | None, limit: int) -> ResolvedTs | None:
        """See `MessageFormat.watermark_in`."""
        if not value or len(value) > limit:
            return None
        try:
            found = [_decode_key(key) for key, _ in _pairs(*apart(value))]
        except (*UNREADABLE, ValueError):
            return None  # what is wrong with it is said by the task that decodes it
        return max((ResolvedTs(key.ts) for key in found if key.type == _RESOLVED and key.ts > 0), default=None)


class _Events:
    """Brings messages into the form that tasks read."""

    def __init__(self) -> None:
        self._tables = OpenTables()

    def canal(self, content: bytes | None, where: str, limit: int) -> Iterator[bytes]:
        """The events of a message as Canal-JSON. Raises InputError with the position."""
        if content is None:
            hint = "something other than TiCDC writes to this topic"
            raise InputError("message is a tombstone (no key, no value)", where=where, hint=hint)
        yield from self.events(*apart(content), where, limit)

    def events(self, key: bytes, value: bytes, where: str, limit: int) -> Iterator[bytes]:
        """The same of a key and a value."""
        size = len(key) + len(value)
        if size > limit:
            hint = "raise limits.message-bytes if the message is genuine"
            raise InputError(f"message holds {size} bytes, limits.message-bytes is {limit}", where=where, hint=hint)
        try:
            pairs = _pairs(key, value)
        except ValueError as error:
            fact = f"message is not of the Open Protocol: {error}"
            raise refused(fact, plain_or_itself(value, limit), where, f"truncated, or {_ODD}") from None
        left = limit
        for about, held in pairs:
            plain = _plain(held, where, left)
            left -= len(plain)
            yield self._event(about, plain, where)

    def _event(self, about: bytes, plain: bytes, where: str) -> bytes:
        try:
            key = _decode_key(about)
            if key.type == _RESOLVED:
                return _encode({"type": "TIDB_WATERMARK", "_tidb": {"watermarkTs": key.ts}})
            if key.type == _ROW:
                return self._row(key, *_row_of(plain))
            if key.type == _DDL:
                return _ddl(key, _decode_ddl(plain))
        except UNREADABLE as error:
            raise InputError(f"an event can't be read: {error}", where=where, hint=f"truncated, or {_ODD}") from None
        except ValueError as error:
            fact = f"an event of {key.database}.{key.table} can't be read: {error}"[:400]
            raise InputError(fact, where=where, hint=_ODD) from None
        hint = "this reconciler is older than the TiCDC that wrote it, or something else writes to this topic"
        raise InputError(f"an event has the unknown type {key.type}", where=where, hint=hint)

    def _row(self, key: _Key, row: _Row, old_is_whole: bool) -> bytes:
        """A row event. Raises ValueError."""
        if key.ts <= 0 or not key.table:
            message = "its key lacks ts or tbl"
            raise ValueError(message)
        new, old = row.gone or row.new, None if row.gone else row.old
        if not new or (row.gone and row.new):
            message = "it holds neither `u` nor `d`, or both"
            raise ValueError(message)
        is_update = bool(old) or not old_is_whole
        kind = "DELETE" if row.gone else "UPDATE" if is_update else "INSERT"
        table = self._tables.of(key.database, key.table, new)
        before = self._tables.of(key.database, key.table, old).image(old) if old else b"{}"
        images = b',"old":%b,"data":[%b]' % (b"[%b]" % before if is_update else b"null", table.image(new))
        tidb: dict[str, Any] = {"commitTs": key.ts}
        if key.claim_check_location:
            tidb["claimCheckLocation"] = key.claim_check_location
        elif key.only_handle_key:
            tidb["onlyHandleKey"] = True
        if not old_is_whole:
            tidb["onlyNew"] = True
        return b'%b,"type":"%b"%b,"_tidb":%b}' % (table.head, kind.encode(), images, _encode(tidb))


def _row_of(plain: bytes) -> tuple[_Row, bool]:
    """A row's images, and whether the old one is whole. Raises ValueError, and what a decoder raises.

    With `only-output-updated-columns`, TiCDC's new architecture leaves out the name of a column that became NULL
    (`writeColumnFieldValueIfUpdated`). Nobody knows whose the old value was: it is left out.
    """
    try:
        return _decode_row(plain), True
    except msgspec.ValidationError:
        loose = _decode_loose(plain)
        old = {name: held for name, held in (loose.old or {}).items() if isinstance(held, OpenColumn)}
        nameless = (loose.old or {}).keys() - old.keys()
        if not nameless or nameless - _NAMELESS:
            raise
        if any(name in nameless and column.is_key for name, column in (loose.new or {}).items()):
            message = "an old value has no name, and a column of its key is called t, f or v"
            raise ValueError(message) from None
        return _Row(loose.new, old, loose.gone), False


def _ddl(key: _Key, ddl: _Ddl) -> bytes:
    """A DDL. Raises ValueError."""
    if key.ts <= 0 or not ddl.sql:
        message = "its key lacks ts, or its value q"
        raise ValueError(message)
    told = {"database": key.database, "table": key.table, "isDdl": True, "type": ddl_type(ddl.type)}
    return _encode({**told, "sql": ddl.sql, "_tidb": {"commitTs": key.ts}})


class OpenReading(TranslatedMessages):
    """Gives the events of a reader's messages, several for each message."""

    def __init__(self, reader: Messages, limit: int) -> None:
        events = _Events()

        def events_of(message: Any, partition: Partition) -> list[Plain]:
            offset, key, value = message.offset(), message.key(), message.value()
            where = f"{partition} offset={offset}"
            told = (
                events.canal(None, where, limit)
                if key is None and value is None
                else events.events(
                    key or b"", value or b"", where, limit
                )  # not joined: that would copy what is too long
            )
            return [Plain(offset, event) for event in told]

        super().__init__(reader, events_of)

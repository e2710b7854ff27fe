"""TiCDC's Avro protocol with TiDB's extension: one event a message, its columns by a schema of a registry.

A row: key and value are a schema's number and Avro. What has no schema begins with a byte of its own, and is there only
with `avro-enable-watermark=true`: a DDL (1), a watermark (2), and as the value of a DELETE its commitTs (3). A DELETE
without any of it, whose value is null, has no commitTs: it can't be ordered, and is refused. Facts: pingcap/ticdc,
`pkg/sink/codec/avro/{arvo,encoder,helper,decoder}.go`; Confluent documentation, "Wire format".
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from struct import Struct
from typing import NamedTuple

import msgspec

from consumer.codec.canal_json import ONLY_NEW, UNREADABLE, Tso
from consumer.codec.ddl_types import ddl_type
from consumer.codec.foreign import EXTENSION_HINT, GLUE_HINT, SET_ASIDE, is_of_glue, plain_or_itself, refused
from consumer.formats.avro.binary import AvroBytes
from consumer.formats.avro.registry import SchemaRegistry
from consumer.formats.avro.schema import BEFORE, COMMIT_TS, CORRUPTED, OP, AvroSchema
from consumer.formats.joined import KeyedEvents, apart, joined, keyed_messages
from consumer.formats.sent_schema import SentSchema
from consumer.formats.translated import TranslatedMessages
from consumer.kafka.reader import Messages
from ordering.errors import AnotherProtocolError, InputError, SourceError
from ordering.events import Position
from ordering.timestamps import ResolvedTs

_ROW, _DDL, _WATERMARK, _DELETE = b"\0", b"\1", b"\2", b"\3"
_NO_SCHEMA = bytes(5)
"""No registry has a schema of the number 0; so begins the Open Protocol."""
_HEADER, _MARK = Struct(">xI"), Struct(">xQ")
_LAST_TSO = 2**63 - 1
_KINDS = {"c": "INSERT", "u": "UPDATE", "d": "DELETE"}
_MOST_TABLES = 10_000
_ODD = f"truncated, or not written by TiCDC with protocol=avro as documented; {SET_ASIDE}"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|", re.ASCII)
_NO_COMMIT_TS = (
    "add enable-tidb-extension=true&avro-enable-watermark=true to the changefeed's sink URI (DELETEs bring their"
    " commitTs then in TiCDC's new architecture since May 2026), or avro-include-before-value=true together with"
    " source.watermark-from; or set protocol=canal-json, simple or open-protocol. Begin with a new topic"
)
_NO_KEY = (
    "its table has no primary key: give it one, add avro-include-before-value=true to the changefeed's sink URI, or set"
    " another protocol"
)
_NAMED = (
    "TiCDC writes rows under names of letters, digits and _ alone, so that rows of this table look like another's:"
    " leave it out of the changefeed ([filter] rules), or set protocol=canal-json, simple or open-protocol"
)
_encode = msgspec.json.Encoder().encode


class _Statement(msgspec.Struct, gc=False):
    """A DDL."""

    query: str
    type: int = 0
    database: str = msgspec.field(default="", name="schema")
    table: str = ""
    commit_ts: Tso = msgspec.field(default=0, name="commitTs")


_decode_ddl = msgspec.json.Decoder(_Statement).decode


class _Table(NamedTuple):
    """How rows of one pair of schemas, of a key and a value, are written in the form that tasks read."""

    schema: AvroSchema
    head: bytes


@dataclass(frozen=True, slots=True)
class Avro:
    """`protocol=avro` with `enable-tidb-extension=true`. See `MessageFormat`."""

    registry: SchemaRegistry = field(default_factory=SchemaRegistry)
    name: str = "avro"
    keeps_schemas: bool = False
    sends_batches: bool = False

    def knowing(self, schemas: Iterable[SentSchema]) -> "Avro":  # noqa: ARG002 the registry has them
        """See `MessageFormat.knowing`."""
        return self

    def learned(self, reader: Messages) -> list[SentSchema]:  # noqa: ARG002
        """See `MessageFormat.learned`."""
        return []

    def reading(self, reader: Messages, limit: int) -> TranslatedMessages:
        """See `MessageFormat.reading`. Asking the registry may raise SourceError."""
        return keyed_messages(reader, _Events(self), limit)

    def content(self, key: bytes | None, value: bytes | None) -> bytes | None:
        """See `MessageFormat.content`."""
        return joined(key, value)

    def canal(self, value: bytes | None, position: Position, limit: int) -> bytes | None:
        """See `MessageFormat.canal`. Asking the registry may raise SourceError."""
        return _Events(self).canal(value, position, limit)

    def shown(self, value: bytes | None, position: Position, limit: int) -> Sequence[bytes | None]:
        """See `MessageFormat.shown`."""
        return [self.canal(value, position, limit)]

    def watermark_in(self, value: bytes | None, limit: int) -> ResolvedTs | None:
        """See `MessageFormat.watermark_in`."""
        if not value or len(value) > limit:
            return None
        key, mark = apart(value)
        ts = 0 if key or not mark.startswith(_WATERMARK) or len(mark) != _MARK.size else _MARK.unpack(mark)[0]
        return ResolvedTs(ts) if 0 < ts <= _LAST_TSO else None


class _Events(KeyedEvents):
    """Brings messages into the form that tasks read, with the schemas that were met on the way."""

    def __init__(self, format_: Avro) -> None:
        self._registry = format_.registry
        self._tables: dict[tuple[str, int | None, int | None], _Table] = {}

    def told(self, key: bytes, value: bytes, at: Position, limit: int) -> bytes:
        """See `KeyedEvents.told`; raises SourceError too."""
        where = str(at)
        try:
            return self._read(key, value, at.topic, where, limit)
        except (*UNREADABLE, ValueError) as error:
            raise InputError(f"message can't be read: {error}"[:400], where=where, hint=_ODD) from None
        except (InputError, SourceError) as error:
            raise _placed(error, where) from error.__cause__

    def _read(self, key: bytes, value: bytes, topic: str, where: str, limit: int) -> bytes:
        """Raises InputError and SourceError, ValueError, and what a decoder raises."""
        if not value:
            fact = "message is a DELETE without its commitTs (its value is null), which can't be ordered"
            raise AnotherProtocolError(fact, where=where, hint=_NO_COMMIT_TS)
        if value.startswith(_ROW) and not value.startswith(_NO_SCHEMA):
            return self._row(key, value, topic)
        if value.startswith(_DELETE) and len(value) == _MARK.size:
            return self._deleted(key, _ts_of(value), topic, where)
        if not key and value.startswith(_WATERMARK):
            return _encode({"type": "TIDB_WATERMARK", "_tidb": {"watermarkTs": _ts_of(value)}})
        if not key and value.startswith(_DDL):
            return _ddl(value, where)
        start = value[:80].decode("utf-8", "replace")
        if is_of_glue(value):
            raise AnotherProtocolError("message names a schema of AWS Glue's registry", where=where, hint=GLUE_HINT)
        fact = f"message is not of the Avro protocol; it begins {start!r}"
        raise refused(fact, plain_or_itself(value, limit), where, _ODD)

    def _row(self, key: bytes, value: bytes, topic: str) -> bytes:
        number, reader = _begun(value)
        table = self._table(topic, _begun(key)[0] if key else None, number)
        image, told = table.schema.row(reader)
        reader.ended()
        kind, commit_ts = _KINDS.get(told[OP]), told[COMMIT_TS]
        if kind is None or not 0 < commit_ts <= _LAST_TSO:
            message = f"its operation is {told[OP][:80]!r}, its commitTs {commit_ts}"
            raise ValueError(message)
        if told.get(CORRUPTED):
            raise InputError(
                f"TiCDC marked a row of {'.'.join(table.schema.name)} as corrupted (`{CORRUPTED}`)"[:400],
                hint="compare the row with the upstream: TiKV, or TiCDC, has damaged it",
            )
        before = told.get(BEFORE)
        if (before is not None) != (kind != "INSERT") and (BEFORE in told or kind == "DELETE"):
            message = f"operation {told[OP]!r} lacks the row before it ({BEFORE}), or has one too many"
            raise ValueError(message)
        images = b'"old":[%b],"data":[%b]' % (_encode(before or {}), _encode(image)) if kind == "UPDATE" else (
            b'"old":null,"data":[%b]' % _encode(before if kind == "DELETE" else image)
        )  # fmt: skip
        more = ONLY_NEW if kind == "UPDATE" and before is None else b""
        return b'%b,"type":"%b",%b,"_tidb":{"commitTs":%d%b}}' % (table.head, kind.encode(), images, commit_ts, more)

    def _deleted(self, key: bytes, commit_ts: int, topic: str, where: str) -> bytes:
        """The DELETE of a row of which there is the key alone."""
        if not key:
            raise AnotherProtocolError("message is a DELETE without a key", where=where, hint=_NO_KEY)
        number, reader = _begun(key)
        table = self._table(topic, number, None)
        image, _ = table.schema.row(reader)
        reader.ended()
        return b'%b,"type":"DELETE","old":null,"data":[%b],"_tidb":{"commitTs":%d}}' % (
            table.head, _encode(image), commit_ts
        )  # fmt: skip

    def _table(self, topic: str, key: int | None, value: int | None) -> _Table:
        """How rows are read whose key and value have these schemas; without a value, the key's columns alone."""
        found = self._tables.get((topic, key, value))
        if found is None:
            found = self._made(topic, key, value)
            if len(self._tables) >= _MOST_TABLES:
                self._tables.clear()
            self._tables[topic, key, value] = found
        return found

    def _made(self, topic: str, key: int | None, value: int | None) -> _Table:
        of_key = None if key is None else self._registry.schema_of(topic, key)
        if of_key is not None and (of_key.rest or not of_key.columns):
            message = f"its key's schema, {key}, is none of a key"
            raise ValueError(message)
        of_value = None if value is None else self._registry.schema_of(topic, value)
        if of_value is not None and not {OP, COMMIT_TS} <= set(of_value.rest):
            fact = f"message lacks the TiDB extension: its schema, {value}, has no {COMMIT_TS}"
            raise AnotherProtocolError(fact, hint=EXTENSION_HINT)
        schema = of_value or of_key
        if schema is None or (of_key is not None and of_key.name != schema.name):
            message = f"its key, of schema {key}, is of another table than its value, of schema {value}"
            raise ValueError(message)
        names = sorted(column.name for column in of_key.columns) if of_key else None
        database, table = schema.name
        told = {"database": database, "table": table, "pkNames": names, "isDdl": False, "sql": ""}
        return _Table(schema, _encode({**told, "mysqlType": schema.kinds})[:-1])


def _placed(error: InputError | SourceError, where: str) -> InputError | SourceError:
    """The error with the message's position before its own place."""
    own = "" if error.where in ("", where) else f"; {error.where}"
    return type(error)(error.fact, where=f"{where}{own}", hint=error.hint)


def _begun(content: bytes) -> tuple[int, AvroBytes]:
    """The number of the schema, and what comes behind it. Raises ValueError."""
    if not content.startswith(_ROW) or len(content) < _HEADER.size:
        message = f"it begins {content[:8].hex()}, without the number of a schema"
        raise ValueError(message)
    return _HEADER.unpack_from(content)[0], AvroBytes(content[_HEADER.size :])


def _ts_of(value: bytes) -> int:
    """Raises ValueError."""
    ts: int = _MARK.unpack(value)[0] if len(value) == _MARK.size else 0
    if not 0 < ts <= _LAST_TSO:
        message = f"{value[:16].hex()} tells no TSO"
        raise ValueError(message)
    return ts


def _ddl(value: bytes, where: str) -> bytes:
    """Raises InputError, ValueError, and what a decoder raises."""
    sent = _decode_ddl(value[1:])
    if not sent.query or sent.commit_ts <= 0:
        message = "a DDL lacks its statement or its commitTs"
        raise ValueError(message)
    for name in (sent.database, sent.table):
        if not _NAME.fullmatch(name):
            fact = f"a DDL is about {sent.database}.{sent.table}, whose rows Avro can't name"[:400]
            raise AnotherProtocolError(fact, where=where, hint=_NAMED)
    told = {
        "database": sent.database,
        "table": sent.table,
        "isDdl": True,
        "type": ddl_type(sent.type),
        "sql": sent.query,
    }
    return _encode({**told, "_tidb": {"commitTs": sent.commit_ts}})

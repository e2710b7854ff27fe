"""Canal-JSON with TiDB's extension, decoded no further than asked.

The envelope is typed; row images stay raw bytes until a survivor needs its values. Facts of the format: TiDB
documentation, "TiCDC Canal-JSON Protocol", and TiCDC's encoder.
"""

from typing import Annotated, NamedTuple

import msgspec

from consumer.codec.compression import BadCompressionError, decompressed, is_compressed
from consumer.codec.foreign import EXTENSION_HINT, SET_ASIDE, foreign_hint, refused
from ordering.errors import AnotherProtocolError, InputError
from ordering.events import Kind, Position
from ordering.timestamps import CommitTs

WATERMARK = "TIDB_WATERMARK"

Image = dict[str, str | None]

UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What a decoder raises for bytes that are no JSON, not ours, or nested deeper than it follows."""

_LAST_TSO = 2**63 - 1
"""In the year 3084; targets keep a TSO as a signed number of 64 bits."""
_BOUNDS = msgspec.Meta(ge=0, le=_LAST_TSO)
Tso = Annotated[int, _BOUNDS]
ONLY_NEW = b',"onlyNew":true'
"""What follows the commitTs where `Extension.only_new` is so."""


class Extension(msgspec.Struct, gc=False):
    """`_tidb`: there only with `enable-tidb-extension=true`."""

    commit_ts: Annotated[CommitTs, _BOUNDS] = msgspec.field(default=CommitTs(0), name="commitTs")
    watermark_ts: Tso = msgspec.field(default=0, name="watermarkTs")
    only_handle_key: bool = msgspec.field(default=False, name="onlyHandleKey")
    claim_check_location: str = msgspec.field(default="", name="claimCheckLocation")
    only_new: bool = msgspec.field(default=False, name="onlyNew")
    """Of an UPDATE whose row before it is in no message, or in part; not TiCDC's, but of our readers of formats."""
    row_key: bytes = msgspec.field(default=b"", name="rowkey")
    """What TiKV calls the row (`output-row-key=true`), in base64."""
    blurred: str = ""
    """Of a row without a named key: a column that is left out or holds a constant, so that rows that differ may be
    equal; not TiCDC's, but of our reader of selected columns."""


class Envelope(msgspec.Struct, gc=False):
    """A message. `data` and `old` hold the raw JSON of one row's image each."""

    type: str
    database: str = ""
    table: str = ""
    primary_key: tuple[str, ...] | None = msgspec.field(default=None, name="pkNames")
    is_ddl: bool = msgspec.field(default=False, name="isDdl")
    sql: str = ""
    data: list[msgspec.Raw] | None = None
    old: list[msgspec.Raw] | None = None
    tidb: Extension | None = msgspec.field(default=None, name="_tidb")


class Plain(NamedTuple):
    """A message that did not come from the reader as it is."""

    at: int
    content: bytes | None

    def offset(self) -> int:
        """Where it lies in its partition."""
        return self.at

    def value(self) -> bytes | None:
        """Its JSON."""
        return self.content


class Typed(msgspec.Struct, gc=False):
    """Of a row event, what is looked at once for a table and range."""

    types: dict[str, str] | None = msgspec.field(default=None, name="mysqlType")


KINDS = {"INSERT": Kind.INSERT, "UPDATE": Kind.UPDATE, "DELETE": Kind.DELETE}
envelope = msgspec.json.Decoder(Envelope).decode
_typed = msgspec.json.Decoder(Typed).decode
decode_image = msgspec.json.Decoder(Image).decode


def types_of(value: bytes, position: Position) -> dict[str, str]:
    """The columns' types that a row event names (`mysqlType`). Raises InputError with the position."""
    try:
        return _typed(value).types or {}
    except UNREADABLE as error:
        hint = "not written by TiCDC as documented"
        raise InputError(f"the types of a row can't be read: {error}", where=str(position), hint=hint) from None


def plain(value: bytes | None, position: Position, limit: int) -> bytes | None:
    """The value itself, or what was compressed in it, of at most `limit` bytes. Raises InputError with the position."""
    if value is not None and len(value) > limit:
        hint = "raise limits.message-bytes if the message is genuine"
        raise InputError(
            f"message holds {len(value)} bytes, limits.message-bytes is {limit}", where=str(position), hint=hint
        )
    if not value or not is_compressed(value):
        return value
    try:
        return decompressed(value, limit)
    except BadCompressionError as error:
        hint = "truncated, not written by TiCDC with protocol=canal-json, or larger than limits.message-bytes"
        raise InputError(f"message can't be decompressed: {error}", where=str(position), hint=hint) from error


def decode(value: bytes | None, position: Position) -> Envelope:
    """The envelope of a plain value. Raises InputError with the position."""
    if not value:
        what = "a tombstone (no value)" if value is None else "empty (0 bytes)"
        raise InputError(
            f"message is {what}", where=str(position), hint="something other than TiCDC writes to this topic"
        )
    try:
        message = envelope(value)
    except UNREADABLE as error:
        raise _undecodable(value, position, error) from None
    if message.tidb is None:
        other = "" if message.primary_key or b'"pkNames"' in value else foreign_hint(value)
        raise AnotherProtocolError(
            "message lacks the TiDB extension (`_tidb`): without it there is no commitTs and no watermark",
            where=str(position),
            hint=other or EXTENSION_HINT,
        )
    return message


def _undecodable(value: bytes, position: Position, error: Exception) -> InputError:
    start = value[:80].decode("utf-8", "replace")
    wrong_shape = isinstance(error, msgspec.ValidationError)
    fact = "message is JSON but not Canal-JSON" if wrong_shape else "message is not valid JSON"
    fact = "message is nested too deeply" if isinstance(error, RecursionError) else fact
    otherwise = f"truncated, or not written by TiCDC with protocol=canal-json; {SET_ASIDE}"
    return refused(f"{fact}: {error}; it begins {start!r}", value, str(position), otherwise)


def check_row(message: Envelope, position: Position) -> None:
    """Raise InputError for a row event that can't be used; called for what the fast path found odd."""
    if message.type not in KINDS:
        hint = "this reconciler is older than the TiCDC that wrote it, or something else writes to this topic"
        raise InputError(f"message has the unknown type {message.type!r}", where=str(position), hint=hint)
    if message.tidb is None or message.tidb.commit_ts <= 0:
        raise InputError("row event lacks commitTs", where=str(position), hint="not written by TiCDC as documented")
    if not message.data or len(message.data) != 1:
        raise InputError("row event does not hold exactly one row in `data`", where=str(position))
    if message.type == "UPDATE" and (not message.old or len(message.old) != 1):
        raise InputError("UPDATE does not hold exactly one row in `old`", where=str(position))

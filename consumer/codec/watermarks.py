"""Watermarks and DDLs in messages as they come, looked for without decoding anything else."""

import re

import msgspec

from consumer.codec.canal_json import UNREADABLE, Tso
from consumer.codec.compression import BadCompressionError, decompressed, is_compressed
from ordering.timestamps import ResolvedTs

_MARK = b'"TIDB_WATERMARK"'
_IS_DDL, _TRUE = b'"isDdl"', re.compile(rb"\s*:\s*true")


class _Tidb(msgspec.Struct):
    watermark_ts: Tso = msgspec.field(default=0, name="watermarkTs")


class _Mark(msgspec.Struct):
    type: str
    tidb: _Tidb = msgspec.field(name="_tidb")


_decode_mark = msgspec.json.Decoder(_Mark).decode


def plain_or_none(value: bytes | None, limit: int) -> bytes | None:
    """A message's JSON; what is wrong with an unreadable one is said by the task that decodes it."""
    if value is not None and len(value) > limit:
        return None
    try:
        return decompressed(value, limit) if value and is_compressed(value) else value
    except BadCompressionError:
        return None


def watermark_in(value: bytes | None, limit: int) -> ResolvedTs | None:
    """The watermark that a message is; None if it is something else."""
    plain = plain_or_none(value, limit)
    if not plain or _MARK not in plain:
        return None
    try:
        mark = _decode_mark(plain)
    except UNREADABLE:
        return None
    return ResolvedTs(mark.tidb.watermark_ts) if mark.type == "TIDB_WATERMARK" else None


def seems_ddl(plain: bytes) -> bool:
    """Whether a message that is not compressed looks like a DDL; of another, only its beginning is looked at."""
    at = plain.find(_IS_DDL)
    return at >= 0 and _TRUE.match(plain, at + len(_IS_DDL)) is not None

"""Unpacks what a producer's `compression` packed, of which nothing bounds the size but who unpacks it.

librdkafka unpacks without a limit: gzip up to 1,030 times a batch's size, lz4 255 times, snappy 21 times. Here no more
than the limit and a few blocks are ever held. Codecs: https://kafka.apache.org/documentation/#messageformat.
"""

import zlib
from collections.abc import Callable

import cramjam
import zstandard

_GZIP = 31
"""zlib's `wbits` for a gzip stream with the largest window."""
_MOST_MEMBERS = 100
"""Producers write one; behind each one the rest is copied, so many would take time that grows with their square."""
_XERIAL = b"\x82SNAPPY\x00"
"""How Java's producers begin snappy: blocks follow, each behind its length; others write one raw block."""
_XERIAL_HEADER = 16
_DENSEST = 255
"""An lz4 block holds at most so many plain bytes in one."""
_NO_ROOM = "write whole buffer"
"""What cramjam says of lz4 that does not fit."""


class UnpackError(Exception):
    """A batch is not what its codec says, or nobody knows the codec."""


class BatchTooLargeError(UnpackError):
    """A batch holds more bytes than the limit."""


def unpacked(codec: int, packed: bytes, limit: int) -> bytes:
    """The records of a batch, of at most `limit` bytes. Raises BatchTooLargeError and UnpackError."""
    known = _CODECS.get(codec)
    if known is None:
        raise UnpackError(f"its codec {codec} is unknown")
    name, unpack = known
    try:
        found = unpack(packed, limit)
    except (zlib.error, cramjam.DecompressionError, zstandard.ZstdError, ValueError) as error:
        raise UnpackError(f"it is no {name}: {error}") from error
    if len(found) > limit:
        raise BatchTooLargeError(f"its {len(packed)} bytes of {name} hold more than {limit}")
    return found


def _gzip(packed: bytes, limit: int) -> bytes:
    """All members of a stream; one byte more than the limit where they hold more."""
    found, left, members = bytearray(), packed, 0
    while left and len(found) <= limit:
        members += 1
        if members > _MOST_MEMBERS:
            raise ValueError(f"it has more than {_MOST_MEMBERS} members")
        member = zlib.decompressobj(_GZIP)
        found += member.decompress(left, limit + 1 - len(found))
        if not member.eof and len(found) <= limit:
            raise ValueError("it ends early")
        left = member.unused_data
    return bytes(found)


def _snappy(packed: bytes, limit: int) -> bytes:
    if not packed.startswith(_XERIAL):
        return _snappy_block(packed, limit)
    found, at = bytearray(), _XERIAL_HEADER
    while at < len(packed) and len(found) <= limit:
        size = int.from_bytes(packed[at : at + 4], "big")
        found += _snappy_block(packed[at + 4 : at + 4 + size], limit - len(found))
        at += 4 + size
    return bytes(found)


def _snappy_block(packed: bytes, limit: int) -> bytes:
    if (size := cramjam.snappy.decompress_raw_len(packed)) > limit:
        raise BatchTooLargeError(f"its {len(packed)} bytes of snappy hold {size}, more than {limit}")
    return bytes(cramjam.snappy.decompress_raw(packed))


def _lz4(packed: bytes, limit: int) -> bytes:
    room = bytearray(min(limit, _DENSEST * len(packed)) + 1)
    try:
        size = cramjam.lz4.decompress_into(packed, room)
    except cramjam.DecompressionError as error:
        if _NO_ROOM in str(error):
            raise BatchTooLargeError(f"its {len(packed)} bytes of lz4 hold more than {limit}") from error
        raise
    del room[size:]
    return bytes(room)


def _zstd(packed: bytes, limit: int) -> bytes:
    with zstandard.ZstdDecompressor().stream_reader(packed, read_across_frames=True) as stream:
        return stream.read(limit + 1)


_CODECS: dict[int, tuple[str, Callable[[bytes, int], bytes]]] = {
    1: ("gzip", _gzip),
    2: ("snappy", _snappy),
    3: ("lz4", _lz4),
    4: ("zstd", _zstd),
}
"""By the lowest three bits of a batch's attributes."""

"""Values that TiCDC compressed (`large-message-handle-compression`): lz4 frames or raw snappy blocks.

Each message is told by its first bytes, and plain JSON costs nothing: an lz4 frame begins with its magic number, a
snappy block with its plain length as a varint, whose first byte is 0x80 or above from 128 bytes on. Every Canal-JSON
message has those, and no JSON begins so. The plain size is bounded before it is allocated.
"""

import struct
import threading

import cramjam
import xxhash

_BRACE = 0x7B
_LZ4_MAGIC = b"\x04\x22\x4d\x18"
_LONG_VARINT = 0x80
_DENSEST = 255
"""An lz4 block holds at most so many plain bytes in one (LZ4 documentation, block format)."""
_SMALLEST_BUFFER = 64 << 10

_HEADER = 7
_FLAGS = 0x64
"""Frame flags as TiCDC's encoder sets them: version 1, independent blocks, checksum of the content, no size."""
_SIZE = struct.Struct("<I")
_STORED = 1 << 31
_TAIL = 8


class _Buffers(threading.local):
    buffer = bytearray()


_kept = _Buffers()


class BadCompressionError(Exception):
    """The bytes are no whole frame or block, or hold more than the limit."""


def is_compressed(value: bytes) -> bool:
    """Whether a value (not empty) is compressed."""
    first = value[0]
    return first != _BRACE and (first >= _LONG_VARINT or value.startswith(_LZ4_MAGIC))


def decompressed(value: bytes, limit: int) -> bytes:
    """The plain value of a compressed one, of at most `limit` bytes. Raises BadCompressionError."""
    try:
        return _lz4(value, limit) if value.startswith(_LZ4_MAGIC) else _snappy(value, limit)
    except cramjam.DecompressionError as error:
        raise BadCompressionError(f"{error}; at most {limit} bytes are taken (limits.message-bytes)") from error


def _snappy(value: bytes, limit: int) -> bytes:
    size = cramjam.snappy.decompress_raw_len(value)
    if size > limit:
        raise BadCompressionError(f"snappy: {size} bytes of content, limits.message-bytes is {limit}")
    return bytes(cramjam.snappy.decompress_raw(value))


def _lz4(value: bytes, limit: int) -> bytes:
    buffer = _room(min(limit, max(_SMALLEST_BUFFER, _DENSEST * len(value))))
    try:
        if (plain := _lz4_block(value, buffer)) is not None:
            return plain
        return bytes(buffer[: cramjam.lz4.decompress_into(value, buffer)])
    finally:
        buffer.release()


def _lz4_block(value: bytes, buffer: memoryview) -> bytes | None:
    """The content of a frame of one block: ten times as fast as the library's frames, which allocate 4 MiB each.

    None for any other frame, and for a broken one: the library says what is wrong with it.
    """
    if len(value) < _HEADER + 2 * _SIZE.size + _TAIL or value[4] != _FLAGS:
        return None
    (size,) = _SIZE.unpack_from(value, _HEADER)
    begin = _HEADER + _SIZE.size
    if size & _STORED or len(value) != begin + size + _TAIL:
        return None
    try:
        plain = bytes(buffer[: cramjam.lz4.decompress_block_into(value[begin : begin + size], buffer)])
    except cramjam.DecompressionError:
        return None
    mark, checksum = _SIZE.unpack_from(value, begin + size)[0], _SIZE.unpack_from(value, len(value) - _SIZE.size)[0]
    return plain if mark == 0 and xxhash.xxh32_intdigest(plain) == checksum else None


def _room(size: int) -> memoryview:
    """A view of so many bytes of the thread's one buffer: allocating per message costs more than decompressing."""
    if len(_kept.buffer) < size:
        _kept.buffer = bytearray(size)
    return memoryview(_kept.buffer)[:size]

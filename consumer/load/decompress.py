"""Files as streams of plain bytes, whatever packed them: a block at a time is in memory."""

import gzip
import struct
import zlib
from collections.abc import Callable
from io import RawIOBase
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

import cramjam
import crc32c
import zstandard

_BLOCK = 64 << 10
"""A chunk of snappy's framing format holds at most so many plain bytes (google/snappy, framing_format.txt)."""
_SNAPPY_HEAD = b"\xff\x06\x00\x00sNaPpY"
_PACKED, _PLAIN, _FIRST_SKIPPABLE, _HEAD = 0x00, 0x01, 0x80, 0xFF
_MASK = 0xA282EAD8


class DamagedFileError(Exception):
    """What is in the file is not what its name says, or not all of it."""


UNREADABLE = (DamagedFileError, OSError, EOFError, zstandard.ZstdError, zlib.error)
"""What reading a stream raises where a file is damaged or was cut off."""


def opened(path: Path) -> IO[bytes]:
    """The plain bytes of a file, to be closed by the caller. Raises OSError."""
    opener = _OPENERS.get(path.suffix)
    return path.open("rb") if opener is None else opener(path)


def _gzip(path: Path) -> IO[bytes]:
    return cast("IO[bytes]", gzip.open(path))


def _zstd(path: Path) -> IO[bytes]:
    return cast("IO[bytes]", _WholeFrames(path))


class _WholeFrames(RawIOBase):
    """Zstandard frames; unlike the library's reader, it does not take a cut file for a whole one."""

    def __init__(self, path: Path) -> None:
        self._file: BinaryIO = path.open("rb")
        self._rest = b""
        self._frame: Any = None

    def read(self, size: int = -1) -> bytes:
        """About so many bytes; none at the end."""
        found: list[bytes] = []
        while size < 0 or sum(map(len, found)) < size:
            packed = self._rest or self._file.read(_BLOCK)
            if not packed:
                if self._frame is not None:
                    raise DamagedFileError("it ends within a frame of zstd")
                break
            self._frame = self._frame or zstandard.ZstdDecompressor().decompressobj()
            found.append(self._frame.decompress(packed))
            self._rest = self._frame.unused_data
            if self._frame.eof:
                self._frame = None
        return b"".join(found)

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        super().close()


class _Snappy(RawIOBase):
    """Snappy's framing format."""

    def __init__(self, path: Path) -> None:
        self._file: BinaryIO = path.open("rb")
        if self._file.read(len(_SNAPPY_HEAD)) != _SNAPPY_HEAD:
            self._file.close()
            raise DamagedFileError("it does not begin as a file of snappy does")

    def read(self, size: int = -1) -> bytes:
        """About so many bytes; none at the end."""
        found: list[bytes] = []
        while (size < 0 or sum(map(len, found)) < size) and (head := self._file.read(4)):
            kind, length = head[0], int.from_bytes(head[1:].ljust(3, b"\0"), "little")
            body = self._file.read(length)
            if len(head) < 4 or len(body) < length:  # noqa: PLR2004 the head's length
                raise DamagedFileError("it ends within a chunk of snappy")
            if kind in (_PACKED, _PLAIN):
                found.append(_checked(kind, body))
            elif kind < _FIRST_SKIPPABLE or (kind == _HEAD and head + body != _SNAPPY_HEAD):
                raise DamagedFileError(f"it holds a chunk of the unknown kind {kind:#x}")
        return b"".join(found)

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        super().close()


def _checked(kind: int, body: bytes) -> bytes:
    (told,), data = struct.unpack("<I", body[:4].ljust(4, b"\0")), body[4:]
    try:
        if kind == _PACKED and cramjam.snappy.decompress_raw_len(data) > _BLOCK:
            raise DamagedFileError("a chunk of snappy is too large")
        plain = bytes(cramjam.snappy.decompress_raw(data)) if kind == _PACKED else data
    except cramjam.DecompressionError as error:
        raise DamagedFileError(str(error)) from error
    own = crc32c.crc32c(plain)
    if ((own >> 15 | own << 17) + _MASK) & 0xFFFFFFFF != told:
        raise DamagedFileError("the checksum of a chunk of snappy is wrong")
    return plain


_OPENERS: dict[str, Callable[[Path], IO[bytes]]] = {
    ".gz": _gzip,
    ".gzip": _gzip,
    ".zst": _zstd,
    ".zstd": _zstd,
    ".snappy": lambda path: cast("IO[bytes]", _Snappy(path)),
}

"""PNGs with a palette: a page has few colours, and a third of the bytes says the same."""

import struct
import zlib
from collections.abc import Iterator

import numpy as np

_MAGIC = b"\x89PNG\r\n\x1a\n"
_COLOURS = 256
_ROUND = 4
"""Colours that differ by less, in each channel, become one."""


def with_palette(png: bytes) -> bytes:
    """A picture of 24 or 32 bits, as Chromium takes it, with a palette of at most 256 colours."""
    pixels = _pixels(png)
    height, width, _ = pixels.shape
    rounded = np.minimum(255, (pixels.astype(np.uint32) + _ROUND // 2) // _ROUND * _ROUND)
    codes = rounded[..., 0] << 16 | rounded[..., 1] << 8 | rounded[..., 2]
    found, places, counts = np.unique(codes, return_inverse=True, return_counts=True)
    kept = found[np.argsort(-counts, kind="stable")[:_COLOURS]]
    nearest = np.array([_nearest(one, kept) for one in found], dtype=np.uint8)
    rows = nearest[places.reshape(height, width)]
    body = np.concatenate([np.zeros((height, 1), np.uint8), rows], axis=1).tobytes()
    palette = b"".join(int(one).to_bytes(3, "big") for one in kept)
    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    parts = ((b"IHDR", header), (b"PLTE", palette), (b"IDAT", zlib.compress(body, 9)), (b"IEND", b""))
    return _MAGIC + b"".join(_chunk(kind, data) for kind, data in parts)


def _nearest(code: int, kept: "np.ndarray[tuple[int], np.dtype[np.uint32]]") -> int:
    distance = sum(((kept >> shift & 255).astype(np.int64) - (int(code) >> shift & 255)) ** 2 for shift in (16, 8, 0))
    return int(np.argmin(distance))


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _chunks(png: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = len(_MAGIC)
    while at < len(png):
        (size,) = struct.unpack_from(">I", png, at)
        yield png[at + 4 : at + 8], png[at + 8 : at + 8 + size]
        at += 12 + size


def _pixels(png: bytes) -> "np.ndarray[tuple[int, int, int], np.dtype[np.uint8]]":
    """Rows of red, green and blue; PNG's filters undone (RFC 2083, section 6)."""
    chunks = list(_chunks(png))
    width, height, depth, kind, _, _, interlace = struct.unpack(">IIBBBBB", chunks[0][1])
    if depth != 8 or kind not in (2, 6) or interlace:
        raise ValueError((depth, kind, interlace))
    channels = 3 if kind == 2 else 4
    data = zlib.decompress(b"".join(body for name, body in chunks if name == b"IDAT"))
    lines = np.frombuffer(data, np.uint8).reshape(height, 1 + width * channels)
    rows = np.zeros((height, width * channels), np.uint8)
    above = np.zeros(width * channels, np.uint8)
    for number, line in enumerate(lines):
        above = rows[number] = _unfiltered(int(line[0]), line[1:], above, channels)
    return rows.reshape(height, width, channels)[..., :3]


def _unfiltered(kind: int, line: "np.ndarray", above: "np.ndarray", step: int) -> "np.ndarray":
    if kind == 0:
        return line
    if kind == 1:
        return np.cumsum(line.reshape(-1, step), axis=0, dtype=np.uint8).reshape(-1)
    if kind == 2:
        return line + above
    return _slowly(kind, line.tolist(), above.tolist(), step)


def _slowly(kind: int, line: list[int], above: list[int], step: int) -> "np.ndarray":
    """Average and Paeth, which depend on what was undone just before."""
    out: list[int] = []
    for at, value in enumerate(line):
        left = out[at - step] if at >= step else 0
        up, corner = above[at], above[at - step] if at >= step else 0
        out.append((value + ((left + up) // 2 if kind == 3 else _paeth(left, up, corner))) & 255)
    return np.array(out, np.uint8)


def _paeth(left: int, up: int, corner: int) -> int:
    guess = left + up - corner
    return min((left, up, corner), key=lambda one: abs(guess - one))

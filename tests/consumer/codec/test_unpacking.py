"""What producers packed: whole within a limit, refused above it, and damaged without any other error."""

import gzip
import random
from collections.abc import Callable

import cramjam
import pytest
import zstandard

from consumer.kafka.unpacking import BatchTooLargeError, UnpackError, unpacked


def xerial(plain: bytes) -> bytes:
    """Snappy as Java's producers write it."""
    parts = (plain[at : at + 700] for at in range(0, len(plain), 700))
    blocks = [bytes(cramjam.snappy.compress_raw(part)) for part in parts]
    return b"\x82SNAPPY\x00" + bytes(8) + b"".join(len(one).to_bytes(4, "big") + one for one in blocks)


CODECS: dict[str, tuple[int, Callable[[bytes], bytes]]] = {
    "gzip": (1, gzip.compress),
    "snappy": (2, lambda plain: bytes(cramjam.snappy.compress_raw(plain))),
    "xerial": (2, xerial),
    "lz4": (3, lambda plain: bytes(cramjam.lz4.compress(plain))),
    "zstd": (4, lambda plain: zstandard.ZstdCompressor().compress(plain)),
}
PLAIN = bytes(2_000) + random.Random(1).randbytes(1_000)


@pytest.mark.parametrize("name", CODECS)
def test_up_to_the_limit(name: str) -> None:
    codec, pack = CODECS[name]
    assert unpacked(codec, pack(PLAIN), len(PLAIN)) == PLAIN
    for less in (len(PLAIN) - 1, 100, 0):
        with pytest.raises(BatchTooLargeError):
            unpacked(codec, pack(PLAIN), less)


@pytest.mark.parametrize("name", CODECS)
def test_damaged(name: str) -> None:
    codec, pack = CODECS[name]
    dice, whole, refused = random.Random(name), pack(PLAIN), 0
    for _ in range(2_000):
        data = bytearray(whole)
        for _ in range(dice.randrange(1, 5)):
            at = dice.randrange(len(data))
            how = dice.randrange(3)
            data[at : at + (1, 9, 0)[how]] = (dice.randbytes(1), b"", dice.randbytes(5))[how]
        try:
            assert len(unpacked(codec, bytes(data), 5_000)) <= 5_000
        except UnpackError:
            refused += 1
    assert refused > 100


def test_no_codec_of_ours() -> None:
    with pytest.raises(UnpackError, match="codec 7 is unknown"):
        unpacked(7, b"x", 10)


def test_a_stream_of_many_members_is_refused() -> None:
    """Reading them takes time that grows with their square: 1 MB a second, 8 MB a minute."""
    assert unpacked(1, gzip.compress(b"a") + gzip.compress(b"b"), 10) == b"ab"
    with pytest.raises(UnpackError, match="more than 100 members"):
        unpacked(1, gzip.compress(b"a") + gzip.compress(b"") * 400_000, 10)

"""Compressed values: every way in which lz4 and snappy spell a content, and nothing beyond the limit."""

import os

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consumer.codec.compression import BadCompressionError, decompressed, is_compressed
from tests.service.cells import VECTORS
from tests.service.lab import recorded

SIZES = (128, 65_535, 65_536, 1 << 20, 5 << 20)
FORMS = {"lz4": cramjam.lz4.compress, "snappy": cramjam.snappy.compress_raw}


@pytest.mark.parametrize("form", sorted(FORMS))
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("content", ["dense", "random"])
def test_what_was_compressed_comes_back_and_not_a_byte_above_the_limit(form: str, size: int, content: str) -> None:
    plain = b"{" * size if content == "dense" else os.urandom(size)
    value = bytes(FORMS[form](plain))
    assert is_compressed(value)
    assert decompressed(value, size) == plain
    with pytest.raises(BadCompressionError, match="message-bytes"):
        decompressed(value, size - 1)


@pytest.mark.parametrize("form", sorted(FORMS))
def test_what_ticdc_compressed_is_json(form: str) -> None:
    assert (VECTORS / f"split.{form}.split.jsonl.gz").exists()
    for message in recorded(f"split.{form}.split"):
        assert is_compressed(message.value)
        assert decompressed(message.value, 1 << 20).startswith(b'{"id":0,')


@pytest.mark.parametrize("value", [b"{}", b"hello", b" {}", b"[1]", b"42", b"\x04\x22", b"\x00"])
def test_what_is_not_compressed(value: bytes) -> None:
    assert not is_compressed(value)


@given(st.data())
def test_a_broken_lz4_frame_of_ticdc_is_refused_or_whole(data: st.DataObject) -> None:
    value = bytearray(LZ4)
    place = data.draw(st.integers(4, len(value) - 1))
    value[place] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(5, len(value)))
    try:
        found = decompressed(bytes(value[:cut]), 1 << 16)
    except BadCompressionError:
        return
    assert found == PLAIN  # its checksum holds


LZ4 = recorded("split.lz4.split")[5].value
PLAIN = decompressed(LZ4, 1 << 16)

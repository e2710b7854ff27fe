"""Rows whose numbers follow go into one bucket and lie in the order of their keys, in the core as in Python."""

import random

import msgspec
import pytest

from consumer.native import Core, Rows
from consumer.native.net_rows import NetRows
from consumer.tasks.encoding.chunk_encoder import CHUNK_BYTES, WhichRows
from consumer.tasks.reduction import bucket_hash
from ordering.events import TableName
from ordering.rows.identity import row_key
from ordering.rows.net_effect import KeyChange

BUCKETS = 7
T = TableName("d", "t")
ENDS = ("", "7", "12", "123", "1234", "00999", "01000", "a123", "123a", "12\u0663", "-12", "9" * 300)
decode = msgspec.msgpack.Decoder(list[KeyChange]).decode


def keys(chance: random.Random) -> list[bytes]:
    found = {row_key(T, (end,)) for end in ENDS} | {row_key(T, (end, other)) for end in ENDS for other in ENDS}
    found |= {row_key(T, (str(chance.randrange(1 << chance.randrange(1, 63))),)) for _ in range(3_000)}
    return chance.sample(sorted(found), len(found))


@pytest.mark.parametrize("digits", [0, 1, 2, 3])
def test_the_core_chooses_the_same_buckets(core: Core, digits: int) -> None:
    rows, all_keys = Rows(core), keys(random.Random(1))
    for key in all_keys:
        rows.add(key, 3, b"{}", 0)
    expected: dict[int, list[bytes]] = {}
    for key in all_keys:
        expected.setdefault(bucket_hash(key, digits) % BUCKETS, []).append(key)
    assert {bucket: [half[0] for half in decode(block)] for bucket, block in rows.blocks(BUCKETS, digits)} == expected


@pytest.mark.parametrize("digits", [3, 4, 10, 19])
def test_a_thousand_rows_that_follow_share_a_bucket(digits: int) -> None:
    begin = 10 ** (digits - 1)
    assert len({bucket_hash(row_key(T, (str(begin + i),)), 3) for i in range(900)}) == 1
    assert len({bucket_hash(row_key(T, (str(1_000 * (begin + i)),)), 3) for i in range(1_000)}) > 990


@pytest.mark.parametrize("count", [1, 2, 3, 1_000, 4_097])
def test_the_core_orders_rows_by_their_keys(core: Core, count: int) -> None:
    some = keys(random.Random(count))[:count]
    for ordered in (some, sorted(some), sorted(some, reverse=True)):
        rows = NetRows(core)
        assert rows.take([msgspec.msgpack.encode([(key, 3, b"{}", 0) for key in ordered])])
        (numbers,) = rows.slices(0, WhichRows.ALL, len(some), CHUNK_BYTES)
        assert [half[0] for half in decode(rows.halves(numbers))] == sorted(some)

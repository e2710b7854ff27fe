"""The Simple protocol in Avro: the same as in JSON, message for message; broken bytes are told and bounded."""

import gzip
import json
import random
import tracemalloc
from base64 import b64decode
from collections.abc import Iterator
from functools import cache
from struct import pack
from time import thread_time

import pytest

from consumer.codec import canal_json
from consumer.codec.foreign import foreign_hint
from consumer.formats.message_format import Untaken
from consumer.formats.sent_schema import SentSchema
from consumer.formats.simple.avro import is_avro
from consumer.formats.simple.protocol import Simple
from ordering.errors import InputError
from tests.consumer.formats.messages import AT, LIMIT
from tests.service.cells import VECTORS
from tests.simple_protocol import COMPRESSIONS

HEADS = {"WATERMARK": b"\x16\0\0\2", "BOOTSTRAP": b"\x16\2\2\2", "DDL": b"\x16\4\4\2", "DML": b"\x16\6\6\2"}


def long(number: int) -> bytes:
    """A number as Avro writes it."""
    rest, out = number << 1 if number >= 0 else (-number << 1) - 1, bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes((*out, rest))


def raw(value: bytes) -> bytes:
    return long(len(value)) + value


VALUES = {
    None: b"\0", "long": b"\2" + long(7), "float": b"\4" + pack("<f", 0.1), "double": b"\6" + pack("<d", 0.1),
    "string": b"\x08" + raw(b"x"), "bytes": b"\x0a" + raw(b"\0\xff"),
    "timestamp": b"\x0c" + raw(b"UTC") + raw(b"2026-01-02 03:04:05"), "unsigned": b"\x0e" + long(-1),
}  # fmt: skip
KINDS = {
    "int": ("long", "7"), "enum": ("long", "7"), "year": ("long", "7"), "bigint": ("long", "7"),
    "float": ("float", "0.1"), "double unsigned": ("double", "0.1"), "varchar": ("string", "x"),
    "decimal": ("string", "x"), "bit": ("string", "x"), "json": ("string", "x"), "datetime": ("string", "x"),
    "vector": ("string", "x"), "varbinary": ("bytes", "\0\xff"), "longblob": ("bytes", "\0\xff"),
    "timestamp": ("timestamp", "2026-01-02 03:04:05"), "bigint unsigned": ("unsigned", "18446744073709551615"),
}  # fmt: skip


def row(*pairs: tuple[bytes, bytes], count: int | None = None, kind: bytes = b"\0", commit_ts: int = 9) -> bytes:
    """An INSERT of d.t with these names and values."""
    image = long(len(pairs) if count is None else count) + b"".join(raw(n) + v for n, v in pairs) + b"\0"
    identity = raw(b"d") + raw(b"t") + long(1) + kind + long(commit_ts) + long(8) + long(5)
    return HEADS["DML"] + identity + b"\0\0\0" + b"\2" + image + b"\0"


def reading(kind: str) -> Simple:
    return Simple().knowing([SentSchema("d", "t", 5, (("a", kind),), ("a",))])


@cache
def sent(name: str) -> list[bytes]:
    with gzip.open(VECTORS / "encoders" / f"formats.{name}.jsonl.gz") as lines:
        found = [json.loads(line) for line in lines]
    return [b64decode(one["value_b64"]) if "value_b64" in one else one["value"].encode() for one in found]


def told(messages: list[bytes]) -> Iterator[object]:
    """What becomes of each message, with the schemas of those before it."""
    known = Simple()
    for message in messages:
        reading = known.reading(Log([message]), LIMIT)  # type: ignore[arg-type]
        for _, run in reading.read([]):
            for one in run:
                try:
                    yield json.loads(one.value())
                except Untaken as untaken:
                    yield untaken.row
        known = known.knowing(known.learned(reading))


class Log:
    """Messages of one partition."""

    def __init__(self, values: list[bytes]) -> None:
        self.values = values

    def read(self, _: object) -> Iterator[tuple[object, list[canal_json.Plain]]]:
        yield AT.partition, [canal_json.Plain(at, value) for at, value in enumerate(self.values)]


@pytest.mark.parametrize("name", ["simple", "simple-integrity"])
def test_all_is_as_in_json(name: str) -> None:
    json_, avro = sent(name), sent(name.replace("simple", "simple-avro"))
    assert all(map(is_avro, avro))
    assert not any(map(is_avro, json_))
    found = list(told(avro))
    assert len(found) > 500
    assert found == list(told(json_))


def test_watermarks_are_seen_as_in_json() -> None:
    marks = [[Simple().watermark_in(one, LIMIT) for one in sent(name)] for name in ("simple", "simple-avro")]
    assert marks[0] == marks[1]
    assert sum(mark is not None for mark in marks[0]) > 100


def test_a_topic_may_hold_both() -> None:
    mixed = [pair[at % 2] for at, pair in enumerate(zip(sent("simple"), sent("simple-avro"), strict=True))]
    assert list(told(mixed)) == list(told(sent("simple")))


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_compressed(compression: str) -> None:
    packed = [COMPRESSIONS[compression](one) for one in sent("simple-avro")]
    assert any(map(is_avro, packed)) == (compression == "")
    assert list(told(packed)) == list(told(sent("simple")))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("branch", VALUES)
def test_a_value_comes_as_its_type_or_not_at_all(kind: str, branch: str | None) -> None:
    message = row((b"a", VALUES[branch]))
    expected, text = KINDS[kind]
    if branch in (None, expected):
        found = json.loads(reading(kind).canal(message, AT, LIMIT) or b"")
        assert found["data"] == [{"a": None if branch is None else text}]
        return
    with pytest.raises(InputError, match=f"column 'a' of type {kind} comes as"):
        reading(kind).canal(message, AT, LIMIT)


@pytest.mark.parametrize(
    ("bits", "text"),
    [(0x00000001, "0." + "0" * 44 + "1"), (0x7F7FFFFF, "34028235" + "0" * 31), (0x3DCCCCCD, "0.1"),
     (0x4B800001, "16777218"), (0x80000000, "-0"),
     (0x3F800000, "1"), (0x3F800001, "1.0000001"), (0x60AD78EC, "1" + "0" * 20)],
)  # fmt: skip
def test_floats_keep_their_digits(bits: int, text: str) -> None:
    message = row((b"a", b"\4" + pack("<I", bits)))
    assert json.loads(reading("float").canal(message, AT, LIMIT) or b"")["data"] == [{"a": text}]


BROKEN = {
    "cut": row((b"a", b"\2"))[:-6],
    "bytes behind": row((b"a", b"\2\2")) + b"\0",
    "twice": row((b"a", b"\0"), (b"a", b"\0")),
    "unknown column": row((b"b", b"\0")),
    "unknown branch": row((b"a", b"\x10")),
    "negative branch": row((b"a", b"\1")),
    "huge count": row((b"a", b"\0"), count=2**62),
    "many": row((b"a", b"\0"), count=5000),
    "negative count": row((b"a", b"\0"), count=-1),
    "long name": row()[:-3] + long(1) + long(2**40) + b"a",
    "negative length": row()[:-3] + long(1) + long(-1) + b"a\0\0",
    "endless number": row()[:-3] + b"\xff" * 12,
    "number beyond 64 bits": row((b"a", b"\2" + b"\xff" * 9 + b"\x7f")),
    "no UTF-8": row((b"a", b"\x08" + raw(b"\xff"))),
    "not a number": row((b"a", b"\4" + pack("<f", float("nan")))),
    "infinity": row((b"a", b"\4" + pack("<f", float("inf")))),
    "unknown type": row((b"a", b"\0"), kind=b"\6"),
    "negative commitTs": row((b"a", b"\0"), commit_ts=-1),
    "no commitTs": row((b"a", b"\0"), commit_ts=0),
    "another version": b"\x16\0\0\4" + long(9) + long(8),
    "another payload": b"\x16\0\2\2",
    "only its beginning": b"\x16\0\0",
    "no boolean": HEADS["DML"] + raw(b"d") + raw(b"t") + b"\2\0\2\2\2\0\2\7",
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_broken_is_told(name: str) -> None:
    with pytest.raises(InputError) as caught:
        reading("float").canal(BROKEN[name], AT, LIMIT)
    assert str(AT) in str(caught.value)


def test_every_cut_is_told() -> None:
    for message in sent("simple-avro")[:40]:
        for end in range(len(message)):
            with pytest.raises((InputError, Untaken)):
                Simple().canal(message[:end] or None, AT, LIMIT)


def test_odd_bytes_end_as_an_error_or_a_message() -> None:
    chance = random.Random(19)
    known, taken, refused = reading("float"), 0, 0
    for message in sent("simple-avro")[:200]:
        for _ in range(10):
            odd = bytearray(message)
            for _ in range(chance.randint(1, 4)):
                odd[chance.randrange(3, len(odd))] = chance.choice((0, 1, 2, 0x7F, 0x80, 0xFF, chance.randrange(256)))
            known.watermark_in(bytes(odd), LIMIT)
            try:
                known.canal(bytes(odd), AT, LIMIT)
                taken += 1
            except (InputError, Untaken):
                refused += 1
    assert taken + refused == 2000
    assert refused > 500


def bootstrap(columns: int) -> bytes:
    """A table's schema with columns of one letter, as dense as can be."""
    table = raw(b"d") + raw(b"t") + long(1) + long(5)
    return HEADS["BOOTSTRAP"] + long(1) + table + long(columns) + b"\2a" + bytes(10) * columns


@pytest.mark.parametrize("size", [1 << 20, 2 << 20])
def test_memory_is_bounded_by_the_message(size: int) -> None:
    large, many = row((b"a", b"\x08" + raw(b"x" * size))), row(*[(b"a", b"\0")] * 3, count=size) + bytes(size)
    for message in (bootstrap(size // 11), large, many):
        tracemalloc.start()
        try:
            reading("varchar").canal(message, AT, 1 << 24)
        except (InputError, Untaken):
            pass
        finally:
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
        assert peak < 12 * len(message) + (1 << 20)


def test_twice_the_columns_take_twice_the_time() -> None:
    def seconds(count: int) -> float:
        schema = SentSchema("d", "t", 5, tuple((f"c{i}", "varchar") for i in range(count)), ("c0",))
        known = Simple().knowing([schema])
        message = row(*[(f"c{i}".encode(), b"\x08" + raw(b"x")) for i in range(count)])
        best = []
        for _ in range(3):
            begun = thread_time()
            for _ in range(4):
                known.canal(message, AT, LIMIT)
            best.append(thread_time() - begun)
        return min(best)

    assert seconds(4000) < 9 * seconds(1000)  # 16 times would be the square


@pytest.mark.parametrize("name", ["simple-avro"])
def test_other_protocols_name_it(name: str) -> None:
    for message in sent(name):
        assert 'source.protocol = "simple"' in foreign_hint(message)

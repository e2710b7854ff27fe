"""Batches that a producer compressed: read as others are, and never unpacked into more memory than is allowed."""

import resource
from collections.abc import Iterator

import pytest

from consumer.kafka import bounded_reader
from consumer.kafka.admin import KafkaAdmin
from consumer.kafka.bounded_reader import BoundedReader
from consumer.kafka.properties import reader_settings
from consumer.kafka.reader import Messages, RangeReader
from consumer.native import chosen
from consumer.spark import jobs
from ordering.errors import InputError
from ordering.events import Partition
from tests.service.lab import PARTITIONS, Feed
from tests.service.messages import at, begun, insert, watermarks
from tests.service.producing import Transaction, packed

pytestmark = [pytest.mark.service, pytest.mark.spark]
CODECS = ("gzip", "snappy", "lz4", "zstd")
BOMB = bytes(150 << 20)
ROWS = 3_000
"""So many lie between a bomb and the watermark that the driver does not meet it."""


def messages(reader: Messages, *spans: tuple[Partition, int, int]) -> dict[Partition, list[tuple[object, ...]]]:
    found: dict[Partition, list[tuple[object, ...]]] = {partition: [] for partition, *_ in spans}
    for partition, run in reader.read(list(spans)):
        found[partition] += [(m.offset(), m.timestamp(), m.key(), m.value()) for m in run]
    for partition, start, stop in spans:
        assert reader.reached(partition)[:2] == (max(start, stop), len(found[partition]))
    return found


@pytest.fixture
def control(sqlite_feed: Feed) -> Iterator[KafkaAdmin]:
    made = KafkaAdmin(sqlite_feed.bootstrap, {})
    yield made
    made.close()


@pytest.fixture(params=[False, True], ids=["python", "core"])
def other(request: pytest.FixtureRequest, sqlite_feed: Feed) -> Iterator[RangeReader]:
    """Through Kafka's client in Python, and as the compiled core takes messages."""
    made = RangeReader(reader_settings(sqlite_feed.bootstrap, {}), core=chosen(request.param).core)
    yield made
    made.close()


@pytest.mark.by_turns
def test_both_readers_give_the_same(sqlite_feed: Feed, control: KafkaAdmin, other: RangeReader) -> None:
    """Every codec, keys, tombstones, transactions that are committed or aborted, ranges that begin and end anywhere."""
    feed = sqlite_feed
    feed.make_topic()
    for partition in range(PARTITIONS):
        for codec in ("none", *CODECS):
            packed(feed, codec, partition, *(f"{codec} {n}".encode() * n for n in range(300)), key=b"k" * partition)
        feed.send_raw(partition, None, b"", b"x")
        lost, kept, lost_too = Transaction(feed), Transaction(feed), Transaction(feed)
        for n in range(40):
            for transaction in (lost, kept, lost_too):
                transaction.send([insert("d.t", 5, partition, id=n, v=n, s="x")])
        lost.abort()
        kept.commit()
        packed(feed, "gzip", partition, b"after")
        lost_too.abort()
    places = [Partition(feed.topic, n) for n in range(PARTITIONS)]
    ends = control.ends(places)
    assert len(messages(other, *((p, 0, ends[p]) for p in places))[places[0]]) == 5 * 300 + 3 + 40 + 1
    bounded = BoundedReader(control, 1 << 20)
    for start, back in (
        (0, 0),
        (1, 1),
        (299, 3),
        (777, 50),
        (1_500, 0),
        (1_503, 20),
        (1_520, 41),
        (0, 999),
        (9, 9_999),
    ):
        spans = [(p, start + p.partition, max(0, ends[p] - back)) for p in places]
        spans = [(p, low, high) for p, low, high in spans if low < high]
        assert messages(bounded, *spans) == messages(other, *spans), (start, back)
    for start in range(1_500, ends[places[1]], 7):
        span = (places[1], start, min(start + 9, ends[places[1]]))
        assert messages(bounded, span) == messages(other, span), start


def test_the_ends_of_partitions_are_read_without_a_pause(
    sqlite_feed: Feed, control: KafkaAdmin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where batches are large, an answer holds one partition's alone: it is done with, and the others got nothing."""
    feed = sqlite_feed
    feed.make_topic()
    for partition in range(PARTITIONS):
        packed(feed, "none", partition, *(bytes(1_000) for _ in range(300)))
    places = [Partition(feed.topic, n) for n in range(PARTITIONS)]
    ends = control.ends(places)
    monkeypatch.setattr(bounded_reader, "_PAUSE_S", -1.0)  # nobody can sleep that long
    found = messages(BoundedReader(control, 1 << 20), *((p, ends[p] - 10, ends[p]) for p in places))
    assert [len(some) for some in found.values()] == [10] * PARTITIONS


@pytest.fixture
def little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks may take less than usual, so that the test's batches need not be as many."""
    monkeypatch.setattr(jobs, "allowance", lambda _: 100 << 20)
    monkeypatch.setattr(jobs, "_dense", set())


@pytest.mark.by_turns
@pytest.mark.usefixtures("little_memory")
@pytest.mark.parametrize("codec", CODECS)
def test_a_batch_that_holds_too_much(sqlite_feed: Feed, codec: str) -> None:
    """Where only tasks read it, and where the driver meets it; each time with its position, and nothing is applied."""
    feed = sqlite_feed
    feed.make_topic(**{"max.message.bytes": str(64 << 20)})
    feed.send([*begun(), *(insert("d.t", 4, 1, id=n, v=n, s="x") for n in range(10, 1_500))])
    packed(feed, codec, 1, BOMB)
    feed.send([*(insert("d.t", 5, 1, id=n, v=n, s="x") for n in range(2_000, 2_000 + ROWS)), *watermarks(6)])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    error = feed.failing(InputError)
    place, offset = error.where.rsplit(" ", 1)
    assert (error.exit_code, place) == (3, f"topic={feed.topic} partition=1")
    assert "a batch of messages is too large" in str(error)
    bomb = int(offset.removeprefix("offset="))
    assert 1_490 <= bomb <= 1_500
    packed(feed, codec, 2, BOMB)
    feed.send(watermarks(7))
    assert "partition=2" in feed.failing(InputError).where
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 400 << 10
    assert feed.cells.tables(["d"]) == {}


@pytest.mark.by_turns
@pytest.mark.usefixtures("little_memory")
def test_many_batches_that_hold_much_together(sqlite_feed: Feed) -> None:
    """None is too large: a task that ran out of memory is done again, batch by batch."""
    feed = sqlite_feed.with_(limits={"retry-seconds": 60})
    feed.make_topic()
    feed.send(begun())
    (row,) = feed.here([insert("d.t", 4, 1, id=7, v=7, s="x")])
    padded = row.value[:-1] + b" " * (30 << 20) + b"}"
    for _ in range(12):
        packed(feed, "gzip", 1, padded)
    feed.send([*(insert("d.t", 5, 1, id=n, v=n, s="x") for n in range(2_000, 2_000 + ROWS)), *watermarks(6)])
    outcome = feed.once()
    assert outcome.checkpoint_ts == at(6)
    assert len(feed.cells.tables(["d"])["d.t"][1]) == 2 + ROWS
    assert jobs._dense == {(feed.bootstrap, Partition(feed.topic, 1))}

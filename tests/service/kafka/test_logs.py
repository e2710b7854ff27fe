"""Logs that change under a changefeed: they lose their end or their beginning, are created again, grow (R8)."""

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import NewPartitions

from consumer.embedded import KafkaBroker
from consumer.kafka.admin import KafkaAdmin
from consumer.kafka.bounded_reader import BoundedReader
from consumer.kafka.properties import reader_settings
from consumer.kafka.reader import RangeReader
from consumer.native import chosen
from ordering.errors import InputError, ReconcilerError, SourceUnreachableError
from ordering.events import Partition
from sinks.steps import Step
from tests.service.cells import SqliteCells
from tests.service.lab import PARTITIONS, Feed
from tests.service.messages import TOPIC, at, begun, insert, watermark, watermarks

pytestmark = [pytest.mark.service, pytest.mark.kafka]
COLUMNS = "id INT PRIMARY KEY, v INT, s VARCHAR(10)"


def ids(feed: Feed) -> list[int]:
    return sorted(int(row["id"]) for row in feed.cells.tables(["d"])["d.t"][1])


def during(step: Step, act: Callable[[], object]) -> Callable[[Step], None]:
    """Do something once, at a step."""
    left = [act]

    def observe(now: Step) -> None:
        if now is step and left:
            left.pop()()

    return observe


@pytest.mark.by_turns
def test_a_log_that_lost_its_end(sqlite_feed: Feed, own_broker: KafkaBroker, tmp_path: Path) -> None:
    """The logs of several topics, at once: one is as short as it became, others have grown again since."""
    feeds = {}
    for grown in (0, 1, 30):
        target = tmp_path / str(grown)
        feed = replace(sqlite_feed, topic=f"{sqlite_feed.topic}-{grown}", uri=f"sqlite:///{target}", settings={})
        feed = replace(feed, cells=SqliteCells(target), bootstrap=own_broker.bootstrap)
        feeds[grown] = feed.with_(limits={"retry-seconds": 60})
    logs = {}
    for feed in feeds.values():
        feed.send(begun())
        feed.once()
        log = own_broker.directory / "data" / f"{feed.topic}-1" / f"{0:020}.log"
        logs[log] = log.stat().st_size
        feed.send([insert("d.t", 5, 1, id=5, v=5, s="x"), *watermarks(6)])
        assert feed.once().checkpoint_ts == at(6)
    own_broker.kill()
    for log, size in logs.items():
        with log.open("r+b") as file:
            file.truncate(size)
    own_broker.start()
    for grown, feed in feeds.items():
        feed.send([*[insert("d.t", 7, 1, id=100 + n, v=n, s="x") for n in range(grown)], *watermarks(9)])
        error = feed.failing(InputError)
        assert error.exit_code == 3
        assert f"topic={feed.topic} partition=1 offset={1 if grown else 2}" in str(error)
        assert "lost its end" in error.fact
        assert feed.checkpoint() == at(6)


@pytest.mark.by_turns
def test_a_broker_that_lost_nothing(sqlite_feed: Feed, own_broker: KafkaBroker) -> None:
    feed = replace(sqlite_feed, bootstrap=own_broker.bootstrap, settings={}).with_(limits={"retry-seconds": 60})
    feed.send(begun())
    feed.once()
    own_broker.kill()
    own_broker.start()
    feed.send([insert("d.t", 5, 1, id=5, v=5, s="x"), *watermarks(5)])
    assert feed.once().checkpoint_ts == at(5)
    assert ids(feed) == [1, 5]


def test_a_topic_that_is_made_anew_while_it_is_read(sqlite_feed: Feed) -> None:
    feed = sqlite_feed
    feed.send(begun())
    feed.once()
    feed.send([insert("d.t", 5, 1, id=5, v=5, s="x"), *watermarks(6)])

    def made_anew() -> None:
        feed.delete_topic()
        feed.make_topic()
        feed.send(
            [*[insert("d.t", 7, p, id=9 * p + n, v=n, s="x") for p in range(3) for n in range(9)], *watermarks(9)]
        )

    with pytest.raises(ReconcilerError) as caught:
        feed.once(during(Step.PLANNED, made_anew))
    assert caught.value.exit_code == 3
    assert "again" in feed.failing(InputError).fact
    assert (feed.checkpoint(), ids(feed)) == (at(3), [1])


def test_records_that_are_deleted_while_they_are_read(sqlite_feed: Feed) -> None:
    feed = sqlite_feed
    feed.send(begun())
    feed.once()
    feed.send([*[insert("d.t", 5, 1, id=n, v=5, s="x") for n in range(5, 10)], *watermarks(6)])
    with pytest.raises(InputError) as caught:
        feed.once(during(Step.PLANNED, lambda: feed.delete_records(1, 4)))
    assert f"topic={feed.topic} partition=1 offset=1" in str(caught.value)
    assert feed.failing(InputError).exit_code == 3
    assert (feed.checkpoint(), ids(feed)) == (at(3), [1])


@pytest.mark.parametrize("core", [False, True], ids=["python", "core"])
def test_records_that_are_deleted_behind_where_a_range_is_read(
    kafka_broker: KafkaBroker, sqlite_feed: Feed, *, core: bool
) -> None:
    """What was fetched is given out, and then nothing: no offset is passed over."""
    feed, count = sqlite_feed, 3_000
    feed.make_topic()
    producer = Producer({"bootstrap.servers": feed.bootstrap, "linger.ms": 20, "batch.size": 100_000})
    for _ in range(count):
        producer.produce(feed.topic, bytes(10_000), partition=1)
    producer.flush()
    small = {"fetch.message.max.bytes": 100_000, "queued.max.messages.kbytes": 200, "queued.min.messages": 1}
    place = Partition(feed.topic, 1)
    got: list[int] = []

    def read(reading: RangeReader) -> None:
        for _, run in reading.read([(place, 0, count)]):
            if not got:
                feed.delete_records(1, count - 5)
            got.extend(message.offset() for message in run)

    reading = RangeReader(reader_settings(kafka_broker.bootstrap, small), core=chosen(core).core)
    with closing(reading), pytest.raises(InputError) as caught:
        read(reading)
    assert got == list(range(len(got)))
    assert 0 < len(got) < count - 5
    assert f"partition=1 offset={len(got)}" in str(caught.value)
    assert caught.value.exit_code == 3


@pytest.mark.by_turns
@pytest.mark.parametrize("step", [Step.PROBED, Step.READ, Step.COMMITTED])
def test_partitions_that_are_added_in_mid_window(sqlite_feed: Feed, step: Step) -> None:
    feed = sqlite_feed
    feed.send(begun())
    feed.once()
    feed.send([insert("d.t", 5, 1, id=5, v=5, s="x"), *watermarks(6)])

    def grow() -> None:
        feed.admin_do(lambda admin: admin.create_partitions([NewPartitions(feed.topic, PARTITIONS + 1)]))
        feed.send([insert("d.t", 7, PARTITIONS, id=7, v=7, s="x"), *watermarks(8, PARTITIONS + 1)])

    feed.once(during(step, grow))
    assert feed.once().checkpoint_ts == at(8)
    assert ids(feed) == [1, 5, 7]


def test_a_new_partition_whose_beginning_is_gone(sqlite_feed: Feed) -> None:
    feed = sqlite_feed
    feed.send(begun())
    feed.once()
    feed.admin_do(lambda admin: admin.create_partitions([NewPartitions(feed.topic, PARTITIONS + 1)]))
    feed.send([insert("d.t", 7, PARTITIONS, id=7, v=7, s="x"), *watermarks(8, PARTITIONS + 1)])
    feed.delete_records(PARTITIONS, 1)
    error = feed.failing(InputError)
    assert f"topic={feed.topic} partition={PARTITIONS} offset=1" in str(error)
    assert "unproven-beginning" in error.hint
    assert feed.with_(source={"unproven-beginning": "accept"}).once().checkpoint_ts == at(8)


@pytest.mark.cells("partition", "left")
@pytest.mark.parametrize("partition", range(PARTITIONS))
@pytest.mark.parametrize("left", ["rows", "watermark", "nothing"])
def test_a_beginning_that_is_gone(sqlite_feed: Feed, partition: int, left: str) -> None:
    """A watermark at or below start-ts behind it proves nothing: rows run ahead of watermarks."""
    feed = sqlite_feed.with_(source={"start-ts": at(5)})
    feed.make_database("d", f"CREATE TABLE t ({COLUMNS})")
    feed.send([insert("d.t", n, partition, id=n, v=n, s="x") for n in (4, 6, 7)])
    feed.send([watermark(4, partition), *watermarks(9)])
    feed.delete_records(partition, {"rows": 2, "watermark": 3, "nothing": 5}[left])
    error = feed.failing(InputError)
    assert f"topic={feed.topic} partition={partition} offset=" in str(error)
    assert "start-ts" in error.fact


def test_a_beginning_that_is_gone_and_was_written_before_start_ts(sqlite_feed: Feed) -> None:
    feed = sqlite_feed.with_(source={"start-ts": at(5)})
    feed.make_database("d", f"CREATE TABLE t ({COLUMNS})")
    feed.make_topic(**{"retention.ms": "-1"})
    producer = Producer({"bootstrap.servers": feed.bootstrap})
    for number in (1, 2):
        value, before_ms = insert("d.t", number, 1, id=number, v=1, s="x").value, (at(0) >> 18) - 3_600_000
        producer.produce(feed.topic, value, partition=1, timestamp=before_ms)
    producer.flush(30)
    feed.delete_records(1, 1)
    feed.send([insert("d.t", 7, 1, id=7, v=7, s="x")._replace(topic=TOPIC), *watermarks(9)])
    assert feed.once().checkpoint_ts == at(9)
    assert ids(feed) == [7]


def test_a_byte_that_a_disk_gives_back_otherwise(sqlite_feed: Feed, own_broker: KafkaBroker) -> None:
    """Brokers send what lies there; whoever reads compares checksums."""
    feed = replace(sqlite_feed, bootstrap=own_broker.bootstrap, settings={}).with_(limits={"retry-seconds": 1})
    feed.send(begun())
    feed.once()
    plain = Producer({"bootstrap.servers": feed.bootstrap})
    plain.produce(feed.topic, insert("d.t", 5, 1, id=5, v=5, s="sound").value, partition=1)
    assert plain.flush(60) == 0
    feed.send(watermarks(6))
    log = own_broker.directory / "data" / f"{feed.topic}-1" / f"{0:020}.log"
    sound = log.read_bytes()
    at_ = sound.index(b'"sound"')
    with log.open("r+b") as file:
        file.seek(at_ + 1)
        file.write(b"p")
    error = feed.failing(SourceUnreachableError)
    assert "damaged" in error.fact
    assert "partition=1" in str(error)
    assert ids(feed) == [1]
    with closing(KafkaAdmin(feed.bootstrap, {})) as control:
        reader = BoundedReader(control, 1 << 20)
        with pytest.raises(SourceUnreachableError, match="the checksum of a batch"):
            list(reader.read([(Partition(feed.topic, 1), 1, 2)]))
    for core in (None, chosen(True).core):
        one = RangeReader(reader_settings(feed.bootstrap, {}), core=core)
        with pytest.raises(SourceUnreachableError, match="CRC32C"):
            list(one.read([(Partition(feed.topic, 1), 1, 2)]))
        one.close()
    with log.open("r+b") as file:
        file.write(sound)
    feed.once()
    assert ids(feed) == [1, 5]

"""Topics that Kafka compacts: what it takes away leaves no trace but offsets that hold nothing (R8)."""

from dataclasses import replace

import pytest
from confluent_kafka import Consumer, KafkaError, TopicPartition
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from consumer.demo.fake_ticdc.changefeed import Message
from consumer.embedded import KafkaBroker
from ordering.errors import InputError
from tests.service.lab import DEADLINE_S, Feed, eventually
from tests.service.messages import at, begun, insert, watermarks

pytestmark = [pytest.mark.service, pytest.mark.kafka]


def configure(feed: Feed, **settings: str) -> None:
    """Change a topic's settings."""
    entries = [
        ConfigEntry(name.replace("_", "."), value, incremental_operation=AlterConfigOpType.SET)
        for name, value in settings.items()
    ]
    resource = ConfigResource(ResourceType.TOPIC, feed.topic, incremental_configs=entries)
    feed.admin_do(lambda admin: admin.incremental_alter_configs([resource]))


def offsets(feed: Feed, partition: int) -> list[int]:
    """The offsets of a partition that hold a message."""
    settings = {"bootstrap.servers": feed.bootstrap, "group.id": "looks", "enable.auto.commit": False}
    consumer = Consumer({**settings, "enable.partition.eof": True})
    consumer.assign([TopicPartition(feed.topic, partition, 0)])
    found = []
    while (message := consumer.poll(DEADLINE_S)) is not None and message.error() is None:
        found.append(message.offset())
    consumer.close()
    assert message is not None
    assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
    return found


def compacted(feed: Feed, messages: list[Message], marks: list[Message]) -> None:
    """Send messages, and marks into a segment of their own; then let Kafka compact the first."""
    feed.send(messages)
    configure(feed, segment_ms="1")
    feed.send(marks)
    before = offsets(feed, 1)
    configure(feed, cleanup_policy="compact", min_cleanable_dirty_ratio="0.0")
    eventually("the cleaner has been there", lambda: offsets(feed, 1) != before)


@pytest.mark.by_turns
def test_a_topic_that_was_compacted_for_a_while(sqlite_feed: Feed, own_broker: KafkaBroker) -> None:
    feed = replace(sqlite_feed, bootstrap=own_broker.bootstrap, settings={})
    feed.send(begun())
    feed.once()
    compacted(feed, [insert("d.t", 5, 1, id=5, v=5, s="x"), *watermarks(5)], watermarks(6))
    configure(feed, cleanup_policy="delete")
    error = feed.failing(InputError)
    assert error.exit_code == 3
    assert "taken out of the log" in error.fact
    assert feed.checkpoint() == at(3)


@pytest.mark.by_turns
def test_a_topic_that_was_compacted(sqlite_feed: Feed, own_broker: KafkaBroker) -> None:
    feed = replace(sqlite_feed, bootstrap=own_broker.bootstrap, settings={})
    feed.send(begun())
    feed.once()
    compacted(feed, [insert("d.t", 5, 1, id=5, v=5, s="x"), *watermarks(5)], watermarks(6))
    error = feed.failing(InputError)
    assert error.exit_code == 3
    assert f"topic={feed.topic} partition=" in str(error)
    assert "cleanup.policy" in str(error)
    assert feed.checkpoint() == at(3)

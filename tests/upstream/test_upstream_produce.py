"""Messages reach a broker: librdkafka's own mock cluster, which speaks Kafka's protocol on a local port."""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from consumer.demo.fake_ticdc.bank import Bank
from consumer.demo.fake_ticdc.changefeed import Changefeed, Message
from consumer.demo.fake_ticdc.producer import ProduceError, produce, vector_messages
from consumer.embedded import KafkaBroker

VECTORS = Path(__file__).parent.parent / "vectors"


@pytest.fixture
def mock() -> Iterator[tuple[Producer, str]]:
    owner = Producer({"bootstrap.servers": "mock", "test.mock.num.brokers": 1})
    broker = next(iter(owner.list_topics(timeout=10).brokers.values()))
    yield owner, f"{broker.host}:{broker.port}"
    owner.flush(5)


def consumed(bootstrap: str, topic: str, partition: int, count: int) -> list[bytes]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "t", "auto.offset.reset": "earliest"})
    consumer.assign([TopicPartition(topic, partition, 0)])
    messages = consumer.consume(count, timeout=20)
    consumer.close()
    return [message.value() for message in messages]


def test_every_partition_gets_its_messages_in_order(mock: tuple[Producer, str]) -> None:
    owner, bootstrap = mock
    owner.list_topics("ticdc", timeout=10)  # the mock makes a topic when it is asked about, with four partitions
    messages = list(Changefeed(partitions=4).messages(Bank(1).run(50).database.log))
    assert produce(messages, bootstrap, partitions=4) == len(messages)
    sent: dict[int, list[bytes]] = defaultdict(list)
    for message in messages:
        sent[message.partition].append(message.value)
    assert {p: consumed(bootstrap, "ticdc", p, len(values)) for p, values in sent.items()} == sent


def test_a_topic_with_too_few_partitions_is_refused(mock: tuple[Producer, str]) -> None:
    owner, bootstrap = mock
    owner.list_topics("ticdc", timeout=10)
    with pytest.raises(ProduceError, match="4 partitions, 5 are needed"):
        produce([Message("ticdc", 0, b"{}")], bootstrap, partitions=5)


def test_a_message_that_kafka_does_not_take_is_an_error(mock: tuple[Producer, str]) -> None:
    owner, bootstrap = mock
    owner.list_topics("ticdc", timeout=10)
    with pytest.raises(ProduceError, match="of 2 messages"):
        produce([Message("ticdc", 0, b"{}"), Message("ticdc", 77, b"{}")], bootstrap, partitions=4)


@pytest.mark.service
def test_missing_topics_are_made(kafka_broker: KafkaBroker, topic_name: str) -> None:
    feed = Changefeed(topic=f"{topic_name}_{{table}}", default_topic=topic_name, partitions=2)
    messages = list(feed.messages(Bank(2, ddl=0.3).run(30).database.log))
    half = len(messages) // 2
    assert produce(messages[:half], kafka_broker.bootstrap, partitions=2) == half
    assert produce(messages[half:], kafka_broker.bootstrap, partitions=2) == len(messages) - half
    found = Producer({"bootstrap.servers": kafka_broker.bootstrap}).list_topics(timeout=10).topics
    assert {len(found[topic].partitions) for topic in {message.topic for message in messages}} == {2}
    expected = [message.value for message in messages if message[:2] == (topic_name, 1)]
    assert consumed(kafka_broker.bootstrap, topic_name, 1, len(expected)) == expected


def test_recordings_become_messages() -> None:
    messages = list(vector_messages(VECTORS / "iv.index-value.raw.jsonl"))
    assert messages[0].topic == "ticdc"
    assert messages[0].value.startswith(b'{"id":0,"database":"","table":"",')
    assert [message.partition for message in messages[:3]] == [0, 1, 2]
    assert sum(1 for _ in vector_messages(VECTORS / "bank.table.split.jsonl.gz")) > 10_000

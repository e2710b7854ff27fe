"""Sends messages to Kafka, and reads recorded ones: the simulator's only contact with the world."""

from __future__ import annotations

import gzip
from base64 import b64decode
from typing import TYPE_CHECKING, Any

import orjson
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from consumer.demo.fake_ticdc.changefeed import Message

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

_ANSWER_SECONDS = 30.0
_FLUSH_SECONDS = 60.0


class ProduceError(Exception):
    """Kafka took less than all of the messages."""


def vector_messages(path: Path) -> Iterator[Message]:
    """Yield the messages of a recording: JSON lines with topic, partition, value (text or base64), perhaps gzipped."""
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as lines:
        for line in lines:
            record = orjson.loads(line)
            value = b64decode(record["value_b64"]) if "value_b64" in record else record["value"].encode()
            yield Message(record["topic"], record["partition"], value)


def produce(
    messages: Iterable[Message],
    bootstrap: str,
    *,
    partitions: int,
    replication: int = 1,
    config: Mapping[str, Any] | None = None,
) -> int:
    """Send the messages, making topics that are missing; returns how many once all are acknowledged.

    Order within a partition is kept: the producer is idempotent.
    """
    settings = {"bootstrap.servers": bootstrap, **(config or {})}
    topics = _Topics(AdminClient(settings), partitions, replication)
    deliveries = _Deliveries()
    producer = Producer({"enable.idempotence": True, "linger.ms": 20, "compression.type": "lz4", **settings})
    for message in messages:
        topics.ensure(message.topic)
        _send(producer, message, deliveries)
        producer.poll(0)
    producer.flush(_FLUSH_SECONDS)
    return deliveries.confirmed()


def _send(producer: Producer, message: Message, deliveries: _Deliveries) -> None:
    """Queue one message; a full queue is waited for."""
    deliveries.sent += 1
    while True:
        try:
            place = {"key": message.key, "partition": message.partition}
            producer.produce(message.topic, message.value, **place, on_delivery=deliveries.note)
        except BufferError:
            producer.poll(1)
        else:
            return


class _Deliveries:
    """What became of the messages."""

    def __init__(self) -> None:
        self.sent = 0
        self._arrived = 0
        self._first_error: KafkaError | None = None

    def note(self, error: KafkaError | None, _message: object) -> None:
        """Take a delivery report."""
        self._arrived += error is None
        self._first_error = self._first_error or error

    def confirmed(self) -> int:
        """Return how many were sent, or raise if any is missing."""
        if self._arrived < self.sent:
            raise ProduceError(f"Kafka took {self._arrived} of {self.sent} messages; first error: {self._first_error}")
        return self.sent


class _Topics:
    """Topics known to exist; makes the others."""

    def __init__(self, admin: AdminClient, partitions: int, replication: int) -> None:
        self._admin = admin
        self._partitions = partitions
        self._replication = replication
        self._known = {
            name: len(topic.partitions) for name, topic in admin.list_topics(timeout=_ANSWER_SECONDS).topics.items()
        }

    def ensure(self, topic: str) -> None:
        """Make the topic unless it is there; one with fewer partitions will not do."""
        there = self._known.get(topic)
        if there is None:
            self._make(topic)
        elif there < self._partitions:
            raise ProduceError(f"topic {topic} has {there} partitions, {self._partitions} are needed")

    def _make(self, topic: str) -> None:
        made = self._admin.create_topics([NewTopic(topic, self._partitions, self._replication)])
        try:
            made[topic].result(_ANSWER_SECONDS)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise
        self._known[topic] = self._partitions

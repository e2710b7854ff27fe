"""Producers of transactions and of packed batches: what TiCDC does not write and a topic may hold all the same."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from uuid import uuid4

from confluent_kafka import Producer

from consumer.demo.fake_ticdc.changefeed import Message
from tests.service.lab import Feed


class Transaction:
    """One open transaction of a producer of its own."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self._settings = {"bootstrap.servers": feed.bootstrap, "transactional.id": str(uuid4())}
        self._producer = self._ready()
        self._producer.begin_transaction()

    def send(self, messages: Iterable[Message]) -> None:
        """Produce messages, which are in the log when this returns."""
        for message in self._feed.here(messages):
            self._producer.produce(message.topic, message.value, key=message.key, partition=message.partition)
        self._producer.flush(30)

    def commit(self) -> None:
        """Let everybody read them."""
        self._producer.commit_transaction(30)
        self._ready()

    def abort(self) -> None:
        """Let nobody read them."""
        self._producer.abort_transaction(30)
        self._ready()

    def _ready(self) -> Producer:
        """Return a producer of our id once what that id did before has ended in every partition.

        The answer to the end of a transaction only says that its coordinator has noted it: the marks that end it in
        the partitions are written after that, and until they are, a reader of what is committed sees it as open. The
        coordinator hands an id to a producer only when no mark is owed any more (KIP-98: CONCURRENT_TRANSACTIONS
        until then, which the client retries).
        """
        producer = Producer(self._settings)
        producer.init_transactions(30)
        return producer


@contextmanager
def aborted_at_last(feed: Feed) -> Iterator[Transaction]:
    """A transaction that is aborted at the end, so that none stays open."""
    transaction = Transaction(feed)
    try:
        yield transaction
    finally:
        transaction.abort()


def packed(feed: Feed, codec: str, partition: int, *values: bytes, key: bytes | None = None) -> None:
    """Produce values as one batch after the other, compressed."""
    settings = {
        "bootstrap.servers": feed.bootstrap, "compression.type": codec, "message.max.bytes": 300 << 20, "linger.ms": 50,
        "queue.buffering.max.kbytes": 1 << 20,
    }  # fmt: skip
    producer = Producer(settings)
    for value in values:
        producer.produce(feed.topic, value, key, partition)
    assert producer.flush(120) == 0

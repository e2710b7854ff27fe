"""A producer of transactions, for what TiCDC does not write and a topic may hold all the same."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from uuid import uuid4

from confluent_kafka import Producer

from consumer.demo.upstream.changefeed import Message
from tests.service.lab import Feed


class Transaction:
    """One open transaction of a producer of its own."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self._producer = Producer({"bootstrap.servers": feed.bootstrap, "transactional.id": str(uuid4())})
        self._producer.init_transactions(30)
        self._producer.begin_transaction()

    def send(self, messages: Iterable[Message]) -> None:
        """Produce messages, which are in the log when this returns."""
        for topic, partition, value in self._feed.here(messages):
            self._producer.produce(topic, value, partition=partition)
        self._producer.flush(30)

    def commit(self) -> None:
        """Let everybody read them."""
        self._producer.commit_transaction(30)

    def abort(self) -> None:
        """Let nobody read them."""
        self._producer.abort_transaction(30)


@contextmanager
def aborted_at_last(feed: Feed) -> Iterator[Transaction]:
    """A transaction that is aborted at the end, so that none stays open."""
    transaction = Transaction(feed)
    try:
        yield transaction
    finally:
        transaction.abort()

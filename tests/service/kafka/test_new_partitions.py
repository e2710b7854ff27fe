"""Partitions that are added, where TiCDC goes on from its own checkpoint and sends again into them (R8)."""

import pytest
from confluent_kafka.admin import NewPartitions

from consumer.embedded import RedisServer
from ordering.errors import InputError
from tests.service.lab import Feed
from tests.service.messages import at, insert, watermarks

pytestmark = [pytest.mark.service, pytest.mark.kafka]
LAST = 10
"""Up to this transaction all is applied when the partition is added."""


def grown(feed: Feed) -> Feed:
    """A feed with a row a transaction, whose topic gets a fourth partition then; transaction 9 comes again there."""
    feed.make_database("d", "CREATE TABLE t (id INT PRIMARY KEY, v INT)")
    feed.make_topic()
    feed.send([*(insert("d.t", i, i % 3, id=i, v=1) for i in range(1, LAST + 1)), *watermarks(LAST)])
    feed.once()
    feed.admin_do(lambda admin: admin.create_partitions([NewPartitions(feed.topic, 4)]))
    feed.send([insert("d.t", 9, 3, id=9, v=1), *watermarks(8, 4), insert("d.t", 11, 3, id=11, v=1)])
    return feed


def held(feed: Feed) -> list[int]:
    return sorted(row["id"] for row in feed.cells.tables(["d"])["d.t"][1])


@pytest.mark.by_turns
def test_what_the_ledger_proves_may_lie_in_a_new_partition(sqlite_feed: Feed, redis_server: RedisServer) -> None:
    feed = grown(sqlite_feed.with_(redis={"uri": redis_server.uri}))
    feed.send(watermarks(12, 4))
    assert feed.once().counts.duplicates == 1
    assert held(feed) == [*range(1, 12)]


@pytest.mark.by_turns
def test_rewinding_applies_what_was_never_seen_of_a_new_partition(sqlite_feed: Feed) -> None:
    feed = grown(sqlite_feed)
    feed.send([insert("d.t", 9, 3, id=99, v=1), *watermarks(12, 4)])
    error = feed.failing(InputError)
    assert f"progress rewind CONFIG {at(9) - 1}" in error.hint
    done = feed.command("progress", "rewind", str(feed.file()), str(at(9) - 1), "--yes")
    assert done.returncode == 0, done.stderr
    feed.once()
    assert held(feed) == [*range(1, 12), 99]

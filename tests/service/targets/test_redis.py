"""Redis proves duplicates and finds late events; whatever becomes of it, the tables are right (R8, R9)."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from redis import Redis

from consumer.embedded import RedisServer
from ordering.errors import InputError, LateEventError
from tests.service.cells import differences, oracle
from tests.service.lab import Feed, is_row, recorded
from tests.service.messages import begun, insert, watermarks

pytestmark = [pytest.mark.service, pytest.mark.kafka]
RECORDING = "split.index-value.raw"


@pytest.fixture
def own_redis(tmp_path: Path) -> RedisServer:
    """A server to break; not started yet."""
    return RedisServer(tmp_path / "redis")


def halves(feed: Feed) -> tuple[int, int]:
    """Send and apply the first half of the recording, then send the rest and all of it again: rows of both parts."""
    messages = recorded(RECORDING)
    middle = len(messages) // 2
    feed.send(messages[:middle])
    feed.once()
    return sum(map(is_row, messages[:middle])), sum(map(is_row, messages))


def test_status_shows_a_replay_as_proven(sqlite_feed: Feed, redis_server: RedisServer) -> None:
    feed = sqlite_feed.with_(redis={"uri": redis_server.uri})
    messages = recorded(RECORDING)
    for _ in range(2):
        feed.send(messages)
        feed.once()
    rows = sum(map(is_row, messages))
    told = json.loads(feed.command("status", str(feed.file()), "--json").stdout)
    assert (told["duplicates"], told["duplicates_proven"], told["duplicates_unproven"]) == (rows, rows, 0)
    assert told["ledger"]["state"] == "connected"


def test_an_event_below_the_checkpoint_that_was_never_applied_is_late(feed: Feed, redis_server: RedisServer) -> None:
    feed.with_(redis={"uri": redis_server.uri})
    feed.send(begun())
    feed.send([insert("d.t", 8, id=8, v=8, s="x"), *watermarks(9)])
    before = feed.once().checkpoint_ts
    feed.send([insert("d.t", 8, 1, id=8, v=8, s="x"), insert("d.t", 7, 1, id=7, v=7, s="late")])
    error = feed.failing(LateEventError)
    assert error.exit_code == 3
    assert f"topic={feed.topic} partition=1 offset=3" in str(error)
    assert "late" in error.fact
    assert error.hint
    assert feed.checkpoint() == before
    assert [int(row["id"]) for row in feed.cells.tables(["d"])["d.t"][1]] == [1, 8]
    assert feed.failing(InputError).fact == error.fact  # it does not pass by itself


def test_without_redis_such_an_event_counts_as_unproven(feed: Feed) -> None:
    feed.send(begun())
    feed.send([insert("d.t", 8, id=8, v=8, s="x"), *watermarks(9)])
    feed.once()
    feed.send([insert("d.t", 7, 1, id=7, v=7, s="late")])
    counts = feed.once().counts
    assert (counts.duplicates_proven, counts.duplicates_unproven) == (0, 1)
    assert feed.status()["ledger"]["state"].startswith("absent")


def test_flushed_in_mid_way(feed: Feed, own_redis: RedisServer) -> None:
    with own_redis:
        feed.with_(redis={"uri": own_redis.uri})
        first, rows = halves(feed)
        own_redis.flush()
        feed.send(recorded(RECORDING)[len(recorded(RECORDING)) // 2 :])
        feed.once()
        feed.send(recorded(RECORDING))
        counts = feed.once().counts
    assert differences(oracle("split"), feed.cells) == []
    assert counts.duplicates == rows
    assert 0 < counts.duplicates_unproven <= first
    assert counts.duplicates_proven >= rows - first


def test_stopped_in_mid_way_and_back(feed: Feed, own_redis: RedisServer) -> None:
    messages = recorded(RECORDING)
    with own_redis:
        feed.with_(redis={"uri": own_redis.uri})
        _, rows = halves(feed)
    feed.send(messages[len(messages) // 2 :])
    feed.once()
    assert differences(oracle("split"), feed.cells) == []
    assert "out of reach" in feed.status()["ledger"]["state"]
    with own_redis:
        feed.send(messages)
        counts = feed.once().counts
    assert differences(oracle("split"), feed.cells) == []
    assert (counts.duplicates_proven, counts.duplicates_unproven) == (0, rows)


def test_redis_that_vanishes_while_a_window_is_applied(sqlite_feed: Feed, own_redis: RedisServer) -> None:
    with own_redis:
        feed = sqlite_feed.with_(redis={"uri": own_redis.uri})
        feed.send(recorded(RECORDING))
        feed.once(lambda _: own_redis.stop())
    assert differences(oracle("split"), feed.cells) == []


def test_redis_that_refuses_the_password(sqlite_feed: Feed, own_redis: RedisServer) -> None:
    with own_redis:
        with Redis(port=own_redis.port) as client:
            client.config_set("requirepass", "right")
        feed = sqlite_feed.with_(redis={"uri": own_redis.uri.replace("//", "//:wrong-secret@")})
        feed.send(recorded("iv.index-value.raw"))
        feed.once()
        state = feed.status()["ledger"]["state"]
    assert differences(oracle("iv"), feed.cells) == []
    assert "out of reach" in state
    assert "wrong-secret" not in state


def refusing(redis: Redis) -> None:
    """Redis has no room, and evicts nothing."""
    redis.config_set("maxmemory-policy", "noeviction")
    redis.config_set("maxmemory", "1")


def evicting(redis: Redis) -> None:
    """Redis evicts whatever it likes, the ledger's parts too."""
    redis.config_set("maxmemory-policy", "allkeys-random")
    redis.config_set("maxmemory", "1")


def read_only(redis: Redis) -> None:
    """Redis is the replica of a server that is not there."""
    redis.config_set("replica-read-only", "yes")
    redis.execute_command("REPLICAOF", "127.0.0.1", "1")


@pytest.mark.by_turns
@pytest.mark.parametrize("harm", [refusing, evicting, read_only])
def test_redis_that_does_not_keep_what_it_is_told(
    sqlite_feed: Feed, own_redis: RedisServer, harm: Callable[[Redis], None]
) -> None:
    messages = recorded(RECORDING)
    with own_redis, Redis(port=own_redis.port) as client:
        feed = sqlite_feed.with_(redis={"uri": own_redis.uri})
        _, rows = halves(feed)
        harm(client)
        feed.send(messages[len(messages) // 2 :])
        feed.once()
        feed.send(messages)
        counts = feed.once().counts
    assert differences(oracle("split"), feed.cells) == []
    assert counts.duplicates == rows
    assert counts.duplicates_proven <= rows


@pytest.mark.by_turns
def test_redis_that_answers_nothing_for_a_long_time(sqlite_feed: Feed, own_redis: RedisServer) -> None:
    with own_redis:
        feed = sqlite_feed.with_(redis={"uri": own_redis.uri})
        own_redis.pause()
        try:
            feed.send(recorded(RECORDING))
            feed.once()
        finally:
            own_redis.resume()
    assert differences(oracle("split"), feed.cells) == []

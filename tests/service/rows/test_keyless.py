"""Tables without a valid index (`force-replicate`): rows are bags of copies, and a repetition is no copy."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from consumer.demo.fake_ticdc.changefeed import Message
from consumer.embedded import RedisServer
from ordering.errors import InputError, TargetError
from sinks.steps import Step
from tests.service.cells import differences, oracle
from tests.service.lab import Feed, is_row, recorded
from tests.service.messages import TOPIC, at, encoded, row_value, watermark, watermarks

pytestmark = pytest.mark.service
FORCED = {"rules": ["*.*"], "force-replicate": True}


class EndedError(Exception):
    """The run ends here."""


def event(kind: str, number: int, old: dict[str, Any] | None = None, mark: str = "", **row: Any) -> Message:
    value = row_value(kind, "d.t", at(number), row, old, ())
    tidb = {**value["_tidb"], **({"rowkey": mark} if mark else {})}
    return Message(TOPIC, 0, encoded({**value, "_tidb": tidb}))


def forced(feed: Feed, consistency: str = "snapshot") -> Feed:
    feed.make_database("d", "CREATE TABLE t (a INT, b VARCHAR(10))")
    return feed.with_(filter=FORCED, target={"consistency": consistency})


def rows(feed: Feed) -> list[tuple[Any, ...]]:
    return sorted((tuple(row.values()) for row in feed.cells.tables(["d"])["d.t"][1]), key=repr)


def number(feed: Feed, value: int) -> Any:
    return feed.cells.expected("int", str(value))


@pytest.mark.cells("recording", ("every_feed", "consistency"))
@pytest.mark.parametrize("consistency", ["snapshot", "transaction", "row"])
@pytest.mark.parametrize("recording", ["nokey.plain", "nokey.restarts", "nokey.updated"])
def test_recordings(every_feed: Feed, recording: str, consistency: str) -> None:
    feed = every_feed.by_tasks().with_(filter=FORCED, target={"consistency": consistency})
    messages = recorded(recording)
    feed.send(messages)
    first = feed.once()
    assert differences(oracle("nokey"), feed.cells) == []
    distinct = sum(map(is_row, recorded("nokey.plain")))
    assert first.counts.events == sum(map(is_row, messages))
    assert first.counts.duplicates_proven + first.counts.duplicates_unproven == first.counts.events - distinct
    feed.send(messages)
    second = feed.once()
    assert differences(oracle("nokey"), feed.cells) == []
    assert second.counts.rows_written == first.counts.rows_written


@pytest.mark.parametrize("target", ["sqlite", "mariadb", "postgres", "tidb"])
def test_one_of_two_equal_rows_is_found_by_every_type(target: str, request: pytest.FixtureRequest) -> None:
    """Window by window, so that rows are in the target before they go."""
    feed: Feed = request.getfixturevalue(f"{target}_feed")
    feed.with_(filter=FORCED, target={"consistency": "row" if target == "tidb" else "transaction"})
    feed.send(recorded("nokey-types.plain"))
    feed.once()
    assert differences(oracle("nokey-types"), feed.cells) == []


@pytest.mark.parametrize("consistency", ["snapshot", "transaction", "row"])
def test_a_table_among_others_without_a_key(sqlite_feed: Feed, consistency: str) -> None:
    feed = sqlite_feed.with_(filter={**FORCED, "rules": ["ty.nopk"]}, target={"consistency": consistency})
    feed.make_database("ty", "CREATE TABLE nopk (a INT, b VARCHAR(10))")
    feed.send(m for m in recorded("nokey.types") if "CREATE" not in m.value.decode())
    feed.once()
    assert [tuple(row.values()) for row in feed.cells.tables(["ty"])["ty.nopk"][1]] == [(1, "x"), (1, "x")]


def test_repetitions_are_proven_with_redis(sqlite_feed: Feed, redis_server: RedisServer) -> None:
    feed = forced(sqlite_feed.with_(redis={"uri": redis_server.uri}))
    sent = [event("INSERT", 1, a=1, b="x"), event("INSERT", 1, a=1, b="x"), *watermarks(2)]
    feed.send(sent)
    assert feed.once().counts.duplicates_proven == 0
    feed.send(sent)
    counts = feed.once().counts
    assert (counts.duplicates_proven, counts.duplicates_unproven) == (2, 0)
    assert len(rows(feed)) == 2


def test_repetitions_with_row_keys_are_proven_by_what_came_without(
    sqlite_feed: Feed, redis_server: RedisServer
) -> None:
    feed = forced(sqlite_feed.with_(redis={"uri": redis_server.uri}))
    feed.send([*[event("INSERT", 1, a=1, b="x")] * 2, event("UPDATE", 2, {"a": 1}, a=2, b="x"), *watermarks(3)])
    feed.once()
    again = [event("INSERT", 1, mark=mark, a=1, b="x") for mark in ("AAE=", "AAI=", "AAE=")]
    feed.send([*again, event("UPDATE", 2, {"a": 1}, mark="AAE=", a=2, b="x")])
    counts = feed.once().counts
    assert (counts.duplicates_proven, counts.duplicates_unproven) == (4, 0)
    assert rows(feed) == [(1, "x"), (2, "x")]
    feed.send([event("INSERT", 1, mark=mark, a=1, b="x") for mark in ("AAE=", "AAI=", "AAM=")])  # three rows
    assert "late event" in feed.failing(InputError).fact


def test_a_late_row_is_found_with_redis(sqlite_feed: Feed, redis_server: RedisServer) -> None:
    feed = forced(sqlite_feed.with_(redis={"uri": redis_server.uri}))
    feed.send([event("INSERT", 1, a=1, b="x"), *watermarks(2)])
    feed.once()
    feed.send([event("INSERT", 1, a=1, b="other")])
    assert "late event" in feed.failing(InputError).fact


def test_a_restart_between_two_windows(feed: Feed) -> None:
    """The rows above the last watermark are sent twice, the window before told of that watermark."""
    forced(feed)
    feed.send([event("INSERT", 1, a=1, b="x"), *watermarks(2)])
    feed.once()
    two = [event("INSERT", 3, a=2, b="y")] * 2
    feed.send([*two, watermark(2, 0), *two, *watermarks(4)])
    outcome = feed.once()
    assert rows(feed) == [(number(feed, 1), "x"), (number(feed, 2), "y"), (number(feed, 2), "y")]
    assert outcome.counts.duplicates_proven == 2


@pytest.mark.parametrize("consistency", ["snapshot", "transaction", "row"])
def test_a_restart_that_begins_with_the_last_transaction_sent(feed: Feed, consistency: str) -> None:
    """Its first watermark rises: TiCDC writes it a second after it has begun."""
    forced(feed, consistency)
    feed.send([event("INSERT", 1, a=0, b="w"), *watermarks(2)])
    feed.send([event("INSERT", 3, a=1, b="x")])
    feed.send([event("INSERT", 3, a=1, b="x"), *watermarks(4)])
    error = feed.failing(InputError)
    assert "d.t" in error.fact
    assert "in another batch" in error.fact
    assert f"topic={feed.topic} partition=0 offset=" in str(error)
    assert "source.equal-rows" in error.hint
    assert rows(feed) == []
    feed.with_(source={"equal-rows": "count"}).once()
    assert rows(feed) == [(number(feed, 0), "w"), (number(feed, 1), "x"), (number(feed, 1), "x")]


def test_row_keys_tell_a_producers_repetition_from_a_copy(sqlite_feed: Feed) -> None:
    feed = forced(sqlite_feed)
    feed.send([event("INSERT", 1, mark=mark, a=1, b="x") for mark in ("AAE=", "AAE=", "AAI=")])
    feed.send(watermarks(2))
    assert feed.once().counts.duplicates_proven == 1
    assert rows(feed) == [(1, "x"), (1, "x")]


def test_row_keys_tell_equal_rows_of_two_batches_apart(sqlite_feed: Feed) -> None:
    feed = forced(sqlite_feed)
    feed.send([event("INSERT", 1, mark="AAE=", a=1, b="x")])
    feed.send([event("INSERT", 1, mark=mark, a=1, b="x") for mark in ("AAE=", "AAI=")])
    feed.send(watermarks(2))
    feed.once()
    assert rows(feed) == [(1, "x"), (1, "x")]


@pytest.mark.parametrize("consistency", ["snapshot", "transaction", "row"])
@pytest.mark.parametrize("topic", [TOPIC, "new"])
def test_rows_that_came_without_a_row_key_come_again_with_one(feed: Feed, topic: str, consistency: str) -> None:
    """TiCDC begins to send row keys, and sends again what lies above its checkpoint; mostly to another topic."""
    forced(feed, consistency)
    feed.send([event("INSERT", 1, a=0, b="w"), *watermarks(2)])
    feed.once()
    feed.send([event("INSERT", 3, a=1, b="x"), event("DELETE", 3, a=0, b="w"), *watermarks(4)])
    again = [event("INSERT", 3, mark="AAE=", a=1, b="x"), event("DELETE", 3, mark="AAI=", a=0, b="w")]
    new = [event("INSERT", 5, mark=mark, a=2, b="y") for mark in ("AAM=", "AAQ=")]
    feed.send(message._replace(topic=topic) for message in [*again, *new, *watermarks(6)])
    feed.send(watermarks(6))
    feed.with_(source={"topics": sorted({feed.topic, feed.topic_for(topic)})}).once()
    assert rows(feed) == [(number(feed, 1), "x"), (number(feed, 2), "y"), (number(feed, 2), "y")]


@pytest.mark.kafka
def test_batches_of_kafka_tell_equal_rows_from_repetitions(sqlite_feed: Feed) -> None:
    feed = forced(sqlite_feed)
    equal = [event("INSERT", 1, a=1, b="x")] * 2
    feed.send([event("INSERT", 1, a=0, b="w"), *equal, *watermarks(2)])
    feed.once()
    assert len(rows(feed)) == 3
    feed.send([event("INSERT", 3, a=2, b="y")])
    feed.send([event("INSERT", 3, a=2, b="y"), *watermarks(4)])
    assert "offset=4" in str(feed.failing(InputError))
    assert len(rows(feed)) == 3


def test_exactly_these_bytes_are_deleted(every_feed: Feed) -> None:
    feed = forced(every_feed)
    texts = ["x", "X", "x ", "é", "e", None, ""]
    feed.send([*(event("INSERT", 1, a=1, b=text) for text in texts for _ in range(2)), *watermarks(2)])
    feed.once()
    feed.send([*(event("DELETE", 3, a=1, b=text) for text in texts), *watermarks(4)])
    feed.once()
    assert sorted(map(repr, (row[1] for row in rows(feed)))) == sorted(map(repr, texts))


def test_without_the_option_such_rows_are_refused(sqlite_feed: Feed) -> None:
    feed = forced(sqlite_feed).with_(filter={"force-replicate": False})
    feed.send([event("INSERT", 1, a=1, b="x"), *watermarks(2)])
    error = feed.failing(InputError)
    assert "no valid index" in error.fact
    assert "filter.force-replicate" in error.hint


@pytest.mark.parametrize("consistency", ["snapshot", "transaction", "row"])
def test_a_copy_that_the_target_lacks(every_feed: Feed, consistency: str) -> None:
    feed = forced(every_feed, consistency)
    feed.send([event("INSERT", 1, a=1, b="x"), *watermarks(2)])
    feed.once()
    feed.send([event("INSERT", 3, a=2, b="new"), event("DELETE", 4, a=1, b="y"), *watermarks(5)])
    error = feed.failing(TargetError)
    assert "holds 0 of 1 rows" in error.fact
    assert f"topic={feed.topic} partition=0 offset=3" in str(error)
    assert (number(feed, 1), "x") in rows(feed)
    assert len(rows(feed)) == (2 if consistency == "transaction" else 1)


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "handle-key-only": ({"_tidb": {"commitTs": at(1), "onlyHandleKey": True}}, "not in its message"),
    "claim-check": ({"_tidb": {"commitTs": at(1), "claimCheckLocation": "file:///x/y"}}, "not in its message"),
    "number-for-a-value": ({"data": [{"a": 1, "b": "x"}]}, "can't be read"),
    "no-base64": ({"_tidb": {"commitTs": at(1), "rowkey": "%"}}, "not Canal-JSON"),
    "no-row": ({"data": None}, "exactly one row"),
}


@pytest.mark.parametrize("case", sorted(BAD))
def test_bad_rows(sqlite_feed: Feed, case: str) -> None:
    feed = forced(sqlite_feed)
    change, fact = BAD[case]
    message = event("INSERT", 1, a=1, b="x")
    feed.send([message._replace(value=encoded({**json.loads(message.value), **change})), *watermarks(2)])
    error = feed.failing(InputError)
    assert fact in error.fact
    assert f"topic={feed.topic} partition=0 offset=0" in str(error).splitlines()[0]
    assert rows(feed) == []


@pytest.mark.parametrize(
    ("feed", "consistency"), [("mariadb", "snapshot"), ("sqlite", "transaction"), ("mariadb", "row")], indirect=["feed"]
)
def test_runs_that_end_anywhere_apply_each_copy_once(feed: Feed, consistency: str) -> None:
    feed.by_tasks().with_(filter=FORCED, target={"consistency": consistency}, limits={"window-rows": 4})
    feed.send(recorded("nokey.restarts"))
    for patience in range(2, 200, 3):
        left = iter(range(patience))

        def observe(_: Step, left: Iterator[int] = left) -> None:
            if next(left, None) is None:
                raise EndedError

        try:
            feed.once(observe)
        except EndedError:
            continue
        break
    assert patience > 10
    assert differences(oracle("nokey"), feed.cells) == []


@pytest.mark.parametrize("consistency", ["snapshot", "transaction", "row"])
def test_a_pass_that_begins_in_what_an_earlier_window_applied(sqlite_feed: Feed, consistency: str) -> None:
    """The range is read again from the row above the first window, and a row below tells that TiCDC went back."""
    feed = forced(sqlite_feed, consistency)
    once = [event("INSERT", 7, a=1, b="x"), event("INSERT", 10, a=2, b="x")]
    feed.send([*once, *once, watermark(12, 0), watermark(8, 1), watermark(12, 2)])
    assert feed.once().checkpoint_ts == at(8)
    assert len(rows(feed)) == 1
    feed.send([watermark(12, 1)])
    assert feed.once().checkpoint_ts == at(12)
    assert len(rows(feed)) == 2


def test_a_pass_that_begins_with_an_event_that_a_filter_leaves_out(sqlite_feed: Feed) -> None:
    left_out = {"matcher": ["d.t"], "ignore-insert-value-expr": "a = 1"}
    feed = forced(sqlite_feed).with_(filter={**FORCED, "event-filters": [left_out]})
    once = [event("INSERT", 7, a=1, b="x"), event("INSERT", 10, a=2, b="x")]
    feed.send([*once, *once, *watermarks(12)])
    assert feed.once().checkpoint_ts == at(12)
    assert len(rows(feed)) == 1


@pytest.mark.parametrize("consistency", ["snapshot", "transaction", "row"])
def test_equal_rows_that_updates_leave_in_two_partitions(sqlite_feed: Feed, consistency: str) -> None:
    """An UPDATE lies in the partition of its new row: equal old ones need not meet."""
    feed = forced(sqlite_feed, consistency)
    feed.send([event("INSERT", 1, a=1, b="x")] * 2 + watermarks(2))
    feed.once()
    moved = [event("UPDATE", 3, {"a": 1}, a=new, b="x") for new in (2, 3)]
    feed.send([moved[0], moved[1]._replace(partition=1), *watermarks(4)])
    feed.once()
    assert rows(feed) == [(2, "x"), (3, "x")]

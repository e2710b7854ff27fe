"""Topics without watermarks, moved by the checkpoint that TiCDC's API gives; with a server in its place."""

from collections.abc import Iterator

import pytest

from consumer.codec.canal_json import WATERMARK
from ordering.errors import InputError
from tests.debezium import as_debezium
from tests.service.cells import differences, oracle
from tests.service.lab import Feed, body, recorded
from tests.service.messages import at, insert
from tests.service.ticdc_api import TicdcApi, ticdc_api

pytestmark = pytest.mark.service
COLUMNS = "id INT PRIMARY KEY, v INT, s VARCHAR(10)"


@pytest.fixture
def api() -> Iterator[TicdcApi]:
    with ticdc_api() as found:
        yield found


def outside(feed: Feed, api: TicdcApi) -> Feed:
    return feed.with_(source={"watermark-from": api.url, "watermark-changefeed": "orders"})


@pytest.mark.parametrize("consistency", ["snapshot", "transaction", "row"])
@pytest.mark.parametrize("feed", ["sqlite"], indirect=True)
def test_a_recording_without_watermarks(feed: Feed, api: TicdcApi, consistency: str) -> None:
    whole = recorded("split.ts.raw")
    last = max(body(m)["_tidb"].get("watermarkTs", 0) for m in whole)
    messages = [m for m in whole if body(m)["type"] != WATERMARK]
    sent = as_debezium(messages)
    lossy = {"protocol": "debezium", "lossy-values": "stop"}
    outside(feed, api).with_(target={"consistency": consistency}, source=lossy).send(sent)
    api.at(last)
    assert feed.once().checkpoint_ts == last
    assert differences(oracle("split"), feed.cells) == []
    assert feed.once().checkpoint_ts == last


def test_only_what_the_checkpoint_promises_is_applied(sqlite_feed: Feed, api: TicdcApi) -> None:
    feed = outside(sqlite_feed, api)
    feed.make_database("d", f"CREATE TABLE t ({COLUMNS})")
    feed.send([insert("d.t", n, n % 3, id=n, v=n, s="x") for n in range(1, 10)])
    api.at(at(5))
    assert feed.once().checkpoint_ts == at(5)
    assert sorted(row["id"] for row in feed.cells.tables(["d"])["d.t"][1]) == [1, 2, 3, 4, 5]
    api.at(at(3))  # TiCDC was restarted and began again
    assert feed.once().checkpoint_ts == at(5)
    api.at(at(9))
    assert feed.once().checkpoint_ts == at(9)
    assert len(feed.cells.tables(["d"])["d.t"][1]) == 9


def test_a_changefeed_that_was_made_anew_above_the_checkpoint_is_refused(sqlite_feed: Feed, api: TicdcApi) -> None:
    """What upstream changed between the two was never sent."""
    feed = outside(sqlite_feed, api)
    feed.make_database("d", f"CREATE TABLE t ({COLUMNS})")
    feed.send([insert("d.t", n, n % 3, id=n, v=n, s="x") for n in range(1, 4)])
    api.at(at(3), start_ts=at(1) - 1)
    assert feed.once().checkpoint_ts == at(3)
    feed.send([insert("d.t", n, n % 3, id=n, v=n, s="x") for n in range(7, 9)])
    api.at(at(8), start_ts=at(6))
    error = feed.failing()
    assert isinstance(error, InputError)
    assert str(at(6)) in error.fact
    assert feed.checkpoint() == at(3)
    assert feed.with_(source={"unproven-beginning": "accept"}).once().checkpoint_ts == at(8)
    assert feed.with_(source={"unproven-beginning": "error"}).once().checkpoint_ts == at(8)


def test_another_changefeed_is_refused(sqlite_feed: Feed, api: TicdcApi) -> None:
    feed = outside(sqlite_feed, api)
    feed.make_topic()
    api.at(at(5), id="others")
    error = feed.failing(InputError)
    assert (error.exit_code, "watermark-from" in error.where) == (3, True)


def test_a_changefeed_that_writes_to_another_cluster_is_refused(sqlite_feed: Feed, api: TicdcApi) -> None:
    """A topic of this name is there, too: what comes after the change is in no message that is read."""
    feed = outside(sqlite_feed, api)
    feed.make_database("d", f"CREATE TABLE t ({COLUMNS})")
    feed.send([insert("d.t", 1, 0, id=1, v=1, s="x")])
    api.at(at(1), sink_uri=f"kafka://u:p@a:9092,B:9092/{feed.topic}")
    assert feed.once().checkpoint_ts == at(1)
    api.at(at(9), sink_uri=f"kafka://c:9092/{feed.topic}")
    for _ in range(2):  # a service manager starts it again
        error = feed.failing(InputError)
        assert ("a:9092, b:9092" in error.fact, "u:p" in str(error)) == (True, False)
        assert feed.checkpoint() == at(1)
    api.at(at(2), sink_uri=f"kafka://c:9092,b:9092/{feed.topic}")
    assert feed.once().checkpoint_ts == at(2)
    api.at(at(9), sink_uri=f"kafka://z:1/{feed.topic}")
    feed.failing(InputError)
    feed.with_(source={"unproven-beginning": "accept"})
    assert feed.once().checkpoint_ts == at(9)
    feed.with_(source={"unproven-beginning": "error"})
    api.at(at(12), sink_uri=f"kafka://z:1/{feed.topic}")
    assert feed.once().checkpoint_ts == at(12)


def test_a_changefeed_that_writes_to_another_topic_is_refused(sqlite_feed: Feed, api: TicdcApi) -> None:
    """Its checkpoint would pass rows of these topics that come later, and they would count as repetitions."""
    feed = outside(sqlite_feed, api)
    feed.make_database("d", f"CREATE TABLE t ({COLUMNS})")
    feed.send([insert("d.t", 1, 0, id=1, v=1, s="x")])
    api.at(at(1), sink_uri=f"kafka://h:9092/{feed.topic}?protocol=canal-json")
    assert feed.once().checkpoint_ts == at(1)
    api.at(at(9), sink_uri="kafka://h:9092/others?protocol=canal-json")
    assert "others" in feed.failing(InputError).fact
    assert feed.checkpoint() == at(1)
    feed.send([insert("d.t", 5, 0, id=5, v=5, s="x")])
    dispatchers = [{"matcher": ["d.*"], "topic": feed.topic}]
    api.at(at(9), sink_uri="kafka://h:9092/others", config={"sink": {"dispatchers": dispatchers}})
    assert feed.once().checkpoint_ts == at(9)
    assert len(feed.cells.tables(["d"])["d.t"][1]) == 2

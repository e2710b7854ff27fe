"""`reconciler verify --replay`: the topics as the truth, read from Kafka by Spark."""

import pytest

from consumer.demo.fake_ticdc.changefeed import Message
from consumer.verify.report import VerifyOutcome
from consumer.verify.run import Verification, VerifyOptions
from ordering.errors import ConfigError, InputError
from tests.service.lab import Feed, recorded
from tests.service.messages import TOPIC, at, begun, encoded, insert, row_value, update, watermarks

pytestmark = [pytest.mark.service, pytest.mark.spark]


def replayed(feed: Feed) -> VerifyOutcome:
    return Verification(feed.config, VerifyOptions(replay=True), spark=feed.spark).run()


def told(feed: Feed) -> list[str]:
    return [line for line in replayed(feed).lines() if not line.startswith(("equal", "DIFFERENT:"))]


@pytest.mark.by_turns
@pytest.mark.parametrize("feed", ["mariadb", "postgres"], indirect=True)
def test_what_the_topics_hold_up_to_c_and_no_further(feed: Feed) -> None:
    feed.with_(filter={"rules": ["d.*"]})
    feed.send([*begun(), insert("d.t", 4, 1, id=2, v=2, s="two"), *watermarks(4)])
    feed.once()
    later = [update("d.t", 5, {"v": 2}, 2, id=2, v=3, s="later"), insert("d.t", 6, id=3, v=3, s="three")]
    feed.send([*later, *watermarks(6)])
    outcome = replayed(feed)
    assert (outcome.is_equal, outcome.checkpoint_ts, outcome.tables[0].rows) == (True, at(4), 2)
    feed.cells.run("d", "UPDATE t SET s = 'by hand' WHERE id = 2; DELETE FROM t WHERE id = 1")
    assert told(feed) == ["MISSING   d.t id='1'", "DIFFERENT d.t id='2' column s: upstream 'two', target 'by hand'"]


@pytest.mark.by_turns
def test_a_recording_with_ddl_comes_out_equal(mariadb_feed: Feed) -> None:
    messages = recorded("ddl-basic.table")
    mariadb_feed.send(messages)
    mariadb_feed.once()
    outcome = replayed(mariadb_feed)
    assert list(outcome.lines())[:-1] == []
    assert outcome.is_equal
    assert len(outcome.tables) > 1


def test_topics_that_do_not_hold_everything_are_refused(sqlite_feed: Feed) -> None:
    sqlite_feed.send([*begun(), *watermarks(4)])
    sqlite_feed.once()
    sqlite_feed.delete_records(0, 2)
    with pytest.raises(InputError, match="retention deleted the beginning") as caught:
        replayed(sqlite_feed)
    assert f"topic={sqlite_feed.topic} partition=0 offset=2" in str(caught.value)


def test_a_changefeed_that_began_with_a_dump_can_t_be_replayed(sqlite_feed: Feed) -> None:
    sqlite_feed.with_(source={"start-ts": at(2)})
    sqlite_feed.make_database("d", "CREATE TABLE t (id INT PRIMARY KEY, v INT, s VARCHAR(10))")
    sqlite_feed.send([*begun(), *watermarks(4)])
    sqlite_feed.once()
    with pytest.raises(ConfigError, match="start-ts"):
        replayed(sqlite_feed)


def test_rows_that_are_held_are_not_equal_for_the_replay_lacks_them_too(sqlite_feed: Feed) -> None:
    feed = sqlite_feed.with_(filter={"rules": ["d.*"]}, quarantine={"enabled": True})
    refused = Message(TOPIC, 0, encoded(row_value("INSERT", "d.t", at(4), {"id": "no number", "v": 2, "s": "x"})))
    feed.send([*begun(), refused, *watermarks(5)])
    feed.once()
    outcome = replayed(feed)
    assert (outcome.is_equal, outcome.differs) == (False, False)
    assert outcome.as_json()["unjudged"] == ["the quarantine holds 1 message: a replay lacks their rows too"]

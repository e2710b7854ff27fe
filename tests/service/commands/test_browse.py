"""A look into the topics of a changefeed: what matches, by commitTs, within limits; and one message whole."""

import base64
from pathlib import Path

import pytest

from consumer.demo.fake_ticdc.changefeed import Message
from consumer.demo.fake_ticdc.producer import produce
from consumer.embedded import KafkaBroker
from consumer.operate import browse
from consumer.operate.browse import MessageSearch, MessagesFound, content_at, look_at
from consumer.operate.message_filter import EVERYTHING, MessageFilter
from ordering.errors import ConfigError
from ordering.events import Position
from tests.service.lab import PARTITIONS, Feed
from tests.service.messages import at, begun, ddl, delete, insert, update, watermarks
from tests.serving.lab import feed_into

pytestmark = pytest.mark.service
BAD = Message("", 2, b"\xff no json")


@pytest.fixture
def feed(kafka_broker: KafkaBroker, topic_name: str, tmp_path: Path) -> Feed:
    """A topic with five rows' events over three partitions, a DDL and a message that is none."""
    found = feed_into(tmp_path, kafka_broker.bootstrap, topic_name)
    rows = [insert("d.t", 10 + i, i % PARTITIONS, id=i, v=i, s="x") for i in range(3)]
    rows += [update("d.t", 20, {"id": 1}, 1, id=100, v=1, s="x"), delete("d.t", 21, 0, id=100, v=1, s="x")]
    some = [*begun(), *rows, ddl("d.u", 22, "CREATE TABLE `u` (id INT)"), *watermarks(23), BAD]
    produce([m._replace(topic=topic_name) for m in some], found.bootstrap, partitions=PARTITIONS)
    return found


def seen(feed: Feed, wanted: MessageFilter = EVERYTHING, limit: int = 50) -> MessagesFound:
    return look_at(feed.config, MessageSearch(feed.topic, wanted, limit))


def numbers(found: MessagesFound) -> list[int]:
    """Which transactions, in the order shown; those that can't be read left out."""
    return [(one.commit_ts - at(0)) >> 18 for one in found.items if not one.error]


def test_all_of_a_topic_lies_in_the_order_of_commit_ts(feed: Feed) -> None:
    found = seen(feed)
    assert found.is_whole
    assert found.read == len(found.items) == 16
    assert numbers(found) == [1, 2, 3, 3, 3, 3, 10, 11, 12, 20, 21, 22, 23, 23, 23]
    assert [one.error for one in found.items if one.error] != []


def test_the_newest_are_kept_and_the_rest_is_told(feed: Feed) -> None:
    found = seen(feed, limit=4)
    assert len(found.items) == 4
    assert not found.is_whole


def test_a_key_is_found_on_both_sides_of_a_change(feed: Feed) -> None:
    assert numbers(seen(feed, MessageFilter(key="100", watermarks=False))) == [20, 21]
    assert numbers(seen(feed, MessageFilter(key="1"))) == [3, 11, 20]
    assert numbers(seen(feed, MessageFilter(key="x"))) == []  # a value of another column


def test_tables_are_chosen_by_rules(feed: Feed) -> None:
    assert numbers(seen(feed, MessageFilter(("d.u",)))) == [22]
    with pytest.raises(ConfigError):
        seen(feed, MessageFilter(("no rule at all",)))


def test_from_a_commit_ts_on_the_first_are_shown(feed: Feed) -> None:
    found = seen(feed, MessageFilter(since=at(12), watermarks=False), 2)
    assert numbers(found) == [12, 20]
    assert not found.is_whole


def test_a_look_ends_where_its_limit_of_messages_is_reached(feed: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(browse, "MOST_READ", 2 * PARTITIONS)
    found = seen(feed, MessageFilter(("d.t",)))
    assert found.read <= 2 * PARTITIONS
    assert not found.is_whole


def test_a_message_is_shown_whole(feed: Feed) -> None:
    (one,) = [one for one in seen(feed, MessageFilter(key="2")).items if not one.error]
    told = content_at(feed.config, one.position, 1 << 20)
    assert told["is_whole"]
    assert '"id": "2"' in told["decoded"]
    assert base64.b64decode(told["value"]).startswith(b'{"id":0')
    assert not content_at(feed.config, one.position, 10)["is_whole"]
    (bad,) = [one for one in seen(feed).items if one.error]
    told = content_at(feed.config, bad.position, 1 << 20)
    assert (told["decoded"], told["value_bytes"]) == (None, len(BAD.value or b""))
    assert "decompressed" in told["fault"]


def test_only_what_the_changefeed_reads_is_shown(feed: Feed) -> None:
    for topic in ("another", f"{feed.topic}x"):
        with pytest.raises(ConfigError, match="does not read"):
            look_at(feed.config, MessageSearch(topic, EVERYTHING))
        with pytest.raises(ConfigError, match="does not read"):
            content_at(feed.config, Position(topic, 0, 0), 10)
    for position in (Position(feed.topic, 0, 10_000), Position(feed.topic, 99, 0)):
        with pytest.raises(ConfigError, match="no message there"):
            content_at(feed.config, position, 10)

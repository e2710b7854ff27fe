"""Topics of another protocol: refused at the first message, also where no watermark would ever have it read."""

import pytest

from ordering.errors import AnotherProtocolError
from tests.consumer.codec.test_foreign import FORMS
from tests.service.lab import Feed
from tests.service.messages import insert, watermarks

pytestmark = pytest.mark.service
MORE_THAN_A_SMALL_TOPIC = 2_001


@pytest.mark.parametrize("form", [name for name, form in FORMS.items() if form.protocol != "canal-json"])
def test_a_topic_that_gets_no_watermark(sqlite_feed: Feed, form: str) -> None:
    feed, found = sqlite_feed, FORMS[form]
    feed.make_topic()
    feed.send_raw(1, *[found.value] * MORE_THAN_A_SMALL_TOPIC)
    error = feed.failing(AnotherProtocolError)
    assert found.names in error.hint
    assert error.exit_code == 3
    assert f"topic={feed.topic} partition=1 offset=0" in str(error).splitlines()[0]


def test_messages_that_are_only_broken_are_left_to_whoever_reads_them(sqlite_feed: Feed) -> None:
    feed = sqlite_feed
    feed.make_topic()
    feed.send_raw(1, *[b"hello"] * MORE_THAN_A_SMALL_TOPIC)
    assert feed.once().counts.events == 0


def test_a_topic_that_changes_its_protocol(sqlite_feed: Feed) -> None:
    feed = sqlite_feed
    feed.make_database("d", "CREATE TABLE t (id INT PRIMARY KEY, v INT, s VARCHAR(10))")
    feed.send([insert("d.t", 1, 1, id=1, v=1, s="x"), *watermarks(2)])
    feed.once()
    feed.send_raw(1, FORMS["debezium"].value)
    feed.send(watermarks(4))
    error = feed.failing(AnotherProtocolError)
    assert "partition=1 offset=2" in error.where
    assert "Debezium" in error.hint

"""Merged tables: in which order RENAMEs of shards run, where a place that is there says nothing of a name."""

from collections.abc import Iterable

import pytest
from structlog.testing import capture_logs

from consumer.demo.fake_ticdc.changefeed import Message
from tests.service.lab import Feed
from tests.service.local import LocalFeed
from tests.service.messages import at, ddl, insert, watermarks
from tests.service.rows.test_merging import MERGED, begun, ran, refused, rows

pytestmark = pytest.mark.service


def renamed(old: str, new: str, number: int) -> Message:
    sql = f"RENAME TABLE `s1`.`t_{old}` TO `s1`.`t_{new}`"
    return ddl(f"s1.t_{new}", number, sql, kind="RENAME")


def in_topic(messages: Iterable[Message], topic: str) -> list[Message]:
    return [message._replace(topic=topic) for message in messages]


def with_topics(feed: LocalFeed) -> None:
    """Shards `a` and `b` with a topic and a row each."""
    feed.with_(sink=MERGED, source={"topics": [f"~{feed.topic}.*"]})
    made = [ddl(f"s1.t_{name}", 2, f"CREATE TABLE `t_{name}` (`id` INT PRIMARY KEY)") for name in "ab"]
    for topic in ("ta", "tb"):
        feed.make_topic(topic=f"{feed.topic}.{topic}")
    feed.send(in_topic([ddl("m.", 1, "CREATE DATABASE `m`", kind="QUERY"), made[0]], "ta"))
    feed.send(in_topic([insert("s1.t_a", 5, id=1), *watermarks(10)], "ta"))
    feed.send(in_topic([made[1], insert("s1.t_b", 5, id=2), *watermarks(10)], "tb"))
    feed.once()


def test_renames_of_one_statement_find_their_order_between_topics(sqlite_feed: LocalFeed) -> None:
    """RENAME TABLE t_b TO t_z, t_a TO t_b: the topic of the second is read first."""
    with_topics(sqlite_feed)
    sqlite_feed.send(in_topic([renamed("a", "b", 12), *watermarks(20)], "ta"))
    sqlite_feed.send(in_topic([renamed("b", "z", 12), *watermarks(20)], "tb"))
    sqlite_feed.once()
    assert rows(sqlite_feed) == [("1", "1", "b"), ("1", "2", "z")]


def test_renames_of_shards_that_nothing_came_of_find_their_order_too(sqlite_feed: LocalFeed) -> None:
    feed = sqlite_feed.with_(sink=MERGED, source={"topics": [f"~{sqlite_feed.topic}.*"], "start-ts": at(10)})
    made = "id INT NOT NULL, db TEXT NOT NULL, shard TEXT NOT NULL, PRIMARY KEY (id, db, shard)"
    feed.make_database("m", f"CREATE TABLE t ({made})")
    feed.cells.run("m", "INSERT INTO t VALUES (1, '1', 'a'), (2, '1', 'b')")
    for topic in ("ta", "tb"):
        feed.make_topic(topic=f"{feed.topic}.{topic}")
    feed.send(in_topic([renamed("a", "b", 12), *watermarks(20)], "ta"))
    feed.send(in_topic([renamed("b", "z", 12), *watermarks(20)], "tb"))
    feed.once()
    assert rows(feed) == [("1", "1", "b"), ("1", "2", "z")]


def test_a_rename_that_is_the_last_message_of_its_topic_runs(sqlite_feed: LocalFeed) -> None:
    """The table's messages go to another topic from then on."""
    feed = sqlite_feed
    with_topics(feed)
    feed.send(in_topic([renamed("a", "c", 12)], "ta"))
    feed.send(in_topic(watermarks(20), "tb"))
    feed.once()
    assert rows(feed) == [("1", "1", "c"), ("1", "2", "b")]


def test_a_rename_at_the_watermark_runs_at_once(every_feed: Feed) -> None:
    feed = begun(every_feed, "s1.t_a", "s1.t_b")
    ran(feed, 10, insert("s1.t_a", 4, id=1, v=1, s="x"), insert("s1.t_b", 4, id=1, v=1, s="x"))
    ran(feed, 12, renamed("a", "c", 12))
    assert [row[3] for row in rows(feed)] == ["b", "c"]
    ran(feed, 14, ddl("s1.t_b", 13, "DROP TABLE `s1`.`t_b`", kind="ERASE"), renamed("c", "b", 14))
    assert [row[3] for row in rows(feed)] == ["b"]


def test_a_shard_does_not_take_the_name_of_another_that_lives(every_feed: Feed) -> None:
    """Its rows would lie among the other's."""
    feed = begun(every_feed, "s1.t_a", "s1.t_b")
    ran(feed, 10, insert("s1.t_a", 4, id=1, v=1, s="x"), insert("s1.t_b", 4, id=2, v=1, s="x"))
    assert "s1.t_b is a shard already" in refused(feed, 12, renamed("a", "b", 11))
    assert [row[3] for row in rows(feed)] == ["a", "b"]


def test_a_rename_that_waits_at_the_last_watermark_says_so(sqlite_feed: LocalFeed) -> None:
    """Another DDL of its commitTs may make its table; with the next watermark it runs."""
    feed = begun(sqlite_feed, "s1.t_a")
    with capture_logs() as lines:
        ran(feed, 12, renamed("x", "y", 12))
    (told,) = [line for line in lines if line["event"] == "a DDL waits for the next watermark"]
    assert "RENAME TABLE `s1`.`t_x`" in told["statement"]
    with capture_logs() as lines:
        ran(feed, 13)
    assert "changing a shard's rows" in [line["event"] for line in lines]

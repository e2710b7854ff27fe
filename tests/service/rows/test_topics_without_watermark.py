"""Topics whose tables went before a first watermark: TiCDC sends one each second, to topics of tables there are."""

import pytest

from consumer.demo.fake_ticdc.changefeed import Message
from tests.service.lab import Feed
from tests.service.messages import at, ddl, insert, watermarks

pytestmark = pytest.mark.service
TABLE = "id INT PRIMARY KEY, v INT"


def of(topic: str, *messages: Message) -> list[Message]:
    return [message._replace(topic=topic) for message in messages]


def went(rows: int, *after: Message) -> list[Message]:
    """`e.s` lives on; `d.t` gets rows and goes with its database, whose DDL is in the default topic."""
    return [
        ddl("d.", 1, "CREATE DATABASE d", "QUERY"),
        *of("e_s", ddl("e.s", 2, f"CREATE TABLE e.s ({TABLE})"), insert("e.s", 3, 1, id=1, v=1)),
        *of("d_t", ddl("d.t", 4, f"CREATE TABLE d.t ({TABLE})")),
        *of("d_t", *(insert("d.t", 5, n % 3, id=n, v=n) for n in range(rows))),
        ddl("d.", 6, "DROP DATABASE d", "QUERY"),
        *after,
        *watermarks(9),
        *of("e_s", insert("e.s", 8, 2, id=2, v=2), *watermarks(9)),
    ]


def all_topics(feed: Feed) -> Feed:
    return feed.with_(source={"topics": [f"~{feed.topic}.*"]})


@pytest.mark.parametrize("rows", [0, 5, 6_100], ids=["none", "few", "more than are looked through first"])
def test_a_topic_whose_database_went_holds_back_nobody(every_feed: Feed, rows: int) -> None:
    feed = all_topics(every_feed)
    feed.send([ddl("e.", 0, "CREATE DATABASE e", "QUERY"), *went(rows)])
    assert feed.once().checkpoint_ts == at(9)
    assert sorted(int(row["id"]) for row in feed.cells.tables(["e"])["e.s"][1]) == [1, 2]
    assert "d.t" not in feed.cells.tables(["d"])


def test_what_comes_to_it_later_is_waited_for(sqlite_feed: Feed) -> None:
    feed = all_topics(sqlite_feed)
    feed.send([ddl("e.", 0, "CREATE DATABASE e", "QUERY"), *went(5, ddl("d.", 7, "CREATE DATABASE d", "QUERY"))])
    assert feed.once().checkpoint_ts == at(9)
    feed.send([*of("d_t", ddl("d.t", 10, f"CREATE TABLE d.t ({TABLE})")), *watermarks(12), *of("e_s", *watermarks(12))])
    assert feed.once().checkpoint_ts < at(10)
    feed.send(of("d_t", insert("d.t", 11, 1, id=7, v=7), *watermarks(12)))
    assert feed.once().checkpoint_ts == at(12)
    assert [int(row["id"]) for row in feed.cells.tables(["d"])["d.t"][1]] == [7]


def test_a_topic_without_watermark_whose_table_is_there_is_waited_for(sqlite_feed: Feed) -> None:
    feed = all_topics(sqlite_feed)
    there = [message for message in went(5) if b"DROP DATABASE" not in message.value]
    feed.send([ddl("e.", 0, "CREATE DATABASE e", "QUERY"), *there])
    assert feed.once().checkpoint_ts == 0

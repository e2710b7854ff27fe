"""Topics that come, grow, end, and are created again while a changefeed runs (R6, R8)."""

import signal
from contextlib import closing

import pytest
from confluent_kafka.admin import NewPartitions

from consumer.demo.fake_ticdc.changefeed import Message
from consumer.embedded import KafkaBroker, RedisServer
from consumer.kafka.admin import KafkaAdmin
from consumer.operate.decisions import retire_topic, return_topic
from consumer.verify.run import Verification, VerifyOptions
from ordering.errors import ConfigError, InputError
from tests.bench.measure import Sending
from tests.service.cells import differences, oracle
from tests.service.interleaving import portions
from tests.service.lab import DEADLINE_S, Feed, body, eventually, recorded
from tests.service.messages import at, begun, ddl, insert, watermark, watermarks

pytestmark = [pytest.mark.service, pytest.mark.kafka]
PER_TABLE = "topics.topic-per-table"


def last_watermark(messages: list[Message]) -> int:
    return max(body(m)["_tidb"].get("watermarkTs", 0) for m in messages)


def test_asking_for_a_topic_makes_none(kafka_broker: KafkaBroker, topic_name: str) -> None:
    control = KafkaAdmin(kafka_broker.bootstrap, {})
    assert control.topics([topic_name]) == []
    for name in ("no name of a topic", ""):
        with pytest.raises(ConfigError, match="no name of a topic"):
            control.topics([topic_name, name])
    assert control.topics([f"~{topic_name}"]) == []
    Sending(kafka_broker.bootstrap, topic_name, 3)
    (named,) = control.topics([topic_name, f"{topic_name}-other"])
    assert [named] == control.topics([f"~{topic_name}"])
    assert [partition.partition for partition in named.partitions] == [0, 1, 2]
    control.close()


def of_all_tables(feed: Feed) -> Feed:
    """The feed with its topic and every topic whose name begins with it."""
    return feed.with_(source={"topics": [f"~{feed.topic}.*"]})


@pytest.mark.by_turns
@pytest.mark.parametrize(
    ("feed", "consistency"),
    [("sqlite", "transaction"), ("mariadb", "snapshot"), ("postgres", "snapshot")],
    indirect=["feed"],
)
def test_a_topic_per_table(feed: Feed, consistency: str) -> None:
    of_all_tables(feed).with_(target={"consistency": consistency})
    messages = recorded(PER_TABLE)
    feed.send(messages)
    outcome = feed.once()
    assert differences(oracle("topics"), feed.cells) == []
    assert outcome.checkpoint_ts == last_watermark(messages)
    feed.send(messages)
    repeated = feed.once()
    assert differences(oracle("topics"), feed.cells) == []
    assert repeated.counts.duplicates == outcome.counts.events


@pytest.mark.by_turns
@pytest.mark.parametrize("seed", range(2))
def test_a_topic_per_table_in_portions(sqlite_feed: Feed, seed: int) -> None:
    feed = of_all_tables(sqlite_feed)
    feed.make_topic()
    messages = recorded(PER_TABLE)
    for portion in portions(messages, seed, 5):
        feed.send(portion)
        outcome = feed.once()
    assert differences(oracle("topics"), feed.cells) == []
    assert outcome.checkpoint_ts == last_watermark(messages)
    assert outcome.counts.duplicates == 0


@pytest.mark.by_turns(9)
@pytest.mark.spark
def test_topics_and_partitions_that_appear_under_a_running_reconciler(mariadb_feed: Feed) -> None:
    feed = of_all_tables(mariadb_feed)
    messages = recorded(PER_TABLE)
    feed.make_topic()
    with feed.running() as process:
        for portion in portions(messages, 1, 4):
            feed.send(portion)
        stood = last_watermark(messages)
        eventually("all is applied", lambda: feed.reached(stood))
        assert differences(oracle("topics"), feed.cells) == []
        feed.admin_do(lambda admin: admin.create_partitions([NewPartitions(feed.topic, 4)]))
        feed.admin_do(lambda admin: admin.create_partitions([NewPartitions(feed.topic_for("cdc_tp_a2"), 5)]))
        later = at(1000)
        alive = ("ticdc", "cdc_tp_a2", "cdc_tp_b")
        row = insert("tp.a2", 999, 4, id=100, v=100)._replace(topic="cdc_tp_a2")
        counts = {"ticdc": 4, "cdc_tp_a2": 5, "cdc_tp_b": 3}
        marks = [watermark(1000, p)._replace(topic=name) for name in alive for p in range(counts[name])]
        feed.send([row, *marks])
        eventually("the new partitions are applied", lambda: feed.reached(later))
        assert any(int(r["id"]) == 100 for r in feed.cells.tables(["tp"])["tp.a2"][1])
        process.send_signal(signal.SIGTERM)
        assert process.wait(DEADLINE_S) == 0
    assert "Traceback" not in feed.log()


def test_a_topic_that_was_made_anew(sqlite_feed: Feed) -> None:
    feed = sqlite_feed
    feed.send(begun())
    before = feed.once().checkpoint_ts
    feed.delete_topic()
    assert feed.failing(InputError).exit_code == 3
    feed.make_topic()
    feed.send([insert("d.t", 4, id=4, v=4, s="x"), *watermarks(5)])
    error = feed.failing(InputError)
    assert error.exit_code == 3
    assert f"topic={feed.topic}" in str(error)
    assert "again" in error.fact
    assert feed.checkpoint() == before


def test_a_topic_that_is_gone_is_not_passed_over(sqlite_feed: Feed) -> None:
    feed = of_all_tables(sqlite_feed)
    feed.send(recorded(PER_TABLE))
    feed.once()
    feed.delete_topic(feed.topic_for("cdc_tp_b"))
    error = feed.failing(InputError)
    assert f"topic={feed.topic_for('cdc_tp_b')}" in str(error)
    assert "retire" in error.hint


def test_internal_topics_are_never_read(sqlite_feed: Feed) -> None:
    feed = sqlite_feed
    feed.send(begun())
    feed.commit_as_a_group("someone")  # makes __consumer_offsets
    feed.with_(source={"topics": [f"~(__.*|{feed.topic})"]})
    assert feed.once().checkpoint_ts == at(3)
    assert {p["topic"] for p in feed.status()["source"]["partitions"]} == {feed.topic}


def stale_topic(feed: Feed) -> str:
    """A topic, of a table of its own, that is retired: TiCDC sends nothing to it any more, others go on."""
    of_all_tables(feed)
    feed.send([*begun(), *[message._replace(topic="old") for message in watermarks(3)]])
    feed.send([insert("d.t", 4, 1, id=4, v=4, s="before")._replace(topic="old")])
    feed.once()
    name = feed.topic_for("old")
    retire_topic(feed.config, name)
    feed.send(watermarks(9))
    assert feed.once().checkpoint_ts == at(9)
    assert ids(feed) == [1, 4]  # what lay in it then is applied
    return name


def ids(feed: Feed) -> list[int]:
    return sorted(int(row["id"]) for row in feed.cells.tables(["d"])["d.t"][1])


NEWS = {
    "above": [insert("d.t", 12, 1, id=12, v=1, s="x")],
    "far above": [insert("d.t", 99, 1, id=12, v=1, s="x")],
    "below": [insert("d.t", 7, 1, id=7, v=1, s="x")],
    "ddl": [ddl("d.u", 12, "CREATE TABLE u (id INT PRIMARY KEY)")],
    "earlier ddl": [ddl("d.u", 7, "CREATE TABLE u (id INT PRIMARY KEY)")],
    "unknown table": [insert("d.u", 7, 1, id=7, v=1, s="x")],
}


@pytest.mark.by_turns
@pytest.mark.cells(by_turns=("news",))
@pytest.mark.parametrize("news", NEWS.values(), ids=NEWS)
def test_what_comes_to_a_retired_topic_is_neither_dropped_nor_applied(sqlite_feed: Feed, news: list[Message]) -> None:
    feed = sqlite_feed
    name = stale_topic(feed)
    feed.send([*[message._replace(topic="old") for message in news], *watermarks(15)])
    for _ in range(2):
        error = feed.failing(InputError)
        assert error.exit_code == 3
        assert f"topic={name} partition={news[0].partition} offset=" in str(error)
        assert "retired" in error.fact
    assert (feed.checkpoint(), ids(feed)) == (at(9), [1, 4])
    retire_topic(feed.config, name)  # the operator accepts it
    assert feed.once().checkpoint_ts == at(15)


def test_a_topic_that_is_no_longer_retired_counts(sqlite_feed: Feed) -> None:
    feed = sqlite_feed
    name = stale_topic(feed)
    late = [message._replace(topic="old") for message in (insert("d.t", 12, 1, id=12, v=1, s="x"), *watermarks(13))]
    feed.send([*late, *watermarks(15)])
    assert feed.failing(InputError).exit_code == 3
    return_topic(feed.config, name)
    assert feed.once().checkpoint_ts == at(13)
    assert ids(feed) == [1, 4, 12]


def of_old(*messages: Message) -> list[Message]:
    return [message._replace(topic="old") for message in messages]


@pytest.mark.by_turns
def test_what_nobody_waited_for_is_not_dropped_once_the_topic_counts_again(sqlite_feed: Feed) -> None:
    feed = sqlite_feed
    name = stale_topic(feed)
    feed.send([*of_old(insert("d.t", 7, 1, id=7, v=1, s="x")), *watermarks(15)])
    assert feed.failing(InputError).exit_code == 3
    return_topic(feed.config, name)
    feed.send(of_old(*watermarks(15)))
    error = feed.failing(InputError)
    assert f"progress rewind CONFIG {at(7) - 1}" in error.hint
    assert (feed.checkpoint(), ids(feed)) == (at(9), [1, 4])
    assert feed.command("progress", "rewind", str(feed.file()), str(at(7) - 1), "--yes").returncode == 0
    feed.once()
    assert ids(feed) == [1, 4, 7]
    feed.send(of_old(insert("d.t", 7, 1, id=7, v=1, s="x"), *watermarks(16)))  # a repetition, as any other
    feed.send(watermarks(16))
    assert feed.once().counts.duplicates == 1


@pytest.mark.by_turns
@pytest.mark.spark
@pytest.mark.parametrize("made_again", [False, True])
def test_what_a_topic_held_that_is_gone_is_neither_replayed_nor_applied_again(
    sqlite_feed: Feed, made_again: bool
) -> None:
    feed = of_all_tables(sqlite_feed)
    columns = "CREATE TABLE u (id INT PRIMARY KEY, v INT, s VARCHAR(10))"
    feed.send([*begun(), ddl("d.u", 4, columns), *watermarks(5)])
    feed.send(of_old(insert("d.u", 5, 1, id=4, v=4, s="x"), *watermarks(5)))
    feed.once()
    verification = Verification(feed.config, VerifyOptions(replay=True), spark=feed.spark)
    assert not verification.run().differs
    name = feed.topic_for("old")
    retire_topic(feed.config, name)
    feed.delete_topic(name)
    feed.cells.run("d", "DELETE FROM u")  # a row that only this topic could tell of
    feed.send(watermarks(9))
    feed.once()
    if made_again:
        make_again(feed, name)
    with pytest.raises(InputError, match="gone, or was created again"):
        verification.run()
    if not made_again:
        done = feed.command("progress", "rewind", str(feed.file()), str(at(4)), "--yes")
        assert (done.returncode, "a retired topic is gone" in done.stderr) == (3, True)
        feed.with_(source={"unproven-beginning": "accept"})
        assert feed.command("progress", "rewind", str(feed.file()), str(at(4)), "--yes").returncode == 0


def make_again(feed: Feed, name: str) -> None:
    """Make a topic that was deleted, and wait until brokers tell of it."""
    feed.make_topic(topic=name)
    with closing(KafkaAdmin(feed.bootstrap, {})) as control:
        eventually("the topic is listed", lambda: bool(control.topics([name])))


def made_anew(feed: Feed, name: str) -> None:
    """A retired topic that somebody deletes, and TiCDC (or an admin) makes again under its name."""
    feed.delete_topic(name)
    feed.send(watermarks(10))
    assert feed.once().checkpoint_ts == at(10)
    make_again(feed, name)
    error = feed.failing(InputError)
    assert "created again" in error.fact
    assert "topic retire" in error.hint


@pytest.mark.by_turns
def test_a_retired_topic_that_was_made_anew_stays_retired_once_more(sqlite_feed: Feed) -> None:
    feed = sqlite_feed
    name = stale_topic(feed)
    made_anew(feed, name)
    retire_topic(feed.config, name)
    feed.send(watermarks(11))
    assert feed.once().checkpoint_ts == at(11)
    feed.send([insert("d.t", 12, 1, id=12, v=1, s="x")._replace(topic="old"), *watermarks(15)])
    assert "retired" in feed.failing(InputError).fact
    assert (feed.checkpoint(), ids(feed)) == (at(11), [1, 4])


@pytest.mark.by_turns
def test_a_retired_topic_that_was_made_anew_may_count_again(sqlite_feed: Feed) -> None:
    feed = sqlite_feed
    name = stale_topic(feed)
    made_anew(feed, name)
    return_topic(feed.config, name)
    late = [message._replace(topic="old") for message in (insert("d.t", 12, 1, id=12, v=1, s="x"), *watermarks(13))]
    feed.send([*late, *watermarks(15)])
    assert feed.once().checkpoint_ts == at(13)
    assert ids(feed) == [1, 4, 12]
    feed.send([*[message._replace(topic="old") for message in watermarks(15)]])
    assert feed.once().checkpoint_ts == at(15)


@pytest.mark.parametrize("retired", [True, False])
def test_what_a_topic_held_that_is_gone_is_not_forgotten(sqlite_feed: Feed, retired: bool) -> None:
    """A row lay in it that the others' watermarks did not allow yet."""
    feed = of_all_tables(sqlite_feed)
    feed.send([*begun(), *[message._replace(topic="old") for message in watermarks(3)]])
    feed.once()
    name = feed.topic_for("old")
    feed.send([insert("d.t", 40, 1, id=4, v=4, s="x")._replace(topic="old")])
    if retired:
        retire_topic(feed.config, name)
    feed.delete_topic(name)
    if retired:
        retire_topic(feed.config, name)  # nobody can say by now what it held
    make_again(feed, name)
    with pytest.raises(ConfigError, match="before all was applied" if retired else "was not retired before"):
        retire_topic(feed.config, name)


def test_marks_in_a_retired_topic_are_no_news(sqlite_feed: Feed) -> None:
    feed = sqlite_feed
    stale_topic(feed)
    feed.send([*[message._replace(topic="old") for message in watermarks(10)], *watermarks(15)])
    assert feed.once().checkpoint_ts == at(15)


def test_repetitions_in_a_retired_topic_are_proven_by_the_ledger(sqlite_feed: Feed, redis_server: RedisServer) -> None:
    feed = sqlite_feed.with_(redis={"uri": redis_server.uri})
    stale_topic(feed)
    feed.send([insert("d.t", 4, 1, id=4, v=4, s="before")._replace(topic="old"), *watermarks(15)])
    assert feed.once().checkpoint_ts == at(15)

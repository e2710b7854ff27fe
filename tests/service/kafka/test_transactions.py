"""Topics with transactions, open, committed, aborted: what can't be read yet is waited for, never passed (R2, R12)."""

import threading
from collections.abc import Iterator

import pytest

from consumer.demo.fake_ticdc.changefeed import Message
from consumer.kafka import reader
from consumer.kafka.account import Reached
from consumer.kafka.admin import KafkaAdmin
from consumer.kafka.properties import reader_settings
from consumer.kafka.reader import RangeReader
from consumer.native import chosen
from ordering.errors import SourceUnreachableError
from ordering.events import Partition
from sinks.steps import Step
from tests.service.lab import PARTITIONS, Feed
from tests.service.messages import at, begun, ddl, insert, watermark, watermarks
from tests.service.producing import Transaction, aborted_at_last
from tests.service.ticdc_api import ticdc_api

pytestmark = [pytest.mark.service, pytest.mark.kafka]


def ids(feed: Feed) -> list[int]:
    return sorted(int(row["id"]) for row in feed.cells.tables(["d"])["d.t"][1])


def rows(partition: int, *numbers: int, ts: int = 5) -> list[Message]:
    return [insert("d.t", ts, partition, id=n, v=n, s="x") for n in numbers]


@pytest.fixture
def known(sqlite_feed: Feed) -> Feed:
    """A feed that has applied row 1."""
    sqlite_feed.send(begun())
    assert sqlite_feed.once().checkpoint_ts == at(3)
    return sqlite_feed


@pytest.fixture(params=[False, True], ids=["python", "core"])
def one_reader(request: pytest.FixtureRequest, known: Feed) -> Iterator[RangeReader]:
    made = RangeReader(reader_settings(known.bootstrap, {}), core=chosen(request.param).core)
    yield made
    made.close()


@pytest.mark.by_turns
@pytest.mark.parametrize("consistency", ["snapshot", "transaction", "row"])
def test_an_open_transaction_holds_back_what_lies_behind_it(known: Feed, consistency: str) -> None:
    known.with_(target={"consistency": consistency})
    transaction = Transaction(known)
    transaction.send(rows(1, *range(10, 15)))
    known.send([*rows(1, 20), *rows(2, 30), *watermarks(6)])
    outcome = known.once()
    assert (outcome.checkpoint_ts, ids(known)) == (at(3), [1])
    transaction.commit()
    assert known.once().checkpoint_ts == at(6)
    assert ids(known) == [1, *range(10, 15), 20, 30]


def test_a_transaction_that_was_opened_between_two_watermarks(known: Feed) -> None:
    known.send(watermarks(4))
    transaction = Transaction(known)
    transaction.send([*rows(0, 10), *rows(2, 11), *watermarks(6), *rows(1, 12, ts=7)])
    assert known.once().checkpoint_ts == at(4)
    transaction.commit()
    assert known.once().checkpoint_ts == at(6)
    known.send(watermarks(8))
    assert known.once().checkpoint_ts == at(8)
    assert ids(known) == [1, 10, 11, 12]


def test_a_checkpoint_of_ticdc_does_not_pass_what_lies_behind_one(known: Feed) -> None:
    """TiCDC's own rows are no transaction's: its checkpoint passes them where no reader gets them yet."""
    with ticdc_api() as api:
        known.with_(source={"watermark-from": api.url, "watermark-changefeed": "orders"})
        transaction = Transaction(known)
        transaction.send(rows(1, 10, ts=9))
        known.send([*rows(1, 20), *rows(2, 30)])
        api.at(at(6))
        assert (known.once().checkpoint_ts, ids(known)) == (at(3), [1])
        transaction.commit()
        assert (known.once().checkpoint_ts, ids(known)) == (at(6), [1, 20, 30])


def test_an_aborted_transaction_is_none(known: Feed) -> None:
    transaction = Transaction(known)
    transaction.send([*rows(0, 10), *rows(1, 11), *watermarks(9)])
    known.send([*rows(0, 20), *watermarks(6)])
    assert known.once().checkpoint_ts == at(3)
    transaction.abort()
    outcome = known.once()
    assert (outcome.checkpoint_ts, ids(known)) == (at(6), [1, 20])
    assert outcome.counts.duplicates == 0


def test_transactions_that_interleave_and_end_with_marks(known: Feed) -> None:
    first, second = Transaction(known), Transaction(known)
    for n in range(10, 20):
        first.send(rows(n % PARTITIONS, n))
        second.send(rows(n % PARTITIONS, 100 + n))
    second.abort()
    assert known.once().checkpoint_ts == at(3)
    first.commit()
    with aborted_at_last(known) as third:
        third.send(rows(0, 30))
        known.send(watermarks(6))
        assert known.once().checkpoint_ts == at(3)
    assert known.once().checkpoint_ts == at(6)
    assert ids(known) == [1, *range(10, 20)]


@pytest.mark.by_turns
@pytest.mark.parametrize("step", [Step.PROBED, Step.PLANNED, Step.READ])
def test_a_transaction_that_ends_while_the_topic_is_read(known: Feed, step: Step) -> None:
    transaction = Transaction(known)
    transaction.send(rows(1, 10, 11))
    known.send([*rows(0, 20, ts=4), watermark(6, 0), watermark(4, 1), watermark(6, 2), *rows(1, 12)])
    ends = [transaction.commit]

    def end(now: Step) -> None:
        if now is step and ends:
            ends.pop()()

    known.send(watermarks(6))
    known.once(end)
    assert known.once().checkpoint_ts == at(6)
    assert ids(known) == [1, 10, 11, 12, 20]


def test_a_topic_is_not_dead_while_a_transaction_is_open_in_it(sqlite_feed: Feed) -> None:
    feed = sqlite_feed.with_(source={"topics": [f"~{sqlite_feed.topic}.*"]})
    feed.make_topic()
    feed.make_topic(topic=feed.topic_for("own"))
    own = [m._replace(topic="own") for m in begun()]
    feed.send([*own, *watermarks(3)])
    assert feed.once().checkpoint_ts == at(3)
    transaction = Transaction(feed)
    transaction.send([m._replace(topic="own") for m in rows(1, 10)])
    feed.send([ddl("d.u", 6, "RENAME TABLE `d`.`t` TO `d`.`u`", kind="RENAME")._replace(topic="own"), *watermarks(9)])
    assert feed.once().checkpoint_ts == at(3)
    transaction.commit()
    assert feed.once().checkpoint_ts == at(9)
    assert sorted(int(row["id"]) for row in feed.cells.tables(["d"])["d.u"][1]) == [1, 10]


@pytest.mark.by_turns
def test_an_end_before_the_stop_is_waited_at(known: Feed, one_reader: RangeReader) -> None:
    place = Partition(known.topic, 1)
    transaction = Transaction(known)
    transaction.send(rows(1, 10, 11))
    commit = threading.Timer(0.5, transaction.commit)
    commit.start()
    offsets = [m.offset() for _, run in one_reader.read([(place, 0, 3)]) for m in run]
    commit.join()
    assert (offsets, one_reader.reached(place)) == ([0, 1, 2], Reached(3, 3, ((0, 0),)))


def test_a_mark_of_a_transaction_holds_nothing(known: Feed, one_reader: RangeReader) -> None:
    place = Partition(known.topic, 1)
    transaction = Transaction(known)
    transaction.send(rows(1, 10, 11))
    transaction.abort()
    control = KafkaAdmin(known.bootstrap, {})
    assert control.ends([place]) == {place: 4}
    control.close()
    for _ in range(2):  # the second time with a consumer that was used before
        offsets = [m.offset() for _, run in one_reader.read([(place, 0, 4)]) for m in run]
        assert (offsets, one_reader.reached(place)) == ([0], Reached(4, 1, ((0, 0),)))


@pytest.mark.by_turns
@pytest.mark.parametrize("used", [False, True])
def test_what_does_not_come_is_an_error(
    known: Feed, one_reader: RangeReader, monkeypatch: pytest.MonkeyPatch, *, used: bool
) -> None:
    monkeypatch.setattr(reader, "SILENCE_S", 1.0)
    place = Partition(known.topic, 1)
    if used:
        list(one_reader.read([(place, 0, 1)]))
    with aborted_at_last(known) as transaction:
        transaction.send(rows(1, 10, 11))
        with pytest.raises(SourceUnreachableError) as caught:
            list(one_reader.read([(place, 0, 3)]))
    assert f"topic={known.topic} partition=1 offset=1" in str(caught.value)
    assert caught.value.exit_code == 3

"""Tables without a key are proven too: rows are counted as copies, and a repetition is no copy."""

import json
from pathlib import Path
from typing import Any

import pytest

from consumer.demo.fake_ticdc.changefeed import Message
from consumer.proof.report import ProofVerdict
from ordering.events import Partition
from tests.service.commands.test_prove import every, feed, prove, verdicts
from tests.service.commands.test_scrub import Clock, rounds, scrub_of
from tests.service.lab import recorded
from tests.service.local import LocalFeed
from tests.service.messages import ddl, delete, insert, keyed, typed, watermark, watermarks
from tests.service.rows.test_keyless import FORCED, event

__all__ = ["every", "feed"]
pytestmark = pytest.mark.service


def begun(feed: LocalFeed) -> LocalFeed:
    feed.with_(filter=FORCED)
    feed.send(
        [ddl("d.", 1, "CREATE DATABASE `d`", kind="QUERY"), ddl("d.t", 2, "CREATE TABLE `t` (a INT, b VARCHAR(10))")]
    )
    feed.send([event("INSERT", 3, a=1, b="x"), event("INSERT", 3, a=1, b="x"), event("INSERT", 3, a=None, b="x")])
    feed.send(watermarks(4))
    feed.apply()
    return feed


def changes(number: int) -> list[Message]:
    """Copies that come, change and go; one of two equal rows."""
    return [
        event("INSERT", number, a=number, b="x"),
        event("INSERT", number, a=number, b="x"),
        event("UPDATE", number + 1, {"b": "x"}, a=number, b="y"),
        event("DELETE", number + 2, a=number, b="x"),
        *watermarks(number + 3),
    ]


def test_copies_are_proven_and_each_change_by_hand_is_found(every: LocalFeed) -> None:
    begun(every)
    assert verdicts(prove(every)) == {"t": "equal"}
    every.send(changes(10))
    every.apply()
    found = prove(every)
    assert (verdicts(found), found.tables[next(iter(found.tables))][1].rows_found) == ({"t": "equal"}, 4)
    for change, back in (
        ("INSERT INTO t VALUES (1, 'x')", None),
        ("UPDATE t SET b = 'z' WHERE a IS NULL", "UPDATE t SET b = 'x' WHERE a IS NULL"),
        ("INSERT INTO t VALUES (9, NULL)", "DELETE FROM t WHERE a = 9"),
        ("DELETE FROM t WHERE a = 10", "INSERT INTO t VALUES (10, 'y')"),
    ):
        every.cells.run("d", change)
        assert verdicts(prove(every)) == {"t": "different"}, change
        if back is None:
            every.cells.run("d", "DELETE FROM t WHERE a = 1")
            every.cells.run("d", "INSERT INTO t VALUES (1, 'x'), (1, 'x')")
        else:
            every.cells.run("d", back)
        assert verdicts(prove(every)) == {"t": "equal"}, back


def test_what_comes_again_counts_once(feed: LocalFeed) -> None:
    """A restart right after a proof: the last watermark before the interval tells that its rows come again."""
    begun(feed)
    assert verdicts(prove(feed)) == {"t": "equal"}
    two = [event("INSERT", 10, a=7, b="q")] * 2
    feed.send([*two, watermark(4, 0), *two, *watermarks(11)])
    feed.apply()
    assert verdicts(prove(feed)) == {"t": "equal"}
    feed.send([*changes(20), *changes(20), *two, *changes(30)])
    feed.apply()
    assert verdicts(prove(feed)) == {"t": "equal"}


def test_it_is_carried_on_by_the_background(feed: LocalFeed) -> None:
    clock = Clock()
    scrub = scrub_of(begun(feed), clock)
    assert verdicts(rounds(scrub)) == {"t": "equal"}
    for number in range(10, 60, 10):
        feed.send(changes(number))
        feed.apply()
        clock.later()
        assert verdicts(scrub.round()) == {"t": "equal"}
    feed.cells.run("d", "DELETE FROM t WHERE a = 20")
    clock.later()
    assert verdicts(scrub.round()) == {"t": "different"}


def test_events_between_reading_and_comparing_count(feed: LocalFeed) -> None:
    clock = Clock()
    scrub = scrub_of(begun(feed), clock)
    rounds(scrub)
    clock.later()
    (name,) = kept_tables(feed)
    scrub._read(name)
    feed.send(changes(10))
    feed.apply()
    assert verdicts(scrub.round()) == {"t": "equal"}


def kept_tables(feed: LocalFeed) -> list[Any]:
    return list(prove(feed).tables)


@pytest.mark.cells("recording", "consistency")
@pytest.mark.parametrize("consistency", ["snapshot", "transaction", "row"])
@pytest.mark.parametrize("recording", ["nokey.plain", "nokey.restarts", "nokey.updated"])
def test_no_false_alarm_over_recorded_messages(
    tmp_path: Path, feed: LocalFeed, recording: str, consistency: str
) -> None:
    del tmp_path
    # what comes in several sendings may be refused else, see docs/keyless-tables.md
    feed.by_tasks().with_(filter=FORCED, target={"consistency": consistency}, source={"equal-rows": "count"})
    messages = recorded(recording)
    seen: set[str] = set()
    step = max(1, len(messages) // 7)
    for low in range(0, len(messages), step):
        feed.send(messages[low : low + step])
        feed.apply()
        proof = prove(feed)
        assert proof.having(ProofVerdict.DIFFERENT) == [], json.dumps(proof.as_json())
        seen |= set(verdicts(proof).values())
    assert seen >= {"equal"}


def test_equal_rows_that_updates_leave_in_two_partitions(feed: LocalFeed) -> None:
    begun(feed)
    assert verdicts(prove(feed)) == {"t": "equal"}
    moved = [event("UPDATE", 10, {"a": 1}, a=new, b="x") for new in (2, 3)]
    feed.send([moved[0], moved[1]._replace(partition=1), *watermarks(11)])
    feed.apply()
    assert verdicts(prove(feed)) == {"t": "equal"}
    assert prove(feed).tables[next(iter(prove(feed).tables))][1].rows_found == 3


@pytest.mark.parametrize("consistency", ["snapshot", "transaction", "row"])
def test_floats_with_a_scale_are_found_and_proven(every: LocalFeed, consistency: str) -> None:
    """MySQL and MariaDB hold -0.05 in a DOUBLE(9,2) as another float."""
    every.with_(filter=FORCED, source={"equal-rows": "count"}, target={"consistency": consistency})
    every.send([ddl("d.", 1, "CREATE DATABASE `d`", kind="QUERY")])
    every.send([ddl("d.n", 2, "CREATE TABLE `n` (g DOUBLE(9,2), f FLOAT(7,2))"), *watermarks(3)])
    every.apply()
    prove(every)
    values = ["-0.05", "-0.01", "-1.1", "0.05", "-99.99", "0.00", "12345.67"]
    kinds = {"g": "double", "f": "float"}
    every.send([keyed(typed(insert("d.n", 5, g=value, f=value), **kinds)) for value in values])
    every.send(watermarks(6))
    every.apply()
    assert verdicts(prove(every)) == {"n": "equal"}
    every.send([keyed(typed(delete("d.n", 7, g=value, f=value), **kinds)) for value in values])
    every.send(watermarks(8))
    every.apply()
    assert verdicts(prove(every)) == {"n": "equal"}
    assert every.cells.tables({"d"})["d.n"][1] == []


def test_an_ignored_watermark_parts_no_copies(feed: LocalFeed) -> None:
    """The run counts rows on both sides of it as copies of one transaction, and so does the proof."""
    begun(feed)
    assert verdicts(prove(feed)) == {"t": "equal"}
    two = [event("INSERT", 10, a=7, b="q")] * 2
    feed.send(two[:1])
    held = feed.log_of_messages.held[Partition(feed.topic, 0)]
    feed.with_(source={"ignored-watermarks": [f"{feed.topic}/0/{len(held)}"], "equal-rows": "count"})
    feed.send([watermark(15, 0), *two[1:], *watermarks(20)])
    feed.apply()
    assert len(feed.cells.tables(["d"])["d.t"][1]) == 5
    assert verdicts(prove(feed)) == {"t": "equal"}


@pytest.mark.parametrize(("kind", "spelled"), [("json", ("1", "1.0")), ("double", ("0", "-0")), ("float", ("-0", "0"))])
def test_rows_of_one_meaning_that_are_spelled_in_two_ways(
    every: LocalFeed, kind: str, spelled: tuple[str, str]
) -> None:
    """With `columns` as the dispatcher they go to two partitions, and no repetition is spelled in another way."""
    every.with_(filter=FORCED, source={"equal-rows": "count"})
    every.send([ddl("d.", 1, "CREATE DATABASE `d`", kind="QUERY")])
    every.send([ddl("d.n", 2, f"CREATE TABLE `n` (x INT, g {kind})"), *watermarks(3)])
    every.apply()
    prove(every)
    every.send(keyed(typed(insert("d.n", 5, at, x=1, g=text), g=kind)) for at, text in enumerate(spelled))
    every.send(watermarks(6))
    every.apply()
    assert len(every.cells.tables({"d"})["d.n"][1]) == len(spelled)
    assert verdicts(prove(every)) == {"n": "equal"}
    every.send([keyed(typed(delete("d.n", 7, 1, x=1, g=spelled[1]), g=kind)), *watermarks(8)])
    every.apply()
    assert verdicts(prove(every)) == {"n": "equal"}

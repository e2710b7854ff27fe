"""Proving in the background: piece by piece while rows change, and what is found where."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from structlog.testing import capture_logs

from consumer.proof import scrub as scrubbing
from consumer.proof.background import Scrubber
from consumer.proof.interval import TableInterval
from consumer.proof.report import Proof
from consumer.proof.scrub import Scrub
from consumer.proof.state import ProofState, state_of
from consumer.wiring import target_of
from ordering.errors import DriftError, SourceUnreachableError
from ordering.events import TableName
from tests.service.commands.test_prove import changes, every, feed, prove, reason, verdicts
from tests.service.lab import Feed, eventually
from tests.service.local import LocalFeed
from tests.service.messages import at, begun, ddl, delete, insert, keyed, update, watermarks

__all__ = ["every", "feed"]
pytestmark = pytest.mark.service
ROWS = 50


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scrubbing, "PIECE_ROWS", 7)
    monkeypatch.setattr(scrubbing, "LOCKED_ROWS", 7)


class Clock:
    """A clock that is set."""

    def __init__(self) -> None:
        self.at = 1000.0

    def __call__(self) -> float:
        return self.at

    def later(self, seconds: float = 7200) -> None:
        self.at += seconds


def scrub_of(feed: LocalFeed, clock: Clock | None = None, round_s: float = 1e9) -> Scrub:
    log = feed.log_of_messages
    config = feed.with_(proof={"rows-per-second": 1_000_000}).config
    return Scrub(config, control=log, readers=log, now=clock or Clock(), round_s=round_s)  # type: ignore[arg-type]


def kept(feed: LocalFeed) -> ProofState:
    with closing(target_of(feed.config)) as target:
        target.connect()
        state = state_of(target.proofs.state(feed.name))
    assert state is not None
    return state


def filled(feed: LocalFeed) -> LocalFeed:
    """A table of several pieces."""
    feed.send([*begun(), *(insert("d.t", 4, i % 3, id=i, v=i, s="x") for i in range(100, 100 + ROWS)), *watermarks(5)])
    feed.apply()
    return feed


def rounds(scrub: Scrub, count: int = 2) -> Proof:
    for _ in range(count):
        proof = scrub.round()
    return proof


@pytest.mark.by_turns
def test_it_proves_from_the_beginning_and_finds_each_change(every: LocalFeed) -> None:
    clock = Clock()
    scrub = scrub_of(filled(every), clock)
    assert verdicts(rounds(scrub)) == {"t": "equal"}
    assert verdicts(scrub.round()) == {}, "not due again"
    assert scrub.rest_s > 0
    for number, (change, back) in enumerate(
        (
            ("UPDATE t SET v = 77 WHERE id = 149", "UPDATE t SET v = 149 WHERE id = 149"),
            ("DELETE FROM t WHERE id = 120", "INSERT INTO t VALUES (120, 120, 'x')"),
            ("INSERT INTO t VALUES (5000, 5, 'x')", "DELETE FROM t WHERE id = 5000"),
            ("INSERT INTO t VALUES (-5, 5, 'x')", "DELETE FROM t WHERE id = -5"),
            ("UPDATE t SET id = 6000 WHERE id = 101", "UPDATE t SET id = 101 WHERE id = 6000"),
        )
    ):
        every.cells.run("d", change)
        clock.later()
        found = scrub.round()
        assert verdicts(found) == {"t": "different"}, change
        assert kept(every).judged[TableName("d", "t")].verdict == "different"
        every.send([insert("d.t", 20 + 2 * number, id=20 + number, v=1, s="y"), *watermarks(21 + 2 * number)])
        every.apply()
        every.cells.run("d", back)
        clock.later()
        assert verdicts(scrub.round()) == {"t": "equal"}, back


@pytest.mark.parametrize("consistency", ["snapshot", "transaction", "row"])
def test_rows_may_change_between_pieces(feed: LocalFeed, consistency: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """After each piece a part of the events comes: to keys that were read, to others, from the ones to the others."""
    filled(feed.with_(target={"consistency": consistency}))
    scrub = scrub_of(feed)
    scrub.round()
    ts = iter(range(10, 10_000, 10))
    read = Scrub._read
    pieces = 0

    def reading(self: Scrub, name: TableName) -> None:
        nonlocal pieces
        pieces += 1
        read(self, name)
        moment = next(ts)
        first, last = 100 + pieces, 148 - pieces
        low, high = ({"v": pieces, "s": "m"} for _ in range(2))
        feed.send([
            update("d.t", moment, {"v": first}, id=first, v=moment, s="x"),
            update("d.t", moment, {"v": last}, 1, id=last, v=moment, s="x"),
            update("d.t", moment + 1, {"id": first}, id=1000 + first, v=moment, s="x"),
            update("d.t", moment + 1, {"id": last}, 2, id=last - 1000, v=moment, s="x"),
            insert("d.t", moment + 2, id=pieces, **low), insert("d.t", moment + 2, id=500 + pieces, **high),
            delete("d.t", moment + 3, id=pieces, **low), *watermarks(moment + 5),
        ])  # fmt: skip
        feed.apply()

    monkeypatch.setattr(Scrub, "_read", reading)
    found = scrub.round()
    assert verdicts(found) == {"t": "equal"}, json.dumps(found.as_json())
    assert pieces > 6


def test_it_is_carried_on_between_rounds_of_one_piece(feed: LocalFeed) -> None:
    scrub = scrub_of(filled(feed), round_s=0.0)
    found: dict[str, str] = {}
    for number in range(1, 60):
        feed.send([*changes(number * 10 + 20), *watermarks(number * 10 + 29)])
        feed.apply()
        if found := verdicts(scrub.round()):
            break
    assert found == {"t": "equal"}
    assert number > 3


@pytest.mark.parametrize("sql", ["TRUNCATE TABLE `t`", "ALTER TABLE `t` ADD COLUMN `x` INT DEFAULT 4"])
def test_a_ddl_in_mid_table_is_no_alarm(feed: LocalFeed, sql: str) -> None:
    scrub = scrub_of(filled(feed))
    scrub.round()
    scrub._read(TableName("d", "t"))
    feed.send([ddl("d.t", 15, sql, kind=sql.split(maxsplit=1)[0]), *watermarks(19)])
    feed.apply()
    first = scrub.round()
    assert verdicts(first) == {"t": "unproven"}
    assert "a DDL may have changed its rows" in reason(first)
    assert verdicts(scrub.round()) == {"t": "base"}
    assert verdicts(prove(feed)) == {"t": "equal"}


def test_a_difference_outlives_a_ddl_in_words(feed: LocalFeed) -> None:
    clock = Clock()
    scrub = scrub_of(filled(feed), clock)
    feed.cells.run("d", "DELETE FROM t WHERE id = 100")
    assert verdicts(rounds(scrub)) == {"t": "different"}
    feed.send([ddl("d.t", 15, "ALTER TABLE `t` ADD COLUMN `x` INT", kind="ALTER"), *watermarks(19)])
    feed.apply()
    assert "it differed at an earlier proof" in reason(scrub.round())
    assert "it differed at an earlier proof" in reason(scrub.round())


def test_another_instance_goes_on_from_what_is_kept(feed: LocalFeed) -> None:
    """After a crash or a takeover: what the table has to hold is known, also through what happened in between."""
    clock = Clock()
    rounds(scrub_of(filled(feed)))
    feed.send([*changes(30), *watermarks(39)])
    feed.apply()
    clock.later()
    assert verdicts(rounds(scrub_of(feed, clock))) == {"t": "equal"}
    feed.cells.run("d", "UPDATE t SET v = v + 1 WHERE id = 130")
    clock.later()
    assert verdicts(rounds(scrub_of(feed, clock))) == {"t": "different"}


def test_what_an_operator_takes_as_right_is_right_here_too(feed: LocalFeed) -> None:
    clock = Clock()
    scrub = scrub_of(filled(feed), clock)
    rounds(scrub)
    feed.cells.run("d", "DELETE FROM t WHERE id = 100")
    clock.later()
    scrub._read(TableName("d", "t"))
    prove(feed, "*.*")
    clock.later()
    assert verdicts(rounds(scrub)) == {"t": "equal"}


def test_it_begins_where_others_have_filled_the_tables(feed: LocalFeed) -> None:
    feed.with_(source={"start-ts": 1})
    scrub = scrub_of(filled(feed))
    first = scrub.round()
    assert (verdicts(first), reason(first)) == ({"t": "unproven"}, "this is the first proof")
    second = scrub.round()
    assert (verdicts(second), reason(second)) == ({"t": "base"}, "this is the first proof")


def test_other_keys_are_read_at_once_and_never_hold_up_the_writer(
    feed: LocalFeed, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed.send([*begun(), ddl("d.k", 3, "CREATE TABLE `k` (id VARCHAR(9) PRIMARY KEY, v INT)")])
    feed.send([*(insert("d.k", 4, id=f"k{i}", v=i) for i in range(20)), *watermarks(5)])
    feed.apply()
    assert verdicts(rounds(scrub_of(feed))) == {"t": "equal", "k": "equal"}
    monkeypatch.setattr(scrubbing, "MOST_LOCKED_ROWS", 19)
    clock = Clock()
    clock.later()
    found = rounds(scrub_of(feed, clock))
    assert verdicts(found) == {"t": "equal", "k": "unproven"}
    assert "the writer would wait" in reason(found, TableName("d", "k"))


def test_many_rows_of_one_first_key_are_not_read_at_once_beside_the_writer(
    feed: LocalFeed, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed.send([*begun(), ddl("d.k", 3, "CREATE TABLE `k` (a INT, b INT, PRIMARY KEY (a, b))")])
    feed.send([*(keyed(insert("d.k", 4, a=1, b=i), "a", "b") for i in range(20)), *watermarks(5)])
    feed.apply()
    assert verdicts(rounds(scrub_of(feed)))["k"] == "equal"
    monkeypatch.setattr(scrubbing, "MOST_LOCKED_ROWS", 19)
    clock = Clock()
    clock.later()
    assert verdicts(rounds(scrub_of(feed, clock)))["k"] == "unproven"


def test_values_between_whole_numbers_end_a_reading(feed: LocalFeed) -> None:
    """Somebody wrote them by hand; SQLite stores whatever it is given."""
    feed.send([*begun(), ddl("d.k", 3, "CREATE TABLE `k` (a INT, b INT, PRIMARY KEY (a, b))")])
    feed.send([*(keyed(insert("d.k", 4, a=i, b=i), "a", "b") for i in range(20)), *watermarks(5)])
    feed.apply()
    for number in range(9):
        feed.cells.run("d", f"INSERT INTO k VALUES (5.{number + 1}, 1)")
    found = verdicts(rounds(scrub_of(feed)))
    assert found["k"] in {"different", "unproven"}


def test_a_clock_that_was_ahead_hides_no_later_state(feed: LocalFeed) -> None:
    scrub = scrub_of(filled(feed), clock := Clock())
    rounds(scrub)
    with closing(target_of(feed.config)) as target:
        target.connect()
        target.session.book.run("UPDATE proof SET proved_at = '2999-01-01T00:00:00+00:00' WHERE state <> ''", ())
    feed.cells.run("d", "DELETE FROM t WHERE id = 111")
    clock.later()
    assert verdicts(scrub.round()) == {"t": "different"}
    assert kept(feed).judged[TableName("d", "t")].verdict == "different"


def test_a_repair_is_noticed_before_the_interval_is_over(feed: LocalFeed) -> None:
    clock = Clock()
    scrub = scrub_of(filled(feed), clock)
    feed.cells.run("d", "UPDATE t SET v = 77 WHERE id = 149")
    assert verdicts(rounds(scrub)) == {"t": "different"}
    feed.cells.run("d", "UPDATE t SET v = 149 WHERE id = 149")
    clock.later(61)
    assert verdicts(scrub.round()) == {"t": "equal"}
    clock.later(61)
    assert verdicts(scrub.round()) == {}


def test_an_error_amid_the_events_takes_none_of_them_twice(feed: LocalFeed, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    scrub = scrub_of(filled(feed), clock)
    scrub.round()
    scrub._read(TableName("d", "t"))
    feed.send([*changes(20), *watermarks(29)])
    feed.apply()
    taken = TableInterval.take
    left = 3

    def failing(self: TableInterval, *event: Any) -> None:
        nonlocal left
        left -= 1
        if not left:
            raise SourceUnreachableError("gone")
        taken(self, *event)

    monkeypatch.setattr(TableInterval, "take", failing)
    with pytest.raises(SourceUnreachableError):
        scrub.round()
    clock.later()
    assert verdicts(scrub.round()) == {"t": "equal"}


def test_quarantine_and_event_filters_prove_nothing_and_read_nothing(feed: LocalFeed) -> None:
    filled(feed)
    feed.with_(filter={"event-filters": [{"matcher": ["d.*"], "ignore-event": ["delete"]}]})
    scrub = scrub_of(feed)
    assert "event filters" in reason(scrub.round())
    assert scrub.rest_s > 0


class Stopper:
    """Lets a thread's work be waited for, without a guess how long it takes."""

    def __init__(self, feed: LocalFeed) -> None:
        self.feed = feed

    def verdict(self, wanted: str, seconds: float = 60) -> str:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            with closing(target_of(self.feed.config)) as target:
                target.connect()
                state = state_of(target.proofs.state(self.feed.name))
            found = None if state is None else state.judged.get(TableName("d", "t"))
            if found is not None and found.verdict == wanted:
                return wanted
            threading.Event().wait(0.05)
        return "never"


def background(feed: LocalFeed, **target: str) -> Scrubber:
    log = feed.log_of_messages
    section = {"enabled": True, "rows-per-second": 100_000, "interval-seconds": 0.01}
    config = feed.with_(proof=section, target=target).config
    return Scrubber(config, log, log)  # type: ignore[arg-type]


@pytest.fixture
def scrubber(feed: LocalFeed) -> Iterator[Scrubber]:
    found = background(filled(feed), **{"on-drift": "stop"})
    yield found
    found.stop()


def test_only_a_leader_proves_and_a_difference_ends_the_run_if_it_is_to(feed: LocalFeed, scrubber: Scrubber) -> None:
    leads = threading.Event()
    asked = threading.Event()

    def leading() -> bool:
        asked.set()
        return leads.is_set()

    scrubber.start(leading)
    assert asked.wait(30)
    with closing(target_of(feed.config)) as target:
        target.connect()
        assert target.proofs.state(feed.name) == ""
    leads.set()
    assert Stopper(feed).verdict("equal") == "equal"
    scrubber.check()
    feed.cells.run("d", "DELETE FROM t WHERE id = 111")
    assert Stopper(feed).verdict("different") == "different"
    scrubber.stop()
    with pytest.raises(DriftError, match=r"1 table: d\.t"):
        scrubber.check()


def test_a_difference_is_an_error_in_the_log_with_what_to_do(feed: LocalFeed) -> None:
    found = background(filled(feed))
    feed.cells.run("d", "DELETE FROM t WHERE id = 111")
    with capture_logs() as logs:
        found.start(lambda: True)
        assert Stopper(feed).verdict("different") == "different"
        found.stop()
        found.check()
    errors = [one for one in logs if one["log_level"] == "error"]  # again by each pass until it is stopped
    assert errors
    for told in errors:
        assert "the target differs from what the events say" in told["event"]
        assert any("reconciler verify CONFIG --tables 'd.t' --fix-sql" in str(value) for value in told.values())


@pytest.mark.by_turns
@pytest.mark.spark
def test_a_run_proves_beside_its_work_and_tells_of_a_difference(sqlite_feed: Feed) -> None:
    """A process, Kafka and Spark: equal, then changed by hand; status says so, and `on-drift = "stop"` ends it."""
    section = {"enabled": True, "rows-per-second": 100_000, "interval-seconds": 0.5}
    sqlite_feed.with_(proof=section, target={"on-drift": "stop"})
    sqlite_feed.send([*begun(), *changes(20), *watermarks(29)])

    def verdict() -> str:
        return "".join(one["verdict"] for one in sqlite_feed.status()["proof"])

    with sqlite_feed.running() as process:
        eventually("the table is proven", lambda: verdict() == "equal", 300)
        sqlite_feed.send([*changes(40), *watermarks(49)])
        eventually("the rows are there", lambda: sqlite_feed.reached(at(49)), 300)
        sqlite_feed.cells.run("d", "UPDATE t SET v = v + 1 WHERE id = 1")
        assert process.wait(300) == 4, sqlite_feed.log()
    assert "the target differs from what the events say" in sqlite_feed.log()
    told = sqlite_feed.command("status", str(sqlite_feed.file())).stdout
    assert "drift: 1 table not as the events say" in told
    assert f"reconciler verify {sqlite_feed.file()} --tables 'd.t' --fix-sql FILE" in told
    assert sqlite_feed.command("prove", str(sqlite_feed.file())).returncode == 6

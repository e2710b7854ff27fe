"""A DDL that can't be executed stops the changefeed, says why, and waits for an operator's word."""

import json

import pytest

from consumer.operate.decisions import decide_ddl
from consumer.wiring import target_of
from ordering.errors import ConfigError, InputError, LeadershipLostError, TargetError
from sinks.bookkeeping import ddl_log
from sinks.bookkeeping.ddl_log import DdlState
from sinks.steps import Step
from tests.service.lab import Feed, reconciler
from tests.service.local import Killed, LocalFeed
from tests.service.messages import at, begun, ddl, insert, watermarks

pytestmark = pytest.mark.service

REFUSED = "ALTER TABLE `t` ADD COLUMN `s` BIGINT"
"""The column is there, and is another one."""


def states(feed: Feed) -> list[tuple[str, str]]:
    """State and reason of each DDL, oldest first."""
    return [(line["state"], line["reason"]) for line in reversed(feed.status()["ddl_history"])]


def ids(feed: Feed) -> list[str]:
    _, rows = feed.cells.tables(["d"])["d.t"]
    return sorted(str(row["id"]) for row in rows)


def stopped(feed: Feed) -> None:
    """A feed that stands before a DDL that its target refuses, with a row behind it."""
    feed.send([*begun(), ddl("d.t", 4, REFUSED, kind="ALTER"), insert("d.t", 5, id=2, v=2, s="two"), *watermarks(9)])
    error = feed.failing(TargetError)
    assert error.exit_code == 4
    assert REFUSED in error.fact
    for word in ("skip", "done"):
        assert f"reconciler ddl {word} CONFIG {at(4)}" in error.hint


def test_an_operator_skips_a_ddl(every_feed: Feed) -> None:
    feed = every_feed
    stopped(feed)
    assert ids(feed) == ["1"]
    assert feed.checkpoint() <= at(4)
    state, reason = states(feed)[-1]
    assert state == "failed"
    assert REFUSED in reason
    feed.failing(TargetError)
    assert [state for state, _ in states(feed)] == ["done", "done", "failed"]
    decide_ddl(feed.config, at(4), DdlState.TAKE, "a slip")
    decide_ddl(feed.config, at(4), DdlState.SKIP, "not needed here")
    assert states(feed)[-1] == ("skip", "not needed here")
    feed.once()
    assert ids(feed) == ["1", "2"]
    assert feed.checkpoint() == at(9)
    assert states(feed)[-1] == ("skipped", "not needed here")
    with pytest.raises(ConfigError):
        decide_ddl(feed.config, at(4), DdlState.SKIP, "")


def test_the_commands(mariadb_feed: Feed) -> None:
    feed = mariadb_feed
    stopped(feed)
    config = str(feed.file())
    wrong = reconciler("ddl", "skip", config, str(at(3)))
    assert wrong.returncode == 2
    assert f"{at(4)} (failed)" in wrong.stderr
    feed.cells.query("ALTER TABLE d.t DROP COLUMN s, ADD COLUMN s BIGINT")
    done = reconciler("ddl", "done", config, str(at(4)), "--reason", "made by hand", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["commit_ts"], told["becomes"]) == (at(4), "done")
    assert REFUSED in told["statement"]
    listed = reconciler("ddl", "list", config, "--limit", "2")
    assert listed.stdout.splitlines()[0].startswith(f"{at(4)} 2026-01-01")
    assert "take" in listed.stdout
    assert len(listed.stdout.splitlines()) == 2
    feed.failing(TargetError)  # the row behind it does not fit what the hand made: nothing is hidden
    feed.cells.query("ALTER TABLE d.t MODIFY COLUMN s VARCHAR(10)")
    feed.once()
    told = json.loads(reconciler("ddl", "list", config, "--json").stdout)
    assert [line["state"] for line in told] == ["done", "done", "done"]
    assert (told[0]["reason"], told[0]["duration_ms"]) == ("made by hand", None)
    assert told[1]["duration_ms"] >= 0
    assert "made by hand" in reconciler("status", config).stdout


def test_a_ddl_that_cannot_be_read_stops_where_it_lies(sqlite_feed: Feed) -> None:
    feed = sqlite_feed
    feed.send([*begun(), ddl("d.t", 4, "ALTER TABLE `t", kind="ALTER"), insert("d.t", 5, id=2, v=2, s="two")])
    feed.send(watermarks(9))
    error = feed.failing(InputError)
    assert error.exit_code == 3
    assert f"topic={feed.topic} partition=0 offset=" in error.where
    assert ids(feed) == ["1"]
    decide_ddl(feed.config, at(4), DdlState.SKIP, "garbage")
    feed.once()
    assert ids(feed) == ["1", "2"]


@pytest.mark.parametrize("kind", ["mariadb", "postgres", "tidb"])
def test_nothing_is_decided_while_another_instance_leads(kind: str, request: pytest.FixtureRequest) -> None:
    feed: Feed = request.getfixturevalue(f"{kind}_feed")
    stopped(feed)
    leader = target_of(feed.config)
    leader.connect()
    stored = leader.stored(feed.config.changefeed)
    assert stored is not None
    leader.claim(feed.config.changefeed, stored.progress)
    with pytest.raises(LeadershipLostError):
        decide_ddl(feed.config, at(4), DdlState.SKIP, "")
    assert leader.stored(feed.config.changefeed).epoch == stored.epoch + 1  # type: ignore[union-attr]
    leader.close()
    decide_ddl(feed.config, at(4), DdlState.SKIP, "")
    feed.once()
    assert ids(feed) == ["1", "2"]


def test_a_ddl_whose_run_was_killed_may_be_decided_about(mariadb_feed: Feed) -> None:
    feed = mariadb_feed
    feed.send([*begun(), ddl("d.t", 4, "ALTER TABLE `t` ADD COLUMN `w` INT", kind="ALTER"), *watermarks(9)])
    recorded = 0

    def kill(step: Step) -> None:
        nonlocal recorded
        recorded += step is Step.DDL_RECORDED
        if recorded == 3:
            raise Killed

    with pytest.raises(Killed):
        feed.once(kill)
    assert states(feed)[-1] == ("intent", "")
    decide_ddl(feed.config, at(4), DdlState.SKIP, "too large a table")
    feed.once()
    assert [c["Field"] for c in feed.cells.query("SHOW COLUMNS FROM d.t")] == ["id", "v", "s"]
    assert states(feed)[-1] == ("skipped", "too large a table")


def test_a_refused_ddl_is_tried_anew_once_the_target_was_mended(mariadb_feed: Feed) -> None:
    """A change by hand between two tries is not taken for the DDL's own."""
    feed = mariadb_feed
    stopped(feed)
    feed.cells.query("ALTER TABLE d.t DROP COLUMN s")
    feed.send([])
    error = feed.failing(TargetError)  # the row behind it holds a text
    assert "column 's' is varchar upstream and bigint(20) in the target" in str(error)
    assert [c["Type"] for c in feed.cells.query("SHOW COLUMNS FROM d.t WHERE Field = 's'")] == ["bigint(20)"]
    assert states(feed)[-1] == ("done", "")


def test_the_log_is_bounded_and_an_older_one_is_mended(every_feed: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ddl_log, "KEPT", 3)
    feed = every_feed
    feed.send(begun())
    feed.once()
    target = target_of(feed.config)
    place = "ddl" if feed.uri.startswith("sqlite") else "ticdc_reconciler.ddl"
    target.connect()
    for column in ("reason", "duration_ms"):  # as an earlier version left it
        target.session.book.run(f"ALTER TABLE {place} DROP COLUMN {column}")
    target.close()
    adding = [ddl("d.t", n, f"ALTER TABLE `t` ADD COLUMN `w{n}` INT", kind="ALTER") for n in range(4, 8)]
    feed.send([*adding, *watermarks(9)])
    feed.once()
    assert [line["commit_ts"] for line in feed.status()["ddl_history"]] == [at(n) for n in (7, 6, 5)]


def test_a_ddl_that_holds_a_nul_can_be_decided_about(every_feed: Feed) -> None:
    """MySQL's protocol takes it within quotes; no text of PostgreSQL holds it, those of the DDL log neither."""
    feed = every_feed
    statement = "ALTER TABLE `t` ADD COLUMN `s` BIGINT COMMENT 'a\0b'"
    feed.send([*begun(), ddl("d.t", 4, statement, kind="ALTER"), insert("d.t", 5, id=2, v=2, s="two"), *watermarks(9)])
    feed.failing(TargetError)
    assert states(feed)[-1][0] == "failed"
    feed.failing(TargetError)
    assert [state for state, _ in states(feed)] == ["done", "done", "failed"]
    decide_ddl(feed.config, at(4), DdlState.SKIP, "not needed\0 here")
    feed.once()
    assert ids(feed) == ["1", "2"]
    assert states(feed)[-1][0] == "skipped"


def test_a_ddl_that_holds_a_nul_is_executed_once(feed: Feed) -> None:
    statement = "ALTER TABLE `t` ADD COLUMN `c` INT COMMENT 'a\0b'"
    feed.send([*begun(), ddl("d.t", 4, statement, kind="ALTER"), *watermarks(9)])

    def die(step: Step) -> None:
        if step is Step.DDL_EXECUTED:
            raise Killed

    with pytest.raises(Killed):
        feed.once(die)
    feed.once()
    assert states(feed)[-1][0] == "done"
    columns, _ = feed.cells.tables(["d"])["d.t"]
    assert "c" in columns


@pytest.mark.parametrize("is_known", [True, False])
def test_a_key_for_a_table_whose_rows_were_not_sent(sqlite_feed: LocalFeed, *, is_known: bool) -> None:
    """An empty table in its place would lack them. `is_known`: whether the log shows that nothing made it."""
    database = [ddl("d.", 1, "CREATE DATABASE `d`", kind="QUERY")] if is_known else []
    sqlite_feed.send([*database, ddl("d.t", 3, "ALTER TABLE `t` ADD PRIMARY KEY(`id`)", "ALTER"), *watermarks(4)])
    found = sqlite_feed.failing(TargetError)
    assert ("its rows were not sent: make the table with these rows" in found.hint) is is_known

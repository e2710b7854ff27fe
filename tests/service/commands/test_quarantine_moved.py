"""A row that is held belongs to the table that had its name then: whatever has that name now, replaying knows."""

import json
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from consumer.cli.main import main
from consumer.demo.fake_ticdc.changefeed import Message
from consumer.operate.progress import reset_progress
from consumer.operate.quarantine import discard, listed, replay
from consumer.wiring import target_of
from ordering.errors import InputError
from ordering.progress import Progress
from ordering.quarantine import QuarantineState
from ordering.timestamps import BEGINNING
from sinks.bookkeeping import ddl_log
from tests.service.cells import MariaDbCells, SqliteCells
from tests.service.ddl.test_ddl import TARGETS, made
from tests.service.local import LocalFeed
from tests.service.messages import TOPIC, at, ddl, insert, update, watermarks
from tests.service.postgres_cells import PostgresCells
from tests.simulation.log import FakeLog

__all__ = ["made"]
pytestmark = pytest.mark.service

COLUMNS = "(`id` INT PRIMARY KEY, `v` INT NOT NULL)"
PARTITIONED = (
    f"{COLUMNS} PARTITION BY RANGE (`id`) (PARTITION `p0` VALUES LESS THAN (9), PARTITION `p1` VALUES LESS THAN (99))"
)


def holding(feed: LocalFeed, table: str = COLUMNS) -> LocalFeed:
    """A changefeed that holds the row 2 of `d.t`, of transaction 4."""
    feed.with_(quarantine={"enabled": True})
    feed.send([
        ddl("d.", 1, "CREATE DATABASE `d`", kind="QUERY"),
        ddl("d.t", 2, f"CREATE TABLE `t` {table}"),
        insert("d.t", 3, id=1, v=1),
        insert("d.t", 4, 1, id=2, v=None),
        *watermarks(4),
    ])  # fmt: skip
    feed.apply()
    return feed


def then(feed: LocalFeed, *messages: Message) -> None:
    feed.send([*messages, *watermarks(20)])
    feed.apply()


def replayed(feed: LocalFeed) -> dict[str, Any]:
    done = CliRunner().invoke(main, ["quarantine", "replay", str(feed.file()), "--json"])
    (verdict,) = json.loads(done.stdout)
    found: dict[str, Any] = verdict
    assert done.exit_code == (8 if found["state"] == "held" else 0), done.output
    return found


def discarded(feed: LocalFeed) -> None:
    """All that is held is left out for good."""
    discard(feed.config, [], "by an operator")


def keys(feed: LocalFeed, table: str) -> list[int]:
    return sorted(int(row["id"]) for row in feed.cells.tables(["d"])[table][1])


RENAME = ddl("d.u", 5, "RENAME TABLE `d`.`t` TO `d`.`u`", kind="RENAME")
ANEW = ddl("d.t", 6, f"CREATE TABLE `t` {COLUMNS}")


def test_a_row_is_not_superseded_where_the_ddl_log_does_not_reach_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ddl_log, "KEPT", 5)
    feed = holding(LocalFeed.into(f"sqlite:///{tmp_path}/target", SqliteCells(tmp_path / "target"), tmp_path))
    others = [ddl(f"d.x{n}", 8 + n, f"CREATE TABLE `x{n}` {COLUMNS}") for n in range(6)]
    then(feed, RENAME, ANEW, *others)
    feed.send([insert("d.t", 30, id=2, v=7), *watermarks(31)])
    feed.apply()
    assert [one.state for one in listed(feed.config)] == [QuarantineState.HELD]
    assert keys(feed, "d.u") == [1]


@pytest.mark.cells("made", "after")
@pytest.mark.parametrize("made", TARGETS, indirect=True)
@pytest.mark.parametrize("after", [(RENAME,), (RENAME, ANEW)], ids=["renamed", "renamed and created again"])
def test_a_row_of_a_renamed_table_is_neither_superseded_nor_written_elsewhere(
    made: LocalFeed, after: tuple[Message, ...]
) -> None:
    feed = holding(made)
    then(feed, *after)
    verdict = replayed(feed)
    assert verdict["state"] == "held"
    assert str(at(5)) in verdict["why"]
    assert "another name" in verdict["why"]
    assert keys(feed, "d.u") == [1]
    assert len(after) == 1 or keys(feed, "d.t") == []


EXCHANGE = (
    ddl("d.p", 5, f"CREATE TABLE `p` {PARTITIONED}"),
    ddl("d.p", 6, "ALTER TABLE `d`.`p` EXCHANGE PARTITION `p0` WITH TABLE `d`.`t`", kind="QUERY"),
)
DROPPED = (ddl("d.t", 5, "DROP TABLE `d`.`t`"), ANEW)


@pytest.mark.cells("made", "after")
@pytest.mark.parametrize("made", TARGETS, indirect=True)
@pytest.mark.parametrize("after", [(RENAME, ANEW), EXCHANGE, DROPPED], ids=["renamed", "exchanged", "created again"])
def test_a_message_that_is_discarded_changes_no_table(made: LocalFeed, after: tuple[Message, ...]) -> None:
    feed = holding(made)
    then(feed, *after, insert("d.t", 7, id=2, v=7))
    before = feed.cells.tables(["d"])
    asked = ["quarantine", "discard", str(feed.file()), "--all", "--reason", "gone", "--json"]
    done = CliRunner().invoke(main, asked)
    assert done.exit_code == 0, done.output
    assert feed.cells.tables(["d"]) == before
    listed = CliRunner().invoke(main, ["quarantine", "list", str(feed.file()), "--json"])
    assert {one["state"] for one in json.loads(listed.stdout)} <= {"discarded", "superseded"}
    then(feed, *watermarks(30))
    assert feed.cells.tables(["d"]) == before


@pytest.mark.parametrize("made", ["sqlite"], indirect=True)
def test_an_event_of_another_table_of_that_name_supersedes_nothing(made: LocalFeed) -> None:
    feed = holding(made)
    then(feed, RENAME, ANEW, insert("d.t", 7, id=2, v=7), update("d.t", 8, {"v": 7}, id=2, v=8))
    assert replayed(feed)["state"] == "held"
    assert keys(feed, "d.t") == [2]


@pytest.mark.parametrize("made", ["sqlite"], indirect=True)
def test_an_event_of_the_same_table_supersedes_it(made: LocalFeed) -> None:
    feed = holding(made)
    then(feed, ddl("d.t", 5, "ALTER TABLE `t` ADD COLUMN `x` INT", kind="ALTER"), insert("d.t", 7, id=2, v=7, x=1))
    done = CliRunner().invoke(main, ["quarantine", "list", str(feed.file()), "--json"])
    assert [one["state"] for one in json.loads(done.stdout)] == ["superseded"]


@pytest.mark.parametrize("made", TARGETS, indirect=True)
def test_a_row_of_an_exchanged_partition_is_not_written(made: LocalFeed) -> None:
    feed = holding(made, PARTITIONED)
    then(
        feed,
        ddl("d.o", 5, f"CREATE TABLE `o` {COLUMNS}"),
        ddl("d.t", 6, "ALTER TABLE `d`.`t` EXCHANGE PARTITION `p0` WITH TABLE `d`.`o`", kind="QUERY"),
    )
    assert (keys(feed, "d.t"), keys(feed, "d.o")) == ([], [1])
    verdict = replayed(feed)
    assert (verdict["state"], "EXCHANGE" in verdict["why"]) == ("held", True)
    assert (keys(feed, "d.t"), keys(feed, "d.o")) == ([], [1])


@pytest.mark.parametrize("made", ["sqlite"], indirect=True)
def test_nor_of_the_table_that_was_exchanged_for_it(made: LocalFeed) -> None:
    feed = holding(made)
    then(
        feed,
        ddl("d.p", 5, f"CREATE TABLE `p` {PARTITIONED}"),
        ddl("d.p", 6, "ALTER TABLE `d`.`p` EXCHANGE PARTITION `p0` WITH TABLE `d`.`t`", kind="QUERY"),
    )
    assert replayed(feed)["state"] == "held"
    assert (keys(feed, "d.t"), keys(feed, "d.p")) == ([], [1])


@pytest.mark.parametrize("made", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("statements", "state"),
    [
        (("DROP TABLE `d`.`t`",), "superseded"),
        (("DROP TABLE `d`.`t`", f"CREATE TABLE `t` {COLUMNS}"), "superseded"),
        (("TRUNCATE TABLE `t`",), "superseded"),
        (("ALTER TABLE `t` DROP PARTITION `p0`",), "held"),
        (("ALTER TABLE `t` TRUNCATE PARTITION `p0`",), "held"),
        (("ALTER TABLE `t` MODIFY COLUMN `v` BIGINT NULL",), "held"),
        (("ALTER TABLE `t` ADD COLUMN `x` INT", "TRUNCATE TABLE `t`"), "superseded"),
    ],
)
def test_what_became_of_the_table_decides(made: LocalFeed, statements: tuple[str, ...], state: str) -> None:
    feed = holding(made, PARTITIONED)
    then(feed, *(ddl("d.t", 5 + i, sql, kind="QUERY") for i, sql in enumerate(statements)))
    assert replayed(feed)["state"] == state


ROUND = {
    "swapped": (
        ddl("d.u", 5, f"CREATE TABLE `u` {COLUMNS}"),
        ddl("d.x", 6, "RENAME TABLE `d`.`t` TO `d`.`x`", kind="RENAME"),
        ddl("d.t", 7, "RENAME TABLE `d`.`u` TO `d`.`t`", kind="RENAME"),
        ddl("d.u", 8, "RENAME TABLE `d`.`x` TO `d`.`u`", kind="RENAME"),
        insert("d.t", 9, id=2, v=9),
    ),
    "there and back": (
        ddl("d.x", 5, "RENAME TABLE `d`.`t` TO `d`.`x`", kind="RENAME"),
        insert("d.x", 6, id=2, v=6),
        ddl("d.t", 7, "RENAME TABLE `d`.`x` TO `d`.`t`", kind="RENAME"),
    ),
    "in capitals": (
        ddl("d.u", 5, "ALTER TABLE `D`.`T` RENAME AS `d`.`u`", kind="RENAME"),
        ddl("d.t", 6, f"CREATE TABLE `t` {COLUMNS}"),
        insert("d.t", 7, id=2, v=7),
    ),
    "exchanged": (
        ddl("d.p", 5, f"CREATE TABLE `p` {PARTITIONED}"),
        ddl("d.p", 6, "ALTER TABLE `d`.`p` EXCHANGE PARTITION `p0` WITH TABLE `d`.`T`", kind="QUERY"),
        insert("d.p", 7, id=2, v=7),
        ddl("d.p", 8, "ALTER TABLE `d`.`p` EXCHANGE PARTITION `p0` WITH TABLE `d`.`t`", kind="QUERY"),
    ),
}
"""Ways on which the name comes back, of the same table or another; each with a row of the held one's key."""


@pytest.mark.cells("made", "way")
@pytest.mark.parametrize("made", TARGETS, indirect=True)
@pytest.mark.parametrize("way", ROUND)
def test_a_held_row_changes_no_table_whose_name_came_back(made: LocalFeed, way: str) -> None:
    feed = holding(made)
    then(feed, *ROUND[way])
    before = feed.cells.tables(["d"])
    verdict = replayed(feed)
    assert verdict["state"] == "held"
    assert "another name" in verdict["why"]
    assert feed.cells.tables(["d"]) == before


@pytest.mark.parametrize("made", ["sqlite"], indirect=True)
def test_after_a_reset_nothing_that_was_held_lets_a_message_pass(made: LocalFeed) -> None:
    feed = holding(made)
    junk = Message(TOPIC, 2, b"{junk")
    then(feed, junk)
    reset_progress(feed.config)
    feed.log_of_messages = FakeLog(partitions=3)  # the topic was created again, and has junk at the same offset
    feed.with_(quarantine={"enabled": False})
    feed.send([*watermarks(4)[2:], junk, *watermarks(5)])
    assert "not valid JSON" in feed.failing(InputError).fact


def created_again(feed: LocalFeed, *messages: Message) -> None:
    """The topic is another one, and the progress was reset for it."""
    reset_progress(feed.config)
    feed.log_of_messages = FakeLog(partitions=3)
    feed.send([*watermarks(4)[2:], *messages, *watermarks(5)])


@pytest.mark.parametrize("made", ["sqlite"], indirect=True)
@pytest.mark.parametrize("enabled", [True, False])
def test_what_was_discarded_lets_no_other_message_pass(made: LocalFeed, enabled: bool) -> None:
    """A topic that was created again has another message at its offset."""
    feed = holding(made)
    then(feed, Message(TOPIC, 2, b"{junk"))
    discarded(feed)
    feed.with_(quarantine={"enabled": enabled})
    created_again(feed, Message(TOPIC, 2, b"{other junk"))
    if not enabled:
        assert "not valid JSON" in feed.failing(InputError).fact
        return
    feed.apply()
    (held,) = (one for one in listed(feed.config) if one.state is QuarantineState.HELD)
    assert held.position[1:] == (2, 1)


@pytest.mark.parametrize("made", ["sqlite"], indirect=True)
def test_what_was_discarded_lets_no_other_row_pass(made: LocalFeed) -> None:
    feed = holding(made)
    discarded(feed)
    reset_progress(feed.config)
    feed.log_of_messages = FakeLog(partitions=3)
    feed.send([insert("d.t", 4, 1, id=3, v=None), *watermarks(5)])
    feed.apply()
    assert [one.state for one in listed(feed.config)] == [QuarantineState.HELD]


@pytest.mark.parametrize("made", ["sqlite"], indirect=True)
def test_what_was_discarded_stays_so_where_it_is_read_again(made: LocalFeed) -> None:
    feed = holding(made)
    junk = Message(TOPIC, 2, b"{junk")
    then(feed, junk)
    discarded(feed)
    feed.with_(quarantine={"enabled": False})
    created_again(feed, junk)
    feed.apply()
    assert {one.state for one in listed(feed.config)} == {QuarantineState.DISCARDED}


@pytest.mark.parametrize("made", ["sqlite"], indirect=True)
def test_a_held_message_is_not_forgotten_for_another_one_at_its_offset(made: LocalFeed) -> None:
    feed = holding(made)
    then(feed, Message(TOPIC, 2, b"{junk"))
    with closing(target_of(feed.config)) as target:
        target.connect()
        stored = target.stored(feed.name)
        assert stored is not None
        first = replace(Progress.first(BEGINNING, stored.progress.filter_digest, "another"), partitions={})
        target.replace_progress(feed.name, first, stored.progress)
    feed.log_of_messages = FakeLog(partitions=3)
    feed.send([*watermarks(4)[2:], Message(TOPIC, 2, b"{other junk"), *watermarks(5)])
    error = feed.failing(InputError)
    assert "is held" in error.fact
    assert "partition=2 offset=1" in error.where


OTHER_KIND = {
    SqliteCells: "DROP TABLE t; CREATE TABLE t (id INT PRIMARY KEY, v INT, s BLOB)",
    MariaDbCells: "ALTER TABLE t MODIFY v INT NULL, MODIFY s VARBINARY(10)",
    PostgresCells: "ALTER TABLE d.t ALTER v DROP NOT NULL, ALTER s TYPE bytea USING s::bytea",
}
RIGHT_KIND = {
    SqliteCells: "DROP TABLE t; CREATE TABLE t (id INT PRIMARY KEY, v INT, s VARCHAR(10))",
    MariaDbCells: "ALTER TABLE t MODIFY s VARCHAR(10)",
    PostgresCells: "ALTER TABLE d.t ALTER s TYPE varchar(10) USING convert_from(s, 'UTF8')",
}


@pytest.mark.parametrize("made", TARGETS, indirect=True)
def test_a_row_is_not_written_into_a_column_of_another_kind(made: LocalFeed) -> None:
    """A text would be taken as bytes: what was made by hand meanwhile is looked at as by a run."""
    feed = made.with_(quarantine={"enabled": True})
    columns = "(`id` INT PRIMARY KEY, `v` INT NOT NULL, `s` VARCHAR(10))"
    feed.send([
        ddl("d.", 1, "CREATE DATABASE `d`", kind="QUERY"),
        ddl("d.t", 2, f"CREATE TABLE `t` {columns}"),
        insert("d.t", 4, 1, id=2, v=None, s="6162"),
        *watermarks(4),
    ])  # fmt: skip
    feed.apply()
    feed.cells.run("d", OTHER_KIND[type(feed.cells)])
    verdict = replayed(feed)
    assert (verdict["state"], keys(feed, "d.t")) == ("held", [])
    assert "column 's' is varchar upstream" in verdict["why"]
    feed.cells.run("d", RIGHT_KIND[type(feed.cells)])
    assert replayed(feed)["state"] == "replayed"
    assert [row["s"] for row in feed.cells.tables(["d"])["d.t"][1]] == ["6162"]


@pytest.mark.parametrize("made", ["sqlite"], indirect=True)
def test_what_an_event_filter_can_not_judge_does_not_keep_others_waiting(made: LocalFeed) -> None:
    feed = holding(made)
    then(feed, ddl("d.w", 5, f"CREATE TABLE `w` {COLUMNS}"), insert("d.w", 6, id=2, v=None))
    feed.cells.run("d", "DROP TABLE w; CREATE TABLE w (id INT PRIMARY KEY, v INT)")
    asking = {"matcher": ["d.t"], "ignore-insert-value-expr": "gone = 1"}
    feed.with_(filter={"event-filters": [asking]})
    first, second = replay(feed.config, [])
    assert (first.state, "can't be judged" in first.why) == (QuarantineState.HELD, True)
    assert (second.state, keys(feed, "d.w")) == (QuarantineState.REPLAYED, [2])

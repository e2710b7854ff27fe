"""Iceberg takes the real pipeline's rounds: readers that know nothing of us see upstream's states, also after kills."""

import random
from bisect import bisect_right
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.types import StringType

from consumer.wiring import target_of
from ordering.errors import ConfigError, TargetError
from ordering.events import TableName
from sinks.steps import Step
from sinks.uri import parse_target_uri
from tests.service.cells import differences, oracle
from tests.service.lab import is_row, recorded
from tests.service.local import Killed, LocalFeed
from tests.service.messages import at, begun, ddl, delete, insert, keyed, typed, update, watermarks
from tests.sinks.iceberg_cells import CATALOGS, IcebergCells, lake_in
from tests.sinks.iceberg_kills import ends

RECORDINGS = (
    "split.index-value.raw",
    "split.table.split",
    "iv.index-value.raw",
    "iv.index-value.split",
    "unique-swaps.index-value.raw",
    "unique-moves-250.index-value.split",
    "keys.index-value.raw",
    "odd-keys.index-value.raw",
    "names.table",
    "ddl-basic.restarts",
)
BANK = ("bank.acc0", "bank.acc1", "bank.acc2")


@pytest.fixture(params=CATALOGS)
def feed(request: pytest.FixtureRequest, tmp_path: Path) -> LocalFeed:
    uri, cells = lake_in(request.param, tmp_path, request)
    return LocalFeed.into(uri, cells, tmp_path)


@pytest.mark.cells(by_turns=("recording",))
@pytest.mark.parametrize("recording", RECORDINGS)
def test_recordings_end_as_upstream(feed: LocalFeed, recording: str) -> None:
    messages = recorded(recording)
    feed.send(messages)
    first = feed.once()
    assert first.counts.events == sum(map(is_row, messages))
    assert differences(oracle(recording.split(".", maxsplit=1)[0]), feed.cells) == []
    feed.send(messages)
    assert feed.once().counts.rows_written == first.counts.rows_written
    assert differences(oracle(recording.split(".", maxsplit=1)[0]), feed.cells) == []


class Assassin:
    """Kills at random steps."""

    def __init__(self, chance: random.Random, share: float) -> None:
        self.chance, self.share, self.kills = chance, share, 0

    def __call__(self, _: Step) -> None:
        if self.chance.random() < self.share:
            self.kills += 1
            raise Killed


def balance(rows: list[dict[str, Any]]) -> int:
    return sum(int(row["bal"]) for row in rows)


@pytest.mark.by_turns
def test_totals_of_the_bank_are_right_at_each_snapshot_under_kills(feed: LocalFeed) -> None:
    messages, chance = recorded("bank.index-value.restarts"), random.Random(11)
    assassin, step = Assassin(chance, 0.05), len(messages) // 12
    for start in range(0, len(messages), step):
        feed.send(messages[start : start + step])
        while not feed.lives(assassin):
            pass
    assert assassin.kills >= 10
    _check_bank(feed, 5)


@pytest.mark.by_turns
def test_sigkills_between_the_steps_of_a_commit_leave_upstreams_states(feed: LocalFeed) -> None:
    messages, chance, killed = recorded("bank.table.split"), random.Random(5), 0
    step = len(messages) // 6
    for start in range(0, len(messages), step):
        feed.send(messages[start : start + step])
        furthest = 60
        while not ends(feed, chance.randint(1, furthest)):
            killed, furthest = killed + 1, 2 * furthest
    assert killed >= 3
    _check_bank(feed, 4)


def _check_bank(feed: LocalFeed, least: int) -> None:
    """Final rows are upstream's, and the balances of all tables as of each snapshot add up to the same."""
    assert differences(oracle("bank"), feed.cells) == []
    cells: IcebergCells = feed.cells  # type: ignore[assignment]
    history = {name: list(cells.history(name)) for name in BANK}
    moments = sorted({ts for states in history.values() for ts, _ in states})
    complete = moments[moments.index(max(states[0][0] for states in history.values())) :]
    totals = set()
    for moment in complete:
        states = (found[bisect_right([ts for ts, _ in found], moment) - 1][1] for found in history.values())
        totals.add(sum(map(balance, states)))
    assert len(complete) >= least
    assert len(totals) == 1


def test_schema_changes_keep_the_rows(feed: LocalFeed) -> None:
    story = [
        ddl("d.t", 4, "ALTER TABLE `t` ADD COLUMN `a` INT NOT NULL DEFAULT 7, MODIFY COLUMN `v` BIGINT", "ALTER"),
        ddl("d.t", 5, "ALTER TABLE `t` RENAME COLUMN `s` TO `x`", "ALTER"),
        insert("d.t", 6, id=2, v=2**40, a=1, x="two"),
        ddl("d.u", 7, "RENAME TABLE `d`.`t` TO `d`.`u`", "RENAME"),
        update("d.u", 8, {"v": 1}, id=1, v=5, a=7, x="one"),
        ddl("d.u", 9, "ALTER TABLE `u` DROP COLUMN `a`", "ALTER"),
    ]
    feed.send([*begun(), *story, *watermarks(10)])
    feed.once()
    columns, rows = feed.cells.tables(["d"])["d.u"]
    assert columns == ["id", "v", "x"]
    assert sorted(rows, key=lambda row: row["id"]) == [{"id": 1, "v": 5, "x": "one"}, {"id": 2, "v": 2**40, "x": "two"}]


@pytest.mark.parametrize("kind", ["date", "datetime", "timestamp"])
def test_a_key_that_would_become_null_is_refused(feed: LocalFeed, kind: str) -> None:
    """No NULL equals it, so each UPDATE of the row would add another one."""
    feed.with_(target={"invalid-dates": "null"})
    made = f"CREATE TABLE `t` (`id` INT, `k` {kind} NOT NULL, `v` INT, PRIMARY KEY (`id`, `k`))"
    feed.send([ddl("d.", 1, "CREATE DATABASE `d`", kind="QUERY"), ddl("d.t", 2, made)])
    zero = "0000-00-00" + " 00:00:00" * (kind != "date")
    feed.send([keyed(typed(insert("d.t", 3, id=1, k=zero, v=1), k=kind), "id", "k"), *watermarks(4)])
    error = feed.failing(TargetError)
    assert "NULL in its key's column 'k'" in error.fact
    assert "d.t" in error.where
    assert feed.cells.tables(["d"])["d.t"][1] == []


IGNORED = ddl("d.t", 4, "ALTER TABLE `t` DROP COLUMN `s`", "ALTER")


@pytest.mark.parametrize("consistency", ["snapshot", "transaction"])
def test_columns_that_upstream_lacks_keep_their_values(feed: LocalFeed, consistency: str) -> None:
    feed.with_(target={"consistency": consistency})
    feed.with_(filter={"event-filters": [{"matcher": ["d.t"], "ignore-sql": ["DROP COLUMN"]}]})
    feed.send([*begun(), *(insert("d.t", 3, id=n, v=n, s=f"s{n}") for n in range(2, 6)), IGNORED])
    feed.send([update("d.t", 5, {"v": 1}, id=1, v=10), delete("d.t", 5, id=2, v=2), insert("d.t", 5, id=6, v=6)])
    feed.send([delete("d.t", 6, id=3, v=3), insert("d.t", 6, id=3, v=30), *watermarks(7)])
    feed.once()
    feed.send([update("d.t", 8, {"v": 4}, id=4, v=40), insert("d.t", 8, id=2, v=20), *watermarks(9)])
    feed.once()
    found = {row["id"]: (row["v"], row["s"]) for row in feed.cells.tables(["d"])["d.t"][1]}
    # of a row that goes and comes again within a net effect nothing is known but that it is there
    again = "s3" if consistency == "snapshot" else None
    assert found == {1: (10, "one"), 2: (20, None), 3: (30, again), 4: (40, "s4"), 5: (5, "s5"), 6: (6, None)}


def test_a_column_that_another_engine_adds(feed: LocalFeed) -> None:
    feed.send([*begun(), *watermarks(3)])
    feed.once()
    with closing(target_of(feed.config)) as target:
        session = target.session.db
        session.begin()
        table = session.table(TableName("d", "t"))
        with table.staged.update_schema() as change:
            change.add_column("own", StringType())
        table.fill(table.schema.find_field("own").field_id, "theirs")
        session.write_files(at(3))
        session.database.begin_to_write()
        session.move_pointers()
        session.commit()
    feed.send([update("d.t", 4, {"v": 1}, id=1, v=2, s="one"), insert("d.t", 4, id=2, v=2, s="two"), *watermarks(5)])
    feed.once()
    found = {row["id"]: (row["v"], row["s"], row["own"]) for row in feed.cells.tables(["d"])["d.t"][1]}
    assert found == {1: (2, "one", "theirs"), 2: (2, "two", None)}


@pytest.mark.parametrize(
    "sql",
    [
        "ALTER TABLE `t` MODIFY COLUMN `v` TINYINT UNSIGNED",
        "ALTER TABLE `t` MODIFY COLUMN `s` INT",
        "ALTER TABLE `t` ADD COLUMN `s` INT",
        "ALTER TABLE `t` RENAME COLUMN `gone` TO `back`",
    ],
)
def test_what_the_format_cannot_do_is_refused_and_changes_nothing(feed: LocalFeed, sql: str) -> None:
    feed.send([*begun(), *watermarks(3)])
    feed.once()
    before = feed.cells.tables(["d"])
    feed.send([ddl("d.t", 4, sql, "ALTER"), *watermarks(5)])
    assert "Iceberg can't do this to table d.t" in feed.failing(TargetError).fact
    assert feed.cells.tables(["d"]) == before


def test_rows_that_go_and_a_table_that_is_emptied(feed: LocalFeed) -> None:
    rows = [insert("d.t", 4, id=n, v=n, s="s") for n in range(2, 30)]
    feed.send([*begun(), *rows, delete("d.t", 5, id=1, v=1, s="one"), *watermarks(6)])
    feed.once()
    assert len(feed.cells.tables(["d"])["d.t"][1]) == 28
    feed.send([ddl("d.t", 7, "TRUNCATE TABLE `t`", "TRUNCATE"), insert("d.t", 8, id=5, v=5, s="s"), *watermarks(9)])
    feed.once()
    assert feed.cells.tables(["d"])["d.t"][1] == [{"id": 5, "v": 5, "s": "s"}]
    cells: IcebergCells = feed.cells  # type: ignore[assignment]
    assert [ts for ts, _ in cells.history("d.t")][-1] == cells.checkpoint() == at(9)


@pytest.mark.parametrize("uri", ["iceberg+sqlite:////tmp/c.db", "iceberg+sqlite:///?warehouse=/tmp/w"])
def test_a_uri_needs_file_and_warehouse(uri: str) -> None:
    with pytest.raises(ConfigError, match="warehouse"):
        parse_target_uri(uri)

"""Routes in operation: what is refused and how it goes on, and that commands know tables by upstream's names."""

import json
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from consumer.config.model import Config
from consumer.load.run import Load, LoadOptions
from consumer.operate import progress as operate_progress
from consumer.operate.decisions import decide_ddl
from consumer.operate.quarantine import replay
from consumer.operate.rewind_checks import check_ddls
from consumer.proof.report import Proof
from consumer.proof.run import Proving
from consumer.verify.report import VerifyOutcome
from consumer.verify.run import Verification, VerifyOptions
from consumer.wiring import target_of
from ordering import progress
from ordering.errors import ConfigError, InputError, LeadershipLostError, TargetError
from ordering.events import TableName
from ordering.progress import Progress
from sinks.bookkeeping.ddl_log import SAME_PLACE, DdlRecord, DdlState
from sinks.bookkeeping.definitions import Wanted
from tests.loading.dumping import METADATA
from tests.service.lab import Feed
from tests.service.local import LocalFeed
from tests.service.messages import at, begun, ddl, delete, insert, keyed, update, watermarks

pytestmark = pytest.mark.service
ROUTED = {"dispatchers": [{"matcher": ["d.*"], "target-schema": "a", "target-table": "{schema}_{table}"}]}
ONE = {"dispatchers": [{"matcher": ["s*.t"], "target-schema": "a", "target-table": "t"}]}
"""Two tables to one."""


def ids(feed: Feed, table: str = "a.d_t") -> list[str]:
    _, rows = feed.cells.tables([table.split(".", maxsplit=1)[0]])[table]
    return sorted(str(row["id"]) for row in rows)


def shards(feed: Feed) -> Feed:
    """A table in the place of two, of which the first has come."""
    feed.with_(sink=ONE)
    made = "CREATE TABLE t (id INT NOT NULL PRIMARY KEY, v INT, s VARCHAR(10))"
    feed.make_database("a", made)
    return feed


def test_a_second_source_is_refused_and_its_rows_are_not_written(every_feed: Feed) -> None:
    feed = shards(every_feed)
    feed.send([insert("s1.t", 4, id=1, v=1, s="one"), *watermarks(4)])
    feed.once()
    feed.send([insert("s2.t", 5, id=1, v=9, s="other"), insert("s1.t", 6, id=2, v=2, s="two"), *watermarks(6)])
    error = feed.failing(InputError)
    assert "s1.t and s2.t to one table, a.t" in error.fact
    assert "partition=0 offset=" in error.where
    _, rows = feed.cells.tables(["a"])["a.t"]
    assert [(str(row["id"]), str(row["s"])) for row in rows] == [("1", "one")]
    feed.with_(filter={"rules": ["*.*", "!s2.*"]})  # the way out
    feed.once()
    assert ids(feed, "a.t") == ["1", "2"]


def test_two_sources_in_one_window_are_refused_before_any_row(every_feed: Feed) -> None:
    feed = shards(every_feed)
    feed.send([insert("s1.t", 4, id=1, v=1, s="one"), insert("s2.t", 4, 1, id=2, v=2, s="two"), *watermarks(4)])
    assert "to one table" in feed.failing(InputError).fact
    assert ids(feed, "a.t") == []


def test_no_ddl_of_a_second_source_touches_the_first_ones_table(every_feed: Feed) -> None:
    feed = shards(every_feed)
    feed.send([insert("s1.t", 4, id=1, v=1, s="one"), *watermarks(4)])
    feed.once()
    for number, sql in enumerate(("ALTER TABLE `t` DROP COLUMN `s`", "TRUNCATE TABLE `t`", "DROP TABLE `s2`.`t`"), 5):
        feed.send([ddl("s2.t", number, sql, kind="ALTER"), *watermarks(number)])
        assert "to one table" in feed.failing(InputError).fact
        decide_ddl(feed.config, at(number), DdlState.SKIP, "it is not replicated")
        feed.once()
    assert ids(feed, "a.t") == ["1"]


def test_a_place_is_free_once_its_table_is_dropped_or_renamed_away(every_feed: Feed) -> None:
    feed = shards(every_feed)
    feed.send([insert("s1.t", 4, id=1, v=1, s="one"), *watermarks(4)])
    feed.once()
    columns = "(`id` INT PRIMARY KEY,`v` INT)"
    feed.send([ddl("s1.t", 5, "DROP TABLE `s1`.`t`", kind="ERASE"), ddl("s2.t", 6, f"CREATE TABLE `t` {columns}")])
    feed.send([insert("s2.t", 7, id=2, v=2), ddl("a.x", 8, "RENAME TABLE `s2`.`t` TO `a`.`x`", kind="RENAME")])
    feed.send(
        [insert("a.x", 9, id=3, v=3), ddl("s3.t", 10, f"CREATE TABLE `t` {columns}"), insert("s3.t", 11, id=4, v=4)]
    )
    feed.send(watermarks(12))
    feed.once()
    assert (ids(feed, "a.x"), ids(feed, "a.t")) == (["2", "3"], ["4"])


def test_other_routes_are_refused_while_it_runs(sqlite_feed: Feed) -> None:
    feed = sqlite_feed.with_(sink=ROUTED)
    feed.send(begun())
    feed.once()
    for other in ({"dispatchers": []}, ONE, {"dispatchers": [*ONE["dispatchers"], *ROUTED["dispatchers"]]}):
        feed.with_(sink=other)
        feed.send([insert("d.t", 5, id=2, v=2, s="two"), *watermarks(5)])
        assert "sink.dispatchers lead tables to other places" in feed.failing(InputError).fact
    feed.with_(sink=ROUTED)
    feed.once()
    assert ids(feed) == ["1", "2"]


def test_routes_are_refused_where_it_has_run_without(sqlite_feed: Feed) -> None:
    sqlite_feed.send(begun())
    sqlite_feed.once()
    sqlite_feed.with_(sink=ROUTED)
    assert sqlite_feed.failing(InputError).exit_code == 3


def test_a_ddl_that_was_made_by_hand_moves_the_place(every_feed: Feed) -> None:
    feed = every_feed.with_(sink=ROUTED)
    feed.send([*begun(), ddl("d.v", 4, "CREATE VIEW `v` AS SELECT `id` FROM `t`", kind="QUERY"), *watermarks(4)])
    assert "a view about d.t, d.v" in feed.failing(InputError).fact
    decide_ddl(feed.config, at(4), DdlState.TAKE, "made as a.d_v")
    feed.send([ddl("d.u", 5, "RENAME TABLE `d`.`t` TO `d`.`u`", kind="RENAME"), insert("d.u", 6, id=2, v=2, s="two")])
    feed.send([ddl("d.u", 7, "ALTER TABLE `u` ADD COLUMN `n` BIGINT", kind="ALTER"), *watermarks(8)])
    feed.cells.run("a", "ALTER TABLE d_t RENAME TO d_u")
    feed.failing(TargetError)
    decide_ddl(feed.config, at(5), DdlState.TAKE, "renamed by hand")
    feed.once()
    assert ids(feed, "a.d_u") == ["1", "2"]
    columns, _ = feed.cells.tables(["a"])["a.d_u"]
    assert "n" in columns


UNSEEN = {"dispatchers": [{"matcher": ["d.t", "d.u"], "target-table": "x"}]}
"""A RENAME of one to the other is seen upstream only."""
AWAY = ddl("d.u", 5, "RENAME TABLE `d`.`t` TO `d`.`u`", kind="RENAME")
BACK = ddl("d.t", 7, "RENAME TABLE `d`.`u` TO `d`.`t`", kind="RENAME")


def test_a_held_row_is_not_replayed_across_a_rename_that_only_upstream_sees(every_feed: Feed) -> None:
    """Under its other name the row has changed since, which nobody noted for the one that is held."""
    feed = every_feed.with_(sink=UNSEEN, quarantine={"enabled": True})
    made = "CREATE TABLE `t` (`id` INT PRIMARY KEY, `v` INT NOT NULL)"
    feed.send([ddl("d.", 1, "CREATE DATABASE `d`", kind="QUERY"), ddl("d.t", 2, made)])
    feed.send([insert("d.t", 4, id=2, v=None), *watermarks(4)])
    feed.once()
    feed.send([AWAY, update("d.u", 6, {"v": None}, id=2, v=5), BACK, *watermarks(8)])
    feed.once()
    (verdict,) = replay(feed.config, [])
    assert "another table's" in verdict.why
    assert [str(row["v"]) for row in feed.cells.tables(["d"])["d.x"][1]] == ["5"]


def test_rewinding_stops_at_a_rename_that_only_upstream_sees() -> None:
    line = DdlRecord(1, at(5), "d", "u", "RENAME TABLE `d`.`t` TO `d`.`u`", SAME_PLACE, "ignored", "", None, "")
    with pytest.raises(ConfigError, match="RENAME TABLE"):
        check_ddls([line], at(4), at(8))
    check_ddls([replace(line, executed="filter.rules leave it out")], at(4), at(8))


@pytest.mark.parametrize("other", [{"dispatchers": []}, {**ROUTED, "column-masks": [
    {"matcher": ["d.*"], "columns": ["s"], "value": "***"}]}])  # fmt: skip
def test_no_command_works_by_other_routes_or_columns(sqlite_feed: LocalFeed, other: dict[str, Any]) -> None:
    """What they would read, write or call equal would not be what the changefeed has written."""
    feed = sqlite_feed.with_(sink=ROUTED)
    feed.send(begun())
    feed.once()
    feed.with_(sink=other)
    commands = (
        lambda: list(replay(feed.config, [])),
        lambda: prove(feed),
        lambda: Verification(feed.config, VerifyOptions(against=feed.uri)).run(),
    )
    for command in commands:
        with pytest.raises(InputError, match=r"sink\."):
            command()


def replayed(feed: Feed) -> VerifyOutcome:
    return Verification(feed.config, VerifyOptions(replay=True), spark=feed.spark).run()


@pytest.mark.by_turns
@pytest.mark.spark
def test_verify_replays_by_upstreams_names_and_repairs_by_the_targets(every_feed: Feed, tmp_path: Path) -> None:
    feed = every_feed.with_(sink=ROUTED, filter={"rules": ["d.*"]})
    feed.send([*begun(), insert("d.t", 4, 1, id=2, v=2, s="two"), *watermarks(4)])
    feed.once()
    assert replayed(feed).is_equal
    feed.cells.run("a", "UPDATE d_t SET s = 'by hand' WHERE id = 2; DELETE FROM d_t WHERE id = 1")
    fixes = tmp_path / "fix.sql"
    outcome = Verification(feed.config, VerifyOptions(replay=True, fix_sql=fixes), spark=feed.spark).run()
    assert [line.split()[:2] for line in outcome.lines()][:2] == [["MISSING", "d.t"], ["DIFFERENT", "d.t"]]
    assert "d_t" in fixes.read_text()


def prove(feed: Feed) -> Proof:
    assert isinstance(feed, LocalFeed)
    log = feed.log_of_messages
    return Proving(feed.config, control=log, readers=log).run()  # type: ignore[arg-type]


def verdicts(proof: Proof) -> dict[str, str]:
    return {str(name): one.verdict.value for name, (_, one) in proof.tables.items()}


def test_proofs_go_by_upstreams_names(every_feed: Feed) -> None:
    feed = every_feed.with_(sink=ROUTED, filter={"rules": ["d.*"]})
    feed.send(begun())
    feed.once()
    assert verdicts(prove(feed)) == {"d.t": "equal"}
    feed.send([update("d.t", 4, {"v": 1}, id=1, v=7, s="one"), insert("d.t", 5, id=2, v=2, s="two"), *watermarks(5)])
    feed.send([delete("d.t", 6, id=1, v=7, s="one"), *watermarks(6)])
    feed.once()
    assert verdicts(prove(feed)) == {"d.t": "equal"}
    feed.cells.run("a", "UPDATE d_t SET s = 'by hand'")
    assert verdicts(prove(feed)) == {"d.t": "different"}


TSO = at(3)


def dump_of(place: Path, *databases: str) -> Path:
    """A dump as Dumpling writes it, of a table `t` of each database."""
    place.mkdir()
    (place / "metadata").write_text(METADATA.format(tso=TSO))
    for database in databases:
        (place / f"{database}-schema-create.sql").write_text(f"CREATE DATABASE `{database}`;\n")
        made = "CREATE TABLE `t` (`id` int NOT NULL, `v` int, `s` varchar(10), PRIMARY KEY (`id`));\n"
        (place / f"{database}.t-schema.sql").write_text(made)
        (place / f"{database}.t.000000000.sql").write_text("INSERT INTO `t` VALUES\n(1,1,'one'),\n(2,2,'two');\n")
    return place


def test_a_dump_is_loaded_to_where_rows_go_on(every_feed: Feed, tmp_path: Path) -> None:
    feed = every_feed.with_(sink=ROUTED)
    outcome = Load(feed.config, LoadOptions(dump_of(tmp_path / "dump", "d"))).run()
    assert (outcome.finished, outcome.tables, outcome.rows) == (True, 1, 2)
    assert ids(feed) == ["1", "2"]
    feed.send([*begun(), delete("d.t", 4, id=1, v=1, s="one"), insert("d.t", 5, id=3, v=3, s="x"), *watermarks(5)])
    feed.once()
    assert ids(feed) == ["2", "3"]
    feed.send([ddl("a.d_t", 6, "CREATE TABLE `d_t` (`id` INT PRIMARY KEY)"), *watermarks(7)])
    assert "to one table" in feed.failing(InputError).fact


def test_a_dump_of_two_tables_to_one_is_refused(every_feed: Feed, tmp_path: Path) -> None:
    feed = every_feed.with_(sink=ONE)
    with pytest.raises(InputError, match=r"sink.dispatchers"):
        Load(feed.config, LoadOptions(dump_of(tmp_path / "dump", "s1", "s2"))).run()


def test_an_export_keeps_the_places(sqlite_feed: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    feed = sqlite_feed.with_(sink=ROUTED)
    feed.send(begun())
    feed.once()
    state = json.loads(json.dumps(target_progress(feed).state()))
    assert state["sources"] == [["d", "t", "a", "d_t"]]
    assert Progress.restored(7, {}, state).sources == {TableName("d", "t"): TableName("a", "d_t")}
    with monkeypatch.context() as earlier:
        earlier.setattr(progress, "FORMAT", 2)
        with pytest.raises(ConfigError, match="later version"):  # which would write to other tables
            target_progress(feed)


def test_an_export_is_of_one_moment(sqlite_feed: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is kept of definitions would be of a later one than the checkpoint."""
    feed, places = sqlite_feed, operate_progress._places_of
    feed.send(begun())
    feed.once()

    def meanwhile(config: Config, *known: Progress) -> Wanted:
        feed.send([ddl("d.u", 6, "CREATE TABLE `u` (`id` INT PRIMARY KEY)"), *watermarks(7)])
        feed.once()
        return places(config, *known)

    monkeypatch.setattr(operate_progress, "_places_of", meanwhile)
    with pytest.raises(LeadershipLostError, match="while it was exported"):
        operate_progress.exported(feed.config)


def target_progress(feed: Feed) -> Progress:
    with closing(target_of(feed.config)) as target:
        stored = target.stored(feed.name)
    assert stored is not None
    return stored.progress


def test_a_table_without_key_that_rows_came_for_first(every_feed: Feed) -> None:
    """No DDL has told of it: that it has no key is known from the target, under its other name."""
    feed = every_feed.with_(sink=ROUTED, filter={"force-replicate": True})
    feed.make_database("a", "CREATE TABLE d_t (id INT, v INT, s VARCHAR(10))")
    same = [keyed(insert("d.t", number, id=1, v=1, s="one")) for number in (4, 5)]
    feed.send([*same, *watermarks(5)])
    feed.once()
    assert ids(feed) == ["1", "1"]

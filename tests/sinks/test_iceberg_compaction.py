"""Compaction keeps every read as of a TSO, whatever windows, DDLs, kills and failures come between its steps."""

import json
import os
import random
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pyiceberg.table import StaticTable
from pyiceberg.table.snapshots import Operation

from consumer.cli.main import main
from consumer.wiring import target_of
from ordering.errors import TargetBusyError, TargetUnreachableError
from sinks.iceberg import compaction, expiry
from sinks.iceberg.files import LakeFiles
from tests.service.cells import differences, oracle
from tests.service.lab import recorded
from tests.service.local import LocalFeed
from tests.service.messages import at, begun, ddl, insert, typed, update, watermarks
from tests.sinks.iceberg_cells import CATALOGS, IcebergCells, lake_in
from tests.sinks.iceberg_kills import ends
from tests.sinks.iceberg_moments import files_of, while_files_are_written
from tests.sinks.test_iceberg import Assassin, _check_bank

LAST = 9


@pytest.fixture(params=CATALOGS)
def feed(request: pytest.FixtureRequest, tmp_path: Path) -> LocalFeed:
    """A table of six small files, each of a window."""
    uri, cells = lake_in(request.param, tmp_path, request)
    feed = LocalFeed.into(uri, cells, tmp_path)
    feed.send(begun())
    feed.once()
    for number in range(4, LAST):
        grow(feed, number)
    return feed


def grow(feed: LocalFeed, number: int) -> None:
    """A window that adds a row, in a file of its own."""
    feed.send([insert("d.t", number, id=number, v=number, s="s"), *watermarks(number)])
    feed.once()


def compact(feed: LocalFeed, file_bytes: int = 32 << 20) -> compaction.Compaction:
    with closing(target_of(feed.config)) as target:
        return compaction.compact(target.session.db, lambda _: True, file_bytes)


def table(feed: LocalFeed, name: str = "d.t") -> StaticTable:
    return StaticTable.from_metadata(feed.cells.pointers()[name])  # type: ignore[attr-defined]


def count(feed: LocalFeed, name: str = "d.t") -> int:
    return len(list(table(feed, name).scan().plan_files()))


def states(feed: LocalFeed, name: str = "d.t") -> list[Any]:
    """What each checkpoint shows: of its snapshots the last one counts."""
    found = {ts: sorted(map(repr, rows)) for ts, rows in feed.cells.history(name)}  # type: ignore[attr-defined]
    return list(found.items())


def test_small_files_become_one_and_every_read_stays(feed: LocalFeed) -> None:
    before, checkpoint = states(feed), feed.cells.checkpoint()  # type: ignore[attr-defined]
    assert count(feed) == 6
    (done,), left = compact(feed)
    assert (str(done.table), done.files, done.new_files, left) == ("d.t", 6, 1, 0)
    assert 0 < done.new_bytes < done.bytes
    assert count(feed) == 1
    assert states(feed) == before
    assert feed.cells.checkpoint() == checkpoint  # type: ignore[attr-defined]
    last = table(feed).current_snapshot()
    assert last is not None
    assert last.summary is not None
    assert last.summary.operation is Operation.REPLACE
    assert last.summary["total-records"] == "6"
    assert compact(feed) == ((), 0)
    grow(feed, LAST)
    assert [row["id"] for row in feed.cells.tables(["d"])["d.t"][1]] == [LAST, 1, 4, 5, 6, 7, 8]


def test_a_size_limits_what_becomes_one(feed: LocalFeed) -> None:
    size = next(iter(table(feed).scan().plan_files())).file.file_size_in_bytes
    (done,), _ = compact(feed, 2 * size + 100)
    assert (done.files, done.new_files) == (6, 3)
    low = [int.from_bytes(one.file.lower_bounds[1], "little") for one in table(feed).scan().plan_files()]
    assert sorted(low) == [1, 5, 7], "neighbours by key"
    assert compact(feed, size) == ((), 0)


def test_parts_of_a_file_are_written_one_after_the_other(feed: LocalFeed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "_PART_BYTES", 1)
    before = states(feed)
    compact(feed)
    assert count(feed) == 1
    assert states(feed) == before


@pytest.mark.parametrize(
    ("sql", "columns"),
    [
        ("ALTER TABLE `t` DROP COLUMN `s`", ["id", "v"]),
        ("ALTER TABLE `t` ADD COLUMN `x` INT", ["id", "v", "s", "x"]),
        ("ALTER TABLE `t` RENAME COLUMN `s` TO `odd.name`, MODIFY COLUMN `v` BIGINT", ["id", "v", "odd.name"]),
        ("ALTER TABLE `t` DROP PRIMARY KEY, ADD COLUMN `k` INT NOT NULL AUTO_INCREMENT PRIMARY KEY FIRST", None),
    ],
)
def test_a_snapshot_keeps_the_columns_of_its_time(feed: LocalFeed, sql: str, columns: list[str] | None) -> None:
    """A DDL that wrote no row has made no snapshot: a read as of a TSO before it shows what was there."""
    before = states(feed)
    feed.send([ddl("d.t", LAST, sql, "ALTER"), *watermarks(LAST)])
    if columns is None:
        feed.failing()
        return
    feed.once()
    assert compact(feed).tables[0].files == 6
    assert states(feed) == before
    found, rows = feed.cells.tables(["d"])["d.t"]
    assert found == columns
    assert sorted(row["v"] for row in rows) == [1, 4, 5, 6, 7, 8]
    feed.send([update("d.t", LAST + 1, {"v": 4}, id=4, v=40), *watermarks(LAST + 1)])
    feed.once()
    assert sorted(row["v"] for row in feed.cells.tables(["d"])["d.t"][1]) == [1, 5, 6, 7, 8, 40]


def test_a_table_that_lost_its_key(feed: LocalFeed) -> None:
    before = states(feed)
    feed.send([ddl("d.t", LAST, "ALTER TABLE `t` DROP PRIMARY KEY", "ALTER"), *watermarks(LAST)])
    feed.once()
    assert compact(feed).tables[0].files == 6
    assert states(feed) == before


KINDS = {
    "date": "2026-01-0{}",
    "datetime(6)": "2026-01-0{} 00:00:00.000001",
    "timestamp": "2026-01-0{} 12:00:00",
    "decimal(30,3)": "1234567890123456789.00{}",
    "bigint unsigned": "1844674407370955161{}",
    "double": "0.{}",
    "float": "{}.5",
    "json": '{{"a": {}}}',
    "varchar(9)": "é{}\U0001f600",
    "enum('1','2','3','4')": "{}",
}


@pytest.mark.parametrize("kind", KINDS)
def test_values_of_each_type_stay(tmp_path: Path, kind: str) -> None:
    catalog = tmp_path / "catalog.db"
    uri = f"iceberg+sqlite:///{catalog}?warehouse={tmp_path / 'warehouse'}"
    feed = LocalFeed.into(uri, IcebergCells(catalog), tmp_path)
    base = kind.partition("(")[0]
    feed.send([begun()[0], ddl("d.t", 2, f"CREATE TABLE `t` (`id` INT PRIMARY KEY, `x` {kind})")])
    for number in range(3, 6):
        text = str(number - 2) if base == "enum" else KINDS[kind].format(number)
        rows = [insert("d.t", number, id=number, x=text), insert("d.t", number, id=-number, x=None)]
        feed.send([*(typed(row, x=kind) for row in rows), *watermarks(number)])
        feed.once()
    before = states(feed)
    assert compact(feed).tables[0].files == 3
    assert states(feed) == before
    assert len(feed.cells.tables(["d"])["d.t"][1]) == 6


@pytest.mark.by_turns
@pytest.mark.cells(by_turns=("recording",))
@pytest.mark.parametrize(
    "recording", ["keys.index-value.raw", "odd-keys.index-value.raw", "names.table", "ddl-basic.restarts"]
)
def test_values_and_names_stay_as_they_are(tmp_path: Path, recording: str) -> None:
    catalog, messages = tmp_path / "catalog.db", recorded(recording)
    uri = f"iceberg+sqlite:///{catalog}?warehouse={tmp_path / 'warehouse'}"
    feed, merged, step = LocalFeed.into(uri, IcebergCells(catalog), tmp_path), 0, len(messages) // 6 + 1
    for start in range(0, len(messages), step):
        feed.send(messages[start : start + step])
        feed.once()
        before = {name: states(feed, name) for name in feed.cells.pointers()}  # type: ignore[attr-defined]
        merged += len(compact(feed).tables)
        assert {name: states(feed, name) for name in before} == before
    assert merged
    assert differences(oracle(recording.split(".", maxsplit=1)[0]), feed.cells) == []


def at_the_lock(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object], times: int = 1) -> None:
    """Have something happen when larger files are on disk, and the catalog is not locked."""
    sync, left = LakeFiles.sync, [times]

    def synced(self: LakeFiles) -> None:
        sync(self)
        if left[0] and self._new and all(path.suffix == ".parquet" for path in self._new):
            left[0] -= 1
            act()

    monkeypatch.setattr(LakeFiles, "sync", synced)


def test_files_that_a_window_adds_meanwhile_are_no_conflict(feed: LocalFeed, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        at_the_lock(patch, lambda: grow(feed, LAST))
        (done,), left = compact(feed)
    assert (done.files, done.new_files, left) == (6, 1, 0)
    assert count(feed) == 2
    assert [ts for ts, _ in states(feed)] == [at(3), *map(at, range(4, LAST + 1))]
    assert sorted(row["id"] for row in feed.cells.tables(["d"])["d.t"][1]) == [1, *range(4, LAST + 1)]


@pytest.mark.parametrize("times", [1, 9])
def test_files_that_a_window_replaces_are_left_or_merged_the_next_time(
    feed: LocalFeed, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    number = iter(range(LAST, LAST + times))

    def change() -> None:
        ts = next(number)
        feed.send([update("d.t", ts, {"v": ts - 1}, id=4, v=ts, s="s"), *watermarks(ts)])
        feed.once()

    with monkeypatch.context() as patch:
        at_the_lock(patch, change, times)
        done, left = compact(feed)
    assert [(one.files, one.new_files) for one in done] == ([(6, 1)] if times == 1 else [])
    assert left == (0 if times == 1 else 6)
    assert count(feed) == (1 if times == 1 else 6)
    rows = {row["id"]: row["v"] for row in feed.cells.tables(["d"])["d.t"][1]}
    assert rows[4] == next(number, LAST + times) - 1
    assert sorted(rows) == [1, 4, 5, 6, 7, 8]


def test_two_commands_at_once_merge_each_file_once(feed: LocalFeed, monkeypatch: pytest.MonkeyPatch) -> None:
    before, first = states(feed), list[compaction.Compaction]()
    with monkeypatch.context() as patch:
        at_the_lock(patch, lambda: first.append(compact(feed)))
        assert compact(feed) == ((), 0)
    assert first[0].tables[0].files == 6
    assert states(feed) == before
    assert len([path for path in files_of(feed) if path.suffix == ".parquet"]) == 7


def test_a_window_that_meets_the_command_is_done_again(feed: LocalFeed, monkeypatch: pytest.MonkeyPatch) -> None:
    feed.send([update("d.t", LAST, {"v": 4}, id=4, v=40, s="s"), *watermarks(LAST)])
    with monkeypatch.context() as patch:
        while_files_are_written(patch, lambda: compact(feed))
        assert "another writer has changed table d.t" in feed.failing(TargetBusyError).fact
    feed.once()
    assert sorted(row["v"] for row in feed.cells.tables(["d"])["d.t"][1]) == [1, 5, 6, 7, 8, 40]
    assert states(feed)[-2:] != states(feed)[-1:]


@pytest.mark.parametrize(
    "story",
    [
        [("TRUNCATE TABLE `t`", "TRUNCATE", "d.t")],
        [("DROP TABLE `t`", "ERASE", "d.t")],
        [("RENAME TABLE `d`.`t` TO `d`.`u`", "RENAME", "d.u")],
        [("RENAME TABLE `d`.`t` TO `d`.`u`", "RENAME", "d.u"), ("CREATE TABLE `t` LIKE `u`", "CREATE", "d.t")],
    ],
)
def test_a_table_that_is_another_one_meanwhile(
    feed: LocalFeed, monkeypatch: pytest.MonkeyPatch, story: list[tuple[str, str, str]]
) -> None:
    messages = [ddl(name, LAST + at, sql, kind) for at, (sql, kind, name) in enumerate(story)]

    def act() -> None:
        feed.send([*messages, *watermarks(LAST + 2)])
        feed.once()

    with monkeypatch.context() as patch:
        at_the_lock(patch, act)
        compact(feed)
    tables = feed.cells.tables(["d"])
    renamed = story[0][1] == "RENAME"
    assert set(tables) == ({"d.u"} if renamed else set()) | (
        {"d.t"} if story[-1][1] in {"TRUNCATE", "CREATE"} else set()
    )
    assert len(tables.get("d.t", ([], []))[1]) == 0
    if renamed:
        assert sorted(row["id"] for row in tables["d.u"][1]) == [1, 4, 5, 6, 7, 8]
        assert states(feed, "d.u")[0][0] == at(3)


@pytest.mark.parametrize("moment", ["read", "sync", "lock"])
def test_a_failure_leaves_nothing_behind(feed: LocalFeed, monkeypatch: pytest.MonkeyPatch, moment: str) -> None:
    before, files = states(feed), files_of(feed)

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        if moment == "sync":
            patch.setattr(LakeFiles, "sync", fail)
        elif moment == "lock":
            at_the_lock(patch, lambda: patch.setattr(LakeFiles, "sync", fail))
        else:
            patch.setattr(compaction, "_data_file", fail)
        with pytest.raises(TargetUnreachableError, match="No space"):
            compact(feed)
    assert files_of(feed) == files
    assert states(feed) == before
    assert compact(feed).tables[0].files == 6


def test_files_that_an_expiry_may_delete_are_not_named(feed: LocalFeed, monkeypatch: pytest.MonkeyPatch) -> None:
    """They were written long before the table's pointer moved: an expiry takes them for what a crash has left."""

    def age() -> None:
        grow(feed, LAST)
        for path in files_of(feed) - before:
            if path.suffix == ".parquet":
                os.utime(path, (path.stat().st_mtime - expiry.YOUNGEST_S,) * 2)

    before = files_of(feed)
    with monkeypatch.context() as patch:
        at_the_lock(patch, age)
        (done,), left = compact(feed)
    assert (done.files, left) == (7, 0), "by the second try"
    assert len(feed.cells.tables(["d"])["d.t"][1]) == 7


def test_another_programs_snapshot_is_left(feed: LocalFeed) -> None:
    with closing(target_of(feed.config)) as target:
        session = target.session.db
        session.begin_alone()
        found = next(iter(session.tables()))
        with found.staged.update_snapshot().overwrite() as change:
            change.delete_data_file(next(iter(found.files())).file)
        session.write_metadata()
        session.move_pointers()
        session.commit()
    assert compact(feed) == ((), 0)


@pytest.mark.by_turns
def test_sigkills_between_its_steps_leave_every_read(feed: LocalFeed) -> None:
    before, last, step = states(feed), 1, 2 if "sqlite" in feed.uri else 8
    while not ends(feed, last, compact):
        assert states(feed) == before
        last += step
    assert last > 16
    assert count(feed) == 1
    for path in files_of(feed) - {Path(table(feed).metadata_location.removeprefix("file://"))}:
        os.utime(path, (0, 0))
    with closing(target_of(feed.config)) as target:
        assert expiry.expire(target.session.db, 0).files > 5
    assert states(feed) == before
    assert len([path for path in files_of(feed) if path.suffix == ".parquet"]) == 7


@pytest.mark.by_turns
def test_totals_of_the_bank_are_right_with_the_command_between_kills(tmp_path: Path) -> None:
    catalog, chance, merged = tmp_path / "catalog.db", random.Random(3), 0
    uri = f"iceberg+sqlite:///{catalog}?warehouse={tmp_path / 'warehouse'}"
    feed, messages = LocalFeed.into(uri, IcebergCells(catalog), tmp_path), recorded("bank.table.split")
    assassin, step = Assassin(chance, 0.02), len(messages) // 12
    for start in range(0, len(messages), step):
        feed.send(messages[start : start + step])
        while not feed.lives(assassin):
            merged += len(compact(feed, chance.choice([5_000, 32 << 20])).tables)
        merged += len(compact(feed).tables)
    assert merged
    assert differences(oracle("bank"), feed.cells) == []
    _check_bank(feed, 4)


def test_the_command(feed: LocalFeed, tmp_path: Path) -> None:
    config = tmp_path / "lake.toml"
    config.write_text(
        f'changefeed = "{feed.name}"\n[source]\nbootstrap-servers = "h:1"\ntopics = ["t"]\n'
        f'[target]\nuri = "{feed.uri}"\n'
    )

    def run(*options: str) -> tuple[int, str]:
        shown = CliRunner().invoke(main, ["compact", str(config), *options])
        return shown.exit_code, shown.output

    code, output = run("--tables", "e.*")
    assert code == 2
    assert "no table matches 'e.*'" in output
    assert run("--tables", "!d.t", "--tables", "d.u")[0] == 2
    code, output = run("--json")
    assert code == 0, output
    (told,) = json.loads(output)["tables"]
    assert (told["table"], told["files"], told["new_files"]) == ("d.t", 6, 1)
    assert run() == (0, "there is nothing to merge\n")
    grow(feed, LAST)
    code, output = run("--tables", "d.*")
    assert "d.t: 2 files of " in output
    assert "became 1 file of " in output
    config.write_text(config.read_text().replace(feed.name, "other"))
    assert run()[0] == 2

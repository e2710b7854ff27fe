"""Iceberg under what may go wrong: two leaders, other writers, odd names and values, types that would change rows."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from consumer.config.model import config_from
from consumer.wiring import target_of
from ordering.errors import ConfigError, LeadershipLostError, TargetBusyError, TargetError, TargetUnreachableError
from sinks.ddl.model import TypeDef
from sinks.iceberg.sqlite_catalog import SqliteCatalog
from sinks.iceberg.types import keeps_rows
from sinks.uri import parse_target_uri
from tests.service.local import LocalFeed
from tests.service.messages import at, begun, ddl, delete, insert, keyed, update, watermarks
from tests.sinks.iceberg_cells import IcebergCells
from tests.sinks.iceberg_moments import files_of, while_files_are_written

MORE = [insert("d.t", 4, id=2, v=2, s="two"), *watermarks(5)]


@pytest.fixture
def feed(tmp_path: Path) -> LocalFeed:
    catalog = tmp_path / "catalog.db"
    uri = f"iceberg+sqlite:///{catalog}?warehouse={tmp_path / 'warehouse'}"
    return LocalFeed.into(uri, IcebergCells(catalog), tmp_path)


def rows(feed: LocalFeed, table: str = "d.t") -> list[object]:
    return sorted(row["id"] for row in feed.cells.tables(["d"])[table][1])


def test_a_leader_that_was_stopped_while_it_wrote_files_changes_nothing(
    feed: LocalFeed, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed.send(begun())
    feed.once()
    feed.send(MORE)
    other = feed.once
    while_files_are_written(monkeypatch, other)
    assert "has a new leader" in feed.failing(LeadershipLostError).fact
    assert rows(feed) == [1, 2]
    assert [ts for ts, _ in feed.cells.history("d.t")] == [at(3), at(5)]  # type: ignore[attr-defined]


def test_instances_are_listed_while_files_are_written(feed: LocalFeed, monkeypatch: pytest.MonkeyPatch) -> None:
    feed.send(begun())
    feed.once()
    feed.send(MORE)

    def beat() -> None:
        with closing(target_of(feed.config)) as target, closing(target.instances(feed.name)) as found:
            found.beat("other", 0)

    while_files_are_written(monkeypatch, beat)
    feed.once()
    assert rows(feed) == [1, 2]


def test_another_writer_of_a_table_is_noticed_and_loses_nothing(
    feed: LocalFeed, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed.send(begun())
    feed.once()
    feed.send(MORE)

    def point(change: str) -> None:
        with closing(SqliteCatalog(str(feed.directory / "catalog.db"))) as catalog:
            catalog.run(f"UPDATE ticdc_reconciler.iceberg_tables SET metadata_location = {change}")

    while_files_are_written(monkeypatch, lambda: point("metadata_location || '.moved'"))
    assert "another writer has changed table d.t" in feed.failing(TargetBusyError).fact
    point("replace(metadata_location, '.moved', '')")
    assert rows(feed) == [1]
    feed.once()
    assert rows(feed) == [1, 2]


def test_what_is_rolled_back_leaves_no_files(feed: LocalFeed, monkeypatch: pytest.MonkeyPatch) -> None:
    feed.send(begun())
    feed.once()
    before = files_of(feed)
    feed.send(MORE)

    def fail() -> None:
        raise OSError(28, "No space left on device")

    while_files_are_written(monkeypatch, fail)
    with pytest.raises(Exception, match="No space left"):
        feed.once()
    assert files_of(feed) == before
    feed.once()
    assert rows(feed) == [1, 2]


def test_a_warehouse_that_became_read_only_is_told_of(feed: LocalFeed, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was written can't be removed either; the error is the first one's."""
    feed.send(begun())
    feed.once()
    feed.send(MORE)

    def fail(*_: object, **__: object) -> None:
        raise OSError(30, "Read-only file system")

    with monkeypatch.context() as broken:
        broken.setattr(Path, "unlink", fail)
        while_files_are_written(broken, fail)
        assert "the warehouse does not answer: [Errno 30]" in feed.failing(TargetUnreachableError).fact
    feed.once()
    assert rows(feed) == [1, 2]


NAMES = ("a.b", ".x", "[0]", "a b", "ä😀", 'q"`\\', "k[0].y", "$t", "%s", "A/../B", "0", "at")


@pytest.mark.parametrize("name", NAMES)
def test_columns_may_have_any_name(feed: LocalFeed, name: str) -> None:
    quoted = "`" + name.replace("`", "``") + "`"
    create = ddl("d.t", 2, f"CREATE TABLE `t` (`v` INT, {quoted} INT PRIMARY KEY, `s` TEXT)", "CREATE")

    def row(make: Callable[..., object], number: int, key: int, v: int) -> object:
        return keyed(make("d.t", number, **{"v": v, name: key, "s": "s"}), name)

    story = [row(insert, 3, n, 1) for n in range(5)]
    feed.send([*begun()[:1], create, *story, *watermarks(4)])
    feed.once()
    feed.send([row(delete, 5, 1, 1), row(insert, 6, 9, 9), *watermarks(7)])
    feed.once()
    found = feed.cells.tables(["d"])["d.t"][1]
    assert sorted((one[name], one["v"]) for one in found) == [(0, 1), (2, 1), (3, 1), (4, 1), (9, 9)]
    feed.send(
        [
            ddl("d.t", 8, "ALTER TABLE `t` RENAME COLUMN `v` TO `w`, ADD COLUMN `n` INT DEFAULT 3", "ALTER"),
            *watermarks(9),
        ]
    )
    feed.once()
    columns, found = feed.cells.tables(["d"])["d.t"]
    assert columns == ["w", name, "s", "n"]
    assert {one["n"] for one in found} == {3}


@pytest.mark.parametrize("table", ["a.b", "..", "a/b", "ä😀", "q'\"", "%s", "a b", "x" * 64])
def test_tables_may_have_any_name(feed: LocalFeed, table: str) -> None:
    create = ddl(f"d.{table}", 2, f"CREATE TABLE `{table}` (`id` INT PRIMARY KEY)", "CREATE")
    feed.send([*begun()[:1], create, insert(f"d.{table}", 3, id=7), *watermarks(4)])
    feed.once()
    assert feed.cells.tables(["d"])[f"d.{table}"][1] == [{"id": 7}]
    assert all(path.is_relative_to(feed.directory / "warehouse") for path in files_of(feed))


@pytest.mark.parametrize("text", ["", "\x00", "é\U0001f600", "\\N", "a\tb\n", "NULL", "x" * 100_000])
def test_texts_arrive_as_they_are(feed: LocalFeed, text: str) -> None:
    feed.send([*begun(), insert("d.t", 4, id=2, v=2, s=text), *watermarks(5)])
    feed.once()
    assert [row["s"] for row in feed.cells.tables(["d"])["d.t"][1] if row["id"] == 2] == [text]


@pytest.mark.parametrize("value", [2**31, -(2**31) - 1, 10**30])
def test_a_number_that_does_not_fit_stops_the_run(feed: LocalFeed, value: int) -> None:
    feed.send([*begun(), insert("d.t", 4, id=2, v=value, s="s"), *watermarks(5)])
    feed.failing()
    assert rows(feed) == [] or rows(feed) == [1]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (TypeDef("varchar", (9,)), TypeDef("char", (9,))),
        (TypeDef("varchar", (9,)), TypeDef("varchar", (5,))),
        (TypeDef("varchar", (9,)), TypeDef("json")),
        (TypeDef("varchar", (9,)), TypeDef("enum", members=("a", "b"))),
        (TypeDef("datetime", (6,)), TypeDef("datetime")),
        (TypeDef("timestamp", (3,)), TypeDef("timestamp", (2,))),
        (TypeDef("time"), TypeDef("time", (3,))),
        (TypeDef("int"), TypeDef("year")),
        (TypeDef("int"), TypeDef("int", unsigned=True)),
        (TypeDef("binary", (5,)), TypeDef("binary", (9,))),
        (TypeDef("varbinary", (5,)), TypeDef("binary", (9,))),
        (TypeDef("float"), TypeDef("float", (5, 2))),
        (TypeDef("decimal", (40, 2)), TypeDef("decimal", (41, 3))),
        (TypeDef("decimal", (10,)), TypeDef("decimal", (9,))),
        (TypeDef("enum", members=("a", "b")), TypeDef("enum", members=("b", "a"))),
        (TypeDef("enum", members=("a", "long")), TypeDef("varchar", (2,))),
        (TypeDef("bit", (8,)), TypeDef("bigint", unsigned=True)),
    ],
)
def test_a_type_that_would_change_values_is_known(old: TypeDef, new: TypeDef) -> None:
    assert not keeps_rows(old, new)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (TypeDef("int"), TypeDef("bigint")),
        (TypeDef("varchar", (9,)), TypeDef("text")),
        (TypeDef("float"), TypeDef("double")),
        (TypeDef("decimal", (10, 2)), TypeDef("decimal", (12, 2))),
        (TypeDef("datetime"), TypeDef("datetime", (3,))),
        (TypeDef("enum", members=("a",)), TypeDef("enum", members=("a", "b"))),
        (TypeDef("enum", members=("a",)), TypeDef("varchar", (9,))),
        (TypeDef("varbinary", (5,)), TypeDef("blob")),
        (TypeDef("blob"), TypeDef("longblob")),
    ],
)
def test_a_type_that_keeps_values_is_known(old: TypeDef, new: TypeDef) -> None:
    assert keeps_rows(old, new)


def test_a_column_whose_rows_would_change_is_refused(feed: LocalFeed) -> None:
    feed.send([*begun(), ddl("d.t", 4, "ALTER TABLE `t` MODIFY COLUMN `s` CHAR(20)", "ALTER"), *watermarks(5)])
    assert "might change" in feed.failing(TargetError).fact


def test_snapshots_of_ddls_name_their_checkpoint(feed: LocalFeed) -> None:
    added = ddl("d.t", 4, "ALTER TABLE `t` ADD COLUMN `a` INT NOT NULL, ADD COLUMN `x` TEXT DEFAULT 'y'", "ALTER")
    emptied = ddl("d.t", 6, "TRUNCATE TABLE `t`", "TRUNCATE")
    feed.send([*begun(), added, insert("d.t", 5, id=2, v=2, s="two", a=5, x="n"), emptied, *watermarks(7)])
    feed.once()
    history = list(feed.cells.history("d.t"))  # type: ignore[attr-defined]
    assert [(ts, len(found)) for ts, found in history] == [(at(4), 1), (at(4), 1), (at(6), 2), (at(6), 0)]
    assert history[1][1] == [{"id": 1, "v": 1, "s": "one", "a": 0, "x": "y"}]


@pytest.mark.parametrize("warehouse", ["w", "/tmp/a%23b%23", "/tmp/a%253Fb", "/tmp/a%3Fb"])
def test_a_warehouse_that_uris_would_cut_is_refused(warehouse: str) -> None:
    with pytest.raises(ConfigError):
        parse_target_uri(f"iceberg+sqlite:////tmp/c.db?warehouse={warehouse}")


def test_others_may_not_read_rows(feed: LocalFeed) -> None:
    feed.send(begun())
    feed.once()
    modes = [(feed.directory / name).stat().st_mode & 0o777 for name in ("catalog.db", "warehouse")]
    assert modes == [0o600, 0o700]


@pytest.mark.parametrize(
    "section", [{"target": {"on-drift": "stop"}}, {"target": {"consistency": "row"}}, {"proof": {"enabled": True}}]
)
def test_promises_that_it_does_not_keep_are_refused(feed: LocalFeed, section: dict[str, dict[str, object]]) -> None:
    values = feed.values()
    for name, keys in section.items():
        values[name] = {**values.get(name, {}), **keys}
    with pytest.raises(ConfigError, match="not of Iceberg"):
        config_from(values, "a test")


def test_keys_that_move_between_rows(feed: LocalFeed) -> None:
    story = [update("d.t", 4, {"id": 1}, id=2, v=1, s="one"), insert("d.t", 4, id=1, v=7, s="new")]
    feed.send([*begun(), *story, *watermarks(5)])
    feed.once()
    found = feed.cells.tables(["d"])["d.t"][1]
    assert sorted((row["id"], row["v"]) for row in found) == [(1, 7), (2, 1)]


def test_a_table_without_a_key_is_refused(feed: LocalFeed) -> None:
    """With its first row, which is only written: none goes."""
    feed.with_(filter={"force-replicate": True})
    feed.send([ddl("d.", 1, "CREATE DATABASE `d`", kind="QUERY"), ddl("d.k", 2, "CREATE TABLE `k` (`id` INT)")])
    feed.send([keyed(insert("d.k", 4, id=1)), *watermarks(5)])
    assert feed.failing(TargetError).fact == "table d.k has no key"

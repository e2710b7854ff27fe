"""Merged tables: rows and DDLs of several shards in one table of the target, each row with its origin."""

from pathlib import Path
from typing import Any

import pytest

from consumer.load.run import Load, LoadOptions
from consumer.operate.decisions import decide_ddl
from consumer.operate.progress import reset_progress
from consumer.operate.quarantine import replay
from consumer.proof.run import Proving
from consumer.verify.run import Verification, VerifyOptions
from ordering.errors import InputError
from sinks.bookkeeping.ddl_log import DdlState
from tests.loading.dumping import METADATA
from tests.service.cells import SqliteCells
from tests.service.lab import Feed
from tests.service.local import LocalFeed
from tests.service.messages import at, ddl, delete, insert, keyed, update, watermarks
from tests.service.postgres_cells import PostgresCells

pytestmark = pytest.mark.service
MERGED = {
    "dispatchers": [
        {
            "matcher": ["s*.t_*"],
            "target-schema": "m",
            "target-table": "t",
            "merge": True,
            "extract-schema": {"schema-regexp": "^s(.*)$", "target-column": "db"},
            "extract-table": {"table-regexp": "t_(.*)", "target-column": "shard"},
        }
    ]
}
COLUMNS = "(`id` INT PRIMARY KEY,`v` INT,`s` VARCHAR(10))"


def begun(feed: Feed, *shards: str) -> Feed:
    """Shards that are made at transaction 1 and 2."""
    feed.with_(sink=MERGED)
    feed.send([ddl("m.", 1, "CREATE DATABASE `m`", kind="QUERY")])
    feed.send(
        ddl(shard, 2 + at_, f"CREATE TABLE `{shard.split('.')[1]}` {COLUMNS}") for at_, shard in enumerate(shards)
    )
    return feed


def rows(feed: Feed, table: str = "m.t") -> list[tuple[str, ...]]:
    """Values of columns in their names' order, as texts."""
    _, found = feed.cells.tables([table.split(".", maxsplit=1)[0]])[table]
    return sorted(tuple(str(row[name]) for name in sorted(row)) for row in found)


def ran(feed: Feed, number: int, *messages: Any) -> None:
    feed.send([*messages, *watermarks(number)])
    feed.once()


def refused(feed: Feed, number: int, *messages: Any) -> str:
    feed.send([*messages, *watermarks(number)])
    error = feed.failing(InputError)
    assert error.exit_code == 3
    assert error.where
    return error.fact


def test_rows_of_shards_with_equal_keys_lie_side_by_side(every_feed: Feed) -> None:
    feed = begun(every_feed, "s1.t_a", "s1.t_b", "s2.t_a")
    sent = [insert(table, 10, id=1, v=n, s=table) for n, table in enumerate(("s1.t_a", "s1.t_b", "s2.t_a"))]
    ran(feed, 10, *sent)
    assert rows(feed) == [
        ("1", "1", "s1.t_a", "a", "0"),
        ("1", "1", "s1.t_b", "b", "1"),
        ("2", "1", "s2.t_a", "a", "2"),
    ]
    ran(
        feed,
        13,
        update("s1.t_a", 11, {"v": 0}, id=1, v=7, s="x"),
        delete("s1.t_b", 12, id=1, v=1, s="s1.t_b"),
        update("s2.t_a", 13, {"id": 1}, id=5, v=2, s="moved"),
    )
    assert rows(feed) == [("1", "1", "x", "a", "7"), ("2", "5", "moved", "a", "2")]


def test_a_shard_that_goes_takes_its_rows_alone_and_the_last_one_the_table(every_feed: Feed) -> None:
    feed = begun(every_feed, "s1.t_a", "s1.t_b", "s2.t_a")
    ran(feed, 10, *(insert(table, 10, id=1, v=1, s="x") for table in ("s1.t_a", "s1.t_b", "s2.t_a")))
    ran(
        feed,
        12,
        ddl("s1.t_a", 11, "TRUNCATE TABLE `s1`.`t_a`", kind="TRUNCATE"),
        insert("s1.t_a", 12, id=2, v=2, s="y"),
    )
    assert [(row[0], row[1], row[3]) for row in rows(feed)] == [("1", "1", "b"), ("1", "2", "a"), ("2", "1", "a")]
    ran(feed, 14, ddl("s1.t_b", 13, "DROP TABLE `s1`.`t_b`", kind="ERASE"), insert("s1.t_a", 14, id=3, v=2, s="y"))
    assert [(row[0], row[1], row[3]) for row in rows(feed)] == [("1", "2", "a"), ("1", "3", "a"), ("2", "1", "a")]
    ran(
        feed,
        16,
        ddl("s2.t_z", 15, "RENAME TABLE `s2`.`t_a` TO `s2`.`t_z`", kind="RENAME"),
        delete("s1.t_a", 16, id=2, v=2, s="y"),
    )
    assert [(row[0], row[1], row[3]) for row in rows(feed)] == [("1", "3", "a"), ("2", "1", "z")]
    ran(
        feed,
        18,
        ddl("s1.t_a", 17, "DROP TABLE `s1`.`t_a`", kind="ERASE"),
        update("s2.t_z", 18, {"v": 1}, id=1, v=5, s="x"),
    )
    assert rows(feed) == [("2", "1", "x", "z", "5")]
    ran(feed, 20, ddl("s2.t_z", 19, "DROP TABLE `s2`.`t_z`", kind="ERASE"))
    assert "m.t" not in feed.cells.tables(["m"])
    ran(
        feed,
        22,
        ddl("s2.t_z", 20, "CREATE TABLE `t_z` (`n` INT PRIMARY KEY)"),
        ddl("s2.t_y", 21, "CREATE TABLE `t_y` LIKE `s2`.`t_z`"),
    )
    assert rows(feed) == []


def test_a_column_comes_with_the_first_shard_and_goes_with_the_last(every_feed: Feed) -> None:
    feed = begun(every_feed, "s1.t_a", "s1.t_b")
    ran(feed, 10, insert("s1.t_a", 10, id=1, v=1, s="x"), insert("s1.t_b", 10, id=1, v=1, s="x"))
    added = "ADD COLUMN `a` INT NOT NULL DEFAULT 5"
    ran(
        feed,
        13,
        ddl("s1.t_a", 11, f"ALTER TABLE `t_a` {added}", kind="ALTER"),
        insert("s1.t_a", 12, id=2, v=1, s="x", a=9),
        update("s1.t_b", 12, {"v": 1}, id=1, v=2, s="x"),
        insert("s1.t_b", 13, id=2, v=1, s="x"),
    )
    assert [(row[0], row[2], row[4]) for row in rows(feed)] == [
        ("5", "1", "a"),
        ("5", "1", "b"),
        ("5", "2", "b"),
        ("9", "2", "a"),
    ]
    ran(
        feed,
        15,
        ddl("s1.t_b", 14, f"ALTER TABLE `t_b` {added}", kind="ALTER"),
        update("s1.t_b", 15, {"a": 5}, id=1, v=2, s="x", a=6),
    )
    ran(
        feed,
        17,
        ddl("s1.t_a", 16, "ALTER TABLE `t_a` DROP COLUMN `a`", kind="ALTER"),
        insert("s1.t_a", 17, id=3, v=1, s="x"),
    )
    assert ("6", "1", "b") in [(row[0], row[2], row[4]) for row in rows(feed)]
    ran(feed, 19, ddl("s1.t_b", 18, "ALTER TABLE `t_b` DROP COLUMN `a`", kind="ALTER"))
    assert [len(row) for row in rows(feed)] == [5] * 5


REFUSED = (
    ("ALTER TABLE `t_a` ADD COLUMN `a` INT NOT NULL", "has to be NULL or have a constant default"),
    (
        "ALTER TABLE `t_a` ADD COLUMN `a` DATETIME DEFAULT CURRENT_TIMESTAMP",
        "has to be NULL or have a constant default",
    ),
    ("ALTER TABLE `t_a` MODIFY COLUMN `v` BIGINT", "ChangeColumn"),
    ("ALTER TABLE `t_a` RENAME COLUMN `v` TO `w`", "RenameColumn"),
    ("ALTER TABLE `t_a` ADD UNIQUE INDEX `u`(`v`)", "AddIndex"),
    ("ALTER TABLE `t_a` ADD COLUMN `shard` INT", "name of a column that tells whose"),
    ("ALTER TABLE `t_a` COLLATE = utf8mb4_general_ci", "Passed"),
    ("RENAME TABLE `s1`.`t_a` TO `s1`.`other`", "is not merged in m.t"),
    ("CREATE TABLE `t_c` (`id` INT PRIMARY KEY,`v` BIGINT,`s` VARCHAR(10))", "bigint NULL there, and int NULL"),
    ("CREATE TABLE `t_c` (`id` INT PRIMARY KEY,`v` INT)", "lacks the column s"),
    ("CREATE TABLE `t_c` (`id` INT,`v` INT,`s` VARCHAR(10),PRIMARY KEY(`id`,`v`))", "v is int NOT NULL there"),
    ("CREATE TABLE `other` LIKE `s1`.`t_a`", "beside one that is not"),
    ("CREATE TABLE `t_c` LIKE `s1`.`other`", "beside one that is not"),
)


@pytest.mark.parametrize(("sql", "why"), REFUSED)
def test_what_is_not_followed_stops_before_it(sqlite_feed: Feed, sql: str, why: str) -> None:
    feed = begun(sqlite_feed, "s1.t_a", "s1.t_b")
    ran(feed, 10, insert("s1.t_a", 10, id=1, v=1, s="x"), insert("s1.t_b", 10, id=1, v=1, s="x"))
    table = "t_c" if "`t_c`" in sql else "other" if "`other`" in sql else "t_a"
    kind = "CREATE" if sql.startswith("CREATE") else "RENAME" if "RENAME TABLE" in sql else "ALTER"
    fact = refused(feed, 12, ddl(f"s1.{table}", 11, sql, kind=kind), insert("s1.t_b", 12, id=2, v=1, s="x"))
    assert why in fact
    assert "m.t" in fact
    assert len(rows(feed)) == 2
    decide_ddl(feed.config, at(11), DdlState.SKIP, "left out")
    feed.once()
    assert len(rows(feed)) == 3


def prove(feed: Feed) -> dict[str, str]:
    assert isinstance(feed, LocalFeed)
    log = feed.log_of_messages
    proof = Proving(feed.config, control=log, readers=log).run()  # type: ignore[arg-type]
    return {str(name): one.verdict.value for name, (_, one) in proof.tables.items()}


def test_each_shard_is_proven_by_its_own_rows(every_feed: Feed) -> None:
    feed = begun(every_feed, "s1.t_a", "s1.t_b")
    ran(feed, 10, insert("s1.t_a", 10, id=1, v=1, s="x"), insert("s1.t_b", 10, id=1, v=2, s="y"))
    assert prove(feed) == {"s1.t_a": "equal", "s1.t_b": "base"}
    ran(feed, 12, update("s1.t_a", 11, {"v": 1}, id=1, v=3, s="x"), insert("s1.t_b", 12, id=2, v=2, s="y"))
    assert prove(feed) == {"s1.t_a": "equal", "s1.t_b": "equal"}
    added = "ALTER TABLE `t_a` ADD COLUMN `a` INT DEFAULT 5"
    ran(feed, 14, ddl("s1.t_a", 13, added, kind="ALTER"), insert("s1.t_b", 14, id=3, v=3, s="z"))
    assert set(prove(feed).values()) == {"base"}
    ran(feed, 16, delete("s1.t_b", 15, id=1, v=2, s="y"), update("s1.t_a", 16, {"v": 3, "a": 5}, id=1, v=4, s="x", a=7))
    assert prove(feed) == {"s1.t_a": "equal", "s1.t_b": "equal"}
    ran(feed, 18, ddl("s1.t_a", 17, "ALTER TABLE `t_a` DROP COLUMN `a`", kind="ALTER"))
    assert set(prove(feed).values()) == {"base"}
    feed.cells.run("m", "UPDATE t SET v = 9 WHERE id = 2 AND shard = 'b'")
    assert prove(feed) == {"s1.t_a": "equal", "s1.t_b": "different"}


def upstream(tmp_path: Path, **tables: str) -> str:
    """A database at rest that holds what upstream does."""
    cells = SqliteCells(tmp_path / "upstream")
    for name, made in tables.items():
        database, _, table = name.partition("__")
        cells.run(database, made.replace("@", table))
    return f"sqlite:///{tmp_path / 'upstream'}"


def test_verify_compares_shards_and_repairs_nothing_of_them(sqlite_feed: Feed, tmp_path: Path) -> None:
    feed = begun(sqlite_feed, "s1.t_a", "s2.t_a")
    ran(feed, 10, insert("s1.t_a", 10, id=1, v=1, s="x"), insert("s2.t_a", 10, id=1, v=2, s="y"))
    made = "CREATE TABLE @ (id INTEGER PRIMARY KEY, v INTEGER, s TEXT); INSERT INTO @ VALUES "
    uri = upstream(tmp_path, s1__t_a=f"{made} (1, 1, 'x')", s2__t_a=f"{made} (1, 2, 'y')")
    options = VerifyOptions(against=uri, tables=("s*.*",), fix_sql=tmp_path / "fix.sql")
    assert Verification(feed.config, options).run().is_equal
    feed.cells.run("m", "UPDATE t SET s = 'by hand' WHERE db = '2'; INSERT INTO t VALUES (7, 1, 'x', '2', 'a')")
    outcome = Verification(feed.config, options).run()
    told = sorted(line.split()[:2] for line in outcome.lines() if "s2.t_a" in line)
    assert told[:2] == [["DIFFERENT", "s2.t_a"], ["EXTRA", "s2.t_a"]]
    fixes = (tmp_path / "fix.sql").read_text()
    assert "not repaired here: its rows lie beside" in fixes
    assert not {"INSERT", "UPDATE", "DELETE"} & set(fixes.split())


def dump_of(place: Path, second: str = "int") -> Path:
    """A dump of two shards, as Dumpling writes it."""
    place.mkdir()
    (place / "metadata").write_text(METADATA.format(tso=at(3)))
    for number, kind in ((1, "int"), (2, second)):
        (place / f"s{number}-schema-create.sql").write_text(f"CREATE DATABASE `s{number}`;\n")
        made = f"CREATE TABLE `t_a` (`id` int NOT NULL, `v` {kind}, `s` varchar(10), PRIMARY KEY (`id`));\n"
        (place / f"s{number}.t_a-schema.sql").write_text(made)
        (place / f"s{number}.t_a.000000000.sql").write_text(
            f"INSERT INTO `t_a` VALUES\n(1,{number},'x'),\n(2,2,'y');\n"
        )
    return place


def test_a_dump_of_shards_is_loaded_into_one_table(every_feed: Feed, tmp_path: Path) -> None:
    feed = every_feed.with_(sink=MERGED, filter={"rules": ["s*.t_*"]})
    feed.make_database("m", "CREATE TABLE other (id INT PRIMARY KEY)")
    ignored = ("*-schema-create.sql",)
    with pytest.raises(InputError, match="bigint NULL there"):
        Load(feed.config, LoadOptions(dump_of(tmp_path / "other", "bigint"), ignored=ignored)).run()
    feed.cells.run("m", "DROP TABLE t")
    reset_progress(feed.config)
    outcome = Load(feed.config, LoadOptions(dump_of(tmp_path / "dump"), ignored=ignored)).run()
    assert (outcome.finished, outcome.tables, outcome.rows) == (True, 2, 4)
    assert [row[:2] + row[3:] for row in rows(feed)] == [
        ("1", "1", "a", "1"), ("1", "2", "a", "2"), ("2", "1", "a", "2"), ("2", "2", "a", "2")
    ]  # fmt: skip
    ran(feed, 6, delete("s1.t_a", 4, id=1, v=1, s="x"), ddl("s2.t_a", 5, "TRUNCATE TABLE `s2`.`t_a`", kind="TRUNCATE"))
    assert [row[:2] for row in rows(feed)] == [("1", "2")]
    fact = refused(feed, 8, ddl("s3.t_a", 7, "CREATE TABLE `t_a` (`id` INT PRIMARY KEY,`v` INT)"))
    assert "lacks the column s" in fact


def test_origin_columns_are_what_the_names_say(sqlite_feed: Feed) -> None:
    feed = begun(sqlite_feed, "s1.t_a")
    fact = refused(feed, 10, insert("s1.t_", 10, id=1, v=1, s="x"))
    assert "extract-table finds no text" in fact
    feed.with_(filter={"rules": ["*.*", "!s1.t_"]})
    feed.once()
    assert rows(feed) == []


def test_a_held_row_is_not_replayed_across_a_rename_that_keeps_its_origin(sqlite_feed: LocalFeed) -> None:
    """Under its other name the row has changed since, which nobody noted for the one that is held."""
    (rule,) = MERGED["dispatchers"]
    alike = {**rule, "extract-table": {"table-regexp": "t_([a-z])", "target-column": "shard"}}
    feed = sqlite_feed.with_(sink={"dispatchers": [alike]}, quarantine={"enabled": True})
    made = "CREATE TABLE `t_a1` (`id` INT PRIMARY KEY, `v` INT NOT NULL)"
    feed.send([ddl("m.", 1, "CREATE DATABASE `m`", kind="QUERY"), ddl("s1.t_a1", 2, made)])
    ran(feed, 4, insert("s1.t_a1", 4, id=2, v=None))
    away = ddl("s1.t_a2", 5, "RENAME TABLE `s1`.`t_a1` TO `s1`.`t_a2`", kind="RENAME")
    back = ddl("s1.t_a1", 7, "RENAME TABLE `s1`.`t_a2` TO `s1`.`t_a1`", kind="RENAME")
    ran(feed, 8, away, update("s1.t_a2", 6, {"v": None}, id=2, v=5), back)
    before = rows(feed)
    (verdict,) = replay(feed.config, [])
    assert "another table's" in verdict.why
    assert rows(feed) == before == [("1", "2", "a", "5")]


def test_two_shards_of_one_origin_are_refused(sqlite_feed: Feed) -> None:
    one = {**MERGED["dispatchers"][0], "extract-table": {"table-regexp": "t_(.)", "target-column": "shard"}}
    feed = begun(sqlite_feed, "s1.t_a")
    feed.with_(sink={"dispatchers": [one]})
    assert "give both the same origin" in refused(
        feed, 10, insert("s1.t_a", 9, id=1, v=1, s="x"), insert("s1.t_ab", 10, id=1, v=1, s="y")
    )
    assert rows(feed) == []


def test_a_table_made_by_hand_needs_the_origin_in_its_keys(every_feed: Feed) -> None:
    feed = every_feed.with_(sink=MERGED)
    feed.make_database(
        "m", "CREATE TABLE t (id INT NOT NULL PRIMARY KEY, v INT, s VARCHAR(10), db VARCHAR(64), shard VARCHAR(64))"
    )
    assert "merge tables in m.t, which has a " in refused(feed, 10, insert("s1.t_a", 10, id=1, v=1, s="x"))


@pytest.mark.parametrize(
    ("change", "by_hand"),
    [
        ("MODIFY COLUMN `v` BIGINT", "ALTER TABLE t MODIFY COLUMN v BIGINT"),
        ("RENAME COLUMN `s` TO `r`", "ALTER TABLE t RENAME COLUMN s TO r"),
    ],
)
def test_a_change_that_is_not_followed_is_made_by_hand(every_feed: Feed, change: str, by_hand: str) -> None:
    feed = begun(every_feed, "s1.t_a", "s1.t_b")
    ran(feed, 10, insert("s1.t_a", 10, id=1, v=1, s="x"), insert("s1.t_b", 10, id=1, v=1, s="x"))
    altered = [
        ddl(f"s1.t_{name}", at_, f"ALTER TABLE `t_{name}` {change}", kind="ALTER")
        for name, at_ in (("a", 11), ("b", 12))
    ]
    assert "merged with s1.t_b" in refused(feed, 13, *altered)
    if "MODIFY" in change and isinstance(feed.cells, PostgresCells):
        by_hand = "ALTER TABLE t ALTER COLUMN v TYPE BIGINT"
    if "MODIFY" not in change or not isinstance(feed.cells, SqliteCells):
        feed.cells.run("m", by_hand)
    decide_ddl(feed.config, at(11), DdlState.TAKE, "made by hand")
    assert "merged with s1.t_a" in feed.failing(InputError).fact
    decide_ddl(feed.config, at(12), DdlState.TAKE, "made by hand")
    column, value = ("s", "x") if "MODIFY" in change else ("r", "y")
    ran(
        feed,
        15,
        *(
            insert(f"s1.t_{name}", 14, id=2, v=5_000_000_000 if "MODIFY" in change else 2, **{column: value})
            for name in "ab"
        ),
    )
    assert len(rows(feed)) == 4
    ran(feed, 17, ddl("s1.t_a", 16, "ALTER TABLE `t_a` ADD COLUMN `n` INT", kind="ALTER"))
    fact = refused(feed, 19, ddl("s2.t_a", 18, f"CREATE TABLE `t_a` {COLUMNS}"))
    assert "no CREATE TABLE has" in fact
    decide_ddl(feed.config, at(18), DdlState.TAKE, "it is like the others")
    ran(
        feed,
        21,
        insert("s2.t_a", 20, id=1, v=1, **{column: value}),
        ddl("s1.t_b", 20, "DROP TABLE `s1`.`t_b`", kind="ERASE"),
    )
    assert len(rows(feed)) == 3


def test_tables_without_a_key_are_merged_by_their_origin(every_feed: Feed) -> None:
    feed = every_feed.with_(sink=MERGED, filter={"force-replicate": True})
    feed.send([ddl("m.", 1, "CREATE DATABASE `m`", kind="QUERY")])
    feed.send(ddl(f"s1.t_{name}", 2, f"CREATE TABLE `t_{name}` (`id` INT,`v` INT)") for name in "ab")
    same = [keyed(insert(f"s1.t_{name}", number, id=1, v=1)) for name in "ab" for number in (3, 4)]
    ran(feed, 6, *same, keyed(delete("s1.t_a", 5, id=1, v=1)))
    assert rows(feed) == [("1", "1", "a", "1"), ("1", "1", "b", "1"), ("1", "1", "b", "1")]
    ran(feed, 8, ddl("s1.t_b", 7, "TRUNCATE TABLE `s1`.`t_b`", kind="TRUNCATE"))
    assert rows(feed) == [("1", "1", "a", "1")]


def test_other_unique_keys_hold_within_a_shard(every_feed: Feed) -> None:
    """Shards may hold equal values, and swap their own; a column that one shard lacks does not stop it."""
    feed = every_feed.with_(sink=MERGED)
    columns = "(`id` INT PRIMARY KEY,`v` INT UNIQUE KEY)"
    feed.send([ddl("m.", 1, "CREATE DATABASE `m`", kind="QUERY")])
    feed.send(ddl(f"s1.t_{name}", 2, f"CREATE TABLE `t_{name}` {columns}") for name in "ab")
    ran(feed, 3, *(insert(f"s1.t_{name}", 3, id=n, v=n) for name in "ab" for n in (1, 2)))
    ran(
        feed,
        6,
        ddl("s1.t_a", 4, "ALTER TABLE `t_a` ADD COLUMN `n` INT DEFAULT 5", kind="ALTER"),
        update("s1.t_b", 5, {"v": 1}, id=1, v=2),
        update("s1.t_b", 5, {"v": 2}, id=2, v=1),
        insert("s1.t_a", 6, id=3, v=3, n=1),
    )
    assert [(row[1], row[3], row[4], row[2]) for row in rows(feed)] == [
        ("1", "a", "1", "5"), ("1", "b", "2", "5"), ("2", "a", "2", "5"), ("2", "b", "1", "5"), ("3", "a", "3", "1")
    ]  # fmt: skip

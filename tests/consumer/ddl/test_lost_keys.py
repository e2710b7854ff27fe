"""Which kept keys are remembered, and which of them a DDL that makes another one has dropped first."""

from dataclasses import replace
from typing import Any

import pytest

from consumer.ddl.kept_after import kept_after
from consumer.ddl.lost_keys import dropped_indexes, lost_keys, without
from consumer.ddl.policy import understood
from consumer.tasks.report import RawDdl
from ordering.errors import TargetError
from ordering.events import DdlEvent, Position, TableName
from ordering.kept_keys import (
    LIMIT,
    NOT_YET,
    KeptKey,
    KeptKeys,
    beyond_limit,
    lost_by,
    present,
    restored,
    stored,
)
from sinks.rows.schema import Catalog, Column, Shape, TableSchema

T = TableName("d", "t")
COLUMNS = tuple(Column(name, "int", Shape.INTEGER, nullable=name == "n") for name in ("u", "w", "n"))
KEPT: KeptKeys = {T: {"u": KeptKey(frozenset({"u"}), 7)}}


def table(name: TableName = T, primary: str = "", **indexes: tuple[str, ...]) -> TableSchema:
    unique = indexes or {"u": ("u",), "n": ("n",)}
    valid = frozenset({index for index, key in unique.items() if "n" not in key} | ({"PRIMARY"} if primary else set()))
    key = (primary or "u",)
    return TableSchema(name, COLUMNS, key, (key, *unique.values()), valid, unique_indexes=unique)


def catalog(*tables: TableSchema) -> Catalog:
    return Catalog({one.name: one for one in tables or (table(),)})


def ddl(sql: str, database: str = "d", name: str = "t", there: Catalog | None = None) -> DdlEvent:
    return understood(RawDdl(Position("topic", 0, 7), 100, "", database, name, sql), there or catalog(), ())


def dropped(sql: str, kept: KeptKeys = KEPT, there: Catalog | None = None, begun: tuple[str, ...] = ()) -> list[str]:
    return [lost.ddl.sql for lost in lost_keys(ddl(sql), kept, there or catalog(), begun)]


def after(*statements: str, there: Catalog | None = None, kept: KeptKeys = KEPT) -> KeptKeys:
    for sql in statements:
        kept = kept_after(kept, ddl(sql, there=there), (), there or catalog())
    return kept


ADD = "ALTER TABLE `t` ADD UNIQUE `w`(`w`)"
DROP_U = ["ALTER TABLE `t` DROP INDEX `u`"]


def named(name: str, index: str = "u", *columns: str) -> KeptKeys:
    return {TableName(*name.split(".")): {index: KeptKey(frozenset(columns or {"u"}), 7)}}


@pytest.mark.parametrize(
    ("statements", "expected"),
    [
        (["ALTER TABLE `t` ADD UNIQUE `U`(`w`)"], {}),
        (["ALTER TABLE `t` ADD INDEX (`u`)"], {}),
        (["CREATE UNIQUE INDEX `u` ON `t` (`w`)"], {}),
        (["ALTER TABLE `t` RENAME INDEX `w` TO `u`"], {}),
        (["ALTER TABLE `t` ADD INDEX `i`(`u`), DROP INDEX `w`"], KEPT),
        (["CREATE TABLE `t` (`u` INT PRIMARY KEY)"], {}),
        (["CREATE TABLE `d`.`T` (`u` INT PRIMARY KEY)"], {}),
        (["DROP TABLE `t`"], KEPT),  # RECOVER and FLASHBACK bring it back without the key
        (["DROP DATABASE `d`"], KEPT),
        (["DROP TABLE `t`", "FLASHBACK TABLE `t`"], KEPT),
        (["DROP TABLE `t`", "FLASHBACK TABLE `t` TO `s`"], {**KEPT, **named("d.s")}),
        (["DROP DATABASE `d`", "CREATE DATABASE `d`", "CREATE TABLE `t` (`u` INT NOT NULL,UNIQUE(`u`))"], {}),
        (["TRUNCATE TABLE `t`", "ALTER TABLE `t` COMMENT = 'x'"], KEPT),
        (["RENAME TABLE `t` TO `s`"], named("d.s")),
        (["RENAME TABLE `t` TO `s`, `r` TO `t`"], named("d.s")),
        (["RENAME TABLE `r` TO `t`"], {}),
        (["RENAME TABLE `t` TO `d2`.`t`"], named("d2.t")),
        (["CREATE TABLE `s` LIKE `t`"], {**KEPT, **named("d.s")}),
        (["CREATE TABLE `t` LIKE `s`"], {}),
        (["ALTER TABLE `t` RENAME COLUMN `U` TO `x`"], named("d.t", "u", "x")),
        (["ALTER TABLE `t` CHANGE COLUMN `u` `x` INT"], named("d.t", "u", "x")),
        (["ALTER TABLE `t` DROP COLUMN `u`"], {}),
        (["ALTER TABLE `t` DROP INDEX `u`, ADD COLUMN `x` INT"], KEPT),
    ],
)
def test_what_is_remembered_is_what_upstream_lost(statements: list[str], expected: KeptKeys) -> None:
    assert after(*statements) == expected


def test_one_that_upstream_calls_otherwise_is_lost_when_that_is_dropped() -> None:
    """The target lacks an index of that name, and some targets do not mind."""
    lost = KeptKey(frozenset("u"), 100, stays=True)
    assert after("ALTER TABLE `t` DROP INDEX `v`, ADD UNIQUE `x`(`w`)", kept=RENAMED) == {T: {"v": lost}}
    renamed = "ALTER TABLE `t` RENAME INDEX `v` TO `x`"
    assert after(renamed, "DROP INDEX `x` ON `t`", kept=RENAMED) == {T: {"x": lost}}
    assert lost_by(RENAMED, NOT_YET - 1) == {}
    assert after("DROP INDEX `v` ON `t`", kept=RENAMED, there=catalog(table(v=("u",)))) == {}


def test_a_key_that_is_left_out_is_remembered_with_its_columns() -> None:
    there = catalog(table(primary="u", u=("U", "w")))
    event = ddl("ALTER TABLE `t` DROP PRIMARY KEY, DROP INDEX `U`, ADD COLUMN `x` INT")
    assert dropped_indexes(event.sql) == {"PRIMARY", "U"}
    found = kept_after({}, event, {"PRIMARY", "U"}, there)
    assert found == {T: {"primary": KeptKey(frozenset("u"), 100), "u": KeptKey(frozenset("uw"), 100)}}
    assert kept_after({}, event, {"gone"}, there) == {}
    assert restored(stored(found)) == found


STAYS: KeptKeys = {T: {"u": KeptKey(frozenset({"u"}), 100, stays=True)}}
RENAMED: KeptKeys = {T: {"v": KeptKey(frozenset({"u"}), NOT_YET, stays=True)}}
AGAIN: KeptKeys = {T: {"x": RENAMED[T]["v"]}}
BOTH: dict[str, tuple[str, ...]] = {"u": ("u",), "w": ("w",)}


@pytest.mark.parametrize(
    ("kept", "sql", "expected"),
    [
        ({}, "ALTER TABLE `t` DROP INDEX `u`", STAYS),
        ({}, "DROP INDEX `U` ON `t`", STAYS),
        ({}, "ALTER TABLE `t` DROP INDEX `u`, ADD UNIQUE `u`(`n`)", STAYS),
        ({}, "ALTER TABLE `t` DROP INDEX `u`, ADD UNIQUE `x`(`u`)", AGAIN),
        ({}, "ALTER TABLE `t` DROP INDEX `gone`", {}),
        ({}, "ALTER TABLE `t` DROP PRIMARY KEY", {}),  # a primary key that no message names is refused anyway
        (KEPT, "ALTER TABLE `t` DROP INDEX `u`", KEPT),
        (KEPT, "ALTER TABLE `t` ADD UNIQUE `u`(`w`)", KEPT),
        (KEPT, "ALTER TABLE `t` ADD INDEX `u`(`u`)", KEPT),
        (KEPT, "ALTER TABLE `t` ADD UNIQUE `x`(`U`)", AGAIN),
        (AGAIN, "ALTER TABLE `t` ADD UNIQUE `y`(`U`)", AGAIN),
        (AGAIN, "DROP INDEX `X` ON `t`", {T: {"x": STAYS[T]["u"]}}),
        (KEPT, "ALTER TABLE `t` ADD UNIQUE `x`(`u`,`n`)", KEPT),
        (RENAMED, "ALTER TABLE `t` DROP INDEX `v`", {T: {"v": KeptKey(frozenset("u"), 100, stays=True)}}),
        (RENAMED, "ALTER TABLE `t` RENAME INDEX `V` TO `x`", {T: {"x": RENAMED[T]["v"]}}),
        ({}, "ALTER TABLE `t` RENAME INDEX `u` TO `v`", RENAMED),
        ({}, "ALTER TABLE `t` RENAME INDEX `gone` TO `u`", {}),
        (
            STAYS,
            "CREATE TABLE `t` (`u` INT NOT NULL,`w` INT,UNIQUE(`u`))",
            {T: {"w": KeptKey(frozenset("w"), 100, stays=True)}},
        ),
        ({}, "CREATE TABLE `t` (`u` INT,`w` INT NOT NULL,UNIQUE(`w`))", STAYS),
        ({}, "CREATE TABLE `t` (`u` INT,`w` INT NOT NULL,UNIQUE(`u`),UNIQUE(`w`))", {}),
        ({}, "CREATE TABLE `t` (`u` INT,`w` INT)", {T: {n: KeptKey(frozenset(n), 100, stays=True) for n in "uw"}}),
        (KEPT, "CREATE TABLE `s` (`u` INT)", KEPT),
    ],
)
def test_what_a_ddl_that_is_left_out_drops_or_replaces_stays(kept: KeptKeys, sql: str, expected: KeptKeys) -> None:
    there = catalog(table(**BOTH))
    found = kept_after(kept, ddl(sql), (), there, is_done=False)
    assert found == expected
    assert restored(stored(found), stored(found, staying=True)) == found
    assert dropped("ALTER TABLE `t` ADD PRIMARY KEY(`w`)", STAYS, there) == []


@pytest.mark.parametrize(
    ("tables", "expected"),
    [
        ((table(), table(TableName("d3", "t"))), T),  # it has not run yet
        ((table(TableName("d2", "s")), table(TableName("d3", "t"))), T),  # it has: what is gone was renamed
        ((table(), table(TableName("d2", "s"))), TableName("d3", "t")),
    ],
)
def test_after_a_crash_a_renamed_table_is_the_one_that_is_gone(
    tables: tuple[TableSchema, ...], expected: TableName
) -> None:
    kept: KeptKeys = dict.fromkeys((T, TableName("d3", "t")), KEPT[T])
    event = replace(ddl("RENAME TABLE `t` TO `d2`.`s`", "d2", "s"), removes=(TableName("d3", "t"),))
    if len(tables) == 2 and TableName("d2", "s") not in {one.name for one in tables}:
        event = replace(event, removes=(T,))
    found = kept_after(kept, event, (), catalog(*tables))
    assert set(found) == {*kept, TableName("d2", "s")} - {expected}


def test_names_fold_as_those_of_tidb() -> None:
    """A dotted I is one letter in small too, a sigma is the same everywhere."""
    kept = kept_after({}, ddl("ALTER TABLE `t` DROP INDEX `İΣ`"), {"İΣ"}, catalog(table(İΣ=("u",))))
    assert kept == {T: {"i\N{GREEK SMALL LETTER SIGMA}": KeptKey(frozenset("u"), 100)}}
    assert after("ALTER TABLE `t` ADD INDEX `I\N{GREEK SMALL LETTER SIGMA}`(`w`)", kept=kept) == {}
    assert dropped(ADD, kept, catalog(table(İΣ=("u",)))) == [
        "ALTER TABLE `t` DROP INDEX `i\N{GREEK SMALL LETTER SIGMA}`"
    ]


@pytest.mark.parametrize(
    ("sql", "makes"),
    [
        (ADD, True),
        ("CREATE UNIQUE INDEX `w` ON `t` (`w`)", True),
        ("ALTER TABLE `t` ADD PRIMARY KEY (`w`)", True),
        ("ALTER TABLE `t` MODIFY COLUMN `n` INT NOT NULL", True),
        ("ALTER TABLE `t` CHANGE COLUMN `n` `m` INT NOT NULL", True),
        ("ALTER TABLE `t` MODIFY COLUMN `n` INT", False),
        ("ALTER TABLE `t` MODIFY COLUMN `n` INT NOT NULL, DROP INDEX `n`", False),
        ("ALTER TABLE `t` MODIFY COLUMN `w` INT NOT NULL", False),
        ("ALTER TABLE `t` ADD UNIQUE `n2`(`n`)", False),
        ("ALTER TABLE `t` ADD INDEX `w`(`w`)", False),
        ("ALTER TABLE `t` ADD INDEX (`u`)", True),  # upstream calls it `u`
        ("ALTER TABLE `t` ADD INDEX (`u`,`w`), ADD INDEX `i`(`w`)", True),
        ("ALTER TABLE `t` RENAME INDEX `n` TO `U`", True),
        ("ALTER TABLE `t` RENAME INDEX `n` TO `m`", False),
        ("ALTER TABLE `t` ADD UNIQUE `U`(`w`)", True),
        ("ALTER TABLE `t` ADD INDEX `u`(`n`)", True),
        ("ALTER TABLE `t` ADD INDEX `u`(`u`)", True),
        ("ALTER TABLE `t` ADD UNIQUE `U`(`U`)", False),  # it is so already
        ("ALTER TABLE `t` ADD UNIQUE (`u`,`w`)", True),  # it would get another name
        ("ALTER TABLE `t` ADD COLUMN `x` INT NOT NULL, ADD UNIQUE `x`(`x`)", True),
        ("CREATE TABLE `t` (`w` INT PRIMARY KEY)", False),
        ("RENAME TABLE `t` TO `s`", False),
    ],
)
def test_what_makes_another_key_or_takes_the_name_drops_them(sql: str, *, makes: bool) -> None:
    assert dropped(sql) == (DROP_U if makes else [])


def test_only_what_was_kept_then_is_dropped() -> None:
    assert dropped(ADD, {}) == []
    assert dropped(ADD, named("d.s")) == []
    assert dropped(ADD, {T: {"u": KeptKey(frozenset("u"), 101)}}) == []
    assert dropped(ADD, there=catalog(table(w=("w",)))) == []
    assert dropped(ADD, without(KEPT, ddl(ADD), "u")) == []


def test_what_a_crash_left_begun_is_ended() -> None:
    there = catalog(table(w=("w",)))
    assert dropped(ADD, there=there, begun=(DROP_U[0],)) == DROP_U


def test_an_index_of_that_name_over_other_columns_is_an_operators_to_judge() -> None:
    (lost,) = lost_keys(ddl(ADD), KEPT, catalog(table(u=("u", "w"))), ())
    with pytest.raises(TargetError, match=r"index 'u' of d\.t is not the one that was kept.* over u, w now"):
        lost.check()
    (lost,) = lost_keys(ddl(ADD), KEPT, catalog(), ())
    lost.check()


def test_a_primary_key_is_named_by_its_clause() -> None:
    there: Any = catalog(table(primary="u", n=("n",)))
    assert dropped(ADD, named("d.t", "primary"), there) == ["ALTER TABLE `t` DROP PRIMARY KEY"]


def test_the_tables_that_are_remembered_are_bounded() -> None:
    many: KeptKeys = {TableName("d", f"t{n}"): {"u": KeptKey(frozenset("u"), n)} for n in range(LIMIT + 2)}
    assert beyond_limit(many) == [TableName("d", "t0"), TableName("d", "t1")]
    assert beyond_limit({T: many[TableName("d", "t0")]}) == []
    assert present({T: {}}) == {}

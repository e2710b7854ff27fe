"""Which kept keys a DDL that makes another one has dropped first: by the lines of the DDL log."""

from typing import Any

import pytest

from consumer.ddl.lost_keys import WHY_KEPT, drops_of_lost_keys
from ordering.events import DdlEvent, Position, TableName
from ordering.timestamps import CommitTs
from sinks.bookkeeping.ddl_log import DdlRecord
from sinks.rows.schema import Catalog, Column, Shape, TableSchema

T = TableName("d", "t")
COLUMNS = tuple(Column(name, "int", Shape.INTEGER, nullable=name == "n") for name in ("u", "w", "n"))


def line(number: int, sql: str, state: str = "done", executed: str = "", table: str = "t") -> DdlRecord:
    return DdlRecord(number, number, "d", table, sql, executed, state, "", None, "")


def kept(number: int, sql: str = "ALTER TABLE `t` DROP INDEX `u`", table: str = "t") -> DdlRecord:
    return line(number, sql, "ignored", f"{WHY_KEPT} d.t, whose rows", table)


def catalog(*indexes: str) -> Catalog:
    keys = (("u",), ("n",))
    return Catalog({T: TableSchema(T, COLUMNS, ("u",), keys, frozenset(indexes or {"u"}))})


def dropped(sql: str, *lines: DdlRecord, there: Catalog | None = None, **more: Any) -> list[str]:
    ddl = DdlEvent(Position("topic", 0, 7), CommitTs(100), "ALTER", "d", "t", sql, **more)
    return [drop.sql for drop in drops_of_lost_keys(ddl, lines[::-1], there or catalog())]


ADD = "ALTER TABLE `t` ADD UNIQUE `w`(`w`)"
DROP_U = ["ALTER TABLE `t` DROP INDEX `u`"]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([kept(1)], DROP_U),
        ([kept(1, "DROP INDEX `U` ON `t`")], DROP_U),
        ([kept(1, "DROP INDEX `u` ON `d`.`T`")], DROP_U),
        ([line(1, "ALTER TABLE `t` DROP INDEX `u`, ADD COLUMN `x` INT")], DROP_U),
        ([line(1, "ALTER TABLE `t` DROP INDEX `u`")], []),  # executed: one of that name is the target's own
        ([line(1, "ALTER TABLE `t` DROP INDEX `u`", "ignored", "filter.event-filters leave it out")], []),
        ([kept(1), line(2, "ALTER TABLE `t` ADD UNIQUE `U`(`w`)")], []),
        ([kept(1), line(2, "ALTER TABLE `t` ADD UNIQUE (`u`)", "ignored", "it is there")], []),
        ([kept(1), line(2, "CREATE UNIQUE INDEX `u` ON `t` (`w`)")], []),
        ([kept(1), line(2, "ALTER TABLE `t` RENAME INDEX `w` TO `u`")], []),
        ([kept(1), line(2, "DROP TABLE `t`")], []),
        ([kept(1), line(2, "CREATE TABLE `t` (`u` INT PRIMARY KEY)", "skipped")], DROP_U),
        ([kept(1), line(2, "ALTER TABLE `t` DROP INDEX `u`", "skipped")], []),
        ([kept(1, table="s", sql="ALTER TABLE `s` DROP INDEX `u`"), line(2, "RENAME TABLE `s` TO `t`")], DROP_U),
        ([kept(1), line(2, "RENAME TABLE `t` TO `s`, `r` TO `t`")], []),
        ([kept(1), line(2, "ALTER TABLE `t` this can't be read")], DROP_U),
        ([kept(1), line(2, "ALTER TABLE `t` DROP INDEX `u`")], []),  # what has that name now is the target's own
        ([kept(1, "ALTER TABLE `s` DROP INDEX `u`", "s"), line(2, "CREATE TABLE `t` LIKE `s`")], DROP_U),
        ([kept(101)], []),
        ([kept(1, table="s", sql="ALTER TABLE `s` DROP INDEX `u`")], []),
    ],
)
def test_what_is_lost_is_told_by_the_log(lines: list[DdlRecord], expected: list[str]) -> None:
    assert dropped(ADD, *lines) == expected


@pytest.mark.parametrize(
    ("sql", "makes"),
    [
        (ADD, True),
        ("CREATE UNIQUE INDEX `w` ON `t` (`w`)", True),
        ("ALTER TABLE `t` ADD PRIMARY KEY (`w`)", True),
        ("ALTER TABLE `t` MODIFY COLUMN `n` INT NOT NULL", True),
        ("ALTER TABLE `t` MODIFY COLUMN `n` INT", False),
        ("ALTER TABLE `t` MODIFY COLUMN `w` INT NOT NULL", False),
        ("ALTER TABLE `t` ADD UNIQUE `n2`(`n`)", False),
        ("ALTER TABLE `t` ADD INDEX `w`(`w`)", False),
        ("ALTER TABLE `t` ADD UNIQUE `u`(`w`)", False),  # what has its name is replaced
        ("ALTER TABLE `t` ADD UNIQUE (`u`,`w`)", True),  # it would get another name
        ("ALTER TABLE `t` ADD COLUMN `x` INT NOT NULL, ADD UNIQUE `x`(`x`)", True),
        ("CREATE TABLE `t` (`w` INT PRIMARY KEY)", False),
        ("RENAME TABLE `t` TO `s`", False),
    ],
)
def test_only_what_makes_another_key_drops_them(sql: str, *, makes: bool) -> None:
    assert dropped(sql, kept(1)) == (DROP_U if makes else [])


def test_what_a_crash_left_begun_is_ended() -> None:
    for state, expected in (("intent", DROP_U), ("failed", DROP_U), ("skip", DROP_U), ("done", [])):
        lines = kept(1), line(100, DROP_U[0], state)
        assert dropped(ADD, *lines, there=catalog("w")) == expected
    assert dropped(ADD, kept(1), there=catalog("w")) == []


def test_a_primary_key_is_named_by_its_clause() -> None:
    lines = kept(1, "ALTER TABLE `t` DROP PRIMARY KEY")
    assert dropped(ADD, lines, there=catalog("PRIMARY")) == ["ALTER TABLE `t` DROP PRIMARY KEY"]

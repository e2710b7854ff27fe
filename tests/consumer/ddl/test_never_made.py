"""Which DDLs are about a table that upstream made without a valid index, and that therefore never came."""

import pytest

from consumer.ddl.never_made import tables_of, was_never_made
from consumer.ddl.policy import no_index
from ordering.events import DdlEvent, Position, TableName
from ordering.timestamps import CommitTs
from sinks.bookkeeping.ddl_log import DdlRecord, DdlState

T = TableName("d", "t")
NO_INDEX = no_index(T)
MAKES = ("done", "CREATE DATABASE `D`")


def line(ts: int, state: str, sql: str) -> DdlRecord:
    executed = NO_INDEX if state == "ignored" else sql
    return DdlRecord(ts, ts, "d", "", sql, executed, state, "", None, "")


@pytest.mark.parametrize(
    ("log", "never"),
    [
        ([], False),
        ([MAKES], True),
        ([("skipped", "CREATE DATABASE `d`")], False),
        ([("done", "CREATE DATABASE `e`")], False),
        ([MAKES, ("done", "CREATE TABLE `T` (`a` INT PRIMARY KEY)")], False),
        ([MAKES, ("skipped", "CREATE TABLE `t` (`a` INT PRIMARY KEY)")], False),
        ([MAKES, ("ignored", "CREATE TABLE `t` (`a` INT)")], True),
        ([MAKES, ("done", "RENAME TABLE `s` TO `t`")], False),
        ([MAKES, ("ignored", "RENAME TABLE `s` TO `t`")], True),
        ([("done", "DROP TABLE `d`.`t`")], True),
        ([("done", "RENAME TABLE `t` TO `e`.`t`")], True),
        ([("skipped", "DROP TABLE `d`.`t`")], False),
        ([MAKES, ("done", "CREATE TABLE `t` (`a` INT PRIMARY KEY)"), ("done", "DROP TABLE `t`")], True),
        ([MAKES, ("done", "CREATE VIEW `v` AS SELECT 1")], True),
        ([MAKES, ("done", "RECOVER TABLE `t`")], False),
        ([MAKES, ("done", "this is about t and no statement")], False),
    ],
)
def test_the_log_shows_whether_a_table_was_made(log: list[tuple[str, str]], never: bool) -> None:
    lines = [line(at, DdlState(state).value, sql) for at, (state, sql) in enumerate(log, start=1)]
    assert was_never_made(T, 100, lines) is never
    assert not was_never_made(T, 1, lines), "what comes later tells nothing"


@pytest.mark.parametrize(
    ("sql", "tables"),
    [
        ("ALTER TABLE `t` ADD COLUMN `a` INT NOT NULL", (T,)),
        ("ALTER TABLE `t` ADD INDEX `i`(`a`)", (T,)),
        ("CREATE INDEX `i` ON `t` (`a`)", (T,)),
        ("TRUNCATE TABLE `t`", (T,)),
        ("ALTER TABLE `t` DROP PARTITION `p`", (T,)),
        ("ALTER TABLE `t` MODIFY COLUMN `a` INT", (T,)),
        ("ALTER TABLE `t` MODIFY COLUMN `a` INT NOT NULL", ()),
        ("ALTER TABLE `t` ADD PRIMARY KEY(`a`)", ()),
        ("ALTER TABLE `t` ADD COLUMN `a` INT NOT NULL UNIQUE KEY", ()),
        ("CREATE UNIQUE INDEX `i` ON `t` (`a`)", ()),
        ("ALTER TABLE `t` EXCHANGE PARTITION `p` WITH TABLE `u`", ()),
        ("ALTER TABLE `t` ADD COLUMN `a` INT, ADD UNIQUE `u`(`a`)", ()),
        ("DROP TABLE `t`", ()),
        ("CREATE TABLE `t` (`a` INT PRIMARY KEY)", ()),
    ],
)
def test_what_may_give_a_table_a_key_needs_the_table(sql: str, tables: tuple[TableName, ...]) -> None:
    ddl = DdlEvent(Position("c", 0, 1), CommitTs(5), "ALTER", "d", "t", sql, (), (), None)
    assert tables_of(ddl) == tables

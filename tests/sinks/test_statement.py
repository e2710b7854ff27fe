"""The heads of DDL statements as TiDB prints them."""

import pytest

from ordering.errors import InputError
from ordering.events import TableName
from sinks.ddl.parse.statement import DdlKind, TableReference, read_statement


def in_d1(_: TableReference) -> str:
    return "d1"


@pytest.mark.parametrize(
    ("sql", "kind", "removes", "adds"),
    [
        ("CREATE TABLE `t` (`id` INT PRIMARY KEY)", DdlKind.CREATE_TABLE, [], ["d1.t"]),
        ("CREATE TABLE IF NOT EXISTS `d2`.`t` (`id` INT)", DdlKind.CREATE_TABLE, [], ["d2.t"]),
        ("CREATE TABLE `d2`.`o` LIKE `t`", DdlKind.CREATE_TABLE, [], ["d2.o"]),
        ("DROP TABLE IF EXISTS `d2`.`a`, `b`", DdlKind.DROP_TABLE, ["d2.a", "d1.b"], []),
        ("TRUNCATE TABLE `t`", DdlKind.TRUNCATE_TABLE, [], []),
        ("TRUNCATE `t`", DdlKind.TRUNCATE_TABLE, [], []),
        ("RENAME TABLE `a` TO `b`, `d2`.`c` TO `d3`.`c`", DdlKind.RENAME_TABLE, ["d1.a", "d2.c"], ["d1.b", "d3.c"]),
        ("ALTER TABLE `a` RENAME AS `d2`.`b`", DdlKind.RENAME_TABLE, ["d1.a"], ["d2.b"]),
        ("ALTER TABLE `a` RENAME `b`", DdlKind.RENAME_TABLE, ["d1.a"], ["d1.b"]),
        ("ALTER TABLE `a` RENAME COLUMN `x` TO `y`", DdlKind.ALTER_TABLE, [], []),
        ("ALTER TABLE `a` RENAME INDEX `x` TO `y`", DdlKind.ALTER_TABLE, [], []),
        ("CREATE UNIQUE INDEX `i` ON `t` (`c`)", DdlKind.CREATE_INDEX, [], []),
        ("DROP INDEX `i` ON `t`", DdlKind.DROP_INDEX, [], []),
        ("CREATE OR REPLACE ALGORITHM = UNDEFINED VIEW `v` AS SELECT 1", DdlKind.CREATE_VIEW, [], ["d1.v"]),
        ("DROP VIEW `d2`.`v`, `w`", DdlKind.DROP_VIEW, ["d2.v", "d1.w"], []),
        ("CREATE DATABASE `d` CHARACTER SET = utf8mb4", DdlKind.CREATE_DATABASE, [], []),
        ("DROP DATABASE IF EXISTS `d`", DdlKind.DROP_DATABASE, [], []),
        ("CREATE TABLE `odd ``name` (`a` INT)", DdlKind.CREATE_TABLE, [], ["d1.odd `name"]),
        ("CREATE TABLE `table` (`a` INT)", DdlKind.CREATE_TABLE, [], ["d1.table"]),
        ("/* a comment */ DROP TABLE `t`", DdlKind.DROP_TABLE, ["d1.t"], []),
        ("FLUSH TABLES", DdlKind.OTHER, [], []),
    ],
)
def test_kind_and_tables(sql: str, kind: DdlKind, removes: list[str], adds: list[str]) -> None:
    statement = read_statement(sql).placed("d1", in_d1)
    assert statement.kind is kind
    assert [str(name) for name in statement.removes()] == removes
    assert [str(name) for name in statement.adds()] == adds


def test_a_view_whose_text_names_an_index_is_a_view() -> None:
    statement = read_statement("CREATE VIEW `v` AS SELECT `index` FROM `t` JOIN `u` ON `t`.`a` = `u`.`a`")
    assert statement.kind is DdlKind.CREATE_VIEW
    assert statement.tables == (TableReference(None, "v"),)


def test_names_keep_their_database() -> None:
    assert read_statement("DROP TABLE `d9`.`t`").placed("d1", in_d1).removes() == (TableName("d9", "t"),)


def test_only_old_names_are_looked_for_elsewhere() -> None:
    def elsewhere(_: TableReference) -> str:
        return "d7"

    renamed = read_statement("ALTER TABLE `a` RENAME AS `b`").placed("d1", elsewhere)
    assert (renamed.removes(), renamed.adds()) == ((TableName("d7", "a"),), (TableName("d1", "b"),))
    created = read_statement("CREATE TABLE `a` LIKE `m`").placed("d1", elsewhere)
    assert (created.adds(), created.like) == ((TableName("d1", "a"),), TableReference("d7", "m"))


@pytest.mark.parametrize("sql", ["DROP TABLE", "CREATE TABLE `unclosed"])
def test_what_cannot_be_read_is_said(sql: str) -> None:
    with pytest.raises(InputError):
        read_statement(sql)

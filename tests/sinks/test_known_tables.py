"""Of which DDLs it is known what they change; what a target then knows: `tests/service/ddl/test_known_tables.py`."""

import pytest

from ordering.events import TableName
from sinks.ddl.parse.statement import changed_tables


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ("CREATE TABLE `t` (`id` INT PRIMARY KEY)", ["d.t"]),
        ("CREATE TABLE `t` LIKE `e`.`model`", ["d.t", "e.model"]),
        ("DROP TABLE `a`, `e`.`b`", ["d.a", "e.b"]),
        ("ALTER TABLE `t` ADD COLUMN `x` INT", ["d.t"]),
        ("CREATE INDEX `i` ON `t` (`x`)", ["d.t"]),
        ("DROP INDEX `i` ON `t`", ["d.t"]),
        ("TRUNCATE TABLE `e`.`t`", ["e.t"]),
    ],
)
def test_of_some_statements_it_is_known_which_tables_they_change(sql: str, names: list[str]) -> None:
    assert changed_tables(sql, "d") == {TableName(*name.split(".")) for name in names}


@pytest.mark.parametrize(
    "sql",
    [
        "RENAME TABLE `a` TO `b`",
        "ALTER TABLE `a` RENAME TO `b`",
        "ALTER TABLE `a` EXCHANGE PARTITION `p` WITH TABLE `b`",
        "DROP DATABASE `d`",
        "CREATE DATABASE `d`",
        "ALTER DATABASE `d` CHARACTER SET utf8mb4",
        "CREATE VIEW `v` AS SELECT 1",
        "RECOVER TABLE `t`",
    ],
)
def test_of_others_all_tables_are_read_again(sql: str) -> None:
    assert changed_tables(sql, "d") is None

"""Names of statements by the target's case: only names of tables and databases, never a keyword, a column or a text."""

import time

import pytest

from ordering.events import TableName
from sinks.ddl.name_resolution import respelled
from sinks.rows.schema import Catalog, TableSchema


def catalog(*names: str) -> Catalog:
    tables = [TableName(*name.split(".")) for name in names]
    return Catalog({name: TableSchema(name, (), (), (), ()) for name in tables})


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ("TRUNCATE TABLE `t`", "TRUNCATE TABLE `T`"),
        ("TRUNCATE TABLE `shop`.`t`", "TRUNCATE TABLE `Shop`.`T`"),
        ("TRUNCATE t", "TRUNCATE `T`"),
        ("ALTER TABLE `t` TRUNCATE PARTITION `p0`", "ALTER TABLE `T` TRUNCATE PARTITION `p0`"),
        (
            "ALTER TABLE `t` EXCHANGE PARTITION `p` WITH TABLE `u`",
            "ALTER TABLE `T` EXCHANGE PARTITION `p` WITH TABLE `U`",
        ),
        ("DROP TABLE IF EXISTS `t`, `u`", "DROP TABLE IF EXISTS `T`, `U`"),
        ("CREATE TABLE IF NOT EXISTS `x` LIKE `t`", "CREATE TABLE IF NOT EXISTS `x` LIKE `T`"),
        ("CREATE TABLE `x` (`a` VARCHAR(9), CHECK (`a` LIKE 't'))", None),
        ("CREATE TABLE `x` (`a` INT, `t` VARCHAR(9), CHECK (`a` LIKE `t`))", None),
        ("ALTER TABLE `x` ADD COLUMN IF NOT EXISTS `t` INT", None),
        ("ALTER TABLE `x` DROP COLUMN IF EXISTS `t`", None),
        ("CREATE VIEW `v` AS SELECT 1 FROM `x` WHERE EXISTS (SELECT 1) AND `s` LIKE 'u'", None),
        ("ALTER TABLE `x` COMMENT = 'the table t'", None),
    ],
)
def test_only_names_are_respelled(sql: str, found: str | None) -> None:
    there = catalog("Shop.T", "Shop.U", "Shop.Table", "Shop.Partition")
    assert respelled(sql, "Shop", there) == (sql if found is None else found)


def test_a_table_that_is_called_as_a_keyword_is_another_one() -> None:
    there = catalog("d.t", "d.table", "d.partition")
    for sql in ("TRUNCATE TABLE `t`", "TRUNCATE TABLE `d`.`t`", "ALTER TABLE `t` TRUNCATE PARTITION `p0`"):
        assert respelled(sql, "d", there) == sql


def test_a_table_of_many_partitions_is_respelled_in_linear_time() -> None:
    """For each word all words before it were copied: 8,192 partitions took 11 s."""

    def taken(count: int) -> int:
        parts = ", ".join(f"PARTITION `p{n}` VALUES LESS THAN ({n})" for n in range(count))
        began = time.thread_time_ns()
        respelled(f"CREATE TABLE `t` (`id` BIGINT) PARTITION BY RANGE (`id`) ({parts})", "d", catalog("d.t"))
        return time.thread_time_ns() - began

    short, long = (min(taken(count + more) for more in (1, 2, 3)) for count in (1_000, 6_000))
    assert long < 14 * short

"""Foreign keys and checks of TiDB's DDL, as servers of the MySQL family take them."""

from dataclasses import replace

import pytest

from sinks.mysql.ddl.translate import Server, adapted

MARIADB, MYSQL = (
    Server(is_mariadb=mariadb, null_timestamps=True, knows_collation=lambda _: True, knows_charset=lambda _: True)
    for mariadb in (True, False)
)


@pytest.mark.parametrize(("keys", "expected"), [
    (("t_ibfk_1",), "ALTER TABLE `t` DROP FOREIGN KEY `t_ibfk_1`, ADD COLUMN `x` INT"),
    (("named", "t_ibfk_7"), "ALTER TABLE `t` DROP FOREIGN KEY `t_ibfk_7`, ADD COLUMN `x` INT"),
    (("t_ibfk_1", "t_ibfk_2"), "ALTER TABLE `t` DROP FOREIGN KEY `fk_1`, ADD COLUMN `x` INT"),
    (("FK_1", "t_ibfk_2"), "ALTER TABLE `t` DROP FOREIGN KEY `fk_1`, ADD COLUMN `x` INT"),
    ((), "ALTER TABLE `t` ADD COLUMN `x` INT"),
])  # fmt: skip
@pytest.mark.parametrize("server", [MARIADB, MYSQL])
def test_a_foreign_key_that_tidb_named_is_the_one_that_the_server_named(
    server: Server, keys: tuple[str, ...], expected: str
) -> None:
    """Where several are, the server refuses a name that it does not know: none is taken for another."""
    sql = "ALTER TABLE `t` DROP FOREIGN KEY `fk_1`, ADD COLUMN `x` INT"
    assert adapted(sql, replace(server, foreign_keys=keys)).sql == expected


@pytest.mark.parametrize("server", [MARIADB, MYSQL])
@pytest.mark.parametrize(("sql", "expected"), [
    ("CREATE TABLE `t` (`id` INT AUTO_INCREMENT PRIMARY KEY,CHECK(`ID`>0) ENFORCED,`v` INT)",
     "CREATE TABLE `t` (`id` INT AUTO_INCREMENT PRIMARY KEY,`v` INT)"),
    ("CREATE TABLE `t` (CONSTRAINT `c` CHECK(`id`>0) ENFORCED,`id` INT AUTO_INCREMENT CHECK(`id`<9) NOT ENFORCED KEY)",
     "CREATE TABLE `t` (`id` INT AUTO_INCREMENT  KEY)"),
])  # fmt: skip
def test_an_automatic_column_has_no_check(server: Server, sql: str, expected: str) -> None:
    """Servers refuse the table; TiDB takes it, and ignores CHECKs by default."""
    assert adapted(sql, server).sql == expected

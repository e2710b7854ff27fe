"""TiDB's DDL as servers take it: what they know stays as it came, the rest becomes its nearest or is left out."""

from functools import partial

import pytest

from sinks.mysql.adapt import Server, adapted

MARIADB_KNOWS = {"utf8mb4_bin", "utf8mb4_general_ci", "utf8mb4_uca1400_nopad_ai_ci", "utf8mb4_nopad_bin", "ascii_bin"}
MARIADB = Server(
    is_mariadb=True,
    null_timestamps=True,
    knows_collation=MARIADB_KNOWS.__contains__,
    knows_charset=lambda name: name != "gb18030",
)
OLD_MARIADB = Server(
    is_mariadb=True,
    null_timestamps=False,
    knows_collation={"utf8mb4_unicode_520_nopad_ci", "utf8mb4_bin"}.__contains__,
    knows_charset=lambda _: True,
)
MYSQL = Server(is_mariadb=False, null_timestamps=True, knows_collation=lambda _: True, knows_charset=lambda _: True)
on_mariadb, on_old, on_mysql = (partial(adapted, server=server) for server in (MARIADB, OLD_MARIADB, MYSQL))

AS_IT_CAME = [
    "CREATE TABLE `t` (`id` INT PRIMARY KEY,`v` VARCHAR(9) COLLATE utf8mb4_bin,KEY `k`(`v`(3), `id` DESC))",
    "ALTER TABLE `d`.`t` ADD COLUMN `x` INT NOT NULL DEFAULT 5, DROP COLUMN `y`",
    "DROP TABLE `t`",
    "RENAME TABLE `a` TO `b`",
    "TRUNCATE TABLE `t`",
    "CREATE TABLE `t` (`id` INT,`g` INT GENERATED ALWAYS AS(`id` + (1)) VIRTUAL,PRIMARY KEY(`id`))",
    "ALTER TABLE `t` ADD COLUMN `y` YEAR DEFAULT 2024, ADD COLUMN `e` ENUM('a','2') DEFAULT _UTF8MB4'2' AFTER `id`",
    "ALTER TABLE `t` ADD COLUMN `b` BINARY(4) NOT NULL DEFAULT x'FF00', ALTER COLUMN `c` SET DEFAULT 5",
    "CREATE TABLE `t` (`id` INT PRIMARY KEY,`v` VARCHAR(30) DEFAULT _UTF8MB4'VECTOR CHARSET x COLLATE y, KEY ((a))')",
    "CREATE TABLE `u` LIKE `t`",
]


@pytest.mark.parametrize("sql", AS_IT_CAME)
def test_what_a_server_knows_stays(sql: str) -> None:
    for adapt in (on_mariadb, on_mysql):
        assert (adapt(sql).sql, adapt(sql).notes, adapt(sql).logged) == (sql, [], sql)


CHANGED = {
    "CREATE TABLE `t` (`id` INT,`g` INT GENERATED ALWAYS AS(`id` DIV 3) STORED NOT NULL,PRIMARY KEY(`id`))": (
        "CREATE TABLE `t` (`id` INT,`g` INT  NOT NULL,PRIMARY KEY(`id`))"
    ),
    "CREATE TABLE `t` (`id` INT,`g` INT GENERATED ALWAYS AS(`id` + 1) VIRTUAL NOT NULL COMMENT 'c')": (
        "CREATE TABLE `t` (`id` INT,`g` INT GENERATED ALWAYS AS(`id` + 1) VIRTUAL  COMMENT 'c')"
    ),
    "ALTER TABLE `t` ADD COLUMN `j` JSON NOT NULL FIRST, ADD COLUMN `k` JSON NOT NULL COMMENT 'c' AFTER `id`": (
        "ALTER TABLE `t` ADD COLUMN `j` JSON NOT NULL DEFAULT 'null' FIRST,"
        " ADD COLUMN `k` JSON NOT NULL COMMENT 'c' DEFAULT 'null' AFTER `id`"
    ),
    "ALTER TABLE `t` ADD COLUMN (`j` JSON NOT NULL, `v` VARCHAR(9) CHARACTER SET UTF8MB4)": (
        "ALTER TABLE `t` ADD COLUMN (`j` JSON NOT NULL DEFAULT 'null',"
        " `v` VARCHAR(9) CHARACTER SET UTF8MB4 COLLATE utf8mb4_bin)"
    ),
    "ALTER TABLE `t` ADD COLUMN `e` ENUM('a','b') DEFAULT 2, MODIFY COLUMN `i` INT DEFAULT x'41' COMMENT 'i'": (
        "ALTER TABLE `t` ADD COLUMN `e` ENUM('a','b') DEFAULT 'b', MODIFY COLUMN `i` INT DEFAULT 65 COMMENT 'i'"
    ),
    "ALTER TABLE `t` CHANGE COLUMN `DEFAULT` `d` DATETIME(3) DEFAULT _UTF8MB4'20240102030405.6789' AFTER `id`": (
        "ALTER TABLE `t` CHANGE COLUMN `DEFAULT` `d` DATETIME(3) DEFAULT '2024-01-02 03:04:05.679' AFTER `id`"
    ),
    "CREATE TABLE `t` (`s` SET('x','y','it''s') DEFAULT 5,`b` BIT(16) DEFAULT _UTF8MB4'ab',`y` YEAR DEFAULT '24')": (
        "CREATE TABLE `t` (`s` SET('x','y','it''s') DEFAULT 'x,it''s',`b` BIT(16) DEFAULT b'110000101100010',"
        "`y` YEAR DEFAULT 2024)"
    ),
    "CREATE TABLE `t` (`id` INT DEFAULT NEXTVAL(`d`.`s`) COMMENT 'c')": "CREATE TABLE `t` (`id` INT  COMMENT 'c')",
    "CREATE DATABASE `d` CHARACTER SET = utf8mb4": "CREATE DATABASE `d` CHARACTER SET = utf8mb4 COLLATE utf8mb4_bin",
    "CREATE DATABASE `d` COLLATE = utf8mb4_0900_ai_ci": "CREATE DATABASE `d` COLLATE = utf8mb4_uca1400_nopad_ai_ci",
    "CREATE TABLE `t` (`a` CHAR(1) CHARACTER SET ASCII) DEFAULT CHARSET=UTF8MB4": (
        "CREATE TABLE `t` (`a` CHAR(1) CHARACTER SET ASCII COLLATE ascii_bin) DEFAULT CHARSET=UTF8MB4"
        " COLLATE utf8mb4_bin"
    ),
    "ALTER TABLE `t` CONVERT TO CHARACTER SET UTF8MB4 COLLATE utf8mb4_0900_bin": (
        "ALTER TABLE `t` CONVERT TO CHARACTER SET UTF8MB4 COLLATE utf8mb4_nopad_bin"
    ),
    "CREATE TABLE `t` (`a` TEXT CHARACTER SET gb18030)": "CREATE TABLE `t` (`a` TEXT CHARACTER SET utf8mb4"
    " COLLATE utf8mb4_general_ci)",
    "CREATE TABLE `t` (`id` INT,`v` VECTOR(3) NULL,`w` VECTOR)": (
        "CREATE TABLE `t` (`id` INT,`v` LONGTEXT NULL,`w` LONGTEXT)"
    ),
    "CREATE TABLE `t` (`id` INT,INDEX `e`((`id`+1)))": "CREATE TABLE `t` (`id` INT)",
    "CREATE TABLE `t` (`id` INT,UNIQUE `e`(`id`, (`id`*2)),KEY `k`(`id`))": "CREATE TABLE `t` (`id` INT,KEY `k`(`id`))",
    "ALTER TABLE `t` ADD INDEX `e`((`a`)), ADD COLUMN `b` INT": "ALTER TABLE `t` ADD COLUMN `b` INT",
    "ALTER TABLE `t` ADD COLUMN `b` INT, ADD UNIQUE `e`((`a`))": "ALTER TABLE `t` ADD COLUMN `b` INT",
    "ALTER TABLE `t` ADD INDEX `e`((`a`))": "",
    "CREATE UNIQUE INDEX `e` ON `t` ((`a` + 1))": "",
    "DROP INDEX `e` ON `t`": "DROP INDEX IF EXISTS `e` ON `t`",
    "ALTER TABLE `t` DROP INDEX `e`": "ALTER TABLE `t` DROP INDEX IF EXISTS `e`",
    "CREATE TABLE `t` (`a` INT,CONSTRAINT `c` CHECK(`a`>0) ENFORCED,CHECK(`a`<9) NOT ENFORCED)": (
        "CREATE TABLE `t` (`a` INT,CONSTRAINT `c` CHECK(`a`>0) ,CHECK(`a`<9) )"
    ),
    "CREATE TABLE `t` (`a` INT,KEY `k`(`a`) INVISIBLE)": "CREATE TABLE `t` (`a` INT,KEY `k`(`a`) IGNORED)",
    r"CREATE TABLE `t` (`e` ENUM('back\slash\','x'))": r"CREATE TABLE `t` (`e` ENUM('back\\slash\\','x'))",
}


@pytest.mark.parametrize("sql", CHANGED)
def test_what_mariadb_lacks(sql: str) -> None:
    assert on_mariadb(sql).sql == CHANGED[sql]


def test_what_is_changed_is_noted_once_each() -> None:
    result = on_mariadb("CREATE TABLE `t` (`a` TEXT COLLATE utf8mb4_0900_ai_ci,`v` VECTOR,KEY `e`((`a`)))")
    assert len(result.notes) == 3
    assert all(note in result.logged for note in result.notes)
    assert result.logged.startswith(result.sql)


def test_an_older_server_gets_the_next_nearest() -> None:
    sql = "CREATE TABLE `t` (`a` TEXT COLLATE utf8mb4_0900_ai_ci,`ts` TIMESTAMP(3),`tn` TIMESTAMP NOT NULL)"
    assert on_old(sql).sql == (
        "CREATE TABLE `t` (`a` TEXT COLLATE utf8mb4_unicode_520_nopad_ci,`ts` TIMESTAMP(3) NULL,"
        "`tn` TIMESTAMP NOT NULL)"
    )


def test_mysql_has_indexes_over_expressions() -> None:
    sql = "CREATE TABLE `t` (`id` INT,INDEX `e`((`id`+1)))"
    assert on_mysql(sql).sql == sql


def test_mysql_does_not_enforce_what_tidb_does_not() -> None:
    sql = "CREATE TABLE `t` (`a` INT,CHECK(`a`>0) ENFORCED,CONSTRAINT `c` CHECK(`a`<9) NOT ENFORCED)"
    assert on_mysql(sql).sql == sql.replace("`a`>0) ", "`a`>0) NOT ")


def test_a_json_column_that_is_not_null_shows_what_it_shows_upstream() -> None:
    sql = "ALTER TABLE `t` ADD COLUMN `j` JSON NOT NULL, ADD COLUMN `k` JSON, ADD COLUMN `l` JSON NOT NULL"
    assert on_mariadb(sql).sql == (
        "ALTER TABLE `t` ADD COLUMN `j` JSON NOT NULL DEFAULT 'null', ADD COLUMN `k` JSON,"
        " ADD COLUMN `l` JSON NOT NULL DEFAULT 'null'"
    )
    assert on_mysql(sql).sql == sql


def test_an_exchange_compares_no_rows_where_that_can_be_said() -> None:
    sql = "ALTER TABLE `d`.`t` EXCHANGE PARTITION `p` WITH TABLE `d`.`u`"
    assert on_mysql(sql).sql == f"{sql} WITHOUT VALIDATION"
    assert on_mariadb(sql).sql == sql


def test_a_view_runs_under_the_user_that_makes_it() -> None:
    sql = "CREATE ALGORITHM = UNDEFINED DEFINER = `r`@`%` SQL SECURITY DEFINER VIEW `v` AS SELECT 1"
    assert on_mysql(sql).sql == sql.replace("`r`@`%`", "CURRENT_USER")

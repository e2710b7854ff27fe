"""TiCDC's allow list (TiCDC documentation, "Changefeed DDL Replication"), row by row."""

import pytest

from sinks.ddl.ticdc_allow_list import Event, clauses_of, replicates

ALLOW_LIST = {
    "CREATE DATABASE `d`": "YYY",
    "DROP DATABASE `d`": "YYY",
    "ALTER DATABASE `d` CHARACTER SET = utf8mb4": "YYY",
    "CREATE INDEX `i` ON `t` (`a`)": "YYY",
    "ALTER TABLE `t` ADD INDEX `i`(`a`)": "YYY",
    "DROP INDEX `i` ON `t`": "YNY",
    "ALTER TABLE `t` ADD PRIMARY KEY(`a`) /*T![clustered_index] NONCLUSTERED */": "YYY",
    "ALTER TABLE `t` DROP PRIMARY KEY": "YNY",
    "CREATE TABLE `t` (`a` INT)": "YNY",
    "DROP TABLE `d`.`t`": "YNY",
    "ALTER TABLE `t` ADD COLUMN `b` INT": "YNY",
    "ALTER TABLE `t` DROP COLUMN `b`": "YNY",
    "TRUNCATE TABLE `t`": "YNY",
    "ALTER TABLE `t` MODIFY COLUMN `a` BIGINT": "YNY",
    "RENAME TABLE `t` TO `u`": "YNY",
    "ALTER TABLE `t` ALTER COLUMN `a` SET DEFAULT 5": "YNY",
    "ALTER TABLE `t` COMMENT = 'x, y'": "YNY",
    "ALTER TABLE `t` RENAME INDEX `i` TO `j`": "YNY",
    "ALTER TABLE `t` ADD PARTITION (PARTITION `p` VALUES LESS THAN (5), PARTITION `q` VALUES LESS THAN (9))": "YNY",
    "ALTER TABLE `t` DROP PARTITION `p`": "YNY",
    "ALTER TABLE `t` TRUNCATE PARTITION `p`,`q`": "YNY",
    "CREATE ALGORITHM = UNDEFINED DEFINER = `r`@`%` SQL SECURITY DEFINER VIEW `v` AS SELECT 1": "YNY",
    "DROP VIEW `d`.`v`": "YNY",
    "ALTER TABLE `t` CHARACTER SET UTF8MB4 COLLATE UTF8MB4_BIN": "YNY",
    "RECOVER TABLE `t`": "YNY",
    "ALTER TABLE `t` AUTO_INCREMENT = 100": "YNY",
    "ALTER TABLE `t` ALTER INDEX `i` INVISIBLE": "YNY",
    "ALTER TABLE `t` EXCHANGE PARTITION `p` WITH TABLE `u` WITHOUT VALIDATION": "YNY",
    "ALTER TABLE `t` REORGANIZE PARTITION `p`,`q` INTO (PARTITION `r` VALUES LESS THAN (9))": "YNY",
    "ALTER TABLE `t` /*T![ttl] TTL=`a` + INTERVAL 1 DAY */ /*T![ttl] TTL_ENABLE='OFF' */": "YNY",
    "ALTER TABLE `t` /*T![ttl] REMOVE TTL */": "YNY",
}


@pytest.mark.parametrize(("sql", "expected"), ALLOW_LIST.items(), ids=list(ALLOW_LIST))
def test_each_row_of_the_allow_list(sql: str, expected: str) -> None:
    (event,) = set(clauses_of(sql).events)
    assert clauses_of(sql).unlisted == ()
    cases = [(True, False), (False, False), (False, True)]
    found = "".join("Y" if replicates(event, valid_index=index, force=force) else "N" for index, force in cases)
    assert found == expected
    assert replicates(event, valid_index=True, force=True)


@pytest.mark.parametrize(
    ("sql", "events"),
    [
        ("ALTER TABLE `t` ADD COLUMN (`a` DECIMAL(10,2), `b` INT)", [Event.ADD_COLUMN] * 2),
        (
            "ALTER TABLE `t` ADD COLUMN (`a` INT, UNIQUE `u`(`b`), CONSTRAINT `c` CHECK(`a`>1) ENFORCED)",
            [Event.ADD_COLUMN, Event.CREATE_INDEX],
        ),
        ("ALTER TABLE `t` ADD `a` INT FIRST, ADD COLUMN `b` ENUM('x,y','z')", [Event.ADD_COLUMN] * 2),
        ("ALTER TABLE `t` ADD UNIQUE `u`(`a`,`b`)", [Event.CREATE_INDEX]),
        ("ALTER TABLE `t` ADD CONSTRAINT `u` UNIQUE (`a`)", [Event.CREATE_INDEX]),
        ("ALTER TABLE `t` ADD CONSTRAINT `p` PRIMARY KEY (`a`)", [Event.ADD_PRIMARY_KEY]),
        ("ALTER TABLE `t` ADD CONSTRAINT UNIQUE (`a`)", [Event.CREATE_INDEX]),
        ("ALTER TABLE `d`.`t` DROP `a`, DROP KEY `i`", [Event.DROP_COLUMN, Event.DROP_INDEX]),
        ("ALTER TABLE `t` CHANGE `a` `b` INT", [Event.MODIFY_COLUMN]),
        ("ALTER TABLE `t` RENAME COLUMN `a` TO `b`", [Event.MODIFY_COLUMN]),
        ("ALTER TABLE `t` RENAME AS `d`.`u`", [Event.RENAME_TABLE]),
        ("ALTER TABLE `t` ALTER `a` DROP DEFAULT", [Event.SET_DEFAULT]),
        ("ALTER TABLE `t` CONVERT TO CHARACTER SET utf8mb4", [Event.TABLE_CHARSET]),
        ("ALTER TABLE `t` COMMENT = 'x' DEFAULT CHARSET = utf8", [Event.TABLE_COMMENT, Event.TABLE_CHARSET]),
        ("ALTER TABLE `t` COALESCE PARTITION 2", [Event.REORGANIZE_PARTITION]),
        ("ALTER TABLE `t` PARTITION BY RANGE (`a`) (PARTITION p VALUES LESS THAN (1))", [Event.PARTITION_TABLE]),
        ("ALTER TABLE `t` REMOVE PARTITIONING", [Event.REMOVE_PARTITIONING]),
        ("ALTER TABLE `t` ADD PARTITION PARTITIONS 4", [Event.ADD_PARTITION]),
        ("ALTER TABLE `t` MODIFY COLUMN `a` INT COMMENT 'drop column', ADD INDEX `i`(`a`), ALGORITHM = INPLACE",
         [Event.MODIFY_COLUMN, Event.CREATE_INDEX]),
        ("ALTER TABLE `t` ADD COLUMN `comment` INT", [Event.ADD_COLUMN]),
        ("ALTER TABLE `t` ADD COLUMN `a` INT COMMENT '/*T![ttl] REMOVE TTL */'", [Event.ADD_COLUMN]),
        ("ALTER TABLE `t` ADD CONSTRAINT `f` FOREIGN KEY (`a`) REFERENCES `u`(`b`)", [Event.ADD_FOREIGN_KEY]),
        ("ALTER TABLE `t` ADD FOREIGN KEY (`a`,`c`) REFERENCES `u`(`b`,`d`)", [Event.ADD_FOREIGN_KEY]),
        ("ALTER TABLE `t` DROP FOREIGN KEY `f`", [Event.DROP_FOREIGN_KEY]),
        ("CREATE UNIQUE INDEX `i` ON `t` (`a`)", [Event.CREATE_INDEX]),
        ("CREATE OR REPLACE VIEW `v` AS SELECT 1", [Event.CREATE_VIEW]),
        ("CREATE TABLE `t` LIKE `u`", [Event.CREATE_TABLE]),
        ("FLASHBACK TABLE `t` TO `u`", [Event.RECOVER_TABLE]),
        ("TRUNCATE `t`", [Event.TRUNCATE_TABLE]),
    ],
)  # fmt: skip
def test_kinds_of_statements(sql: str, events: list[Event]) -> None:
    assert clauses_of(sql).events == tuple(events)
    assert clauses_of(sql).unlisted == ()


@pytest.mark.parametrize(
    "sql",
    [
        "ALTER TABLE `t` SET TIFLASH REPLICA 1",
        "ALTER TABLE `t` CACHE",
        "ALTER TABLE `t` ADD CONSTRAINT `c` CHECK (`a` > 1)",
        "ALTER TABLE `t` /*T![auto_rand_base] AUTO_RANDOM_BASE = 5 */",
        "ALTER TABLE `t` SHARD_ROW_ID_BITS = 4",
        "ALTER TABLE `t` /*T![placement] PLACEMENT POLICY=`p` */",
        "ALTER DATABASE `d` /*T![placement] PLACEMENT POLICY=`p` */",
        "CREATE SEQUENCE `s`",
        "DROP SEQUENCE `s`",
        "CREATE PLACEMENT POLICY `p` FOLLOWERS=2",
        "FLUSH TABLES",
        "ALTER USER 'a'@'b' IDENTIFIED BY 'c'",
    ],
)
def test_anything_else_is_on_no_list_and_named(sql: str) -> None:
    found = clauses_of(sql)
    assert found.events == ()
    assert found.unlisted


def test_what_alter_table_means_besides() -> None:
    assert Event.CREATE_INDEX.is_alter
    assert Event.RENAME_TABLE.is_alter
    assert not Event.TRUNCATE_TABLE.is_alter

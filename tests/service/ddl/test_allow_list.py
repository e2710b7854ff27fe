"""Each row of TiCDC's list of replicated DDLs, executed on targets: with a valid index, without, with force-replicate.

The statements go through the whole way of a DDL, all in one run a target. What each is to do stands in the DDL log.
"""

from contextlib import closing

import pytest

from consumer.demo.fake_ticdc.changefeed import Message
from consumer.wiring import target_of
from tests.service.ddl.test_ddl import TARGETS, made
from tests.service.local import LocalFeed
from tests.service.messages import at, ddl, watermarks

__all__ = ["made"]
pytestmark = pytest.mark.service

VALID, NONE, FORCED = "v", "n", "f"
KEYS = {VALID: ", PRIMARY KEY (`id`), UNIQUE KEY `uk` (`id`)", NONE: "", FORCED: ""}
BODY = "(`id` INT NOT NULL, `a` INT NOT NULL, `b` INT, `i2` INT, KEY `i` (`a`), KEY `j` (`b`)"
RANGE = " PARTITION BY RANGE (`id`) (PARTITION `p` VALUES LESS THAN (5), PARTITION `q` VALUES LESS THAN (9))"
NEW = "(`id` INT NOT NULL, `a` INT{})"
LIST: dict[str, str] = {
    "CREATE INDEX `n` ON {t} (`b`)": "YYY",
    "ALTER TABLE {t} ADD INDEX `n`(`b`)": "YYY",
    "DROP INDEX `i` ON {t}": "YNY",
    "ALTER TABLE {t} ADD PRIMARY KEY(`id`) /*T![clustered_index] NONCLUSTERED */": "YYY",
    "ALTER TABLE {t} DROP PRIMARY KEY": "YNY",
    "CREATE TABLE {t} {new}": "YNY",
    "DROP TABLE `d`.{t}": "YNY",
    "ALTER TABLE {t} ADD COLUMN `c` INT": "YNY",
    "ALTER TABLE {t} DROP COLUMN `i2`": "YNY",
    "TRUNCATE TABLE {t}": "YNY",
    "ALTER TABLE {t} MODIFY COLUMN `a` BIGINT": "YNY",
    "RENAME TABLE {t} TO {u}": "YNY",
    "ALTER TABLE {t} ALTER COLUMN `b` SET DEFAULT 5": "YNY",
    "ALTER TABLE {t} COMMENT = 'x, y'": "YNY",
    "ALTER TABLE {t} RENAME INDEX `i` TO `k`": "YNY",
    "ALTER TABLE {t}{p} ADD PARTITION (PARTITION `r` VALUES LESS THAN (12))": "YNY",
    "ALTER TABLE {t}{p} DROP PARTITION `p`": "YNY",
    "ALTER TABLE {t}{p} TRUNCATE PARTITION `p`,`q`": "YNY",
    "ALTER TABLE {t} CHARACTER SET UTF8MB4 COLLATE UTF8MB4_BIN": "YNY",
    "ALTER TABLE {t} AUTO_INCREMENT = 100": "YNY",
    "ALTER TABLE {t} ALTER INDEX `i` INVISIBLE": "YNY",
    "ALTER TABLE {t}{p} EXCHANGE PARTITION `p` WITH TABLE `d`.`plain_{c}`": "YNY",
    "ALTER TABLE {t}{p} REORGANIZE PARTITION `p`,`q` INTO (PARTITION `r` VALUES LESS THAN (9))": "YNY",
    "ALTER TABLE {t} /*T![ttl] TTL=`a` + INTERVAL 1 DAY */ /*T![ttl] TTL_ENABLE='OFF' */": "YNY",
    "ALTER TABLE {t} /*T![ttl] REMOVE TTL */": "YNY",
}
"""All but those about databases and views, which have no index, and RECOVER TABLE, which only TiDB can do."""
EXECUTED = {"Y": "done", "N": "ignored"}


def case(number: int, sql: str, condition: str) -> tuple[list[str], str]:
    """What has to be there, and the statement."""
    name = f"{condition}{number}"
    table, key = f"`{name}`", KEYS[condition]
    if "PRIMARY KEY" in sql and condition == VALID:
        key = ", UNIQUE KEY `uk` (`id`)" if "ADD PRIMARY" in sql else key
    body = f"CREATE TABLE {table} {BODY}{key})"
    setup = [] if sql.startswith("CREATE TABLE") else [body + (RANGE if "{p}" in sql else "")]
    if "DROP PRIMARY KEY" in sql and condition != VALID:
        setup = [] if condition == FORCED else setup
    new = NEW.format(", PRIMARY KEY (`id`)" if condition == VALID else "")
    filled = sql.replace("{t}", table).replace("{u}", f"`{name}_new`").replace("{p}", "").replace("{c}", condition)
    return setup, filled.replace("{new}", new)


def conditions(expected: str) -> dict[str, str]:
    return dict(zip((VALID, NONE, FORCED), expected, strict=True))


def statements(wanted: tuple[str, ...]) -> tuple[list[str], dict[str, str]]:
    """What has to be there for these conditions, and the statements with what is to become of each."""
    setup = [f"CREATE TABLE `plain_{c}` {BODY}{KEYS[c]})" for c in wanted]
    told = {}
    for number, (sql, expected) in enumerate(LIST.items()):
        for condition in wanted:
            if "DROP PRIMARY KEY" in sql and condition == FORCED:
                continue  # there is none to drop
            before, statement = case(number, sql, condition)
            setup += before
            told[statement] = EXECUTED[conditions(expected)[condition]]
    return setup, told


def sent(feed: LocalFeed, sqls: list[str], start: int) -> int:
    messages: list[Message] = []
    for number, sql in enumerate(sqls, start):
        words = sql.replace("`d`.", "").split("`")
        name = words[3] if sql.startswith(("DROP INDEX", "CREATE INDEX", "RENAME")) else words[1]
        if " VIEW " in sql:
            name = sql.replace("`d`.", "").partition(" VIEW `")[2].partition("`")[0]
        messages.append(ddl(f"d.{name}", number, sql))
    end = start + len(sqls)
    feed.send([*messages, *watermarks(end)])
    return end + 1


def log_of(feed: LocalFeed) -> dict[str, str]:
    with closing(target_of(feed.config)) as target:
        target.connect()
        return {
            line.sql: line.state
            for line in target.ddl_log.latest(feed.config.changefeed, 1_000)
            if line.commit_ts > at(1)
        }


@pytest.mark.parametrize("made", TARGETS, indirect=True)
def test_each_row_is_executed_or_ignored_as_ticdc_does(made: LocalFeed) -> None:
    feed = made
    setup, told = statements((VALID, NONE))
    forced, told_forced = statements((FORCED,))
    feed.send([ddl("d.", 1, "CREATE DATABASE `d`"), *watermarks(1)])
    feed.with_(filter={"force-replicate": True})
    start = sent(feed, [*setup, *forced], 2)
    feed.apply()
    start = sent(feed, list(told_forced), start)
    feed.apply()
    assert {sql: log_of(feed)[sql] for sql in told_forced} == told_forced
    feed.with_(filter={"force-replicate": False})
    sent(feed, list(told), start)
    feed.apply()
    assert {sql: log_of(feed)[sql] for sql in told} == told


@pytest.mark.parametrize("made", TARGETS, indirect=True)
def test_databases_and_views(made: LocalFeed) -> None:
    feed = made
    feed.send([ddl("d.", 1, "CREATE DATABASE `d`"), *watermarks(1)])
    sqls = [
        "ALTER DATABASE `d` CHARACTER SET = utf8mb4",
        "CREATE TABLE `t` (`id` INT PRIMARY KEY)",
        "CREATE ALGORITHM = UNDEFINED DEFINER = `r`@`%` SQL SECURITY DEFINER VIEW `v` AS SELECT `id` FROM `t`",
        "DROP VIEW `d`.`v`",
        "DROP DATABASE `d`",
    ]
    sent(feed, sqls, 2)
    feed.apply()
    assert {sql: log_of(feed)[sql] for sql in sqls} == dict.fromkeys(sqls, "done")
    assert "d" not in feed.cells.databases()  # type: ignore[attr-defined]

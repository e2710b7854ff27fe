"""A history that holds every kind of DDL, rows before and after each; and a target's whole content, schema included."""

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field

from consumer.demo.fake_ticdc.changefeed import Message
from tests.service.cells import MariaDbCells, SqliteCells
from tests.service.messages import ddl, insert, keyed, watermarks
from tests.service.postgres_cells import PostgresCells

FAMILY = {"mariadb", "tidb"}
EVERY = {"sqlite", "postgres", *FAMILY}
Cells = SqliteCells | MariaDbCells | PostgresCells
Content = dict[str, tuple[str, list[str]]]
"""Table -> its definition and its rows."""


@dataclass
class History:
    """What upstream did, as messages; `kind`: of target."""

    kind: str
    number: int = 0
    messages: list[Message] = field(default_factory=list)

    def ddl(self, table: str, sql: str, on: set[str] = EVERY, *, together: bool = False) -> None:
        """A DDL that kinds of targets can execute; `together`: at the commitTs of the one before."""
        if self.kind in on:
            self.number += not together
            self.messages.append(ddl(table, self.number, sql, kind="QUERY"))

    def row(self, table: str, on: set[str] = EVERY, **values: object) -> None:
        """An INSERT; the key is `id`."""
        if self.kind in on:
            self.number += 1
            self.messages.append(keyed(insert(table, self.number, self.number % 3, **values), "id"))

    def ended(self) -> list[Message]:
        """All of it, resolved."""
        return [*self.messages, *watermarks(self.number + 1)]


def every_kind(kind: str) -> History:
    """Every kind of the allow list that this kind of target executes."""
    history = History(kind)
    _databases_and_tables(history)
    _columns(history)
    _indexes(history)
    _renames(history)
    partitions_and_recovery(history)
    _views_and_the_rest(history)
    return history


def _databases_and_tables(h: History) -> None:
    h.ddl("d.", "CREATE DATABASE `d`")
    h.ddl("e.", "CREATE DATABASE `e`")
    h.ddl("f.", "CREATE DATABASE `f` CHARACTER SET = utf8mb4 COLLATE = utf8mb4_general_ci", FAMILY)
    h.ddl("f.", "ALTER DATABASE `f` CHARACTER SET = utf8mb4 COLLATE = utf8mb4_unicode_ci", FAMILY)
    h.ddl("f.own", "CREATE TABLE `own` (`id` INT PRIMARY KEY,`s` VARCHAR(9) DEFAULT 'a)') COMMENT='b('", FAMILY)
    h.ddl("f.own", "ALTER TABLE `own` ADD COLUMN `t` VARCHAR(9)", FAMILY)
    h.ddl("d.t", "CREATE TABLE `t` (`id` INT PRIMARY KEY,`v` INT,`s` VARCHAR(10))")
    h.row("d.t", id=1, v=1, s="one")
    h.ddl("d.l", "CREATE TABLE `l` LIKE `t`")
    h.row("d.l", id=1, v=10, s="before")
    h.ddl("d.l", "TRUNCATE TABLE `l`")
    h.row("d.l", id=2, v=20, s="after")
    h.ddl("d.l", "DROP TABLE `l`")
    h.ddl("d.l", "CREATE TABLE `l` (`id` INT PRIMARY KEY,`v` INT)")
    h.row("d.l", id=3, v=30)


def _columns(h: History) -> None:
    h.ddl("d.t", "ALTER TABLE `t` ADD COLUMN `w` INT DEFAULT 7")
    h.row("d.t", id=2, v=2, s="two", w=8)
    h.ddl("d.t", "ALTER TABLE `t` ADD COLUMN `a` INT, ADD COLUMN `b` VARCHAR(5) DEFAULT 'x'")
    h.ddl("d.t", "ALTER TABLE `t` MODIFY COLUMN `v` BIGINT", FAMILY | {"postgres"})
    h.ddl("d.t", "ALTER TABLE `t` CHANGE COLUMN `s` `name` VARCHAR(20)", FAMILY | {"postgres"})
    h.ddl("d.t", "ALTER TABLE `t` RENAME COLUMN `name` TO `s`", FAMILY | {"postgres"})
    h.ddl("d.t", "ALTER TABLE `t` RENAME COLUMN `b` TO `c`")
    h.ddl("d.t", "ALTER TABLE `t` ALTER COLUMN `w` SET DEFAULT 9")
    h.ddl("d.t", "ALTER TABLE `t` ALTER COLUMN `w` DROP DEFAULT")
    h.ddl("d.t", "ALTER TABLE `t` DROP COLUMN `a`")
    h.row("d.t", id=3, v=3, s="three", w=8, c="y")
    # one column moved out of the other's way: the definitions before and after share all their lines
    h.ddl("d.t", "ALTER TABLE `t` MODIFY COLUMN `c` VARCHAR(5) DEFAULT 'x' AFTER `id`", FAMILY)


def _indexes(h: History) -> None:
    h.ddl("d.t", "ALTER TABLE `t` ADD INDEX `i`(`v`)")
    h.ddl("d.t", "CREATE UNIQUE INDEX `u` ON `t` (`s`)")
    h.row("d.t", id=4, v=4, s="four", w=8, c="y")
    h.ddl("d.t", "ALTER TABLE `t` RENAME INDEX `i` TO `j`", FAMILY | {"postgres"})
    h.ddl("d.t", "ALTER TABLE `t` ALTER INDEX `j` INVISIBLE", FAMILY)
    h.ddl("d.t", "DROP INDEX `j` ON `t`")
    h.ddl("d.t", "ALTER TABLE `t` DROP INDEX `u`", FAMILY | {"postgres"})
    h.ddl("d.k", "CREATE TABLE `k` (`id` INT NOT NULL,`v` INT,UNIQUE KEY `i`(`id`))")
    h.row("d.k", id=1, v=1)
    h.ddl("d.k", "ALTER TABLE `k` ADD PRIMARY KEY (`id`) /*T![clustered_index] NONCLUSTERED */", FAMILY | {"postgres"})
    h.row("d.k", id=2, v=1)
    h.ddl("d.k", "ALTER TABLE `k` DROP PRIMARY KEY", FAMILY | {"postgres"})
    h.row("d.k", id=3, v=1)


def _renames(h: History) -> None:
    for name in "ab":
        h.ddl(f"d.{name}", f"CREATE TABLE `{name}` (`id` INT PRIMARY KEY,`v` INT)")
        h.row(f"d.{name}", id=1, v=ord(name))
    h.ddl("d.z", "RENAME TABLE `d`.`a` TO `d`.`z`")
    h.ddl("d.a", "RENAME TABLE `d`.`b` TO `d`.`a`", together=True)
    h.ddl("d.b", "RENAME TABLE `d`.`z` TO `d`.`b`", together=True)  # a swap of two tables that look alike
    h.row("d.a", id=2, v=2)
    h.ddl("d.c", "RENAME TABLE `a` TO `c`")
    h.ddl("d.a", "ALTER TABLE `b` RENAME TO `a`")
    h.ddl("e.c", "RENAME TABLE `d`.`c` TO `e`.`c`", EVERY - {"sqlite"})
    h.row("d.a", id=3, v=3)
    h.ddl("d.x", "RENAME TABLE `d`.`a` TO `d`.`x`, `d`.`l` TO `d`.`a`", FAMILY)
    h.row("d.a", FAMILY, id=4, v=4)


def partitions_and_recovery(h: History) -> None:
    """What moves rows without events of rows, and what brings a table back."""
    h.ddl("d.g", "CREATE TABLE `g` (`id` INT PRIMARY KEY)", {"tidb"})
    h.row("d.g", {"tidb"}, id=1)
    h.ddl("d.g", "DROP TABLE `g`", {"tidb"})
    h.ddl("d.g", "RECOVER TABLE `g`", {"tidb"})
    h.row("d.g", {"tidb"}, id=2)
    ranges = "PARTITION `p0` VALUES LESS THAN (10),PARTITION `p1` VALUES LESS THAN (20)"
    h.ddl("d.p", f"CREATE TABLE `p` (`id` INT PRIMARY KEY,`v` INT) PARTITION BY RANGE (`id`) ({ranges})", FAMILY)
    h.ddl("d.n", "CREATE TABLE `n` (`id` INT PRIMARY KEY,`v` INT)", FAMILY)
    for number in (1, 11):
        h.row("d.p", FAMILY, id=number, v=1)
    for number in (2, 3):
        h.row("d.n", FAMILY, id=number, v=2)
    h.ddl("d.p", "ALTER TABLE `p` EXCHANGE PARTITION `p0` WITH TABLE `n`", FAMILY)
    h.row("d.n", FAMILY, id=4, v=2)
    h.row("d.p", FAMILY, id=5, v=2)
    h.ddl("d.p", "ALTER TABLE `p` EXCHANGE PARTITION `p0` WITH TABLE `n`", FAMILY)
    h.ddl("d.p", "ALTER TABLE `p` ADD PARTITION (PARTITION `p2` VALUES LESS THAN (30))", FAMILY)
    h.row("d.p", FAMILY, id=21, v=1)
    h.ddl("d.p", "ALTER TABLE `p` TRUNCATE PARTITION `p2`", FAMILY)
    h.row("d.p", FAMILY, id=22, v=1)
    h.ddl("d.p", "ALTER TABLE `p` DROP PARTITION `p2`", FAMILY)
    h.ddl("d.p", "ALTER TABLE `p` ADD PARTITION (PARTITION `p2` VALUES LESS THAN (30))", FAMILY)
    h.row("d.p", FAMILY, id=23, v=1)
    parts = "PARTITION `p1` VALUES LESS THAN (15),PARTITION `p3` VALUES LESS THAN (20)"
    h.ddl("d.p", f"ALTER TABLE `p` REORGANIZE PARTITION `p1` INTO ({parts})", FAMILY)
    h.row("d.p", FAMILY, id=16, v=1)


def _views_and_the_rest(h: History) -> None:
    h.ddl("d.o", "CREATE OR REPLACE VIEW `o` AS SELECT `id` FROM `d`.`t`", FAMILY)
    h.ddl("d.o", "CREATE OR REPLACE VIEW `o` AS SELECT `v` FROM `d`.`t`", FAMILY)
    h.ddl("d.o", "DROP VIEW `o`", FAMILY)
    h.ddl("d.o", "CREATE VIEW `o` AS SELECT `s` FROM `d`.`t`", FAMILY)
    h.ddl("d.t", "ALTER TABLE `t` COMMENT = 'of numbers'")
    h.ddl("d.t", "ALTER TABLE `t` CONVERT TO CHARACTER SET UTF8MB4 COLLATE UTF8MB4_GENERAL_CI", FAMILY)
    h.ddl("d.t", "ALTER TABLE `t` AUTO_INCREMENT = 100", FAMILY)
    h.ddl("d.y", "CREATE TABLE `y` (`id` INT PRIMARY KEY,`at` DATETIME)", FAMILY)
    h.ddl("d.y", "ALTER TABLE `y` /*T![ttl] TTL = `at` + INTERVAL 1 YEAR */", FAMILY)
    h.ddl("d.y", "ALTER TABLE `y` REMOVE TTL", {"tidb"})
    h.row("d.t", id=9, v=9, s="nine", w=8, c="y")
    h.ddl("e.", "DROP DATABASE `e`")
    h.ddl("e.", "CREATE DATABASE `e`")
    h.ddl("e.t", "CREATE TABLE `t` (`id` INT PRIMARY KEY)")
    h.row("e.t", id=1)


def content(cells: Cells, databases: set[str]) -> Content:
    """Every table and view of some databases."""
    rows = {name: sorted(map(str, found)) for name, (_, found) in cells.tables(databases).items()}
    texts = {SqliteCells: _sqlite, MariaDbCells: _mysql, PostgresCells: _postgres}[type(cells)](cells, databases)  # type: ignore[operator]
    return {name: (texts.get(name, ""), rows.get(name, [])) for name in {**texts, **rows}}


def _mysql(cells: MariaDbCells, databases: set[str]) -> Mapping[str, str]:
    found = {}
    for database in databases:
        found[database] = str(cells.query(f"SHOW CREATE DATABASE `{database}`"))
        for row in cells.query(f"SHOW TABLES FROM `{database}`"):
            (table,) = row.values()
            (text,) = cells.query(f"SHOW CREATE TABLE `{database}`.`{table}`")
            found[f"{database}.{table}"] = str(sorted(map(str, text.values())))
    return found


def _sqlite(cells: SqliteCells, databases: set[str]) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for database in databases:
        with closing(sqlite3.connect(cells.files()[database])) as connection:
            lines = connection.execute("SELECT tbl_name, name, sql FROM sqlite_master ORDER BY name").fetchall()
        for table, *text in lines:
            found[f"{database}.{table}"] = found.get(f"{database}.{table}", "") + str(text)
    return found


_POSTGRES = """
SELECT t.schemaname || '.' || t.tablename AS name,
  (SELECT string_agg(concat_ws(' ', column_name, udt_name, column_default, is_nullable), ', ' ORDER BY column_name)
   FROM information_schema.columns c WHERE c.table_schema = t.schemaname AND c.table_name = t.tablename)
  || coalesce((SELECT string_agg(indexdef, '; ' ORDER BY indexname) FROM pg_indexes i
     WHERE i.schemaname = t.schemaname AND i.tablename = t.tablename), '')
  || coalesce(obj_description(format('%%I.%%I', t.schemaname, t.tablename)::regclass), '') AS text
FROM pg_tables t WHERE t.schemaname = ANY(%s)"""


def _postgres(cells: PostgresCells, databases: set[str]) -> Mapping[str, str]:
    found = cells.query(_POSTGRES, (list(databases),))
    return {str(row["name"]): str(row["text"]) for row in found}


def named(messages: list[Message], prefix: str) -> Iterator[Message]:
    """The messages with other names of databases, for servers that tests share."""
    for message in messages:
        value = message.value
        for name in "def":
            own = f"{prefix}{name}".encode()
            value = value.replace(b'"database":"%b"' % name.encode(), b'"database":"%b"' % own)
            value = value.replace(b"`%b`." % name.encode(), b"`%b`." % own)
            value = value.replace(b"DATABASE `%b`" % name.encode(), b"DATABASE `%b`" % own)
        yield message._replace(value=value)

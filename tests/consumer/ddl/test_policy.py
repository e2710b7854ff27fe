"""Which DDLs are executed: table rules, event filters, TiCDC's allow list, valid indexes."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from consumer.config.changefeed_filter import ChangefeedFilter, read_filter
from consumer.config.table_sections import EventFilterSection, FilterSection
from consumer.ddl.guard import refuse_what_is_not_theirs
from consumer.ddl.policy import WHY_THERE, replicated, understood, why_ignored, without_idle_clauses
from consumer.tasks.report import RawDdl
from ordering.errors import InputError
from ordering.events import DdlEvent, Position, TableName
from ordering.timestamps import CommitTs
from sinks.ddl.parse.left_out import conditional_indexes
from sinks.rows.schema import Catalog, Column, Shape, TableSchema


def wanted(*rules: str, force: bool = False, **event_filter: Any) -> ChangefeedFilter:
    filters = [EventFilterSection.model_validate(event_filter)] if event_filter else []
    section = FilterSection.model_validate({"rules": list(rules), "event-filters": filters})
    return read_filter(section.model_copy(update={"force_replicate": force}))


def catalog(*names: str, key: tuple[str, ...] = ("id",)) -> Catalog:
    column = Column("id", "int", Shape.INTEGER)
    places = [TableName(*name.split(".")) for name in names]
    return Catalog({place: TableSchema(place, (column,), key, (key,) if key else ()) for place in places})


def ddl(
    sql: str, database: str = "test", table: str = "", *, offset: int = 7, there: Catalog | None = None
) -> DdlEvent:
    raw = RawDdl(Position("topic", 0, offset), 100, "QUERY", database, table, sql)
    return understood(raw, there or catalog("test.t1", "test.t2"), [])


def is_ignored(event: DdlEvent, by: ChangefeedFilter, there: Catalog, together: Iterable[DdlEvent] = ()) -> bool:
    return bool(why_ignored(event, [event, *together], by, there))


EVENTS = {
    "matcher": ["test.t1"],
    "ignore-event": ["create table", "drop table", "truncate table", "rename table"],
}


@pytest.mark.parametrize(
    ("sql", "table", "ddl_ignored", "rows_of", "rows_ignored"),
    [
        ("CREATE TABLE `t1` (`id` INT PRIMARY KEY, `name` VARCHAR(50))", "t1", True, "t1", False),
        ("CREATE TABLE `t2` (`id` INT PRIMARY KEY, `name` VARCHAR(50))", "t2", False, "t2", False),
        ("CREATE TABLE `ignore` (`id` INT PRIMARY KEY, `name` VARCHAR(50))", "ignore", True, "ignore", True),
        ("DROP TABLE `test`.`t1`", "t1", True, "t1", False),
        ("TRUNCATE TABLE `t1`", "t1", True, "t1", False),
        ("RENAME TABLE `t1` TO `t2`", "t2", True, "t2", False),
        ("RENAME TABLE `t1` TO `ignore`", "ignore", True, "ignore", True),
    ],
)
def test_the_seven_rows_of_the_event_filter_table(
    sql: str, table: str, ddl_ignored: bool, rows_of: str, rows_ignored: bool
) -> None:
    by = wanted("test.t*", **EVENTS)
    assert is_ignored(ddl(sql, table=table), by, catalog("test.t1")) is ddl_ignored
    assert by.tables("test", rows_of) is not rows_ignored
    assert by.for_rows(catalog("test.t1")) is None  # no filter is about rows


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("CREATE DATABASE `test`", False),
        ("DROP DATABASE `test`", False),
        ("CREATE DATABASE `other`", True),
        ("CREATE DATABASE `mysql`", True),
    ],
)
def test_statements_about_databases(sql: str, expected: bool) -> None:
    database = sql.split("`")[1]
    assert is_ignored(ddl(sql, database), wanted("*.*", "!other.*"), catalog()) is expected


def test_what_is_on_no_list_is_named() -> None:
    event = ddl("ALTER TABLE `t1` SET TIFLASH REPLICA 1", table="t1")
    because = why_ignored(event, [event], wanted("*.*"), catalog("test.t1"))
    assert because == "TiCDC's list of DDLs to replicate does not hold it: SET TIFLASH REPLICA 1"


@pytest.mark.parametrize(
    ("sql", "valid_index", "force", "expected"),
    [
        ("ALTER TABLE `t1` ADD COLUMN `a` INT", True, False, False),
        ("ALTER TABLE `t1` ADD COLUMN `a` INT", False, False, True),
        ("ALTER TABLE `t1` ADD COLUMN `a` INT", False, True, False),
        ("ALTER TABLE `t1` ADD PRIMARY KEY (`id`)", False, False, False),
        ("ALTER TABLE `t1` ADD COLUMN `a` INT, ADD PRIMARY KEY (`id`)", False, False, False),
        ("DROP TABLE `test`.`t1`", False, False, True),
        ("DROP TABLE `test`.`unknown`", False, False, False),
        ("CREATE TABLE `n` (`a` INT, `b` INT)", True, False, True),
        ("CREATE TABLE `n` (`a` INT, `b` INT)", True, True, False),
        ("CREATE TABLE `n` (`a` INT PRIMARY KEY)", True, False, False),
        ("CREATE TABLE `n` (`a` INT, `b` INT NOT NULL, UNIQUE KEY `u` (`b`))", True, False, False),
        ("CREATE TABLE `n` (`a` INT, `b` INT NOT NULL, UNIQUE KEY `u` (`a`,`b`))", True, False, True),
        ("CREATE TABLE `n` (`a` INT, `b` INT NOT NULL, KEY `u` (`b`))", True, False, True),
        ("CREATE TABLE `n` (`a` INT NOT NULL, UNIQUE KEY `u` ((`a` + 1)))", True, False, True),
        ("CREATE TABLE `n` LIKE `t1`", True, False, False),
    ],
)
def test_tables_without_a_valid_index(sql: str, valid_index: bool, force: bool, expected: bool) -> None:
    there = catalog("test.t1", key=("id",) if valid_index else ())
    table = next((name for name in ("unknown", "n") if f"`{name}`" in sql), "t1")
    assert is_ignored(ddl(sql, table=table), wanted("*.*", force=force), there) is expected


def test_a_rename_into_the_filter_is_told_with_its_position() -> None:
    event = ddl("RENAME TABLE `test`.`n1` TO `test`.`t1`", table="t1")
    with pytest.raises(InputError, match="leave out the old name") as raised:
        why_ignored(event, [event], wanted("test.t*"), catalog("test.n1"))
    assert raised.value.where == "topic=topic partition=0 offset=7"


def test_renames_of_one_commit_ts_are_of_one_statement() -> None:
    one = ddl("RENAME TABLE `test`.`t1` TO `ignore`.`t1`", "ignore", "t1")
    other = ddl("RENAME TABLE `test`.`t2` TO `test`.`t22`", table="t22", offset=8)
    by, there = wanted("test.t*"), catalog("test.t1", "test.t2")
    assert not is_ignored(one, by, there)
    with pytest.raises(InputError, match="leave out ignore"):
        is_ignored(one, by, there, [other])
    assert one.commit_ts == other.commit_ts == CommitTs(100)


def test_a_rename_is_judged_by_the_old_name() -> None:
    by = wanted("*.*", matcher=["test.t1"], **{"ignore-event": ["rename table"]})
    there = catalog("test.t1", "test.t2")
    assert is_ignored(ddl("RENAME TABLE `test`.`t1` TO `test`.`t3`", table="t3"), by, there)
    assert not is_ignored(ddl("RENAME TABLE `test`.`t2` TO `test`.`t1`", table="t1"), by, there)


@pytest.mark.parametrize(
    ("sql", "valid", "force", "expected"),
    [
        ("ALTER TABLE `t1` DROP PRIMARY KEY", ["PRIMARY"], False, True),
        ("ALTER TABLE `t1` DROP PRIMARY KEY", ["PRIMARY"], True, False),
        ("ALTER TABLE `t1` DROP PRIMARY KEY", ["PRIMARY", "t1.u"], False, False),
        ("ALTER TABLE `t1` DROP PRIMARY KEY, ADD PRIMARY KEY (`v`)", ["PRIMARY"], False, False),
        ("ALTER TABLE `t1` DROP PRIMARY KEY, DROP INDEX `U`", ["PRIMARY", "t1.u"], False, True),
        ("DROP INDEX `u` ON `t1`", ["t1.u"], False, True),
        ("DROP INDEX `PRIMARY` ON `t1`", ["PRIMARY"], False, True),
        ("DROP INDEX `i` ON `t1`", ["t1.u"], False, False),
        ("ALTER TABLE `t1` DROP INDEX `u`", ["t1.u", "t1.w"], False, False),
        ("ALTER TABLE `t1` DROP COLUMN `v`", ["t1.u"], False, False),
    ],
)
def test_the_last_valid_index_stays(sql: str, valid: list[str], force: bool, expected: bool) -> None:
    (table,) = catalog("test.t1").tables.values()
    there = Catalog({table.name: replace(table, valid_indexes=frozenset(valid))}, lambda t, index: f"{t.table}.{index}")
    event = ddl(sql, table="t1")
    because = why_ignored(event, [event], wanted("*.*", force=force), there)
    assert because.startswith("it drops the last valid index of table test.t1") is expected


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("ALTER TABLE `t1` DROP INDEX `u`, ADD COLUMN `w` INT", "ALTER TABLE `t1` ADD COLUMN `w` INT"),
        ("ALTER TABLE `t1` ADD COLUMN (`a` INT, `b` INT), DROP KEY `U`, DROP COLUMN `v`",
         "ALTER TABLE `t1` ADD COLUMN (`a` INT, `b` INT), DROP COLUMN `v`"),
        ("ALTER TABLE `t1` DROP INDEX `u`, ADD UNIQUE INDEX `u`(`id`, `v`)",
         "ALTER TABLE `t1` ADD UNIQUE INDEX `u`(`id`, `v`)"),
        ("ALTER TABLE `t1` DROP INDEX `u`, ADD INDEX `i`(`id`)", "ALTER TABLE `t1` ADD INDEX `i`(`id`)"),
        (r"ALTER TABLE `t1` DROP INDEX `u`, ADD COLUMN `e` ENUM('a\b')",
         r"ALTER TABLE `t1` ADD COLUMN `e` ENUM('a\\b')"),
        ("ALTER TABLE `t1` DROP INDEX `u`, ADD UNIQUE INDEX `w`(`id`)", ""),
        ("ALTER TABLE `t1` DROP INDEX `u`, ADD PRIMARY KEY (`id`)", ""),
        ("ALTER TABLE `t1` DROP INDEX `u`, ADD COLUMN `n` INT NOT NULL UNIQUE", ""),
        ("ALTER TABLE `t1` DROP INDEX `i`, ADD COLUMN `w` INT", ""),
    ],
)  # fmt: skip
def test_what_else_a_statement_does_is_executed(sql: str, expected: str) -> None:
    """The last valid index stays; "" is for statements that are executed whole."""
    (table,) = catalog("test.t1").tables.values()
    columns = (replace(table.columns[0], nullable=False), Column("v", "int", Shape.INTEGER))
    table = replace(table, columns=columns, valid_indexes=frozenset(["t1.u"]))
    there = Catalog({table.name: table}, lambda t, index: f"{t.table}.{index}")
    event = ddl(sql, table="t1")
    assert not why_ignored(event, [event], wanted("*.*"), there)
    assert replicated(event, wanted("*.*"), there).replicated == expected
    assert not replicated(event, wanted("*.*", force=True), there).replicated


@pytest.mark.parametrize(
    ("sql", "valid", "expected"),
    [
        ("ALTER TABLE `t1` ADD PRIMARY KEY (`id`)", ["PRIMARY"], True),
        ("ALTER TABLE `t1` ADD PRIMARY KEY (`ID`) /*T![clustered_index] NONCLUSTERED */", ["PRIMARY"], True),
        ("ALTER TABLE `t1` ADD PRIMARY KEY (`id`), ALGORITHM = INPLACE", ["PRIMARY"], True),
        ("ALTER TABLE `t1` ADD PRIMARY KEY (`v`)", ["PRIMARY"], False),
        ("ALTER TABLE `t1` ADD PRIMARY KEY (`id`)", ["t1.u"], False),
        ("ALTER TABLE `t1` ADD PRIMARY KEY (`id`), ADD COLUMN `w` INT", ["PRIMARY"], False),
    ],
)
def test_a_primary_key_that_was_kept_is_there_already(sql: str, valid: list[str], expected: bool) -> None:
    (table,) = catalog("test.t1", key=("id",)).tables.values()
    there = Catalog({table.name: replace(table, valid_indexes=frozenset(valid))}, lambda t, index: f"{t.table}.{index}")
    event = ddl(sql, table="t1")
    because = why_ignored(event, [event], wanted("*.*"), there)
    assert because.startswith(WHY_THERE) is expected


def test_a_table_that_moves_to_another_database_is_not_taken_for_its_own_goal() -> None:
    """Rows of the new name, which lie behind the DDL, may have been read already."""
    raw = RawDdl(Position("topic", 0, 7), 100, "RENAME", "d2", "t", "RENAME TABLE `t` TO `d2`.`t`")
    moved, goal = TableName("d", "t"), TableName("d2", "t")
    for carried in ([moved], [moved, goal], [goal]):
        found = understood(raw, catalog("d.t"), carried)
        assert (found.removes, found.adds) == ((moved,), (goal,))
        assert why_ignored(found, [found], wanted("d.*", "d2.*"), catalog("d.t")) == ""


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("ALTER TABLE `t1` MODIFY COLUMN `ID` BIGINT NOT NULL", False),
        ("ALTER TABLE `t1` CHANGE COLUMN `id` `i` INT NOT NULL, ADD COLUMN `w` INT", False),
        ("ALTER TABLE `t1` MODIFY COLUMN `id` BIGINT", True),
        ("ALTER TABLE `t1` MODIFY COLUMN `v` INT NOT NULL", True),
        ("ALTER TABLE `t1` ADD COLUMN `w` INT NOT NULL", True),
    ],
)
def test_what_makes_an_index_valid_is_executed(sql: str, expected: bool) -> None:
    (table,) = catalog("test.t1", key=()).tables.values()
    table = replace(
        table,
        columns=(*table.columns, Column("v", "int", Shape.INTEGER)),
        unique_keys=(("id",),),
        unique_indexes={"i": ("id",)},
    )
    event = ddl(sql, table="t1")
    assert is_ignored(event, wanted("*.*"), Catalog({table.name: table})) is expected


@pytest.mark.parametrize(
    ("sql", "read"),
    [
        ("ALTER DATABASE CHARACTER SET = binary", "ALTER DATABASE `te``st` CHARACTER SET = binary"),
        ("ALTER SCHEMA COLLATE = utf8mb4_bin", "ALTER SCHEMA `te``st` COLLATE = utf8mb4_bin"),
        ("alter database /* x */ default charset latin1", None),
        ("ALTER DATABASE charset CHARSET latin1", "ALTER DATABASE `te``st` charset CHARSET latin1"),
        ("ALTER DATABASE `CHARACTER` CHARACTER SET = binary", "ALTER DATABASE `CHARACTER` CHARACTER SET = binary"),
        ("ALTER DATABASE `te``st` COLLATE = utf8mb4_bin", "ALTER DATABASE `te``st` COLLATE = utf8mb4_bin"),
    ],
)
def test_an_alter_database_without_a_name_is_about_that_of_its_message(sql: str, read: str | None) -> None:
    event = ddl(sql, "te`st")
    words = (read or "alter database `te``st` default charset latin1").split()
    assert event.sql.split() == words
    assert event.position.offset == 7


@pytest.mark.parametrize("end", [";", " ; \n"])
@pytest.mark.parametrize(
    ("sql", "adds"),
    [
        ("RENAME TABLE `test`.`t1` TO `test`.`t3`", ["t3"]),
        ("CREATE TABLE `test`.`t4` (`id` INT PRIMARY KEY, `c` CHAR(1) DEFAULT ';')", ["t4"]),
        ("CREATE TABLE `test`.`t5` LIKE `test`.`t1`", ["t5"]),
        ("DROP TABLE `test`.`t1`", []),
    ],
)
def test_a_part_of_a_statement_about_several_tables_ends_without_its_semicolon(
    sql: str, adds: list[str], end: str
) -> None:
    event = ddl(sql + end, table=adds[0] if adds else "t1")
    refuse_what_is_not_theirs(event)
    assert event.sql == sql
    assert [name.table for name in event.adds] == adds


@pytest.mark.parametrize(
    ("clauses", "kept"),
    [
        ("ADD COLUMN /*T! IF NOT EXISTS  */`ID` INT, ADD COLUMN /*T! IF NOT EXISTS  */`b` INT",
         "ADD COLUMN  `b` INT"),
        ("DROP COLUMN /*T! IF EXISTS  */`b`, ADD COLUMN `c` INT", "ADD COLUMN `c` INT"),
        ("MODIFY COLUMN IF EXISTS `b` INT, DROP COLUMN IF EXISTS `id`", "DROP COLUMN IF EXISTS `id`"),
        ("CHANGE COLUMN /*T! IF EXISTS  */`b` `d` INT, COMMENT = 'IF EXISTS'", "COMMENT = 'IF EXISTS'"),
        ("add column /*T! if not exists  */`id` int, add column `b` int", "add column `b` int"),
        ("ADD COLUMN `id` INT COMMENT 'IF NOT EXISTS', DROP COLUMN `b`", ""),
        ("ADD COLUMN /*T! IF NOT EXISTS  */`id` INT", ""),
        ("ADD COLUMN /*T! IF NOT EXISTS  */(`ID` INT, `b` INT DEFAULT 3)", "ADD COLUMN  (`b` INT DEFAULT 3)"),
        ("ADD COLUMN IF NOT EXISTS (`b` INT, `id` INT, `c` INT)", "ADD COLUMN IF NOT EXISTS (`b` INT, `c` INT)"),
        ("ADD COLUMN IF NOT EXISTS (`b` INT, `c` INT)", ""),
        ("ADD COLUMN IF NOT EXISTS (`id` INT, UNIQUE `i`(`id`))", "ADD COLUMN IF NOT EXISTS (UNIQUE `i`(`id`))"),
        ("ADD COLUMN (`b` INT, `id` INT)", ""),
    ],
)  # fmt: skip
def test_clauses_that_had_nothing_to_do_upstream_are_left_out(clauses: str, kept: str) -> None:
    """Only TiDB reads their condition: it comes in a comment."""
    event = ddl(f"ALTER TABLE `t1` {clauses}", table="t1")
    found = without_idle_clauses(event, catalog("test.t1"), ())
    assert found.replicated == (f"ALTER TABLE `t1` {kept}" if kept else "")


@pytest.mark.parametrize(
    ("clause", "kept", "stays"),
    [
        ("ADD INDEX IF NOT EXISTS `U` (`s`)", (), False),
        ("ADD KEY /*T! IF NOT EXISTS  */`u` (`s`)", (), False),
        ("ADD INDEX /*T! IF NOT EXISTS  */`u` (`s`)", ("u",), True),
        ("ADD INDEX IF NOT EXISTS `w` (`s`)", (), True),
        ("ADD INDEX `u` (`s`)", (), True),
    ],
)
def test_an_index_that_upstream_had_is_not_made_again(clause: str, kept: tuple[str, ...], *, stays: bool) -> None:
    """The target's unique index of that name was dropped, and another one made."""
    (table,) = catalog("test.t1").tables.values()
    known = Catalog({table.name: replace(table, unique_keys=(("id",),), unique_indexes={"u": ("id",)})})
    sql = f"ALTER TABLE `t1` ADD COLUMN `c` INT, {clause}"
    found = without_idle_clauses(ddl(sql, table="t1"), known, kept)
    assert found.statement == (ddl(sql).sql if stays else "ALTER TABLE `t1` ADD COLUMN `c` INT")


@pytest.mark.parametrize("named", ["t1", "t2"])
def test_an_exchange_is_about_both_tables_whichever_a_message_names(named: str) -> None:
    """TiCDC's topics name the one table, its files the other; older ones the partitioned table in both."""
    event = ddl("ALTER TABLE `test`.`t1` EXCHANGE PARTITION `p` WITH TABLE `test`.`t2`", table=named)
    there = catalog("test.t1", "test.t2")
    for rule in ("test.t1", "test.t2"):
        with pytest.raises(InputError, match=r"too, which filter\.rules leave out"):
            is_ignored(event, wanted(rule), there)
        ignoring = {"matcher": [rule], "ignore-event": ["exchange table partition"]}
        assert is_ignored(event, wanted("*.*", **ignoring), there)
    assert not is_ignored(event, wanted("*.*"), there)
    assert is_ignored(event, wanted("other.*"), there)


SEVERAL = "RENAME TABLE `test`.`t1` TO `test`.`n1`, `test`.`t2` TO `test`.`n2`"


@pytest.mark.parametrize(
    ("event_filter", "left"),
    [
        ({"matcher": ["test.t1"], "ignore-event": ["rename table"]}, "RENAME TABLE `test`.`t2` TO `test`.`n2`"),
        ({"matcher": ["test.t2"], "ignore-event": ["rename table"]}, "RENAME TABLE `test`.`t1` TO `test`.`n1`"),
        ({"matcher": ["*.*"], "ignore-sql": ["TO `test`.`n2`$"]}, "RENAME TABLE `test`.`t1` TO `test`.`n1`"),
        ({"matcher": ["test.n1"], "ignore-event": ["rename table"]}, ""),
    ],
)
def test_event_filters_judge_each_rename_of_a_statement_by_itself(event_filter: dict[str, Any], left: str) -> None:
    """Topics tell each one in a message of its own, files all of them as one."""
    event, there, by = ddl(SEVERAL, table="n1"), catalog("test.t1", "test.t2"), wanted("*.*", **event_filter)
    assert not is_ignored(event, by, there)
    assert replicated(event, by, there).replicated == left


def test_renames_that_all_are_left_out() -> None:
    event, there = ddl(SEVERAL, table="n1"), catalog("test.t1", "test.t2")
    assert is_ignored(event, wanted("*.*", matcher=["test.*"], **{"ignore-event": ["rename table"]}), there)
    assert is_ignored(event, wanted("*.*"), catalog("test.t1", "test.t2", key=()))
    mixed = Catalog({**catalog("test.t1", key=()).tables, **catalog("test.t2").tables})
    assert not is_ignored(event, wanted("*.*"), mixed)
    assert replicated(event, wanted("*.*"), mixed).replicated == "RENAME TABLE `test`.`t2` TO `test`.`n2`"


@pytest.mark.parametrize(
    ("clauses", "names"),
    [
        ("ADD INDEX `i`(`a`), ADD INDEX /*T! IF NOT EXISTS  */`J`(`b`)", {"j"}),
        ("ADD INDEX `i`(`a`), ADD UNIQUE `u`(`b`)", set()),
        ("ADD COLUMN /*T! IF NOT EXISTS  */(`c` INT, INDEX `i`(`a`)), ADD COLUMN `d` INT", set()),
    ],
)
def test_an_index_has_the_condition_of_its_own_clause(clauses: str, names: set[str]) -> None:
    assert conditional_indexes(f"ALTER TABLE `t` {clauses}") == names

"""What a statement does not say: the database of a name, the moment of a default, what was there upstream."""

import sqlite3
from contextlib import closing

import pytest

from consumer.demo.fake_ticdc.changefeed import Message
from consumer.wiring import target_of
from ordering.errors import InputError, TargetError
from tests.service.ddl.test_ddl import TARGETS, made
from tests.service.local import LocalFeed
from tests.service.messages import ddl, insert, typed, watermarks
from tests.service.postgres_cells import PostgresCells

__all__ = ["made"]
pytestmark = pytest.mark.service

TWO = [
    ddl("d1.", 1, "CREATE DATABASE `d1`"),
    ddl("d2.", 2, "CREATE DATABASE `d2`"),
    ddl("d1.t", 3, "CREATE TABLE `t` (`id` INT PRIMARY KEY)"),
    insert("d1.t", 4, id=1),
]
BOTH = ddl("d2.t", 5, "CREATE TABLE `d2`.`t` (`id` INT PRIMARY KEY,`v` INT)")


def ids(feed: LocalFeed) -> dict[str, list[int]]:
    return {name: [row["id"] for row in rows] for name, (_, rows) in feed.cells.tables(["d1", "d2"]).items()}


def sent(feed: LocalFeed, *messages: Message) -> None:
    feed.send([*messages, *watermarks(9)])
    feed.apply()


@pytest.mark.parametrize("made", TARGETS, indirect=True)
def test_the_database_that_has_such_a_table_is_meant(made: LocalFeed) -> None:
    sent(made, *TWO, ddl("d2.u", 6, "CREATE TABLE `d2`.`u` LIKE `t`"), ddl("d2.w", 7, "RENAME TABLE `t` TO `d2`.`w`"))
    assert ids(made) == {"d2.u": [], "d2.w": [1]}


@pytest.mark.cells("made", ("place", "sql"))
@pytest.mark.parametrize(
    ("place", "sql"),
    [
        ("d2.u", "CREATE TABLE `d2`.`u` LIKE `t`"),
        ("d2.w", "RENAME TABLE `t` TO `d2`.`w`"),
        ("d2.w", "ALTER TABLE `t` RENAME AS `d2`.`w`"),
        ("d2.v", "CREATE VIEW `d2`.`v` AS SELECT `id` FROM `t`"),
    ],
)
@pytest.mark.parametrize("made", TARGETS, indirect=True)
def test_two_readings_are_refused(made: LocalFeed, place: str, sql: str) -> None:
    with pytest.raises(InputError, match="specify all database names") as raised:
        sent(made, *TWO, BOTH, ddl(place, 6, sql))
    assert raised.value.exit_code == 3
    assert ids(made) == {"d1.t": [1], "d2.t": []}


@pytest.mark.parametrize("sql", ["RENAME TABLE `t` TO `d2`.`w`", "ALTER TABLE `t` RENAME AS `d2`.`w`"])
@pytest.mark.parametrize("made", ["sqlite"], indirect=True)
def test_two_readings_are_not_a_table_that_never_came(made: LocalFeed, sql: str) -> None:
    """The new name's database never had such a table, so the DDL was ignored, whosever table was renamed."""
    other = [ddl("d3.", 5, "CREATE DATABASE `d3`"), ddl("d3.t", 5, "CREATE TABLE `t` (`id` INT PRIMARY KEY)")]
    with pytest.raises(InputError, match="specify all database names"):
        sent(made, *TWO, *other, ddl("d2.w", 6, sql))


@pytest.mark.cells("made", ("sql", "apart"))
@pytest.mark.parametrize("sql", ["RENAME TABLE `t` TO `d2`.`t`", "ALTER TABLE `t` RENAME AS `d2`.`t`"])
@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("made", TARGETS, indirect=True)
def test_a_table_may_take_its_name_along_into_another_database(made: LocalFeed, sql: str, apart: bool) -> None:
    """Read before the table was made, such a statement seemed to swap names, and the run stopped."""
    made.send([*TWO, *(watermarks(4) if apart else [])])
    if apart:
        made.apply()
    again = [ddl("d1.t", 8, "CREATE TABLE `t` (`id` INT PRIMARY KEY)"), insert("d1.t", 9, id=3)]
    sent(made, ddl("d2.t", 6, sql), insert("d2.t", 7, id=2), *again)
    assert ids(made) == {"d1.t": [3], "d2.t": [1, 2]}
    made.send([insert("d2.t", 11, id=5), insert("d1.t", 12, id=4), *watermarks(13)])
    made.apply()
    assert ids(made) == {"d1.t": [3, 4], "d2.t": [1, 2, 5]}


RENAMED = ddl("d2.w", 7, "RENAME TABLE `t` TO `d2`.`w`")


@pytest.mark.parametrize("made", TARGETS, indirect=True)
def test_a_table_that_has_rows_later_was_not_renamed(made: LocalFeed) -> None:
    sent(made, *TWO, BOTH, insert("d2.t", 6, id=7), RENAMED, insert("d1.t", 8, 1, id=2))
    assert ids(made) == {"d1.t": [1, 2], "d2.w": [7]}


@pytest.mark.cells("made", "again")
@pytest.mark.parametrize("made", TARGETS, indirect=True)
@pytest.mark.parametrize("again", ["CREATE TABLE `d1`.`t` (`id` INT PRIMARY KEY)", "RECOVER TABLE `d1`.`t`"])
def test_rows_of_a_table_that_may_be_another_by_then_tell_nothing(made: LocalFeed, again: str) -> None:
    with pytest.raises(InputError, match="specify all database names"):
        sent(made, *TWO, BOTH, RENAMED, ddl("d1.t", 8, again), insert("d1.t", 9, 1, id=2))
    assert ids(made) == {"d1.t": [1], "d2.t": []}


@pytest.mark.parametrize("made", ["sqlite"], indirect=True)
def test_rows_behind_what_was_read_tell_nothing(made: LocalFeed) -> None:
    """A DDL that lies between may come: what is read up to a watermark alone is whole."""
    with pytest.raises(InputError, match="specify all database names"):
        sent(made, *TWO, BOTH, RENAMED, insert("d1.t", 12, 1, id=2))
    assert ids(made) == {"d1.t": [1], "d2.t": []}


@pytest.mark.parametrize("made", TARGETS, indirect=True)
def test_names_beside_one_without_database_are_the_message_s(made: LocalFeed) -> None:
    new = ddl("d1.u", 6, "CREATE TABLE `u` LIKE `t`")
    sent(made, *TWO, BOTH, new, ddl("d1.w", 7, "RENAME TABLE `t` TO `w`"), insert("d1.u", 8, id=5))
    assert ids(made) == {"d1.u": [5], "d1.w": [1], "d2.t": []}


ADD = "ALTER TABLE `t` ADD COLUMN `c` TIMESTAMP(3) DEFAULT CURRENT_TIMESTAMP(3), ADD COLUMN `d` DATETIME DEFAULT NOW()"


@pytest.mark.parametrize("made", TARGETS, indirect=True)
def test_a_default_of_the_moment_is_the_commit_time_and_the_log_says_so(made: LocalFeed) -> None:
    sent(made, *TWO, ddl("d1.t", 5, ADD))
    ((row,),) = [rows for _, rows in made.cells.tables(["d1"]).values()]
    assert [str(row["c"])[:23], str(row["d"])] == ["2026-01-01 00:00:00.005", "2026-01-01 00:00:00"]
    with closing(target_of(made.config)) as target:
        target.connect()
        (line,) = [line for line in target.ddl_log.latest(made.config.changefeed, 10) if "ADD COLUMN" in line.sql]
    assert line.executed.count("rows that were there show the commit time") == 2


@pytest.mark.parametrize("made", TARGETS, indirect=True)
def test_a_default_of_the_day_is_the_day_of_the_commit(made: LocalFeed) -> None:
    """TiDB itself computes it again with each SELECT: what it showed then is in no snapshot."""
    sent(made, *TWO, ddl("d1.t", 5, "ALTER TABLE `t` ADD COLUMN `d` DATE DEFAULT (CURRENT_DATE)"))
    ((row,),) = [rows for _, rows in made.cells.tables(["d1"]).values()]
    assert str(row["d"]) == "2026-01-01"


@pytest.mark.parametrize("made", TARGETS, indirect=True)
def test_a_default_of_the_moment_is_an_error_by_choice(made: LocalFeed) -> None:
    made.with_(source={"time-zone": "+08:00"}, target={"volatile-defaults": "error"})
    with pytest.raises(TargetError, match="volatile-defaults"):
        sent(made, *TWO, ddl("d1.t", 5, ADD))
    assert ids(made) == {"d1.t": [1]}
    made.with_(target={"volatile-defaults": "commit-time"}).apply()
    ((row,),) = [rows for _, rows in made.cells.tables(["d1"]).values()]
    assert str(row["c"])[:23] == "2026-01-01 00:00:00.005"
    assert str(row["d"]) == "2026-01-01 08:00:00"
    assert ids(made) == {"d1.t": [1]}


@pytest.mark.parametrize("made", TARGETS, indirect=True)
def test_an_empty_table_takes_a_default_of_the_moment(made: LocalFeed) -> None:
    sent(made, *TWO[:3], ddl("d1.t", 5, ADD))
    assert made.cells.tables(["d1"])["d1.t"] == (["id", "c", "d"], [])


@pytest.mark.parametrize("part", ["p0", "p2"])
@pytest.mark.parametrize("made", ["sqlite", "postgres"], indirect=True)
def test_partitions_by_a_virtual_column(made: LocalFeed, part: str) -> None:
    """SQLite took the name of a column that it does not have for a text: all rows went with the last partition."""
    table = (
        "CREATE TABLE `t` (`id` INT NOT NULL,`v` INT,`g` INT GENERATED ALWAYS AS (`v` + 1) VIRTUAL,PRIMARY KEY(`id`)"
        " /*T![clustered_index] NONCLUSTERED */ /*T![global_index] GLOBAL */) PARTITION BY RANGE (`g`) (PARTITION `p0`"
        " VALUES LESS THAN (10),PARTITION `p1` VALUES LESS THAN (20),PARTITION `p2` VALUES LESS THAN (MAXVALUE))"
    )
    rows = [insert("x.t", 3, id=number, v=number) for number in (1, 12, 25)]
    truncated = ddl("x.t", 4, f"ALTER TABLE `t` TRUNCATE PARTITION `{part}`", "TRUNCATE")
    made.send([ddl("x.t", 1, "CREATE DATABASE `x`"), ddl("x.t", 2, table), *rows, truncated, *watermarks(9)])
    with pytest.raises(TargetError, match="'g', which the target's table does not have"):
        made.apply()
    assert len(made.cells.tables({"x"})["x.t"][1]) == len(rows)


def index_texts(made: LocalFeed) -> list[str]:
    """The definitions of the indexes of d.t."""
    if isinstance(made.cells, PostgresCells):
        return [
            str(row) for row in made.cells.query("SELECT indexdef FROM pg_indexes WHERE tablename = 't' ORDER BY 1")
        ]
    with closing(sqlite3.connect(made.cells.directory / "d.sqlite")) as connection:  # type: ignore[union-attr]
        return [str(row) for row in connection.execute("SELECT sql FROM sqlite_master WHERE type = 'index' ORDER BY 1")]


@pytest.mark.parametrize(
    "clause",
    [
        "INDEX IF NOT EXISTS `u` (`x`)",
        "KEY IF NOT EXISTS `k` (`x`)",
        "COLUMN IF NOT EXISTS `g` INT DEFAULT 3",
        "COLUMN IF NOT EXISTS (`g` INT DEFAULT 3, `x` INT)",
    ],
)
@pytest.mark.parametrize("made", ["sqlite", "postgres"], indirect=True)
def test_a_clause_for_what_upstream_had_changes_nothing(made: LocalFeed, clause: str) -> None:
    """The target dropped the unique index of that name and made another one; the virtual column became a plain one."""
    table = (
        "CREATE TABLE `t` (`id` INT PRIMARY KEY,`v` INT NOT NULL,`x` INT,`g` INT GENERATED ALWAYS AS (`v` + 1) VIRTUAL,"
        "UNIQUE KEY `u` (`v`),KEY `k` (`v`))"
    )
    made.send([ddl("d.", 1, "CREATE DATABASE `d`"), ddl("d.t", 2, table), insert("d.t", 3, id=1, v=1, x=5)])
    made.send(watermarks(4))
    made.apply()
    before = index_texts(made)
    assert len(before) >= len("uk")
    sql = f"ALTER TABLE `t` ADD COLUMN `a` INT, ADD {clause}"
    made.send([ddl("d.t", 5, sql, "ALTER"), insert("d.t", 6, id=2, v=2, x=5, a=1), *watermarks(7)])
    made.apply()
    assert index_texts(made) == before
    columns, rows = made.cells.tables({"d"})["d.t"]
    assert (columns, len(rows)) == (["id", "v", "x", "a"], len(before[:2]))


@pytest.mark.cells("made", "clause")
@pytest.mark.parametrize(
    "clause", ["IF NOT EXISTS (`g` INT DEFAULT 3", "IF NOT EXISTS (`v` INT", "/*T! IF NOT EXISTS  */(`v` INT"]
)
@pytest.mark.parametrize("made", TARGETS, indirect=True)
def test_of_several_columns_in_brackets_those_are_added_that_upstream_lacked(made: LocalFeed, clause: str) -> None:
    """It is the only clause, and half of it was done: the virtual column became a plain one, the plain one an error."""
    table = "CREATE TABLE `t` (`id` INT PRIMARY KEY,`v` INT,`g` INT GENERATED ALWAYS AS (`v` + 1) VIRTUAL)"
    made.send([ddl("d.", 1, "CREATE DATABASE `d`"), ddl("d.t", 2, table), insert("d.t", 3, id=1, v=1), *watermarks(4)])
    made.apply()
    sql = f"ALTER TABLE `t` ADD COLUMN {clause}, `a` INT DEFAULT 7)"
    made.send([ddl("d.t", 5, sql, "ALTER"), insert("d.t", 6, id=2, v=2, a=1), *watermarks(7)])
    made.apply()
    columns, rows = made.cells.tables({"d"})["d.t"]
    assert [column for column in columns if column != "g"] == ["id", "v", "a"]
    assert [row["a"] for row in rows] == [7, 1]
    assert [row.get("g") for row in rows] in ([None, None], [2, 3])
    assert ("g" in columns) == made.uri.startswith("mysql")


def modified(made: LocalFeed, old: str, new: str, value: str) -> object:
    """What a value becomes by MODIFY COLUMN. Raises TargetError."""
    table = ddl("d.t", 2, f"CREATE TABLE `t` (`id` INT PRIMARY KEY,`s` {old})")
    row = typed(insert("d.t", 3, id=1, s=value), s=old.lower())
    later = ddl("d.t", 4, f"ALTER TABLE `t` MODIFY COLUMN `s` {new}", "ALTER")
    made.send([ddl("d.", 1, "CREATE DATABASE `d`"), table, row, later, *watermarks(5)])
    made.apply()
    return made.cells.tables({"d"})["d.t"][1][0]["s"]


@pytest.mark.parametrize(
    ("old", "new", "value", "after"),
    [
        ("VARCHAR(9)", "CHAR(3)", "a  bc", "a"),
        ("TEXT", "TINYTEXT", "a" + "\u00e9" * 200, "a" + "\u00e9" * 127),
        ("VARCHAR(300)", "TINYTEXT", "x" * 300, "x" * 255),
        ("LONGBLOB", "TINYBLOB", "x" * 300, b"x" * 255),
        ("TEXT", "TINYBLOB", "x" * 300, b"x" * 255),
        ("LONGBLOB", "CHAR(3)", "a  bc", "a"),
    ],
)
@pytest.mark.parametrize("made", ["sqlite", "postgres"], indirect=True)
def test_what_is_too_long_is_cut_as_upstream(made: LocalFeed, old: str, new: str, value: str, after: object) -> None:
    """In a session without strict mode: whole characters within the bytes of a type, a CHAR before its spaces go."""
    assert modified(made, old, new, value) == after


@pytest.mark.parametrize("value", ["NaN", "Infinity", "0x10", "1_000", "\uff11"])
@pytest.mark.parametrize("new", ["BIGINT", "DECIMAL(9,2)", "DOUBLE", "FLOAT"])
@pytest.mark.parametrize("made", ["sqlite", "postgres"], indirect=True)
@pytest.mark.cells("made", ("new", "value"))
def test_what_the_target_alone_takes_for_a_number_is_none(made: LocalFeed, new: str, value: str) -> None:
    with pytest.raises(TargetError, match=r"no number|is no"):
        modified(made, "VARCHAR(40)", new, value)


@pytest.mark.parametrize("value", [" 12 ", "+12", "1.2e1", "12.", "\t12\n"])
@pytest.mark.parametrize("made", ["sqlite", "postgres"], indirect=True)
def test_texts_of_numbers(made: LocalFeed, value: str) -> None:
    assert modified(made, "VARCHAR(40)", "BIGINT", value) == int("12")


@pytest.mark.parametrize("made", ["sqlite"], indirect=True)
def test_an_index_goes_with_its_own_column_only(made: LocalFeed) -> None:
    table = (
        'CREATE TABLE `t` (`id` INT PRIMARY KEY,`a` INT,`a"b` INT,`"a"` INT,UNIQUE KEY `u` (`a"b`),KEY `k` (`a`),'
        'UNIQUE KEY `w` (`"a"`))'
    )
    dropped = ddl("d.t", 3, "ALTER TABLE `t` DROP COLUMN `A`", "ALTER")
    made.send([ddl("d.", 1, "CREATE DATABASE `d`"), ddl("d.t", 2, table), dropped, *watermarks(4)])
    made.apply()
    assert ["t.u" in text or "t.w" in text for text in index_texts(made)] == [True, True]


@pytest.mark.parametrize("unique", ["UNIQUE ", ""])
@pytest.mark.parametrize("made", TARGETS, indirect=True)
def test_an_index_that_keeps_its_name_but_for_case_is_renamed(made: LocalFeed, unique: str) -> None:
    """PostgreSQL refused the name, which was the index's own there."""
    alter, v = "ALTER TABLE `t` RENAME INDEX", [insert("d1.t", 6, id=1, v=1), insert("d1.t", 7, id=2, v=2)]
    table = ddl("d1.t", 2, f"CREATE TABLE `t` (`id` INT PRIMARY KEY,`v` INT,{unique}KEY `I`(`v`))")
    renamed = [ddl("d1.t", 3, f"{alter} `I` TO `i`"), ddl("d1.t", 4, f"{alter} `i` TO `J`")]
    dropped = ddl("d1.t", 5, "ALTER TABLE `t` DROP INDEX `j`")
    sent(made, ddl("d1.", 1, "CREATE DATABASE `d1`"), table, *renamed, dropped, *v)
    assert ids(made) == {"d1.t": [1, 2]}

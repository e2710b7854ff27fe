"""Definitions of partitions, what clauses change about them, and the conditions for their rows, by SQLite's SQL."""

import sqlite3
from collections.abc import Iterable

import pytest

from ordering.errors import InputError, TargetError
from ordering.events import TableName
from sinks.ddl.kept_definitions import Known, altered, known_of
from sinks.ddl.parse.partitions import PartitionDef, Partitioning, read_change
from sinks.ddl.parse.statement import TableReference, read_statement
from sinks.ddl.parse.tables import read_changes, read_table
from sinks.ddl.rows.partition_condition import rows_of
from sinks.mysql.ddl.partitions import by_key
from sinks.rows.schema import Catalog, Column, Shape, TableSchema
from sinks.rows.values import ValueRules
from sinks.sqlite.ddl.partition_condition import SqliteSpeller
from sinks.sqlite.encoder import SqliteEncoder
from sinks.sqlite.sql_functions import Functions


def known(partition_by: str, columns: str = "`id` INT PRIMARY KEY", options: str = "") -> Known:
    return known_of(read_table(f"CREATE TABLE `t` ({columns}) {options} PARTITION BY {partition_by}"))


def partitions(partition_by: str) -> Partitioning:
    found = known(partition_by).partitions
    assert found
    return found


def names(found: Partitioning | None) -> list[str]:
    assert found
    return [part.name for part in found.parts]


RANGE = "RANGE (`id`) (PARTITION `p0` VALUES LESS THAN (5), PARTITION `p1` VALUES LESS THAN (MAXVALUE) COMMENT 'a,b')"
LIST = "LIST (`id`) (PARTITION `p0` VALUES IN (1,NULL), PARTITION `p1` DEFAULT)"


def test_forms_of_definitions() -> None:
    assert partitions(RANGE).parts == (PartitionDef("p0", (("5",),)), PartitionDef("p1", (("MAXVALUE",),)))
    assert partitions(LIST).parts == (PartitionDef("p0", (("1",), ("NULL",))), PartitionDef("p1", (("DEFAULT",),)))
    assert names(partitions("HASH (`id`) PARTITIONS 3")) == ["p0", "p1", "p2"]
    assert partitions("KEY () PARTITIONS 2").columns == ("id",)
    assert partitions("RANGE (YEAR(`id`)) (PARTITION `p` VALUES LESS THAN (1))").expression == "YEAR(`id`)"
    two = partitions("LIST COLUMNS (`a`,`b`) (PARTITION `p` VALUES IN ((1,_UTF8MB4'x, y'),(2,NULL)))")
    assert two.parts[0].rows == (("1", "_UTF8MB4'x, y'"), ("2", "NULL"))
    assert known("RANGE (`id`) INTERVAL (5) FIRST PARTITION LESS THAN (5)").partitions is None


@pytest.mark.parametrize(
    ("clause", "after"),
    [
        ("ADD PARTITION (PARTITION `p2` VALUES LESS THAN (9))", ["p0", "p1", "p2"]),
        ("DROP PARTITION `P0`", ["p1"]),
        ("TRUNCATE PARTITION `p0`", ["p0", "p1"]),
        ("REORGANIZE PARTITION `p0`,`p1` INTO (PARTITION `x` VALUES LESS THAN (9))", ["x"]),
        ("REORGANIZE PARTITION `p0` INTO (PARTITION `x` VALUES LESS THAN (2),PARTITION `y` VALUES LESS THAN (5))",
         ["x", "y", "p1"]),
        ("EXCHANGE PARTITION `p0` WITH TABLE `d`.`u`", ["p0", "p1"]),
        ("REORGANIZE PARTITION NO_WRITE_TO_BINLOG `p0`,`p1` INTO (PARTITION `x` VALUES LESS THAN (9))", ["x"]),
        ("ADD PARTITION NO_WRITE_TO_BINLOG (PARTITION `p2` VALUES LESS THAN (9))", ["p0", "p1", "p2"]),
        ("PARTITION `p0` ATTRIBUTES='merge_option=allow'", ["p0", "p1"]),
    ],
)  # fmt: skip
def test_clauses(clause: str, after: list[str]) -> None:
    assert names(altered(known(RANGE), read_changes(f"ALTER TABLE `t` {clause}")).partitions) == after


def test_clauses_about_hashed_partitions() -> None:
    before = partitions("HASH (`id`) PARTITIONS 3")
    assert names(read_change("ADD PARTITION PARTITIONS 2", before).after) == ["p0", "p1", "p2", "p3", "p4"]
    assert names(read_change("COALESCE PARTITION 2", before).after) == ["p0"]
    assert names(read_change("COALESCE PARTITION NO_WRITE_TO_BINLOG 2", before).after) == ["p0"]
    assert names(read_change("ADD PARTITION NO_WRITE_TO_BINLOG PARTITIONS 1", before).after) == ["p0", "p1", "p2", "p3"]
    assert read_change("REMOVE PARTITIONING", before).after is None
    assert names(read_change("PARTITION BY KEY (`id`) PARTITIONS 2", None).after) == ["p0", "p1"]
    assert read_change("TRUNCATE PARTITION ALL", None).removed is None
    assert read_change("EXCHANGE PARTITION `p` WITH TABLE `u`", None).exchanged == ("p", TableReference(None, "u"))


@pytest.mark.parametrize("clause", ["FIRST PARTITION LESS THAN (5)", "REORGANIZE PARTITION `p0` WITH `p1`"])
def test_a_clause_that_is_not_known_is_refused(clause: str) -> None:
    """TiDB sends FIRST PARTITION, which removes rows, as the DROP PARTITION that it stands for."""
    with pytest.raises(InputError):
        read_change(clause, partitions(RANGE))


def rows_in(definition: Known, name: str, values: Iterable[object], kind: str = "INTEGER") -> list[object]:
    encoder, rules = SqliteEncoder(ValueRules()), ValueRules()
    with sqlite3.connect(":memory:") as connection:
        Functions(encoder, rules).register(connection)
        connection.execute(f"CREATE TABLE t (id {kind})")
        connection.executemany("INSERT INTO t VALUES (?)", [(value,) for value in values])
        assert definition.partitions
        where = rows_of(definition.partitions, name, SqliteSpeller(definition, "t", ["id"], encoder, "UTC"))
        return [row[0] for row in connection.execute(f"SELECT id FROM t WHERE {where}")]


NUMBERS = (None, -9, 0, 1, 4, 5, 8)


@pytest.mark.parametrize(
    ("partition_by", "name", "held"),
    [
        (RANGE, "p0", [None, -9, 0, 1, 4]),
        (RANGE, "p1", [5, 8]),
        (LIST, "p0", [None, 1]),
        (LIST, "p1", [-9, 0, 4, 5, 8]),
        ("HASH (`id`) PARTITIONS 4", "p0", [None, 0, 4, 8]),
        ("HASH (`id`) PARTITIONS 4", "p1", [-9, 1, 5]),
        ("HASH (`id` DIV 2 + 1) PARTITIONS 2", "p1", [-9, 0, 1, 4, 5, 8]),
        ("LIST (`id` % 4) (PARTITION `p` VALUES IN (-1,3), PARTITION `q` DEFAULT)", "p", [-9]),
        ("LIST (-`id` DIV 4) (PARTITION `p` VALUES IN (-2,2,0), PARTITION `q` DEFAULT)", "p", [-9, 0, 1, 8]),
        ("LIST (MOD(5, `id`)) (PARTITION `p` VALUES IN (NULL), PARTITION `q` DEFAULT)", "p", [None, 0]),
        ("RANGE (ABS(`id`) - 1) (PARTITION `p` VALUES LESS THAN (4), PARTITION `q` VALUES LESS THAN (MAXVALUE))", "q",
          [-9, 5, 8]),
    ],
)  # fmt: skip
def test_conditions(partition_by: str, name: str, held: list[object]) -> None:
    assert rows_in(known(partition_by), name, NUMBERS) == held


def test_every_row_is_in_one_partition() -> None:
    for partition_by in (RANGE, LIST, "HASH (`id`) PARTITIONS 4", "KEY (`id`) PARTITIONS 5"):
        definition = known(partition_by)
        found = [row for name in names(definition.partitions) for row in rows_in(definition, name, NUMBERS)]
        assert sorted(map(str, found)) == sorted(map(str, NUMBERS))


def test_texts_compare_by_their_bytes_without_trailing_spaces() -> None:
    bounds = (
        "RANGE COLUMNS (`id`) (PARTITION `p` VALUES LESS THAN (_UTF8MB4'b '), PARTITION `q` VALUES LESS THAN ('z'))"
    )
    with pytest.raises(TargetError, match="not known"):
        rows_in(known(bounds, "`id` VARCHAR(9)"), "p", ["a"], "TEXT")
    found = known(bounds, "`id` VARCHAR(9)", "COLLATE utf8mb4_bin")
    assert rows_in(found, "p", ["a", "b", "b ", "B", "é"], "TEXT") == ["a", "B"]
    folding = known(bounds, "`id` VARCHAR(9) COLLATE utf8mb4_general_ci")
    with pytest.raises(TargetError, match="utf8mb4_general_ci"):
        rows_in(folding, "p", ["a"], "TEXT")
    with pytest.raises(TargetError, match="utf8mb4_unicode_ci"):
        rows_in(known(bounds, "`id` VARCHAR(9)", "COLLATE utf8mb4_unicode_ci"), "p", ["a"], "TEXT")


@pytest.mark.parametrize("by", ["RANGE COLUMNS (`id`) (PARTITION `p0` VALUES LESS THAN ('m'))", "KEY (`id`)"])
@pytest.mark.parametrize(
    ("columns", "options", "later"),
    [
        ("`id` VARCHAR(9) CHARACTER SET gbk", "", ""),
        ("`id` VARCHAR(9)", "CHARSET=gbk", ""),
        ("`id` VARCHAR(9)", "CHARSET=gbk COLLATE=gbk_bin", ""),
        ("`id` VARCHAR(9)", "CHARSET=utf8mb4", "CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci"),
    ],
)
def test_texts_that_are_not_compared_by_their_bytes_are_refused(
    by: str, columns: str, options: str, later: str
) -> None:
    """A character set may fold or order otherwise by itself: that of gbk was taken for utf8mb4_bin."""
    found = known(f"{by} PARTITIONS 2" if by.startswith("KEY") else by, columns, options)
    with pytest.raises(TargetError, match=r"gbk|general_ci|KEY partition"):
        rows_in(altered(found, read_changes(f"ALTER TABLE `t` {later}")) if later else found, "p0", ["a"], "TEXT")


def test_a_tables_collation_is_that_of_columns_to_come() -> None:
    found = known(RANGE, "`id` INT, `a` CHAR(1), `b` ENUM('x') COLLATE utf8mb4_bin", "COLLATE utf8mb4_unicode_ci")
    later = "ALTER TABLE `t` COLLATE utf8mb4_general_ci, ADD COLUMN `c` TEXT, ADD CHECK (`a` COLLATE gbk_bin = 'x')"
    after = altered(found, read_changes(later))
    assert [kind.collation for kind in after.columns.values()] == [
        "", "utf8mb4_unicode_ci", "utf8mb4_bin", "utf8mb4_general_ci",
    ]  # fmt: skip
    assert (
        altered(after, read_changes("ALTER TABLE `t` CHARSET binary, ADD COLUMN `d` TEXT")).columns["d"].base == "blob"
    )


@pytest.mark.parametrize(
    ("partition_by", "columns"),
    [
        ("HASH (WEEK(`id`)) PARTITIONS 2", "`id` DATE"),
        ("HASH (`id` / 2) PARTITIONS 2", "`id` INT"),
        ("KEY (`id`) PARTITIONS 2", "`id` DOUBLE"),
        ("KEY (`id`) PARTITIONS 2", "`id` VARCHAR(9) CHARACTER SET gbk"),
    ],
)
def test_what_can_not_be_computed_is_refused(partition_by: str, columns: str) -> None:
    with pytest.raises(TargetError):
        rows_in(known(partition_by, columns), "p0", [])


LARGE = ["9223372036854775807", "9223372036854775808", "9223372036854775813", "18446744073709551615"]


@pytest.mark.parametrize(
    ("partition_by", "name", "held"),
    [
        ("LIST (`id` % 4) (PARTITION `p` VALUES IN (0), PARTITION `q` VALUES IN (1,2,3))", "p", LARGE[1:2]),
        ("LIST (`id` % 4) (PARTITION `p` VALUES IN (0), PARTITION `q` DEFAULT)", "q", [LARGE[0], *LARGE[2:]]),
        ("RANGE (MOD(`id`, 10)) (PARTITION `p` VALUES LESS THAN (5), PARTITION `q` VALUES LESS THAN (8))", "p",
         LARGE[2:3]),
        ("HASH (`id` % 7) PARTITIONS 7", "p1", [LARGE[1], LARGE[3]]),
        ("HASH (`id` - 9223372036854775807) PARTITIONS 2", "p0", [LARGE[0], LARGE[2], LARGE[3]]),
        ("RANGE (`id` DIV 10) (PARTITION `p` VALUES LESS THAN (922337203685477581))", "p", LARGE[:2]),
        ("RANGE (FLOOR(ABS(`id`)) + 1) (PARTITION `p` VALUES LESS THAN (9), PARTITION `q` VALUES LESS THAN (MAXVALUE))",
         "q", LARGE),
    ],
)  # fmt: skip
def test_expressions_over_numbers_from_2_63_on(partition_by: str, name: str, held: list[str]) -> None:
    """SQLite holds them as texts, and its own arithmetic took each for 2^63 - 1."""
    table = known(partition_by, "`id` BIGINT UNSIGNED PRIMARY KEY")
    stored = [int(LARGE[0]), *LARGE[1:]]
    assert list(map(str, rows_in(table, name, stored, ""))) == held


@pytest.mark.parametrize("bound", ["9223372036854775808", "`id`"])
def test_a_bound_from_2_63_on_is_refused(bound: str) -> None:
    method = (
        f"RANGE (`id`) (PARTITION `p` VALUES LESS THAN ({bound}))" if bound[0] == "9" else f"HASH ({bound} - {2**63})"
    )
    with pytest.raises(TargetError, match="can't compare"):
        rows_in(known(method, "`id` BIGINT UNSIGNED PRIMARY KEY"), "p" if bound[0] == "9" else "p0", [])


@pytest.mark.parametrize("by", ["RANGE (`g`)", "RANGE (`g` * 2)", "RANGE COLUMNS (`g`)"])
def test_a_column_that_the_target_does_not_have_is_refused(by: str) -> None:
    """SQLite took its quoted name for a text, so that all rows were in the last partition."""
    bounds = "(PARTITION `p` VALUES LESS THAN (9), PARTITION `q` VALUES LESS THAN (MAXVALUE))"
    columns = "`id` INT PRIMARY KEY, `g` INT GENERATED ALWAYS AS (`id` + 1) VIRTUAL"
    for name in "pq":
        with pytest.raises(TargetError, match="'g', which the target's table does not have"):
            rows_in(known(f"{by} {bounds}", columns), name, NUMBERS)


@pytest.mark.parametrize(
    ("method", "value", "part"),
    [
        ("HASH (`id`) PARTITIONS 4", "18446744073709551615", 1),
        ("HASH (`id`) PARTITIONS 3", "9223372036854775808", 2),
        ("HASH (HOUR(`id`)) PARTITIONS 7", "-25:10:59", 4),
        ("HASH (HOUR(`id`)) PARTITIONS 7", "2024-01-02 13:10:59", 6),
        ("HASH (MINUTE(`id`)) PARTITIONS 7", "838:10:59", 3),
        ("HASH (SECOND(`id`)) PARTITIONS 7", "10:10:59.9", 3),
        ("HASH (HOUR(`id`)) PARTITIONS 7", "2024-01-02", 0),
    ],
)
def test_which_hash_partition_a_large_number_or_a_time_is_in(method: str, value: str, part: int) -> None:
    table = known(method)
    assert table.partitions
    speller = SqliteSpeller(table, "t", ["id"], SqliteEncoder(ValueRules()), "UTC")
    connection = sqlite3.connect(":memory:")
    Functions(SqliteEncoder(ValueRules()), ValueRules()).register(connection)
    connection.execute("CREATE TABLE t (id TEXT)")
    connection.execute("INSERT INTO t VALUES (?)", (value,))
    found = [
        at
        for at, one in enumerate(table.partitions.parts)
        if connection.execute(f"SELECT 1 FROM t WHERE {rows_of(table.partitions, one.name, speller)}").fetchall()
    ]
    connection.close()
    assert found == [part]


@pytest.mark.parametrize("options", ["CHARSET=binary", "DEFAULT CHARACTER SET = BINARY", "COLLATE=binary"])
def test_texts_of_a_binary_table_are_bytes(options: str) -> None:
    sql = f"CREATE TABLE `t` (`a` VARCHAR(9),`b` CHAR(3) CHARACTER SET utf8mb4,`c` TEXT,`d` INT) {options}"
    assert [column.type.base for column in read_table(sql).columns] == ["varbinary", "char", "blob", "int"]
    (one,) = read_table("CREATE TABLE `t` (`a` VARCHAR(9) CHARACTER SET BINARY)").columns
    assert one.type.base == "varbinary"


@pytest.mark.parametrize("pads", [True, False])
def test_texts_of_a_key_partition_are_hashed_without_spaces_where_the_collation_pads(*, pads: bool) -> None:
    """Under utf8mb4_0900_bin, 'a ' was hashed as 'a': rows of other partitions were deleted, its own kept."""
    name = TableName("d", "t")
    columns = (Column("id", "int", Shape.INTEGER), Column("k", "varchar(9)", Shape.TEXT, pads=pads))
    catalog = Catalog({name: TableSchema(name, columns, (), ())})
    statement = read_statement("ALTER TABLE `t` TRUNCATE PARTITION `p1`")
    parts = [("p0", "`k`"), ("p1", "`k`")]
    made = by_key(lambda sql, _: [] if "LINEAR HASH" in sql else parts, statement, "d", catalog)
    shown = "RTRIM(`k`)" if pads else "`k`"
    assert made is not None
    assert f"CONVERT({shown} USING utf8mb4)" in made

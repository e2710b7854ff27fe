"""TiDB's printed definitions, read into the neutral ones."""

import pytest

from ordering.errors import InputError, TargetError
from sinks.ddl.model import (
    AddColumn,
    AddIndex,
    ChangeColumn,
    ChangePartitions,
    ColumnDef,
    Default,
    DropColumn,
    DropIndex,
    Generated,
    IndexDef,
    IndexKind,
    IndexPart,
    Passed,
    RenameColumn,
    RenameIndex,
    SetComment,
    SetDefault,
    TypeDef,
    Unknown,
)
from sinks.ddl.parse.tables import read_changes, read_dropped_index, read_index, read_table
from sinks.ddl.rows.default_values import shown, spelled

INT = TypeDef("int")
LONG = "12345678901234567890123456789012345"


def column(definition: str) -> ColumnDef:
    return read_table(f"CREATE TABLE `t` ({definition})").columns[0]


@pytest.mark.parametrize(
    ("printed", "kind"),
    [
        ("INT", INT),
        ("INT(8) UNSIGNED ZEROFILL", TypeDef("int", (8,), unsigned=True)),
        ("FLOAT UNSIGNED", TypeDef("float", unsigned=True)),
        ("FLOAT(30)", TypeDef("double")),
        ("FLOAT(7,3)", TypeDef("float", (7, 3))),
        ("DOUBLE PRECISION", TypeDef("double")),
        ("DECIMAL(65,30)", TypeDef("decimal", (65, 30))),
        ("BOOLEAN", TypeDef("tinyint", (1,))),
        ("CHAR(9) CHARACTER SET GBK COLLATE gbk_bin", TypeDef("char", (9,), charset="gbk", collation="gbk_bin")),
        ("ENUM('a','it''s','c,d','','b\\')", TypeDef("enum", members=("a", "it's", "c,d", "", "b\\"))),
        ("SET('_x','\\n')", TypeDef("set", members=("_x", "\\n"))),
        ("DATETIME(6)", TypeDef("datetime", (6,))),
        ("VECTOR(3)", TypeDef("vector", (3,))),
    ],
)  # fmt: skip
def test_types(printed: str, kind: TypeDef) -> None:
    found = column(f"`c` {printed}").type
    assert (found.base, found.numbers, found.members) == (kind.base, kind.numbers, kind.members)
    assert (found.charset, found.collation) == (kind.charset, kind.collation)


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        ("`a` INT NOT NULL DEFAULT -5", ColumnDef("a", INT, nullable=False, default=Default("-5"))),
        ("`a` INT DEFAULT NULL COMMENT 'x ''y'' \\\\ z'", ColumnDef("a", INT, default=Default(), comment="x 'y' \\ z")),
        ("`a` BIGINT /*T![auto_rand] AUTO_RANDOM(5) */ PRIMARY KEY", ColumnDef("a", TypeDef("bigint"), nullable=False)),
        ("`a` INT AUTO_INCREMENT", ColumnDef("a", INT, automatic=True)),
        ("`a` INT GENERATED ALWAYS AS(`b`+(1)) STORED", ColumnDef("a", INT, generated=Generated("`b`+(1)", True))),
        (
            "`a` TIMESTAMP DEFAULT CURRENT_TIMESTAMP() ON UPDATE CURRENT_TIMESTAMP()",
            ColumnDef(
                "a",
                TypeDef("timestamp"),
                default=Default(expression="CURRENT_TIMESTAMP()"),
                on_update="CURRENT_TIMESTAMP()",
            ),
        ),
        ("`a` BIT(3) DEFAULT b'101'", ColumnDef("a", TypeDef("bit", (3,)), default=Default(b"\5"))),
        ("`a` INT DEFAULT (`f`(1, ')'))", ColumnDef("a", INT, default=Default(expression="(`f`(1, ')'))"))),
        ("`a` INT CHECK(`a`>0) ENFORCED", ColumnDef("a", INT)),
        ("`PRIMARY` INT", ColumnDef("PRIMARY", INT)),
        ("`a` INT REFERENCES `o` MATCH FULL ON DELETE SET NULL NOT NULL", ColumnDef("a", INT, nullable=False)),
        ("`a` INT REFERENCES `d`.`o`(`x`) MATCH SIMPLE ON UPDATE CASCADE", ColumnDef("a", INT)),
        ("`a` INT NOT NULL REFERENCES `o`(`x`) ON UPDATE SET NULL", ColumnDef("a", INT, nullable=False)),
        ("`a` INT REFERENCES `o`,`b` DECIMAL(5,2)", ColumnDef("a", INT)),
    ],
)
def test_columns(printed: str, expected: ColumnDef) -> None:
    assert column(printed) == expected


def test_a_table() -> None:
    table = read_table(
        "CREATE TABLE IF NOT EXISTS `d`.`t` (`a` INT UNIQUE,`b` VARCHAR(9),"
        "PRIMARY KEY(`b`(3) DESC) /*T![clustered_index] NONCLUSTERED */,INDEX(`a`, `b`) USING BTREE COMMENT 'i',"
        "UNIQUE `u`((`a`+1)),FULLTEXT `f`(`b`),"
        "CONSTRAINT `fk` FOREIGN KEY (`a`) REFERENCES `o`(`x`) ON DELETE SET NULL,"
        "CHECK((`a`>0))) ENGINE = InnoDB COMMENT = 'the ''table''' PARTITION BY HASH (`a`) PARTITIONS 4"
    )
    assert [c.name for c in table.columns] == ["a", "b"]
    assert table.indexes == (
        IndexDef(IndexKind.PRIMARY, "PRIMARY", (IndexPart("b", 3, descending=True),)),
        IndexDef(IndexKind.PLAIN, "a_2", (IndexPart("a"), IndexPart("b"))),
        IndexDef(IndexKind.UNIQUE, "u", (IndexPart(expression="`a`+1"),)),
        IndexDef(IndexKind.OTHER, "f", (IndexPart("b"),)),
        IndexDef(IndexKind.UNIQUE, "a", (IndexPart("a"),)),
    )
    assert table.comment == "the 'table'"
    assert table.primary_key == ("b",)
    assert len(table.passed) == 2


A = ColumnDef("a", INT)
CHANGES = {
    "ADD COLUMN `a` INT FIRST, ADD COLUMN `b` INT AFTER `a`": [
        AddColumn(A, moved=True),
        AddColumn(ColumnDef("b", INT), moved=True),
    ],
    "ADD COLUMN (`a` INT, `b` INT)": [AddColumn(A), AddColumn(ColumnDef("b", INT))],
    "ADD COLUMN IF NOT EXISTS `a` INT": [AddColumn(A)],
    "ADD COLUMN IF NOT EXISTS (`a` INT, `b` INT)": [
        AddColumn(A, if_missing=True),
        AddColumn(ColumnDef("b", INT), if_missing=True),
    ],
    "ADD COLUMN (`a` INT, INDEX `date`(`b`), UNIQUE KEY(`b`), CHECK(`a`>1) ENFORCED)": [
        AddColumn(A),
        AddIndex(IndexDef(IndexKind.PLAIN, "date", (IndexPart("b"),))),
        AddIndex(IndexDef(IndexKind.UNIQUE, "", (IndexPart("b"),))),
        Passed("CHECK(`a`>1) ENFORCED"),
    ],
    "DROP COLUMN `a`, DROP INDEX `i`, DROP PRIMARY KEY": [DropColumn("a"), DropIndex("i"), DropIndex("PRIMARY")],
    "MODIFY COLUMN `a` INT AFTER `b`": [ChangeColumn("a", A, moved=True)],
    "CHANGE COLUMN `x` `a` INT FIRST": [ChangeColumn("x", A, moved=True)],
    "RENAME COLUMN `a` TO `b`, RENAME INDEX `i` TO `j`": [RenameColumn("a", "b"), RenameIndex("i", "j")],
    "RENAME COLUMN `Ä` TO `ä`": [Passed("RENAME COLUMN 'Ä' TO 'ä': upstream keeps the name as it is")],
    "ALTER COLUMN `a` SET DEFAULT _UTF8MB4'x'": [SetDefault("a", Default("x"))],
    "ALTER COLUMN `a` DROP DEFAULT": [SetDefault("a", None)],
    "ADD UNIQUE `u`(`a`)": [AddIndex(IndexDef(IndexKind.UNIQUE, "u", (IndexPart("a"),)))],
    "ADD UNIQUE `u`(`a`) WHERE `a`=1": [AddIndex(IndexDef(IndexKind.OTHER, "u", (IndexPart("a"),)))],
    "ADD INDEX `i`(`a`) WHERE `a`=1": [AddIndex(IndexDef(IndexKind.PLAIN, "i", (IndexPart("a"),)))],
    "COMMENT = 'c', AUTO_INCREMENT = 5": [SetComment("c"), Passed("AUTO_INCREMENT = 5")],
    "COMMENT = 'c' AUTO_INCREMENT = 5": [SetComment("c"), Passed("AUTO_INCREMENT = 5")],
    "DROP FOREIGN KEY `fk`": [Passed("DROP FOREIGN KEY `fk`")],
    "ALTER INDEX `i` INVISIBLE": [Passed("ALTER INDEX `i` INVISIBLE")],
    "SET TIFLASH REPLICA 1": [Passed("SET TIFLASH REPLICA 1")],
    "TRUNCATE PARTITION `p`,`q`": [ChangePartitions("TRUNCATE PARTITION `p`,`q`")],
    "ADD PARTITION (PARTITION `p` VALUES LESS THAN (5))": [
        ChangePartitions("ADD PARTITION (PARTITION `p` VALUES LESS THAN (5))")
    ],
    "REMOVE PARTITIONING": [ChangePartitions("REMOVE PARTITIONING")],
    "PARTITION BY HASH (`a`) PARTITIONS 4": [ChangePartitions("PARTITION BY HASH (`a`) PARTITIONS 4")],
    "DISCARD TABLESPACE": [Unknown("DISCARD TABLESPACE")],
}


@pytest.mark.parametrize("clauses", CHANGES)
def test_changes(clauses: str) -> None:
    assert read_changes(f"ALTER TABLE `d`.`t` {clauses}") == CHANGES[clauses]


@pytest.mark.parametrize(
    "clauses", ["COMMENT = 'c' SOMETHING ELSE", "COMMENT = 'c' PARTITION BY HASH (`a`) PARTITIONS 2"]
)
def test_a_comment_does_not_hide_what_stands_behind_it(clauses: str) -> None:
    with pytest.raises(InputError):
        read_changes(f"ALTER TABLE `d`.`t` {clauses}")


def test_indexes_of_their_own_statements() -> None:
    index = IndexDef(IndexKind.UNIQUE, "i", (IndexPart("a", descending=True), IndexPart("b", 5)))
    assert read_index("CREATE UNIQUE INDEX `i` ON `d`.`t` (`a` DESC, `b`(5)) USING BTREE") == index
    assert read_dropped_index("DROP INDEX IF EXISTS `i` ON `t`") == "i"


@pytest.mark.parametrize(
    "printed", ["`a`", "`a` INT SOMETHING ELSE", "`a` INT CHECK `a`", "`a` INT COMMENT", "`a` ENUM('x'"]
)
def test_what_is_no_definition(printed: str) -> None:
    with pytest.raises(InputError):
        column(printed)


@pytest.mark.parametrize(
    ("definition", "text"),
    [
        ("`a` INT", None),
        ("`a` INT NOT NULL", "0"),
        ("`a` INT DEFAULT 1.5", "2"),
        (f"`a` DECIMAL(65,30) DEFAULT {LONG}.5", f"{LONG}.5{29 * '0'}"),
        ("`a` CHAR(9) DEFAULT _UTF8MB4'x  '", "x"),
        ("`a` BINARY(4) NOT NULL", "\0\0\0\0"),
        ("`a` VARBINARY(9) DEFAULT x'00ff'", "\0\xef\xbf\xbd"),
        ("`a` BIT(9) DEFAULT b'100000001'", "257"),
        ("`a` ENUM('x','y') DEFAULT _UTF8MB4'Y'", "2"),
        ("`a` ENUM('x','y') NOT NULL", "1"),
        ("`a` SET('x','y') DEFAULT _UTF8MB4'y,x'", "3"),
        ("`a` DATETIME(3) DEFAULT _UTF8MB4'2026-1-2'", "2026-01-02 00:00:00.000"),
        ("`a` DATE NOT NULL", "0000-00-00"),
        ("`a` TIME(2) NOT NULL", "00:00:00.00"),
        ("`a` DOUBLE DEFAULT 1e22", "10000000000000000000000"),
        ("`a` JSON NOT NULL", "null"),
    ],
)  # fmt: skip
def test_what_old_rows_show(definition: str, text: str | None) -> None:
    assert shown(column(definition)) == text


@pytest.mark.parametrize("definition", ["`a` INT AUTO_INCREMENT", "`a` DATETIME DEFAULT CURRENT_TIMESTAMP"])
def test_what_only_upstream_knows(definition: str) -> None:
    with pytest.raises(TargetError, match="known upstream only"):
        shown(column(definition))


def test_a_default_that_is_no_value() -> None:
    with pytest.raises(TargetError, match="no value of the type int"):
        spelled(INT, "x")

"""TiDB's DDL as servers take it: what they know stays as it came, the rest becomes its nearest or is left out."""

from dataclasses import replace
from functools import partial

import pytest

from ordering.errors import TargetError
from sinks.ddl.model import TypeDef
from sinks.mysql.ddl.translate import Adapted, Server, adapted, for_tidb

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
    "ALTER TABLE `t` ADD COLUMN `b` BINARY(4) NOT NULL DEFAULT x'4100', ALTER COLUMN `c` SET DEFAULT 5",
    "CREATE TABLE `t` (`id` INT PRIMARY KEY,`v` VARCHAR(30) DEFAULT _UTF8MB4'VECTOR CHARSET x COLLATE y, KEY ((a))')",
    "CREATE TABLE `u` LIKE `t`",
]


@pytest.mark.parametrize("sql", AS_IT_CAME)
def test_what_a_server_knows_stays(sql: str) -> None:
    for adapt in (on_mariadb, on_mysql):
        assert (adapt(sql).sql, adapt(sql).notes, adapt(sql).logged) == (sql, [], sql)


DIRECTORIES = {
    "CREATE TABLE `t` (`id` INT PRIMARY KEY) DATA DIRECTORY='/x'": "CREATE TABLE `t` (`id` INT PRIMARY KEY) ",
    "CREATE TABLE t (id INT) COMMENT='c' data /* */ directory '/x' , INDEX DIRECTORY = \"/y\" CHARSET=ascii": (
        "CREATE TABLE t (id INT) COMMENT='c'   CHARSET=ascii COLLATE ascii_bin"
    ),
    "CREATE TABLE t (id INT) PARTITION BY RANGE (id) (PARTITION p VALUES LESS THAN (1) DATA DIRECTORY='/x')": (
        "CREATE TABLE t (id INT) PARTITION BY RANGE (id) (PARTITION p VALUES LESS THAN (1) )"
    ),
    "CREATE TABLE t (id INT) PARTITION BY RANGE (id) SUBPARTITION BY HASH (id) (PARTITION p VALUES LESS THAN (1)"
    " (SUBPARTITION s INDEX DIRECTORY='/x' DATA DIRECTORY='/x'))": (
        "CREATE TABLE t (id INT) PARTITION BY RANGE (id) SUBPARTITION BY HASH (id) (PARTITION p VALUES LESS THAN (1)"
        " (SUBPARTITION s  ))"
    ),
    "ALTER TABLE t ADD PARTITION (PARTITION p VALUES LESS THAN (9) DATA DIRECTORY='/x')": (
        "ALTER TABLE t ADD PARTITION (PARTITION p VALUES LESS THAN (9) )"
    ),
    "ALTER TABLE t ADD COLUMN a INT, DATA DIRECTORY='/x', ADD COLUMN b INT": (
        "ALTER TABLE t ADD COLUMN a INT, ADD COLUMN b INT"
    ),
    "ALTER TABLE t COMMENT='c' DATA DIRECTORY='/x'": "ALTER TABLE t COMMENT='c' ",
    "ALTER TABLE t DATA DIRECTORY='/x'": "",
}
"""MariaDB and MySQL put a table's files into a directory that a statement names; TiDB only reads the words."""


@pytest.mark.parametrize("sql", DIRECTORIES)
def test_no_statement_names_a_directory_of_the_server(sql: str) -> None:
    found = on_mariadb(sql)
    assert found.sql == DIRECTORIES[sql]
    assert "DIRECTORY" in " ".join(found.notes).upper()


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE t (data INT, index directory (data), INDEX `directory` (data))",
        "CREATE TABLE t (`data` INT COMMENT 'DATA DIRECTORY=x', directory INT) COMMENT='INDEX DIRECTORY'",
    ],
)
def test_names_are_no_options(sql: str) -> None:
    assert on_mariadb(sql).sql == sql


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
    "ALTER TABLE `t` ADD COLUMN `b` BINARY(4) NOT NULL DEFAULT x'FF00', ADD COLUMN `d` DOUBLE DEFAULT 1e+300": (
        "ALTER TABLE `t` ADD COLUMN `b` BINARY(4) NOT NULL DEFAULT x'efbfbd00', ADD COLUMN `d` DOUBLE DEFAULT 1e+300"
    ),
    "CREATE TABLE `t` (`id` INT DEFAULT NEXTVAL(`d`.`s`) COMMENT 'c')": "CREATE TABLE `t` (`id` INT  COMMENT 'c')",
    "CREATE TABLE `t` (`id` INT,`n` INT DEFAULT (NEXTVAL(`s`)) COMMENT 'c')": (
        "CREATE TABLE `t` (`id` INT,`n` INT  COMMENT 'c')"
    ),
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
    "ALTER TABLE `t` ALTER INDEX `e` INVISIBLE": "ALTER TABLE `t` ALTER INDEX IF EXISTS `e` IGNORED",
    "ALTER TABLE `t` RENAME INDEX `e` TO `f`": "ALTER TABLE `t` RENAME INDEX IF EXISTS `e` TO `f`",
    "CREATE TABLE `t` (`a` INT,CONSTRAINT `c` CHECK(`a`>0) ENFORCED,CHECK(`a`<9) NOT ENFORCED)": (
        "CREATE TABLE `t` (`a` INT,CONSTRAINT `c` CHECK(`a`>0) ,CHECK(`a`<9) )"
    ),
    "CREATE TABLE `t` (`b` VARBINARY(16) DEFAULT (UUID_TO_BIN(UUID())) COMMENT 'b',`u` CHAR(36) DEFAULT (UUID()))": (
        "CREATE TABLE `t` (`b` VARBINARY(16)  COMMENT 'b',`u` CHAR(36) DEFAULT (UUID()))"
    ),
    "CREATE TABLE `t` (`id` INT,`v` VECTOR DEFAULT (VEC_FROM_TEXT(_UTF8MB4'[1,2]')))": (
        "CREATE TABLE `t` (`id` INT,`v` LONGTEXT )"
    ),
    "CREATE DATABASE `d` COLLATE = utf8mb4_bin ENCRYPTION = 'N'": "CREATE DATABASE `d` COLLATE = utf8mb4_bin ",
    "CREATE TABLE `t` (`a` INT COLUMN_FORMAT FIXED STORAGE DISK,KEY `k`(`a`) USING RTREE)": (
        "CREATE TABLE `t` (`a` INT  ,KEY `k`(`a`) USING BTREE)"
    ),
    "CREATE TABLE `t` (`encryption` INT) COMPRESSION = 'zlib' TABLESPACE = `s` NODEGROUP = 1 STORAGE DISK": (
        "CREATE TABLE `t` (`encryption` INT)    "
    ),
    "ALTER TABLE `t` ALGORITHM = INSTANT, MODIFY COLUMN `a` BIGINT, LOCK = NONE, WITHOUT VALIDATION": (
        "ALTER TABLE `t` MODIFY COLUMN `a` BIGINT"
    ),
    "CREATE INDEX `lock` ON `t` (`a`) ALGORITHM = INPLACE LOCK = NONE": "CREATE INDEX `lock` ON `t` (`a`)  ",
    "CREATE ALGORITHM = UNDEFINED DEFINER = CURRENT_USER VIEW `v` AS SELECT 1": (
        "CREATE ALGORITHM = UNDEFINED DEFINER = CURRENT_USER VIEW `v` AS SELECT 1"
    ),
    "ALTER TABLE `t` RENAME COLUMN `a` TO `A`, ADD COLUMN `b` INT": "ALTER TABLE `t` ADD COLUMN `b` INT",
    "CREATE TABLE `t` (`a` INT,KEY `k`(`a`) INVISIBLE)": "CREATE TABLE `t` (`a` INT,KEY `k`(`a`) IGNORED)",
    "CREATE TABLE `t` (`linear` INT) PARTITION BY LINEAR HASH (`linear`) PARTITIONS 5": (
        "CREATE TABLE `t` (`linear` INT) PARTITION BY HASH (`linear`) PARTITIONS 5"
    ),
    "ALTER TABLE `t` PARTITION BY LINEAR KEY (`a`) PARTITIONS 3": "ALTER TABLE `t` PARTITION BY KEY (`a`) PARTITIONS 3",
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


ALIKE = (
    ("DECIMAL(9,1)", "ROUND(`a`, 1)"),
    ("VARCHAR(9)", "CAST(`a` AS CHAR)"),
    ("BIGINT", "`d`"),
    ("DATE", "DATE(`m`)"),
    ("DATE", "CAST(`m` AS DATE)"),
    ("DATETIME", "`m`"),
    ("INT", "`j`->'$.a'"),
)
UNLIKE = {
    ("DECIMAL(20,10)", "`i`/7"): "/",
    ("DATE", "`m`"): "DATE",
    ("TIME", "`t`"): "TIME",
    ("DOUBLE", "SIN(`d`)"): "SIN",
}


def test_mysql_is_not_to_compute_what_it_computes_otherwise() -> None:
    """Found side by side with TiDB: of 100 expressions 19 differed, these among them."""
    for kind, expression in ALIKE:
        sql = f"ALTER TABLE `t` ADD COLUMN `g` {kind} GENERATED ALWAYS AS({expression}) VIRTUAL"
        assert on_mysql(sql).sql == sql
    for (kind, expression), reason in UNLIKE.items():
        with pytest.raises(TargetError, match=rf"MySQL may compute VIRTUAL column 'g' .*\({reason}\)"):
            on_mysql(f"ALTER TABLE `t` ADD COLUMN `g` {kind} GENERATED ALWAYS AS({expression}) VIRTUAL")


@pytest.mark.parametrize("server", [MARIADB, MYSQL])
@pytest.mark.parametrize("real", ["FLOAT", "DOUBLE", "DOUBLE(9,3)"])
@pytest.mark.parametrize(
    ("column", "differs"),
    [
        ("VARCHAR(40) GENERATED ALWAYS AS(`d`)", True),
        ("VARCHAR(40) GENERATED ALWAYS AS(CONCAT(`d`, _UTF8MB4'x'))", True),
        ("INT GENERATED ALWAYS AS(LENGTH(`d`))", True),
        ("TINYINT GENERATED ALWAYS AS(`d` LIKE _UTF8MB4'1%')", True),
        ("BIGINT GENERATED ALWAYS AS(`d`)", False),
        ("DOUBLE GENERATED ALWAYS AS(ABS(`d`) + `a`)", False),
        ("VARCHAR(40) GENERATED ALWAYS AS(CONCAT(`a`, _UTF8MB4'x'))", False),
    ],
)
def test_a_real_that_becomes_a_text_in_a_virtual_column_is_refused(
    server: Server, real: str, column: str, *, differs: bool
) -> None:
    """TiDB spells 1e20 with all its digits; the servers spell FLOATs with six digits besides."""
    kind = real.partition("(")[0].lower()
    made = f"CREATE TABLE `t` (`a` INT,`d` {real},`g` {column} VIRTUAL)"
    added = f"ALTER TABLE `t` ADD COLUMN `g` {column} VIRTUAL"
    for sql, there in (made, server), (added, replace(server, types={"a": TypeDef("int"), "d": TypeDef(kind)})):
        if differs:
            with pytest.raises(TargetError, match=rf"VIRTUAL column 'g' .*\({kind.upper()} as text\)"):
                adapted(sql, there)
        else:
            assert adapted(sql, there).sql == sql


def test_a_json_that_becomes_a_text_in_a_virtual_column_is_refused_on_mysql() -> None:
    """Its keys have another order there; MariaDB keeps the text that came."""
    whole = "CREATE TABLE `t` (`j` JSON,`g` VARCHAR(40) GENERATED ALWAYS AS(UPPER(`j`)) VIRTUAL)"
    part = "CREATE TABLE `t` (`j` JSON,`g` VARCHAR(40) GENERATED ALWAYS AS(JSON_EXTRACT(`j`, '$.a')) VIRTUAL)"
    with pytest.raises(TargetError, match="JSON as text"):
        on_mysql(whole)
    assert on_mysql(part).sql == part
    assert on_mariadb(whole).sql == whole


UNSAID = {
    "CREATE TABLE `t` (`a` INT CHECK(`a`>0) NOT NULL,CHECK((`a`<9)),CONSTRAINT `c` CHECK(`a`<8))": (
        "CREATE TABLE `t` (`a` INT CHECK(`a`>0) NOT ENFORCED NOT NULL,CHECK((`a`<9)) NOT ENFORCED"
        ",CONSTRAINT `c` CHECK(`a`<8) NOT ENFORCED)"
    ),
    "ALTER TABLE `t` ADD CONSTRAINT `c` CHECK(`a`>0)": ("ALTER TABLE `t` ADD CONSTRAINT `c` CHECK(`a`>0) NOT ENFORCED"),
    "ALTER TABLE `t` ALTER CHECK `c` ENFORCED": "ALTER TABLE `t` ALTER CHECK `c` NOT ENFORCED",
    "ALTER TABLE `t` DROP CHECK `c`": "ALTER TABLE `t` DROP CHECK `c`",
}


@pytest.mark.parametrize("sql", UNSAID)
def test_mysql_enforces_no_check_of_which_nothing_is_said(sql: str) -> None:
    assert on_mysql(sql).sql == UNSAID[sql]


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


@pytest.mark.parametrize("definer", ["`r`@`%`", "r", "`r`", "CURRENT_USER", "CURRENT_USER()", "CURRENT_ROLE"])
def test_a_view_runs_under_the_user_that_makes_it(definer: str) -> None:
    sql = f"CREATE ALGORITHM = UNDEFINED DEFINER = {definer} SQL SECURITY DEFINER VIEW `v` AS SELECT definer = a"
    wanted = sql.replace(definer, "CURRENT_USER", 1)
    assert [adapt(sql).sql for adapt in (on_mysql, on_mariadb, for_tidb)] == [wanted] * 3


def test_tidb_is_given_decimals_of_their_own_scale() -> None:
    """It would round the default again whenever it reads a row that was there, with a warning."""
    sql = "ALTER TABLE `t` ADD COLUMN (`a` DECIMAL(30,0) DEFAULT _UTF8MB4'3.5',`b` INT DEFAULT '2.5'), COMMENT = 'c'"
    assert for_tidb(sql).sql == sql.replace("_UTF8MB4'3.5'", "4")
    made = "CREATE TABLE `t` (`a` DECIMAL(3,0) DEFAULT 2.5)"
    assert for_tidb(made).sql == made


@pytest.mark.parametrize("default", ["NEXTVAL(`s`)", "(NEXTVAL(`s`))"])
def test_tidb_is_given_no_default_from_a_sequence(default: str) -> None:
    for begins, ends in (("CREATE TABLE `t` (`id` INT,", ")"), ("ALTER TABLE `t` MODIFY COLUMN ", "")):
        result = for_tidb(f"{begins}`n` INT DEFAULT {default} COMMENT 'c'{ends}")
        assert result.sql == f"{begins}`n` INT  COMMENT 'c'{ends}"
        assert result.notes == ["left out: the default of column n, a sequence upstream"]


def test_tidb_is_sent_what_goes_by_the_zone_of_the_session_that_computed_it() -> None:
    made = (
        "CREATE TABLE `t` (`id` INT PRIMARY KEY,`ts` TIMESTAMP,"
        "`a` DATE GENERATED ALWAYS AS(DATE(`TS`)) STORED NOT NULL,"
        "`v` DATE GENERATED ALWAYS AS(DATE(`ts`)) VIRTUAL,`b` INT GENERATED ALWAYS AS(YEAR(`v`)) STORED,"
        "`c` INT GENERATED ALWAYS AS(`id` + 1) STORED,`d` DATETIME AS (FROM_UNIXTIME(`id`)) STORED)"
    )
    plain = (
        made.replace("`a` DATE GENERATED ALWAYS AS(DATE(`TS`)) STORED", "`a` DATE ")
        .replace("`b` INT GENERATED ALWAYS AS(YEAR(`v`)) STORED", "`b` INT ")
        .replace("`d` DATETIME AS (FROM_UNIXTIME(`id`)) STORED", "`d` DATETIME ")
    )
    result = for_tidb(made)
    assert result.sql == plain
    assert [note.split(" ")[1] for note in result.notes] == ["a", "b", "d"]
    assert for_tidb("CREATE TABLE `t` LIKE `u`").notes == []


@pytest.mark.parametrize(
    "key", ["PRIMARY KEY CLUSTERED", "PRIMARY KEY NONCLUSTERED", "PRIMARY KEY AUTO_RANDOM(5)", "UNIQUE GLOBAL"]
)
@pytest.mark.parametrize("stored", ["", ", `g` VARCHAR(30) AS (`s`) STORED"])
def test_tidb_s_own_words_are_read_where_columns_have_to_be(key: str, stored: str) -> None:
    made = f"CREATE TABLE `t` (`id` BIGINT {key},`s` TIMESTAMP{stored})"
    found = for_tidb(made)
    assert key in found.sql
    assert "STORED" not in found.sql


@pytest.mark.parametrize(
    "column",
    [
        "DOUBLE AS(`a` / 3)",
        "TIME AS(TIME(`d`))",
        "DATETIME GENERATED ALWAYS AS(`d`) VIRTUAL NOT NULL",
        "DECIMAL(9,1) AS(ROUND(`a`, 1))",
        "BIGINT AS(UNIX_TIMESTAMP(`d`))",
        "VARCHAR(9) AS(CAST(`a` AS CHAR))",
    ],
)
def test_a_virtual_column_that_mariadb_may_compute_otherwise_is_refused(column: str) -> None:
    """No message has its values; TiDB computes them as upstream does, MySQL some of them."""
    for sql in (f"CREATE TABLE `t` (`a` INT,`d` DATETIME(3),`g` {column})", f"ALTER TABLE `t` ADD COLUMN `g` {column}"):
        with pytest.raises(TargetError, match="VIRTUAL column 'g' otherwise than TiDB"):
            on_mariadb(sql)
        assert for_tidb(sql).sql == sql


@pytest.mark.parametrize(
    "column",
    [
        "INT AS(`a` + 1.5 * -`b`)",
        "VARCHAR(9) AS(CONCAT(`a`, _UTF8MB4'/', UPPER(`w`)))",
        "VARCHAR(9) AS(JSON_UNQUOTE(JSON_EXTRACT(`j`, _UTF8MB4'$.k')))",
        "TINYINT AS(CASE WHEN `a` IS NULL OR `a` >= 2 THEN 1 ELSE 0 END)",
        "DATE AS(DATE(`d`))",
    ],
)
def test_a_virtual_column_that_is_the_same_on_mariadb_stays(column: str) -> None:
    sql = f"ALTER TABLE `t` ADD COLUMN `g` {column} VIRTUAL"
    assert on_mariadb(sql).sql == sql


@pytest.mark.parametrize("server", [on_mariadb, on_mysql])
def test_numbers_are_not_filled_with_zeros_that_a_conversion_would_keep(server: partial[Adapted]) -> None:
    sql = "ALTER TABLE `t` ADD COLUMN `a` INT(8) UNSIGNED ZEROFILL NOT NULL, ADD COLUMN `b` SMALLINT ZEROFILL"
    assert server(sql).sql == (
        "ALTER TABLE `t` ADD COLUMN `a` INT(8) UNSIGNED  NOT NULL, ADD COLUMN `b` SMALLINT UNSIGNED"
    )

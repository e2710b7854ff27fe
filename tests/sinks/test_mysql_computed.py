"""Columns that the MySQL family computes: those of which no value comes have to be what they are upstream."""

from dataclasses import replace

import pytest

from ordering.errors import TargetError
from sinks.ddl.model import TypeDef
from sinks.mysql.ddl.translate import adapted, for_tidb
from tests.sinks.test_mysql_adapt import MARIADB, MYSQL, Server

STORED = "CREATE TABLE `t` (`id` INT PRIMARY KEY,`d` DOUBLE,`g` {} STORED)"


@pytest.mark.parametrize("server", [MARIADB, MYSQL])
@pytest.mark.parametrize(
    ("column", "reason"),
    [("DECIMAL(20,10) AS(`id` / 7)", "/"), ("VARCHAR(40) AS(`d`)", "DOUBLE as text"), ("TIME AS(`id`)", "TIME")],
)
def test_a_stored_column_of_a_dump_that_a_server_may_compute_otherwise_is_refused(
    server: Server, column: str, reason: str
) -> None:
    """What the server computed stayed, for messages' values of generated columns are not written."""
    sql = STORED.format(column)
    with pytest.raises(TargetError, match=rf"STORED column 'g' .*\({reason}\), and a dump lacks its values"):
        adapted(sql, replace(server, computes=True))
    assert "STORED" not in adapted(sql, server).sql


@pytest.mark.parametrize("server", [MARIADB, MYSQL])
def test_a_stored_column_of_a_dump_that_is_the_same_is_computed(server: Server) -> None:
    sql = STORED.format("BIGINT AS(`id` * 2)")
    assert adapted(sql, replace(server, computes=True)).sql == sql


@pytest.mark.parametrize("column", ["DATE AS(DATE(`ts`))", "DATETIME AS(FROM_UNIXTIME(`id`))"])
def test_tidb_does_not_compute_by_its_own_zone_what_a_dump_lacks(column: str) -> None:
    made = "CREATE TABLE `t` (`id` INT PRIMARY KEY,`ts` TIMESTAMP,`g` {} STORED)"
    with pytest.raises(TargetError, match=r"TiDB may compute STORED column 'g' .*time zone.* a dump lacks its values"):
        for_tidb(made.format(column), dumped=True)
    alike = made.format("INT AS(`id` / 7)")
    assert for_tidb(alike, dumped=True).sql == alike


BYTES = [
    "INT AS(LENGTH(`v`))",
    "VARCHAR(99) AS(HEX(`v`))",
    "CHAR(32) AS(MD5(CONCAT(`v`, _UTF8MB4'x')))",
    "BIGINT AS(CRC32(`v`))",
    "VARBINARY(40) AS(`v`)",
    "INT\nAS\n(`v` = BINARY `id`)",
]
LATIN = [
    "CREATE TABLE `t` (`id` INT,`v` VARCHAR(9) CHARACTER SET LATIN1,`g` {})",
    "CREATE TABLE `t` (`id` INT,`v` ENUM('é') COLLATE latin1_bin,`g` {})",
    "CREATE TABLE `t` (`id` INT,`v` TEXT,`g` {}) DEFAULT CHARSET=LATIN1",
    "CREATE TABLE `t` (`id` INT,`v` TEXT CHARSET latin1,`g`\n{})",
    "ALTER TABLE `t` ADD COLUMN `v` CHAR(9) CHARSET gb18030, ADD COLUMN `g` {}",
]


@pytest.mark.parametrize("server", [MARIADB, MYSQL])
@pytest.mark.parametrize("column", BYTES)
def test_a_virtual_column_that_shows_other_bytes_than_upstreams_is_refused(server: Server, column: str) -> None:
    """TiDB keeps latin1 in UTF-8: LENGTH('é') is 2 there, and 1 in MySQL."""
    added = "ALTER TABLE `t` ADD COLUMN `g` {}"
    there = replace(server, types={"id": TypeDef("int"), "v": TypeDef("varchar", charset="latin1")})
    unsaid = "CREATE TABLE `t` (`id` INT,`v` TEXT,`g` {})"
    of_database = replace(server, collation="latin1_bin")
    for sql, one in (*((sql, server) for sql in LATIN), (added, there), (unsaid, of_database)):
        with pytest.raises(TargetError, match=r"VIRTUAL column 'g' .*\(bytes of (latin1|gb18030)\)"):
            adapted(sql.format(column), one)
    for charset in ("", " CHARACTER SET UTF8MB4", " CHARSET ascii", " CHARSET binary"):
        made = f"CREATE TABLE `t` (`id` INT,`v` VARCHAR(9){charset},`g` {column})"
        assert column in adapted(made, server).sql
    assert adapted(LATIN[0].format("INT AS(CHAR_LENGTH(`v`))"), server).sql

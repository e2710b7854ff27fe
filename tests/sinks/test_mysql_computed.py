"""Columns that the MySQL family computes: those of which no value comes have to be what they are upstream."""

from dataclasses import replace

import pytest

from ordering.errors import TargetError
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

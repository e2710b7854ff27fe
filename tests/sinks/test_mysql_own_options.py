"""Options of TiDB's that would do something else in a target."""

import pytest

from sinks.mysql.ddl.translate import adapted, for_tidb
from tests.sinks.test_mysql_adapt import MARIADB, MYSQL, Server


@pytest.mark.parametrize("server", [MARIADB, MYSQL])
@pytest.mark.parametrize("how", ["HASH", "KEY"])
def test_linear_partitions_are_plain_ones_and_the_log_tells(server: Server, how: str) -> None:
    """TiDB puts a row of LINEAR HASH where HASH puts it."""
    plain = f"CREATE TABLE `t` (`id` INT PRIMARY KEY) PARTITION BY {how} (`id`) PARTITIONS 5"
    found = adapted(plain.replace(f"BY {how}", f"BY LINEAR {how}"), server)
    assert (found.sql, found.notes) == (plain, ["left out: LINEAR (TiDB has no such partitions)"])
    assert adapted(plain, server).notes == []


@pytest.mark.parametrize("server", [MARIADB, MYSQL])
@pytest.mark.parametrize("verb", ["ADD PARTITION {}PARTITIONS 2", "COALESCE PARTITION {}1"])
def test_replicas_of_the_target_get_each_statement(server: Server, verb: str) -> None:
    """TiDB reads the word and does nothing about it."""
    found = adapted(f"ALTER TABLE `t` {verb.format('NO_WRITE_TO_BINLOG ')}", server)
    assert found.sql.split() == f"ALTER TABLE `t` {verb.format('')}".split()
    assert found.notes == ["left out: NO_WRITE_TO_BINLOG (it has no effect in TiDB)"]


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE `t` (`ts` DATETIME) TTL = `ts` + INTERVAL 1 DAY TTL_ENABLE = '{}' TTL_JOB_INTERVAL='1h'",
        "ALTER TABLE `t` TTL_ENABLE='{}'",
    ],
)
def test_tidb_deletes_no_row_by_itself(sql: str) -> None:
    """A dump says TTL_ENABLE='ON', and the target would have deleted rows that upstream still has."""
    found = for_tidb(sql.format("ON"))
    assert found.sql == sql.format("OFF")
    assert found.notes == ["TTL_ENABLE is OFF in the target: upstream deletes the rows"]
    assert for_tidb(sql.format("OFF")).notes == []

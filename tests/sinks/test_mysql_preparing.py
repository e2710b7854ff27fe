"""What rows of MySQL and MariaDB need before a DDL: TiDB's way to round, done twice with the same result."""

import pytest

from ordering.events import TableName
from sinks.ddl.model import TypeDef
from sinks.ddl.parse.tables import changed_columns
from sinks.mysql.ddl.conversion_trial import is_same, message_text
from sinks.mysql.ddl.pre_conversion import prepared
from sinks.mysql.dialect import MysqlDialect
from sinks.rows.schema import Catalog, Column, Shape, TableSchema
from sinks.rows.values import ValueRules
from sinks.target_session import TargetSession
from sinks.tidb.dialect import TidbDialect
from sinks.uri import parse_target_uri

NAME = TableName("d", "t")
COLUMNS = (
    Column("id", "int", Shape.INTEGER),
    Column("s", "varchar(20)", Shape.TEXT),
    Column("m", "datetime(3)", Shape.DATETIME),
    Column("w", "time(2)", Shape.TIME),
    Column("n", "decimal(9,2)", Shape.TEXT),
    Column("f", "float", Shape.REAL),
)
CATALOG = Catalog({NAME: TableSchema(NAME, COLUMNS, ("id",), (("id",),))})


@pytest.mark.parametrize(
    ("clause", "expected"),
    [
        ("MODIFY COLUMN `s` INT", "UPDATE `d`.`t` SET `s` = CAST(ROUND(CAST(`s` AS DECIMAL(65,30))) AS CHAR)"),
        ("CHANGE COLUMN `M` `k` BIGINT", "UPDATE `d`.`t` SET `m` = CAST(`m` AS DATETIME)"),
        ("MODIFY COLUMN `w` INT", "UPDATE `d`.`t` SET `w` = CAST(`w` AS TIME)"),
        ("MODIFY COLUMN `n` INT", ""),
        ("MODIFY COLUMN `s` TEXT", ""),
        ("MODIFY COLUMN `f` FLOAT(7,2)", "UPDATE `d`.`t` SET `f` = FLOOR(`f`) + ROUND((`f` - FLOOR(`f`)) * 1e2) / 1e2"),
        ("MODIFY COLUMN `f` DOUBLE(7,2)", ""),
        ("MODIFY COLUMN `f` DOUBLE", ""),
        ("ADD COLUMN `x` INT", ""),
    ],
)
def test_what_the_server_rounds_in_another_way_is_rounded_first(clause: str, expected: str) -> None:
    found = list(prepared(f"ALTER TABLE `t` {clause}", "d", CATALOG))
    assert [sql.split(" WHERE ")[0] for sql in found] == ([expected] if expected else [])


def test_tidb_rounds_by_itself() -> None:
    sql = "ALTER TABLE `t` MODIFY COLUMN `s` INT"
    for dialect, count in ((MysqlDialect, 1), (TidbDialect, 0)):
        made = dialect(parse_target_uri("mysql://u@h:1"), ValueRules())
        at = TargetSession(made)
        at.assume(CATALOG)
        assert len(list(made.ddl(at)._prepared(sql, "d"))) == count


@pytest.mark.parametrize(
    ("kind", "shown", "spelled"),
    [
        (TypeDef("double", (9, 3)), "1", "1"),
        (TypeDef("double"), "1e20", "100000000000000000000"),
        (TypeDef("float"), "0.10000000149011612", "0.1"),
        (TypeDef("varbinary", (3,)), "61FF", "a\xff"),
        (TypeDef("decimal", (9, 3)), "1.000", "1.000"),
    ],
)
def test_values_are_converted_from_what_messages_say(kind: TypeDef, shown: str, spelled: str) -> None:
    assert message_text(shown, kind) == spelled


def test_which_types_a_statement_gives_to_columns() -> None:
    sql = "ALTER TABLE `t` MODIFY `a` ENUM('x','y\\') NOT NULL FIRST, DROP `d`, CHANGE COLUMN `b` `c` INT(9) UNSIGNED"
    found = [(change.old, change.column.name, source) for change, source in changed_columns(sql)]
    assert found == [("a", "a", "ENUM('x','y\\\\')"), ("b", "c", "INT(9) UNSIGNED")]


def test_what_is_one_value_of_a_type() -> None:
    assert is_same(TypeDef("float"), "123456.79", "123456.793")
    assert is_same(TypeDef("json"), '{"a": 1.0}', '{"a":1}')
    assert is_same(TypeDef("year"), "0", "0000")
    assert not is_same(TypeDef("varchar", (9,)), "1", "1.000")
    assert not is_same(TypeDef("double"), "0.1", "0.10000000000000002")

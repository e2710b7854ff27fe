"""Which column holds which upstream type: what our own DDL makes does, what would mean other values does not."""

import pytest

from consumer.ddl.check_columns import misfits
from ordering.events import TableName
from sinks.ddl.model import TypeDef
from sinks.mysql import catalog as mysql
from sinks.mysql.encoder import MysqlEncoder
from sinks.postgres import catalog as postgres
from sinks.postgres.types import type_of
from sinks.rows.column_fit import Holds, unlike
from sinks.rows.schema import Catalog, Column, Shape, TableSchema
from sinks.rows.values import ValueRules
from sinks.sqlite import catalog as sqlite

NAME = TableName("d", "t")


def mysql_column(kind: str) -> Column:
    """A column as information_schema names its type."""
    members = mysql.members_of(kind) if kind.startswith(("enum", "set")) else ()
    return Column("c", kind, mysql.shape_of(kind), members=members)


def postgres_column(kind: str) -> Column:
    """A column as format_type names its type."""
    return postgres._column(("c", kind, False, False, False, False, None), None)


def sqlite_column(kind: str) -> Column:
    """A column as it was declared."""
    return Column("c", kind, sqlite.shape_of(kind))


SAME = [
    "tinyint(1)", "smallint(6) unsigned", "mediumint(9)", "int(10) unsigned zerofill", "bigint(20)", "year(4)",
    "bit(8)", "decimal(10,2)", "float", "float unsigned", "double", "double(10,2)", "char(36)", "varchar(60)",
    "tinytext", "text", "mediumtext", "longtext", "binary(8)", "varbinary(60)", "tinyblob", "blob", "mediumblob",
    "longblob", "date", "datetime(6)", "timestamp", "time(3)", "enum('a','b')", "set('a','b')", "json", "vector(3)",
]  # fmt: skip


@pytest.mark.parametrize("kind", SAME)
def test_a_type_holds_itself(kind: str) -> None:
    column = mysql_column(kind)
    bare = kind.partition("(")[0] + kind.partition(")")[2]
    assert {unlike(sent, mysql.holds(column), column.members) for sent in (kind, bare)} == {""}


@pytest.mark.parametrize("base", sorted({kind.partition("(")[0].partition(" ")[0] for kind in SAME}))
def test_what_our_ddl_makes_on_postgres(base: str) -> None:
    numbers = (3,) if base in {"binary", "varbinary", "char", "varchar", "bit", "datetime"} else ()
    made = type_of(TypeDef(base, numbers))
    column = postgres_column(made)
    if base in {"enum", "set"}:  # the CHECK constraint tells
        column = Column("c", made, Shape(base))
    assert unlike(base, postgres.holds(column), column.members) == ""


BY_HAND = [
    (mysql, "varbinary(60)", "varchar"), (mysql, "blob", "text"), (mysql, "varchar(60)", "varbinary"),
    (mysql, "varchar(20)", "enum"), (mysql, "varchar(20)", "set"), (mysql, "text", "blob"), (mysql, "date", "datetime"),
    (mysql, "enum('1','0')", "varchar"), (mysql, "enum('1','0')", "int"), (mysql, "set('1','0')", "enum"),
    (mysql, "float", "double"), (mysql, "float", "int"), (mysql, "float", "decimal"), (mysql, "time", "datetime"),
    (mysql, "datetime", "time"), (mysql, "timestamp", "date"), (mysql, "json", "varchar"), (mysql, "int", "varchar"),
    (mysql, "binary(1)", "bit"), (mysql, "inet6", "varchar"), (mysql, "point", "varbinary"), (mysql, "int", "date"),
    (mysql, "year", "date"), (mysql, "int", "no-such-type"), (mysql, "bigint", "datetime"),
    (postgres, "bytea", "varchar"), (postgres, "text", "varbinary"), (postgres, "text", "enum"),
    (postgres, "numeric", "varchar"), (postgres, "inet", "varchar"),
    (postgres, "text[]", "varchar"), (postgres, "tsvector", "text"), (postgres, "date", "datetime"),
    (postgres, "real", "double"), (postgres, "real", "bigint"), (postgres, "time with time zone", "time"),
    (postgres, "jsonb", "varchar"), (postgres, "boolean", "varchar"), (postgres, "timestamp with time zone", "date"),
    (sqlite, "BLOB", "varchar"), (sqlite, "TEXT", "varbinary"), (sqlite, "VARBINARY(60)", "varbinary"),
    (sqlite, "TEXT", "enum"), (sqlite, "TEXT", "set"), (sqlite, "DATE", "varchar"), (sqlite, "DATETIME", "decimal"),
    (sqlite, "UUID", "char"), (sqlite, "STRING", "varchar"), (sqlite, "TIMESTAMP", "date"), (sqlite, "", "varchar"),
    (sqlite, "INTEGER", "datetime"), (sqlite, "JSON", "json"),
]  # fmt: skip


@pytest.mark.parametrize(("dialect", "column", "sent"), BY_HAND)
def test_what_would_mean_something_else(dialect: object, column: str, sent: str) -> None:
    made = {mysql: mysql_column, postgres: postgres_column, sqlite: sqlite_column}[dialect](column)  # type: ignore[index]
    table = Catalog({NAME: TableSchema(NAME, (made,), ("c",), (("c",),))}, holds=dialect.holds)  # type: ignore[attr-defined]
    (fact,) = misfits(NAME, {"c": sent, "absent": "blob"}, table, "UTC")
    assert all(part in fact for part in ("d.t", "'c'", sent, column))


@pytest.mark.parametrize(
    ("dialect", "column", "sent"),
    [
        (mysql, "bigint", "int"), (mysql, "varchar(20)", "decimal"), (mysql, "double", "float"), (mysql, "int", "enum"),
        (mysql, "datetime(6)", "timestamp"), (mysql, "uuid", "char"), (mysql, "text", "json"),
        (mysql, "datetime", "date"),
        (postgres, "public.citext", "varchar"), (postgres, "boolean", "tinyint"), (postgres, "uuid", "char"),
        (postgres, "numeric", "bigint unsigned"), (postgres, "time without time zone", "time"),
        (postgres, "timestamp(6) with time zone", "datetime"), (postgres, "json", "text"), (postgres, "integer", "set"),
        (sqlite, "DATETIME", "datetime"), (sqlite, "TEXT", "time"), (sqlite, "NUMERIC", "decimal"),
        (sqlite, "", "enum"),
    ],
)  # fmt: skip
def test_what_means_the_same(dialect: object, column: str, sent: str) -> None:
    made = {mysql: mysql_column, postgres: postgres_column, sqlite: sqlite_column}[dialect](column)  # type: ignore[index]
    assert unlike(sent, dialect.holds(made), ()) == ""  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("dialect", "column", "sent", "fits"),
    [
        (mysql, "timestamp", "timestamp(3)", True), (mysql, "datetime(3)", "timestamp(3)", False),
        (mysql, "timestamp", "datetime", False), (mysql, "datetime", "datetime", True),
        (mysql, "datetime", "date", True),
        (postgres, "timestamp(6) with time zone", "timestamp", True), (postgres, "text", "timestamp", False),
        (postgres, "timestamp(6) without time zone", "timestamp", False),
        (postgres, "timestamp(6) with time zone", "datetime", False),
        (sqlite, "TIMESTAMP(3)", "timestamp(3)", True), (sqlite, "timestamp with time zone", "timestamp", True),
        (sqlite, "DATETIME(3)", "timestamp(3)", False), (sqlite, "TIMESTAMP(3)", "datetime(3)", False),
        (sqlite, "TIMESTAMP WITHOUT TIME ZONE", "datetime", True), (sqlite, "TEXT", "datetime", True),
    ],
)  # fmt: skip
def test_moments_of_a_zone_other_than_utc(dialect: object, column: str, sent: str, fits: bool) -> None:
    made = {mysql: mysql_column, postgres: postgres_column, sqlite: sqlite_column}[dialect](column)  # type: ignore[index]
    assert (unlike(sent, dialect.holds(made), (), in_utc=False) == "") is fits  # type: ignore[attr-defined]


def test_members_that_messages_name_are_compared() -> None:
    assert unlike("enum('a','B')", Holds.ENUM, ("a", "B", "c")) == ""
    assert "members" in unlike("enum('B','a')", Holds.ENUM, ("a", "B"))
    assert "members" in unlike("set('a','b''c')", Holds.SET, ("a",))
    assert unlike("enum", Holds.ENUM, ("a", "B")) == ""


@pytest.mark.parametrize(
    ("kind", "text", "is_taken"),
    [
        ("char(5)", "a", True), ("char(5)", "a ", False), ("varchar(3)", "ab ", True), ("varchar(3)", "abc ", False),
        ("decimal(10,2)", "1.50", True), ("decimal(10,2)", "1.505", False), ("double(10,2)", "1.234", False),
        ("double", "9007199254740993", False), ("double", "0.30000000000000004", True), ("binary(4)", "abc", False),
        ("binary(4)", "abcd", True), ("date", "2026-01-02 00:00:01", False), ("date", "0000-00-00", True),
        ("datetime", "2026-01-02 00:00:01.5", False), ("time(1)", "00:00:01.25", False), ("uuid", "A" * 36, False),
        ("bigint", "1.5", False), ("bit(8)", "-1", False), ("year", "26", False),
    ],
)  # fmt: skip
def test_values_that_the_mysql_family_would_change(kind: str, text: str, is_taken: bool) -> None:
    encode = MysqlEncoder(ValueRules()).encode
    for rows in ([[text]], [[text], [None]]):
        if is_taken:
            assert encode([mysql_column(kind)], rows)
            continue
        with pytest.raises(ValueError, match=r"."):
            encode([mysql_column(kind)], rows)

"""Whatever a value is, one row is one line and one column one field, or the row is refused."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from unittest.mock import MagicMock

import msgspec
import pytest
import sqlglot
from hypothesis import given, settings
from hypothesis import strategies as st
from pymysql.connections import Connection

from ordering.errors import TargetError
from sinks.compare.repair_sql import Mender
from sinks.compare.value_forms import Form, Pair
from sinks.mysql.connection import MysqlConnection
from sinks.mysql.encoder import MysqlEncoder
from sinks.mysql.repair_sql import MysqlMender
from sinks.mysql.row_statements import literals
from sinks.postgres.encoder import PostgresEncoder
from sinks.postgres.repair_sql import PostgresMender
from sinks.rows.chunk import Encoder
from sinks.rows.schema import Column, Shape
from sinks.rows.tsv import NULL, FieldsOf, decode_rows, payload_of
from sinks.rows.values import ValueRules
from sinks.sqlite.encoder import SqliteEncoder
from sinks.sqlite.repair_sql import SqliteMender

ZONES = ["UTC", "+08:00", "America/New_York"]
MYSQL = {
    Shape.TEXT: ["text", "varchar(20)", "decimal(10,2)", "vector(3)"],
    Shape.INTEGER: ["int", "bigint unsigned", "year"],
    Shape.REAL: ["double", "float"],
    Shape.BYTES: ["blob"],
    Shape.BIT: ["bit(8)"],
    Shape.ENUM: ["enum('a','b')"],
    Shape.SET: ["set('a','b')"],
    Shape.DATE: ["date"],
    Shape.DATETIME: ["datetime(6)"],
    Shape.TIMESTAMP: ["timestamp", "timestamp(3)"],
    Shape.TIME: ["time(6)"],
    Shape.JSON: ["json"],
}
POSTGRES = {
    Shape.TEXT: ["text", "character varying(20)", "numeric(10,2)", "numeric"],
    Shape.INTEGER: ["bigint"],
    Shape.REAL: ["double precision", "real"],
    Shape.BYTES: ["bytea"],
    Shape.BIT: ["bit(8)"],
    Shape.ENUM: ["text"],
    Shape.SET: ["text"],
    Shape.DATE: ["date"],
    Shape.DATETIME: ["timestamp(6) without time zone"],
    Shape.TIMESTAMP: ["timestamp(6) with time zone"],
    Shape.TIME: ["interval(6)"],
    Shape.JSON: ["jsonb"],
}
MEMBERS = ("a", "b", "x\ty\nz", "²")


def columns_of(types: dict[Shape, list[str]]) -> list[Column]:
    return [
        Column(f"c{i}", kind, shape, members=MEMBERS if shape in (Shape.ENUM, Shape.SET) else ())
        for i, (shape, kind) in enumerate((shape, kind) for shape, kinds in types.items() for kind in kinds)
    ]


GOOD = [
    "0", "1", "-1", "12.50", "2026", "2026-11-22", "2026-11-22 10:00:00", "2026-11-22 10:00:00.123456", "10:00:00",
    "-838:59:59.000000", "0000-00-00 00:00:00", '{"a": 1}', "a", "a,b", "",
]  # fmt: skip
BREAKERS = [
    "\t", "\n", "\r", "\r\n", "\0", "\\", "\\N", "\\.", "'", '"', ";", "--", "²", "٣", "1_0", "nan", "inf", "-Infinity",
    "1e999999", "9" * 5000, "\u2028", "\x85", "\x1c", " ", "+05:00", "\n0\t1", "/*", "\ud800", "T", "now", "0x10", "A",
]  # fmt: skip
HOSTILE = st.one_of(
    st.builds(str.__add__, st.sampled_from(GOOD), st.sampled_from(BREAKERS)),
    st.builds(str.__add__, st.sampled_from(BREAKERS), st.sampled_from(GOOD)),
    st.tuples(st.sampled_from(GOOD), st.integers(0, 30), st.sampled_from(BREAKERS)).map(
        lambda t: t[0][: t[1]] + t[2] + t[0][t[1] :]
    ),
    st.text(max_size=30),
    st.sampled_from(GOOD),
)


def encoded(encoder: Encoder, column: Column, texts: Sequence[str]) -> bytes | None:
    try:
        return encoder.encode([column, column], [(text, text) for text in texts])
    except ValueError:
        return None


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize(
    ("encoder", "column"),
    [
        (kind, column)
        for kind, types in ((MysqlEncoder, MYSQL), (PostgresEncoder, POSTGRES))
        for column in columns_of(types)
    ],
    ids=lambda one: getattr(one, "type", getattr(one, "__name__", "")),
)
@settings(max_examples=40)
@given(texts=st.lists(HOSTILE, min_size=1, max_size=4))
def test_a_value_stays_in_its_field(encoder: type[MysqlEncoder], column: Column, zone: str, texts: list[str]) -> None:
    payload = encoded(encoder(ValueRules(zone)), column, texts)
    if payload is None:
        return
    assert payload.count(b"\n") == len(texts)
    assert payload.count(b"\t") == len(texts)
    assert not {b"\0", b"\r"} & {bytes([byte]) for byte in payload}
    rows = list(decode_rows(payload))
    assert [len(row) for row in rows] == [2] * len(texts)
    if column.type == "text" and column.shape is Shape.TEXT:
        assert rows == [[text, text] for text in texts]


@pytest.mark.parametrize("column", columns_of(MYSQL), ids=lambda one: one.type)
@settings(max_examples=30)
@given(text=HOSTILE)
def test_a_value_stays_in_its_sqlite_row(column: Column, text: str) -> None:
    for shape in (column.shape, Shape.EXACT):
        one = Column("c", column.type, shape, members=column.members)
        payload = encoded(SqliteEncoder(ValueRules()), one, [text])
        if payload is not None:
            ((first, second),) = msgspec.msgpack.decode(payload)
            assert first == second


ACCEPTED = [
    (Shape.TIMESTAMP, "timestamp", "2026-01-02 03:04:05"),
    (Shape.TIMESTAMP, "timestamp(6)", "2026-01-02 03:04:05.678901"),
    (Shape.DATETIME, "datetime", "2023-02-31 00:00:00"),
    (Shape.DATE, "date", "0000-00-00"),
    (Shape.TIME, "time", "-838:59:59"),
    (Shape.INTEGER, "bigint", "-9223372036854775808"),
    (Shape.REAL, "double", "-0"),
    (Shape.REAL, "double", "0." + "0" * 323 + "5"),
    (Shape.REAL, "double", "1.7976931348623157e+308"),
    (Shape.REAL, "double", "17976931348623157" + "0" * 292),
    (Shape.TEXT, "decimal(65,30)", "9" * 35 + "." + "9" * 30),
    (Shape.BIT, "bit(64)", "18446744073709551615"),
]


@pytest.mark.parametrize(("shape", "kind", "text"), ACCEPTED)
def test_what_upstream_sends_is_taken(shape: Shape, kind: str, text: str) -> None:
    assert MysqlEncoder(ValueRules()).encode([Column("c", kind, shape)], [[text]])
    assert SqliteEncoder(ValueRules()).encode([Column("c", kind, shape)], [[text]])
    if shape not in (Shape.DATE, Shape.DATETIME):  # PostgreSQL has no such dates
        named = {Shape.TIMESTAMP: "timestamp(6) with time zone", Shape.BIT: "bit(64)"}.get(shape, "x")
        assert PostgresEncoder(ValueRules()).encode([Column("c", named, shape)], [[text]])


@pytest.mark.parametrize(
    ("shape", "kind", "text"),
    [
        (Shape.TIMESTAMP, "timestamp", "2026-01-02 03:04:05\n9\t2026-01-02 03:04:05"),
        (Shape.INTEGER, "int", "²"),
        (Shape.INTEGER, "int", "٣"),
        (Shape.INTEGER, "bigint", "9" * 5000),
        (Shape.REAL, "float", "1_0"),
        (Shape.REAL, "float", "nan"),
        (Shape.REAL, "double", "1e9999"),
        (Shape.BIT, "bit(64)", "-1"),
        (Shape.DATE, "date", "2026-W01-1"),
        (Shape.DATETIME, "datetime", "2026-01-02 03:04:05+05:00"),
        (Shape.TIME, "time", "now"),
        (Shape.ENUM, "enum('a')", "²"),
        (Shape.SET, "set('a')", "٣"),
    ],
)
def test_what_no_server_sends_is_refused(shape: Shape, kind: str, text: str) -> None:
    column = Column("c", kind, shape, members=("a",))
    assert encoded(MysqlEncoder(ValueRules()), column, [text]) is None
    assert encoded(PostgresEncoder(ValueRules()), column, [text]) is None


def test_years_have_four_digits() -> None:
    year = Column("y", "year", Shape.INTEGER)
    assert MysqlEncoder(ValueRules()).encode([year], [["0"], ["2026"]]) == b"0000\n2026\n"
    for text in ("5", "99", "-1", "02026"):
        assert encoded(MysqlEncoder(ValueRules()), year, [text]) is None


@pytest.mark.parametrize("field", ["a\tb", "a\nb", "\n"])
def test_a_converter_that_lets_through_what_ends_a_field(field: str) -> None:
    with pytest.raises(ValueError, match="ends a field"):
        payload_of([FieldsOf(lambda _: field)], [["x"]])
    with pytest.raises(ValueError, match="ends a field"):
        payload_of([FieldsOf(lambda _: field), FieldsOf(lambda _: NULL)], [["x", "y"]])


class _Spelling:
    """The part of a connection that spells values."""

    spelled = MysqlConnection.spelled

    def __init__(self) -> None:
        self._connection = Connection(defer_connect=True, charset="utf8mb4")
        self._connection.server_status = 0


@pytest.mark.parametrize("column", columns_of(MYSQL), ids=lambda one: one.type)
@settings(max_examples=30)
@given(text=HOSTILE)
def test_a_multi_row_statement_has_a_literal_for_each_value(column: Column, text: str) -> None:
    payload = encoded(MysqlEncoder(ValueRules()), column, [text])
    if payload is None:
        return
    (row,) = literals(_Spelling(), [column, column], decode_rows(payload))  # type: ignore[arg-type]
    (values,) = sqlglot.parse(f"SELECT {row}", dialect="mysql")
    assert values is not None
    assert len(values.expressions) == 2
    assert row.count("\n") == 0


FORMS = [
    (Form.NUMBER, "bigint", Shape.INTEGER),
    (Form.NUMBER, "decimal(10,2)", Shape.EXACT),
    (Form.REAL, "double", Shape.REAL),
    (Form.FLOAT, "float", Shape.REAL),
    (Form.TEXT, "text", Shape.TEXT),
    (Form.BYTES, "blob", Shape.BYTES),
    (Form.BITS, "bit(8)", Shape.BIT),
    (Form.DATETIME, "datetime", Shape.DATETIME),
    (Form.TIMESTAMP, "timestamp", Shape.TIMESTAMP),
    (Form.JSON, "json", Shape.JSON),
]
SQL = HOSTILE | st.sampled_from(["1; DROP TABLE t", "1) OR (1=1", "0x1'; --", "1 /*", "'", "zz"])


@pytest.mark.parametrize("dialect", ["mysql", "postgres", "sqlite"])
@pytest.mark.parametrize(("form", "kind", "shape"), FORMS)
@settings(max_examples=30)
@given(text=SQL)
def test_sql_that_fixes_rows_has_one_literal_for_a_value(
    dialect: str, form: Form, kind: str, shape: Shape, text: str
) -> None:
    menders: dict[str, Mender] = {
        "mysql": MysqlMender(MagicMock()),
        "postgres": PostgresMender(MagicMock()),
        "sqlite": SqliteMender(MagicMock(), Path()),
    }
    if any(ord(char) in range(0xD800, 0xE000) for char in text):
        return  # no server and no message holds them
    column = Column("c", kind, shape)
    try:
        literal = menders[dialect].literal(Pair(column, column, form, exact=True, sized=True), text)
    except TargetError:
        assert dialect == "postgres"
        assert "\0" in text
        return
    assert len(literal.splitlines()) == 1
    if dialect == "sqlite":
        with closing(sqlite3.connect(":memory:")) as db:
            ((value,),) = db.execute(f"SELECT {literal}").fetchall()
        assert shape is not Shape.TEXT or value == text
        return
    (found,) = sqlglot.parse(f"SELECT {literal}", dialect=dialect)
    assert found is not None
    assert len(found.expressions) == 1
    assert not list(found.find_all(sqlglot.exp.Or, sqlglot.exp.Drop, sqlglot.exp.Column))

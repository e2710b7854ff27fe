"""How a message's texts become COPY's fields for PostgreSQL, and what is refused on the way."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sinks.postgres.encoder import PostgresEncoder, spelling
from sinks.rows.schema import Column, Shape
from sinks.rows.tsv import decode_rows
from sinks.rows.values import ValueRules

ERROR, NULL = ValueRules(), ValueRules(invalid_dates="null")
NEW_YORK = ValueRules(time_zone="America/New_York")
BYTES = Column("b", "bytea", Shape.BYTES)
TEXT = Column("t", "text", Shape.TEXT)


@given(st.lists(st.tuples(st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",))), st.none())))
def test_rows_come_back(rows: list[tuple[str, None]]) -> None:
    encoder = PostgresEncoder(ERROR)
    payload = encoder.encode([TEXT, TEXT], rows)
    assert [tuple(row) for row in decode_rows(payload)] == rows
    assert encoder.joined(encoder.split(payload)) == payload
    assert len(encoder.split(payload)) == len(rows)


def test_no_text_makes_a_field_or_a_row() -> None:
    assert PostgresEncoder(ERROR).encode([TEXT], [["a\tb\n\\.\r\n\\N"]]) == b"a\\tb\\n\\\\.\\r\\n\\\\N\n"


@pytest.mark.parametrize("text", ["-7.355183e-36", "3.4028235E+38", "0.123456789", "-123456789000"])
def test_an_exponent_is_none_of_the_digits_of_a_float(text: str) -> None:
    assert PostgresEncoder(ERROR).encode([Column("c", "real", Shape.REAL)], [[text]]) == text.encode() + b"\n"


def test_every_byte() -> None:
    text = bytes(range(256)).decode("latin-1")
    assert PostgresEncoder(ERROR).encode([BYTES], [[text]]) == b"\\\\x" + bytes(range(256)).hex().encode() + b"\n"


@pytest.mark.parametrize(
    ("kind", "shape", "text", "why"),
    [
        ("text", Shape.TEXT, "a\0b", "U\\+0000"),
        ("character varying(3)", Shape.TEXT, "abc ", "4 characters of at most 3"),
        ("numeric(10,2)", Shape.TEXT, "1.005", "more than 2 digits"),
        ("numeric(20,0)", Shape.TEXT, "1.5", "more than 0 digits"),
        ("real", Shape.REAL, "0.1234567891", "more digits than a 32-bit float"),
        ("bytea", Shape.BYTES, "日本", "latin-1"),
        ("bit(3)", Shape.BIT, "8", "no number of 3 bits"),
        ("bit(3)", Shape.BIT, "-1", "no number of 3 bits"),
        ("date", Shape.DATE, "0000-00-00", "is no date of the calendar"),
        ("date", Shape.DATE, "2024-00-00", "is no date of the calendar"),
        ("date", Shape.DATE, "2023-02-31", "is no date of the calendar"),
        ("timestamp(0) without time zone", Shape.DATETIME, "0000-00-00 00:00:00", "is no date of the calendar"),
        ("timestamp(0) without time zone", Shape.DATETIME, "2026-01-02 03:04:05.6", "digits of a second"),
        ("interval(3)", Shape.TIME, "00:00:00.0001", "digits of a second"),
    ],
)
def test_what_would_be_changed_is_refused(kind: str, shape: Shape, text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        PostgresEncoder(ERROR).encode([Column("c", kind, shape)], [[text]])


@pytest.mark.parametrize("text", ["0000-00-00", "2024-00-00", "2023-02-31"])
def test_invalid_dates_land_as_null(text: str) -> None:
    assert PostgresEncoder(NULL).encode([Column("d", "date", Shape.DATE)], [[text]]) == b"\\N\n"


@pytest.mark.parametrize(
    ("text", "utc"),
    [
        ("2024-07-01 12:00:00.500", "2024-07-01 16:00:00.500+00"),
        ("2024-11-03 01:30:00", "2024-11-03 05:30:00+00"),  # comes twice: the first
        ("2024-11-03 02:30:00", "2024-11-03 07:30:00+00"),
    ],
)
def test_timestamps_of_a_zone_with_summer_time(text: str, utc: str) -> None:
    column = Column("ts", "timestamp(3) with time zone", Shape.TIMESTAMP)
    assert spelling(column, NEW_YORK)(text) == utc


def test_members_by_number_and_by_name() -> None:
    enum = spelling(Column("e", "text", Shape.ENUM, members=("a", "b")), ERROR)
    assert [enum(text) for text in ("0", "1", "2", "b", "")] == ["", "a", "b", "b", ""]
    of_set = spelling(Column("s", "text", Shape.SET, members=("x", "y", "z")), ERROR)
    assert [of_set(text) for text in ("0", "5", "z,y", "")] == ["", "x,z", "y,z", ""]
    for text in ("3", "c"):
        with pytest.raises(ValueError, match="members"):
            enum(text)
    with pytest.raises(ValueError, match="members"):
        of_set("8")

"""Rows encoded together are rows encoded alone, and so is what is refused of them: a column is looked at as a whole."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sinks.mysql.encoder import MysqlEncoder
from sinks.postgres.encoder import PostgresEncoder
from sinks.rows.chunk import Encoder
from sinks.rows.schema import Column, Shape
from sinks.rows.values import ValueRules

ENCODERS = [MysqlEncoder(ValueRules()), PostgresEncoder(ValueRules(invalid_dates="null"))]
COLUMNS = [
    Column("n", "int", Shape.INTEGER),
    Column("t", "text", Shape.TEXT),
    Column("d", "date", Shape.DATE),
    Column("b", "bytea", Shape.BYTES),
]
TEXTS = st.none() | st.text("a\\N\t\n\r\0 é\u2028\u00a0", max_size=4)
NUMBERS = st.none() | st.sampled_from(["0", "12", "-7", "", "1.5", "-", "x"])
PLAIN = st.tuples(st.sampled_from(["0", "12"]), st.text("aé", max_size=3), st.just("2026-11-22"), st.just("\xff\0"))
ANY = st.tuples(NUMBERS, TEXTS, st.sampled_from([None, "2026-11-22", "0000-00-00"]), st.just("\xff\0"))


def _encoded(encoder: Encoder, rows: Sequence[Sequence[str | None]]) -> bytes | None:
    try:
        return encoder.encode(COLUMNS, rows)
    except ValueError:
        return None


@pytest.mark.parametrize("encoder", ENCODERS)
@given(st.lists(PLAIN | ANY, max_size=6))
def test_together_as_alone(encoder: Encoder, rows: list[tuple[str | None, ...]]) -> None:
    alone = [_encoded(encoder, [row]) for row in rows]
    refused = None in alone
    assert _encoded(encoder, rows) == (None if refused else b"".join(one for one in alone if one is not None))


@pytest.mark.parametrize("text", ["", "1.5", "x", "-", "--1"])
def test_one_text_that_is_no_number_among_numbers(text: str) -> None:
    with pytest.raises(ValueError, match="whole number"):
        MysqlEncoder(ValueRules()).encode(COLUMNS[:1], [["1"], [text], ["2"]])

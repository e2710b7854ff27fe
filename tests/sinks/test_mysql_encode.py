"""What LOAD DATA reads must be what was sent: escapes are told from data in every text."""

from hypothesis import given
from hypothesis import strategies as st

from sinks.mysql.encoder import MysqlEncoder
from sinks.rows.schema import Column, Shape
from sinks.rows.tsv import decode_rows
from sinks.rows.values import ValueRules

ENCODER = MysqlEncoder(ValueRules())
COLUMNS = [Column("t", "text", Shape.TEXT), Column("u", "text", Shape.TEXT), Column("b", "blob", Shape.BYTES)]
TEXTS = st.text(alphabet=st.one_of(st.sampled_from("\\\t\n\r\0N'\"u2028"), st.characters(codec="utf-8")), max_size=12)
ROWS = st.tuples(
    st.none() | TEXTS, st.none() | TEXTS, st.none() | st.binary(max_size=8).map(lambda b: b.decode("latin-1"))
)


@given(st.lists(ROWS, max_size=5))
def test_rows_survive_encoding(rows: list[tuple[str | None, ...]]) -> None:
    decoded = list(decode_rows(ENCODER.encode(COLUMNS, rows)))
    expected = [[*row[:2], None if row[2] is None else row[2].encode("latin-1").hex()] for row in rows]
    assert decoded == expected


@given(st.lists(ROWS, min_size=1, max_size=5))
def test_every_row_is_one_line_and_every_column_one_field(rows: list[tuple[str | None, ...]]) -> None:
    payload = ENCODER.encode(COLUMNS, rows)
    assert payload.count(b"\n") == len(rows)
    assert payload.count(b"\t") == len(rows) * (len(COLUMNS) - 1)
    assert b"\0" not in payload


def test_null_is_not_the_letters_that_spell_it() -> None:
    payload = ENCODER.encode(COLUMNS, [(None, "\\N", "")])
    assert payload == b"\\N\t\\\\N\t\n"

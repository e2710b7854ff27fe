"""A row change as halves, and what they do to a table."""

from hypothesis import given
from hypothesis import strategies as st

from ordering.events import Kind, RowOp
from ordering.rows.identity import ordinal
from ordering.rows.split_update import split
from ordering.timestamps import CommitTs

STAMPS = st.integers(1, 2**62).map(CommitTs)


@given(STAMPS, st.sampled_from(Kind), st.booleans())
def test_a_change_writes_its_key_unless_it_deletes_and_deletes_the_key_it_left(
    ts: CommitTs, kind: Kind, moved: bool
) -> None:
    own, left = split(kind, ts, moved=moved)
    assert own == ordinal(ts, RowOp.DELETE if kind is Kind.DELETE else RowOp.WRITE)
    assert left == (ordinal(ts, RowOp.DELETE) if moved and kind is not Kind.DELETE else None)


@given(STAMPS)
def test_raw_and_split_forms_of_an_update_agree(ts: CommitTs) -> None:
    raw = split(Kind.UPDATE, ts, moved=True)
    assert raw == (split(Kind.INSERT, ts, moved=False)[0], split(Kind.DELETE, ts, moved=False)[0])

"""Row keys, ordinals and fingerprints tell apart what differs, and nothing else."""

from hypothesis import given
from hypothesis import strategies as st

from ordering.events import RowOp, TableName
from ordering.rows.identity import (
    commit_ts_of,
    content_hash,
    fingerprint,
    key_values,
    ordinal,
    row_key,
    row_keys,
    row_keys_of_one,
    table_of,
)
from ordering.timestamps import MAX_TSO, CommitTs

TEXTS = st.text(alphabet="a0'.\x00é", max_size=3)
TABLES = st.builds(TableName, TEXTS, TEXTS)
VALUES = st.lists(st.none() | TEXTS, min_size=1, max_size=3)
STAMPS = st.integers(0, MAX_TSO >> 1).map(CommitTs)
HALVES = st.sampled_from(RowOp)


@given(TABLES, VALUES, TABLES, VALUES)
def test_row_keys_are_equal_exactly_if_table_and_values_are(
    table: TableName, values: list[str | None], other: TableName, others: list[str | None]
) -> None:
    assert (row_key(table, values) == row_key(other, others)) == ((table, values) == (other, others))
    key = row_key(table, values)
    assert (table_of(key), key_values(key)) == (table, values)


@given(TABLES, st.lists(st.none() | TEXTS, min_size=1, max_size=40))
def test_row_keys_of_one_table_are_the_same_bytes(table: TableName, values: list[str | None]) -> None:
    assert row_keys(table, len(values))(values) == row_key(table, values)
    assert row_keys_of_one(table)(values[0]) == row_key(table, values[:1])


@given(STAMPS, HALVES, STAMPS, HALVES)
def test_ordinals_sort_by_commit_ts_then_delete_before_write(
    ts: CommitTs, half: RowOp, other: CommitTs, others: RowOp
) -> None:
    assert (ordinal(ts, half) < ordinal(other, others)) == ((ts, half) < (other, others))
    assert commit_ts_of(ordinal(ts, half)) == ts
    assert ordinal(ts, RowOp.DELETE) < ordinal(ts, RowOp.WRITE)


@given(st.lists(st.tuples(TABLES, VALUES, STAMPS, HALVES), unique_by=repr, max_size=20))
def test_fingerprints_tell_events_apart(events: list[tuple[TableName, list[str | None], CommitTs, RowOp]]) -> None:
    prints = {fingerprint(row_key(table, values), ordinal(ts, half)) for table, values, ts, half in events}
    assert len(prints) == len(events)
    assert all(0 <= value < 2**64 for value in prints)


def test_fingerprints_are_the_same_for_ever() -> None:
    key = row_key(TableName("d", "t"), ["1", None])
    assert key == b"\x94\xa1d\xa1t\xa11\xc0"
    assert fingerprint(key, ordinal(CommitTs(2**63), RowOp.WRITE)) == FINGERPRINT
    assert content_hash(b"{}") == CONTENT


FINGERPRINT = 14644956626632781740
CONTENT = 1389868326933519382

"""Buckets follow commitTs, hold about as much as they should, and part a transaction only by keys."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from ordering.rows.bucketing import evenly, largest, spread_of

TRANSACTIONS = st.dictionaries(st.integers(1, 60), st.integers(1, 40), min_size=1, max_size=30)


def exact(transactions: dict[int, int]) -> list[tuple[int, int]]:
    """The histogram as tasks make it, with a point before each transaction."""
    points: dict[int, int] = {}
    upto = 0
    for ts in sorted(transactions):
        points.setdefault(ts - 1, upto)
        upto += transactions[ts]
        points[ts] = upto
    return list(points.items())


@given(TRANSACTIONS, st.integers(1, 50))
def test_buckets_are_in_the_order_of_commits_and_not_too_full(transactions: dict[int, int], rows: int) -> None:
    spread = spread_of([exact(transactions)], rows)
    buckets = [sorted({spread.bucket(ts, key) for key in range(100)}) for ts in sorted(transactions)]
    for before, after in pairwise(buckets):
        assert before[-1] <= after[0]
        assert before[-1] < after[0] or len(before) == len(after) == 1
    assert largest(spread, [exact(transactions)]) <= rows
    assert buckets[-1][-1] < spread.buckets


@given(TRANSACTIONS, st.sets(st.integers(0, 70)), st.integers(1, 50))
def test_transactions_that_nobody_counted_are_in_order_too(
    transactions: dict[int, int], uncounted: set[int], rows: int
) -> None:
    spread = spread_of([exact(transactions)], rows)
    buckets = [sorted({spread.bucket(ts, key) for key in range(100)}) for ts in sorted({*transactions, *uncounted})]
    for before, after in pairwise(buckets):
        assert before[-1] < after[0] or (before == after and len(before) == 1)
    assert buckets[-1][-1] < spread.buckets


@given(TRANSACTIONS, st.integers(1, 9))
def test_without_knowledge_the_span_is_cut_evenly(transactions: dict[int, int], buckets: int) -> None:
    spread = evenly(0, 60, buckets)
    assert spread.buckets == buckets
    found = [spread.bucket(ts, 7) for ts in sorted(transactions)]
    assert found == sorted(found)
    assert found[0] >= 0
    assert found[-1] < buckets


def test_a_large_transaction_has_buckets_of_its_own() -> None:
    spread = spread_of([exact({5: 3, 7: 1000, 9: 4}), exact({6: 2, 7: 1000})], 100)
    assert spread.sizes == (1, 20, 1)
    assert {spread.bucket(7, key) for key in range(1000)} == set(range(1, 21))
    assert (spread.bucket(6, 1), spread.bucket(8, 1), spread.bucket(99, 1)) == (0, 21, 21)
    assert largest(evenly(0, 9, 3), [exact({5: 3, 7: 1000, 9: 4})]) == 1004


def test_nothing_is_one_empty_bucket() -> None:
    assert spread_of([], 10).buckets == 1

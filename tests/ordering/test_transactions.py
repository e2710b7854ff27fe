"""Transactions out of runs of halves: each once, in commitTs order, deletes first."""

from hypothesis import given
from hypothesis import strategies as st

from ordering.rows.transactions import in_order, sort_key, transactions
from tests.ordering.halves import TRANSACTIONS, Transaction, applied, applied_net, halves_of, key, scattered

START = {key(1): b"old"}


@given(TRANSACTIONS, st.data())
def test_runs_lead_through_every_upstream_state(given_: list[Transaction], data: st.DataObject) -> None:
    runs = [sorted(group, key=sort_key) for group in data.draw(scattered(halves_of(given_)))]
    table, seen = START, 0
    for commit_ts, group in transactions(in_order(runs)):
        halves = list(group)
        assert halves == sorted(halves, key=sort_key)
        assert len({(k, order) for k, order, *_ in halves}) == len(halves)
        assert commit_ts > seen
        table, seen = applied_net(table, halves), commit_ts
        assert table == applied(START, given_[:commit_ts])
    assert table == applied(START, given_)


def test_of_two_halves_with_one_identity_the_larger_image_stays() -> None:
    for runs in ([[(b"k", 3, b"a", 0), (b"k", 3, b"b", 0)]], [[(b"k", 3, b"b", 0)], [(b"k", 3, b"a", 0)]]):
        assert list(in_order(runs)) == [(b"k", 3, b"b", 0)]

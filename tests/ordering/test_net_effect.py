"""A net effect is what transactions in order come to, whatever happened to their halves on the way."""

from itertools import chain

from hypothesis import given
from hypothesis import strategies as st

from ordering.rows.net_effect import NetEffect, net_effect
from tests.ordering.halves import TRANSACTIONS, Transaction, applied, applied_net, halves_of, key, scattered

START = {key(0): b"old", key(3): b"older"}


@given(TRANSACTIONS, st.data())
def test_any_order_grouping_and_repetition_give_what_the_transactions_give(
    transactions: list[Transaction], data: st.DataObject
) -> None:
    groups = data.draw(scattered(halves_of(transactions)))
    net = net_effect(chain.from_iterable(net_effect(group) for group in groups))
    assert applied_net(START, net) == applied(START, transactions)
    assert len({k for k, *_ in net}) == len(net)


@given(TRANSACTIONS, st.data())
def test_a_net_effect_may_be_applied_again(transactions: list[Transaction], data: st.DataObject) -> None:
    net = net_effect(data.draw(scattered(halves_of(transactions)))[0])
    once = applied_net(START, net)
    assert applied_net(once, net) == once


@given(TRANSACTIONS, st.data())
def test_what_is_held_is_known_in_bytes(transactions: list[Transaction], data: st.DataObject) -> None:
    net = NetEffect()
    for half in chain.from_iterable(data.draw(scattered(halves_of(transactions)))):
        net.add(*half)
        assert net.bytes_held == sum(len(k) + len(image) for k, (_, image, _) in net.rows.items())
    held = len(net.rows)
    assert len(net.drain()) == held
    assert (net.rows, net.bytes_held) == ({}, 0)


def test_of_two_halves_with_one_ordinal_the_larger_image_stays_in_any_order() -> None:
    halves = [(b"k", 3, b"a", 0), (b"k", 3, b"b", 0)]
    assert net_effect(halves) == net_effect(reversed(halves)) == [(b"k", 3, b"b", 0)]

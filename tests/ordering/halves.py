"""Random upstream transactions as halves, and the table that they lead to: the model of order and net effect."""

from typing import NamedTuple

from hypothesis import strategies as st

from ordering.events import RowOp, TableName
from ordering.rows.identity import ordinal, row_key
from ordering.rows.net_effect import KeyChange
from ordering.timestamps import CommitTs

T = TableName("d", "t")
Table = dict[bytes, bytes]


class Transaction(NamedTuple):
    """Keys that a transaction deletes, and rows that it writes."""

    deletes: frozenset[int]
    writes: dict[int, str]


KEYS = st.integers(0, 3)
TRANSACTIONS = st.lists(
    st.builds(Transaction, st.frozensets(KEYS), st.dictionaries(KEYS, st.text("xyz", min_size=1, max_size=2))),
    max_size=5,
)


def key(number: int) -> bytes:
    """The row key of a number."""
    return row_key(T, [str(number)])


def halves_of(transactions: list[Transaction]) -> list[KeyChange]:
    """Their halves, at commitTs 1, 2, ..."""
    found: list[KeyChange] = []
    for at, transaction in enumerate(transactions, 1):
        found += [(key(k), ordinal(CommitTs(at), RowOp.DELETE), b"", 0) for k in sorted(transaction.deletes)]
        found += [(key(k), ordinal(CommitTs(at), RowOp.WRITE), v.encode(), 0) for k, v in transaction.writes.items()]
    return found


def applied(table: Table, transactions: list[Transaction]) -> Table:
    """The table after the transactions, one by one, in each all deletes before all writes."""
    table = dict(table)
    for transaction in transactions:
        for k in transaction.deletes:
            table.pop(key(k), None)
        table.update({key(k): v.encode() for k, v in transaction.writes.items()})
    return table


def applied_net(table: Table, halves: list[KeyChange]) -> Table:
    """The table after a net effect: all deletes, then all writes."""
    table = dict(table)
    for k, order, *_ in halves:
        if order & 1 == RowOp.DELETE:
            table.pop(k, None)
    table.update({k: image for k, order, image, _ in halves if order & 1 == RowOp.WRITE})
    return table


@st.composite
def scattered(draw: st.DrawFn, halves: list[KeyChange]) -> list[list[KeyChange]]:
    """The halves in any order, some repeated, in any number of groups."""
    again = draw(st.lists(st.sampled_from(halves), max_size=5)) if halves else []
    shuffled = draw(st.permutations([*halves, *again]))
    cuts = sorted(draw(st.lists(st.integers(0, len(shuffled)), max_size=4)))
    return [shuffled[a:b] for a, b in zip([0, *cuts], [*cuts, len(shuffled)], strict=True)]

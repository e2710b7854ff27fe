"""Upstream transactions out of sorted halves, for `transaction` consistency.

All rows of a transaction share its commitTs; two transactions that share one never touch the same row and count as one.
The identity of a half is (row key, ordinal): an exact repetition is dropped here, wherever it came from (R3).
"""

import heapq
from collections.abc import Iterable, Iterator
from itertools import groupby

from ordering.rows.identity import commit_ts_of
from ordering.rows.net_effect import KeyChange
from ordering.timestamps import CommitTs


def in_order(runs: Iterable[Iterable[KeyChange]]) -> Iterator[KeyChange]:
    """Merge sorted runs into one, by commitTs, then DELETE before WRITE, then row; each half once.

    Of two with one identity, which mean the same, the larger image stays, as in the net effect; of an UPDATE and the
    INSERT that TiCDC split it into, the INSERT: its DELETE is there as well.
    """
    last: KeyChange | None = None
    for half in heapq.merge(*runs, key=sort_key):
        if last is not None:
            if half[1] == last[1] and half[0] == last[0]:
                last = (*half[:2], max(last[2], half[2]), min(last[3], half[3]))
                continue
            yield last
        last = half
    if last is not None:
        yield last


def sort_key(half: KeyChange) -> tuple[int, bytes]:
    """R4's order: ordinal, then row key."""
    return half[1], half[0]


def transactions(halves: Iterable[KeyChange]) -> Iterator[tuple[CommitTs, Iterator[KeyChange]]]:
    """Group ordered halves by commitTs."""
    return groupby(halves, key=lambda half: commit_ts_of(half[1]))

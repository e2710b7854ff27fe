"""Spreads the rows of a window over buckets in commitTs order, for `transaction` consistency.

What is read bucket after bucket comes transaction after transaction. A transaction that is too large for one bucket has
several of its own, over which its rows are spread by key.
"""

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass

from ordering.window import Histogram, merged


@dataclass(frozen=True, slots=True)
class Spread:
    """Groups of buckets; group i holds what is above bound i - 1 and not above bound i, the last one all the rest."""

    bounds: tuple[int, ...]
    sizes: tuple[int, ...]
    """Buckets of each group; more than one only where it holds a single commitTs."""
    firsts: tuple[int, ...]

    @property
    def buckets(self) -> int:
        """How many there are."""
        return self.firsts[-1] + self.sizes[-1]

    def bucket(self, commit_ts: int, key_hash: int) -> int:
        """The bucket of a row, from 0."""
        group = min(bisect_left(self.bounds, commit_ts), len(self.bounds) - 1)
        return self.firsts[group] + key_hash % self.sizes[group]


def spread_of(histograms: Iterable[Histogram], rows: int) -> Spread:
    """Groups with about so many rows a bucket, as far as the histograms tell; what they can't tell stays together.

    There may be transactions that no histogram tells of: rows of a table that was not known yet when they were counted.
    So the group of a large one begins right before it, and ends with it, whether or not any row is known to lie there.
    """
    bounds: list[int] = []
    sizes: list[int] = []
    held = 0
    last_ts = last_upto = 0
    for ts, upto in merged(histograms):
        more = upto - last_upto
        is_one = last_ts == ts - 1
        if held and held + more > rows:
            bounds.append(last_ts)
            sizes.append(1)
            held = 0
        if is_one and more > rows:
            if not bounds or bounds[-1] != last_ts:
                bounds.append(last_ts)
                sizes.append(1)
            bounds.append(ts)
            sizes.append(-(-more // rows))
        else:
            held += more
        last_ts, last_upto = ts, upto
    if held or not bounds or sizes[-1] > 1:
        bounds.append(last_ts + (not held))
        sizes.append(1)
    firsts = [sum(sizes[:i]) for i in range(len(sizes))]
    return Spread(tuple(bounds), tuple(sizes), tuple(firsts))


def evenly(low: int, high: int, buckets: int) -> Spread:
    """What is best while nothing is known of the rows between two timestamps: groups of equal width."""
    width = max(1, high - low)
    bounds = sorted({low + width * (i + 1) // buckets for i in range(buckets)})
    return Spread(tuple(bounds), (1,) * len(bounds), tuple(range(len(bounds))))


def largest(spread: Spread, histograms: Iterable[Histogram]) -> int:
    """About how many rows the fullest bucket has."""
    rows = [0] * len(spread.bounds)
    last = 0
    for ts, upto in merged(histograms):
        rows[min(bisect_left(spread.bounds, ts), len(rows) - 1)] += upto - last
        last = upto
    return max(count // size for count, size in zip(rows, spread.sizes, strict=True))

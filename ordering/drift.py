"""Drift: how many rows a target held against how many it has to hold, by what the events say was there before.

The first event of a row in a window tells whether the row was there when the window began: it was, unless that event is
an INSERT, or the half of an UPDATE that gives a row its new key. So a statement over n rows that the window touches has
to meet exactly those that were there. Where it met fewer, the target has lost rows before; where it met more, it holds
rows that the upstream does not have.

How far back a row's first event lies is carried with its last one, as a distance in ordinals
(`ordering.rows.net_effect`): an INSERT and a DELETE are 0 away from themselves, an UPDATE is 1 away from the DELETE
half of its own commitTs, for both say that the row was there. The ordinal of the first event is thus even exactly if
the row was there.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ordering.events import TableName

FROM_NOTHING, FROM_A_ROW = 0, 1
"""The distance of an INSERT or a DELETE, and of an UPDATE that keeps its key."""


class Met(NamedTuple):
    """How many of a statement's rows the target held before, as far as its driver tells: from `least` to `most`."""

    least: int
    most: int


class Drift(NamedTuple):
    """Rows of one table that were not there though the events say so, and that were there though they say no."""

    missing: int
    unexpected: int


Drifts = Mapping[TableName, Drift]
NO_DRIFT: Drifts = {}


def missed(order: int, back: int) -> int:
    """1 for a row that was not there before the first event that this half stands for, else 0."""
    return (order - back) & 1


def drift_of(expected: int, met: Met) -> Drift:
    """The difference between what a statement had to meet and what it met."""
    return Drift(max(0, expected - met.most), max(0, met.least - expected))


def summed(found: Iterable[tuple[TableName, Drift]]) -> Drifts:
    """Drifts by table; a table without any is left out."""
    total: dict[TableName, Drift] = {}
    for table, (missing, unexpected) in found:
        if missing or unexpected:
            known = total.get(table, Drift(0, 0))
            total[table] = Drift(known.missing + missing, known.unexpected + unexpected)
    return total


def text_of(drifts: Drifts) -> str:
    """The differences, for people."""
    return "; ".join(
        f"{table}: {missing} rows missing, {unexpected} rows that should not be there"
        for table, (missing, unexpected) in sorted(drifts.items())
    )

"""The order of the tests among several processes: none is left alone at the end with a test that takes a minute."""

from collections import defaultdict
from collections.abc import Sequence
from itertools import chain, islice

import pytest


def is_long(item: pytest.Item) -> bool:
    """Whether a test may take more than seconds: those that start Spark, and those of which a run takes a third."""
    return any(item.get_closest_marker(mark) is not None for mark in ("spark", "by_turns"))


def dealt(items: Sequence[pytest.Item], hands: int) -> list[pytest.Item]:
    """The same tests, the long ones first in each of the equal parts with which xdist's `worksteal` begins.

    Tests of one file stay together, for what they share; else the order of either sort is kept.
    """
    files = defaultdict(list)
    for item in items:
        if is_long(item):
            files[item.path].append(item)
    parts: list[list[pytest.Item]] = [[] for _ in range(hands)]
    for file in files.values():
        min(parts, key=len).extend(file)
    short = (item for item in items if not is_long(item))
    for part in parts:
        part.extend(islice(short, max(0, len(items) // hands - len(part))))
    return [*chain.from_iterable(parts), *short]

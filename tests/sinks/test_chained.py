"""Chains of operators that are longer than a parser nests."""

import sqlite3
from contextlib import closing

import pytest

from sinks.rows.chained import chained

LONG = 3_000
"""SQLite takes 1,000 levels."""


@pytest.mark.parametrize("count", [1, 2, 100, 101, LONG])
def test_a_long_chain_is_no_deep_one(count: int) -> None:
    numbers = [str(number) for number in range(count)]
    with closing(sqlite3.connect(":memory:")) as connection:
        told = chained(" || '|' || ", ["?"] * count)
        assert connection.execute(f"SELECT {told}", numbers).fetchone() == ("|".join(numbers),)
        either = chained(" OR ", [f"? = '{number}'" for number in numbers])
        assert connection.execute(f"SELECT {either}", ["x"] * (count - 1) + numbers[-1:]).fetchone() == (1,)


def test_a_short_chain_has_no_brackets() -> None:
    assert chained(" AND ", ["a", "b"]) == "a AND b"
    assert not chained(" AND ", [])

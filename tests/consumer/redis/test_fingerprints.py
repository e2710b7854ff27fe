"""Sets of fingerprints against Python's own sets."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from consumer.redis.fingerprints import Fingerprints, ambiguous, count_distinct, distinct

SMALL = st.lists(st.integers(0, 5) | st.integers(2**64 - 3, 2**64 - 1), max_size=12)


def array(values: list[int]) -> Fingerprints:
    return np.array(values, dtype=np.uint64)


@given(SMALL)
def test_distinct_is_a_sorted_set(values: list[int]) -> None:
    assert distinct(array(values)).tolist() == sorted(set(values))
    assert count_distinct(array(values)) == len(set(values))


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), max_size=12))
def test_ambiguous_are_those_with_two_contents(pairs: list[tuple[int, int]]) -> None:
    contents: dict[int, set[int]] = {}
    for key, content in pairs:
        contents.setdefault(key, set()).add(content)
    found = ambiguous(array([key for key, _ in pairs]), array([content for _, content in pairs]))
    assert found == {key for key, some in contents.items() if len(some) > 1}

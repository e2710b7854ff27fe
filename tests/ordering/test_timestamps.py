"""TSOs for people."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from ordering.timestamps import LOGICAL_BITS, MAX_TSO, physical_ms, utc_text

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@given(st.integers(1, 253_402_300_799_000), st.integers(0, 2**LOGICAL_BITS - 1))
def test_a_tso_is_milliseconds_and_a_counter(ms: int, logical: int) -> None:
    tso = ms << LOGICAL_BITS | logical
    assert physical_ms(tso) == ms
    assert datetime.fromisoformat(utc_text(tso) + "+00:00") == EPOCH + timedelta(milliseconds=ms)


@given(st.integers(0, MAX_TSO))
def test_every_tso_has_a_text(tso: int) -> None:
    assert utc_text(tso)


def test_nothing_yet_is_a_dash() -> None:
    assert utc_text(0) == "-"

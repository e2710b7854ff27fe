"""A leader is given up only after its silence, by the stand-by's own clock."""

import pytest

from ordering.takeover import Sign, Watch

LEASE_S = 6.0


def sign(beats: int, epoch: int = 1) -> Sign:
    return Sign("a", epoch, beats)


def test_a_leader_that_goes_on_is_never_given_up() -> None:
    watch = Watch(LEASE_S)
    assert not any(watch.is_gone(now, sign(now // 2), leased) for now in range(100) for leased in (True, None))
    assert watch.changes == 49


@pytest.mark.parametrize(("leased", "after_s"), [(None, 6.0), (True, 6.0), (False, 3.0)])
@pytest.mark.parametrize("found", [sign(7), None])
def test_silence_ends_patience_sooner_where_the_lease_has_run_out(
    leased: bool | None, after_s: float, found: Sign | None
) -> None:
    watch = Watch(LEASE_S)
    assert not watch.is_gone(100.0, found, leased)
    assert not watch.is_gone(100.0 + after_s - 0.01, found, leased)
    assert watch.is_gone(100.0 + after_s, found, leased)


def test_a_lease_that_ran_out_does_not_outweigh_a_sign_of_life() -> None:
    watch = Watch(LEASE_S)
    assert not any(watch.is_gone(2.0 * beat, sign(beat), leased=False) for beat in range(20))


def test_another_leader_is_a_new_sign() -> None:
    watch = Watch(LEASE_S)
    watch.is_gone(0.0, sign(5), None)
    assert not watch.is_gone(6.0, sign(5, epoch=2), None)
    assert watch.is_gone(12.0, sign(5, epoch=2), None)

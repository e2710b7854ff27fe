"""Histories without watermarks: TiCDC's checkpoint is asked for, is silent at times, and goes back."""

import pytest

from tests.cells import half
from tests.simulation.world import run_seed

HISTORIES = 60


@pytest.mark.parametrize("first", range(0, HISTORIES, 20))
def test_histories_converge(first: int) -> None:
    for seed in half(range(first, first + 20)):
        run_seed(seed, outside=True)


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_many_more_histories_converge() -> None:
    for seed in range(3_000):
        run_seed(seed, outside=True)

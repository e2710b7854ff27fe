"""Many histories, each with its own mishaps; a failing seed prints how to run it again."""

from collections import Counter

import pytest

from tests.cells import half
from tests.simulation.plan import planned
from tests.simulation.world import run_seed

HISTORIES = 150
SOAK = 5_000
MISHAPS = ("raw", "restart_every", "full_replays", "duplicates", "lags", "stuck")


@pytest.mark.parametrize("first", range(0, HISTORIES, 25))
def test_histories_converge(first: int) -> None:
    for seed in half(range(first, first + 25)):
        run_seed(seed)


@pytest.mark.parametrize("seed", [5302, 900082])
def test_histories_that_were_wrong_once(seed: int) -> None:
    run_seed(seed)


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_many_more_histories_converge() -> None:
    for seed in range(HISTORIES + SOAK):
        run_seed(seed)


def test_the_seeds_make_all_sorts_of_worlds() -> None:
    seen: Counter[object] = Counter()
    for seed in range(HISTORIES):
        plan = planned(seed)
        feed = plan.feed
        seen.update([plan.workload, plan.consistency, plan.redis, feed["dispatcher"], feed["topic"], *plan.faults])
        seen.update(name for name in MISHAPS if feed.get(name))
    assert len(seen) == 2 + 3 + 3 + 5 + 3 + 7 + 6
    assert min(seen.values()) >= 5


def test_a_history_is_a_function_of_its_seed() -> None:
    assert run_seed(7) == run_seed(7)

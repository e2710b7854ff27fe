"""Histories that go on from an archive where retention was faster, and back, with crashes at every step."""

from collections import Counter
from pathlib import Path

import pytest

from tests.cells import half
from tests.simulation.archive import ArchiveWorld

HISTORIES = 24
SWITCHING = {8, 14}
"""Of these, such as switch often: in each part."""
SEEDS = (12, 5, 22)


@pytest.mark.parametrize("first", range(0, HISTORIES, 12))
def test_histories_converge(first: int, tmp_path: Path) -> None:
    went: Counter[str] = Counter()
    for seed in sorted({*half(range(first, first + 12)), *(SWITCHING & {*range(first, first + 12)})}):
        world = ArchiveWorld(seed, tmp_path / str(seed))
        try:
            world.run()
        except Exception as error:
            error.add_note(f"seed {seed}: {world.plan}, {world.went}")
            raise
        went.update(world.went)
    assert went["to the archive"] > 3
    assert went["back"] > 1


def story(seed: int, consistency: str, root: Path, crash_at: int = 0) -> ArchiveWorld:
    """A small history without other faults."""
    world = ArchiveWorld(
        seed, root, crash_at=crash_at, consistency=consistency, faults={}, workload="churn", transactions=12, ddl=0.3,
        window_rows=10, start_at=None, redis="stable", buckets=2, tasks=2,
    )  # fmt: skip
    world.run_story()
    return world


CONSISTENCIES = ("snapshot", "transaction", "row")


@pytest.mark.parametrize("consistency", CONSISTENCIES)
def test_a_crash_at_a_step_near_a_switch_changes_nothing(consistency: str, tmp_path: Path) -> None:
    whole = story(SEEDS[0], consistency, tmp_path / "whole")
    assert whole.went == {"to the archive": 1, "back": 1}
    for number in sorted({at + more for at in whole.turned_at for more in range(-4, 5)}):
        story(SEEDS[0], consistency, tmp_path / str(number), crash_at=number)


@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("consistency", CONSISTENCIES)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_crash_at_any_step_changes_nothing(consistency: str, seed: int, tmp_path: Path) -> None:
    for number in range(1, story(seed, consistency, tmp_path / "whole").steps + 1):
        story(seed, consistency, tmp_path / str(number), crash_at=number)


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_many_more_histories_converge(tmp_path: Path) -> None:
    for seed in range(1_000):
        ArchiveWorld(seed, tmp_path / str(seed)).run()

"""Tables that take each other's names between rows (`tests.histories.crossing`), in one window of many segments.

Each row is applied to the table that had its name at its commitTs, as it was then: also where the segment that holds it
was read before the DDLs in front of it ran, where TiCDC sends rows again from behind a DDL, and where drivers die.
"""

import random
from collections import Counter

import pytest

from sinks.target import Step
from tests.service.cells import VECTORS, differences, oracle
from tests.service.ddl.test_ddl import TARGETS, made
from tests.service.lab import recorded
from tests.service.local import Killed, LocalFeed

__all__ = ["made"]
pytestmark = pytest.mark.service

CONSISTENCIES = ("snapshot", "transaction", "row")
HISTORIES = sorted(path.name.removesuffix(".jsonl.gz") for path in VECTORS.glob("crossing-*.jsonl.gz"))


@pytest.mark.cells("history", ("consistency", "native"), "window_rows")
@pytest.mark.parametrize(("native", "window_rows"), [(False, 1_000_000), (True, 1_000_000), (True, 3)])
@pytest.mark.parametrize("consistency", CONSISTENCIES)
@pytest.mark.parametrize("history", HISTORIES)
@pytest.mark.parametrize("made", ["sqlite"], indirect=True)
def test_rows_are_as_upstream(made: LocalFeed, history: str, consistency: str, native: bool, window_rows: int) -> None:
    taken: Counter[Step] = Counter()
    made.with_(target={"consistency": consistency}, limits={"window-rows": window_rows}, spark={"native": native})
    for _ in range(2):  # all of it once more changes nothing
        made.send(recorded(history))
        made.once(lambda step: taken.update([step]))
        assert differences(oracle(history), made.cells) == []
    assert taken[Step.SEGMENT_TAKEN] > 5


@pytest.mark.cells("history", "made")
@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(2, 30))])
@pytest.mark.parametrize("history", HISTORIES)
@pytest.mark.parametrize("made", TARGETS, indirect=True)
def test_rows_are_as_upstream_though_drivers_die(made: LocalFeed, history: str, seed: int) -> None:
    chance = random.Random(seed)

    def observe(_: Step) -> None:
        if chance.random() < 0.02:
            raise Killed

    messages = recorded(history)
    made.with_(target={"consistency": chance.choice(CONSISTENCIES)})
    made.with_(
        limits={"window-rows": chance.choice([1, 40, 1_000_000])}, spark={"native": chance.choice([True, False])}
    )
    cuts = sorted(chance.sample(range(1, len(messages)), 2))
    for start, stop in zip([0, *cuts], [*cuts, len(messages)], strict=True):
        made.send(messages[start:stop])
        while not made.lives(observe):
            pass
    assert differences(oracle(history), made.cells) == []


def test_there_are_histories() -> None:
    assert HISTORIES

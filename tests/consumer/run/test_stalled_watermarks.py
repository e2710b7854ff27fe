"""A watermark that stands still is told of with topic, partition and age; one that moves is not."""

import pytest
from structlog.testing import capture_logs

from consumer.run.stalled_watermarks import Stalls
from consumer.source.offer import PartitionProbe, Probe
from ordering.events import Partition
from ordering.progress import PartitionProgress
from ordering.timestamps import ResolvedTs
from ordering.watermark import global_resolved

LIMIT_S = 60.0
Marks = dict[int, int | None]


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def probe(marks: Marks) -> Probe:
    found = {Partition("t", n): None if ts is None else ResolvedTs(ts << 18) for n, ts in marks.items()}
    partitions = {p: PartitionProbe(PartitionProgress(3, 3), 9, 9, ts) for p, ts in found.items()}
    return Probe({}, partitions, global_resolved(found))


@pytest.fixture
def clock() -> Clock:
    return Clock()


def told(clock: Clock, steps: list[tuple[float, Marks]]) -> list[tuple[float, int, int]]:
    """(when, partition, age) of the warnings while time goes on."""
    stalls, found = Stalls(LIMIT_S, clock), []
    for seconds, marks in steps:
        clock.now = 1000.0 + seconds
        with capture_logs() as lines:
            stalls.look(probe(marks))
        assert all(line["log_level"] == "warning" and line["topic"] == "t" for line in lines)
        found += [(seconds, line["partition"], line["age_s"]) for line in lines]
    return found


def test_one_that_stands_still_is_told_of_again_and_again(clock: Clock) -> None:
    steps: list[tuple[float, Marks]] = [(float(s), {0: s + 1, 1: 1}) for s in range(0, 200, 10)]
    assert told(clock, steps) == [(60, 1, 60), (120, 1, 120), (180, 1, 180)]


def test_one_that_was_never_seen_is_told_of(clock: Clock) -> None:
    assert told(clock, [(0, {0: 5, 1: None}), (59, {0: 6, 1: None}), (60, {0: 7, 1: None})]) == [(60, 1, 60)]


def test_moving_ones_are_not(clock: Clock) -> None:
    assert told(clock, [(float(s), {0: s + 1, 1: s + 1}) for s in range(0, 300, 50)]) == []


def test_what_nobody_looked_at_does_not_stand_still(clock: Clock) -> None:
    """A window of many DDLs is applied, piece by piece, after one look at Kafka."""
    stalls, first = Stalls(LIMIT_S, clock), probe({0: 1})
    with capture_logs() as lines:
        stalls.look(first)
        clock.now += 20
        stalls.look(probe({0: 1}))
        stalls.look(last := probe({0: 1}))
        for _ in range(3):
            clock.now += LIMIT_S
            stalls.look(last)
            assert stalls.ages() == {Partition("t", 0): 20.0}
        assert lines == []
        stalls.look(probe({0: 1}))
    assert [line["age_s"] for line in lines] == [200]


def test_one_that_moves_again_is_as_new(clock: Clock) -> None:
    assert told(clock, [(0, {0: 1}), (60, {0: 1}), (70, {0: 2}), (129, {0: 2}), (130, {0: 2})]) == [
        (60, 0, 60),
        (130, 0, 60),
    ]


@pytest.mark.parametrize(("other", "hint"), [(9, "topic retire CONFIG gone"), (None, "help runbook")])
def test_it_says_what_to_do_about_a_topic_that_was_forgotten(clock: Clock, other: int | None, hint: str) -> None:
    marks = {Partition("gone", 0): None, Partition("t", 0): other and ResolvedTs(other)}
    partitions = {p: PartitionProbe(PartitionProgress(3, 3), 9, 9, ts) for p, ts in marks.items()}
    stalls = Stalls(LIMIT_S, clock)
    stalls.look(Probe({}, partitions, global_resolved(marks)))
    clock.now += LIMIT_S
    with capture_logs() as lines:
        stalls.look(Probe({}, partitions, global_resolved(marks)))
    assert hint in next(line["hint"] for line in lines if line["topic"] == "gone")

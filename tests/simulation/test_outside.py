"""Histories without watermarks: TiCDC's checkpoint is asked for, is silent at times, and goes back."""

import pytest

from consumer.pipeline.round import Round
from consumer.source.outside_watermark import TicdcCheckpoint
from ordering.events import Partition
from ordering.timestamps import ResolvedTs
from tests.cells import half
from tests.simulation.script import CREATE, Script
from tests.simulation.world import run_seed

HISTORIES = 24


@pytest.mark.parametrize("first", range(0, HISTORIES, 12))
def test_histories_converge(first: int) -> None:
    for seed in half(range(first, first + 12)):
        run_seed(seed, outside=True)


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_many_more_histories_converge() -> None:
    for seed in range(3_000):
        run_seed(seed, outside=True)


class Fixed:
    """An API that says what it is set to."""

    def __init__(self, ts: int) -> None:
        self.ts = ts

    def checkpoint(self) -> TicdcCheckpoint:
        """See `CheckpointApi.checkpoint`."""
        return TicdcCheckpoint(ResolvedTs(self.ts), 0)


def test_once_applies_what_was_promised_before_its_ends_were_asked_for() -> None:
    world, api = Script(partitions=2), Fixed(5)
    world.source.outside.api = api  # type: ignore[assignment]
    world.ddl(1, CREATE)
    world.row(2, 1)
    world.row(5, 2, p=1)
    caps = world.source.ends()
    world.row(7, 3)
    api.ts = 7
    while Round(world.session).run(caps, to_end=True):
        pass
    assert (world.stored.checkpoint_ts, world.rows()) == (5, {"1": "x", "2": "x"})
    assert world.run().checkpoint_ts == 7
    assert world.rows() == {"1": "x", "2": "x", "3": "x"}


def test_what_lies_behind_an_open_transaction_of_others_is_waited_for() -> None:
    """TiCDC's rows are acknowledged there, and no reader gets them yet."""
    world, api = Script(), Fixed(2)
    world.source.outside.api = api  # type: ignore[assignment]
    world.ddl(1, CREATE)
    world.row(2, 1)
    assert world.run().checkpoint_ts == 2
    world.log.begin(Partition("t", 0))
    world.row(3, 2)
    api.ts = 3
    assert world.run().checkpoint_ts == 2
    assert world.rows() == {"1": "x"}
    world.log.commit_open(Partition("t", 0))
    assert world.run().checkpoint_ts == 3
    assert world.rows() == {"1": "x", "2": "x"}


def test_a_topic_that_ticdc_no_longer_marks_goes_on() -> None:
    world, api = Script(), Fixed(1)
    world.source.outside.api = api  # type: ignore[assignment]
    world.ddl(1, CREATE)
    world.row(2, 1)
    world.mark(2)
    world.row(3, 2, topic="u")
    assert world.run().checkpoint_ts == 1
    api.ts = 4
    assert world.run().checkpoint_ts == 4
    assert world.rows() == {"1": "x", "2": "x"}

"""Which leaders wrote what was read, and behind which offsets the messages of each end."""

import random

from consumer.kafka.account import EpochTrail, epochs_upto
from ordering.events import Partition

PLACE = Partition("t", 0)


def told(log: list[tuple[int, bool]], stop: int) -> dict[int, int]:
    """The model. `log`: of each offset the leader that wrote it, and whether it is a message."""
    return {epoch: at + 1 for at, (epoch, is_message) in enumerate(log[:stop]) if is_message}


def test_a_turn_ends_behind_its_last_message() -> None:
    """Also where the mark of a transaction, which no reader gets, is the first thing that a new leader writes."""
    for seed in range(500):
        chance, epoch, log = random.Random(seed), 0, []
        for _ in range(chance.randrange(1, 30)):
            epoch += chance.random() < 0.3
            log.append((epoch, chance.random() < 0.7))
        cut = chance.randrange(len(log) + 1)
        first, second = EpochTrail(), EpochTrail()
        for at, (wrote, is_message) in enumerate(log):
            if is_message:
                (first if at < cut else second).note(PLACE, wrote, at)
        first.join(second, PLACE)
        messages = [at for at, (_, is_message) in enumerate(log) if is_message]
        for stop in messages:
            found = epochs_upto(first.of(PLACE), stop + 1)
            assert {epoch: end for epoch, end in found if epoch is not None} == told(log, stop + 1)

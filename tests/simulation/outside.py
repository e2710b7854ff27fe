"""TiCDC's API of a simulated changefeed: the checkpoint, as far as everything at or below it has been sent."""

import random
from collections.abc import Iterable
from itertools import accumulate

from consumer.codec.canal_json import WATERMARK, envelope
from consumer.demo.fake_ticdc.changefeed import Message
from consumer.source.outside_watermark import TicdcCheckpoint
from ordering.errors import SourceUnreachableError
from ordering.timestamps import ResolvedTs
from tests.simulation.log import FakeLog

_SILENT = 0.1
"""How often TiCDC does not answer."""


def without_watermarks(messages: Iterable[Message]) -> list[Message]:
    """What is left of a history whose protocol has no watermarks."""
    return [message for message in messages if envelope(message.value).type != WATERMARK]


class CheckpointOfTheLog:
    """Stands for `CheckpointApi`. After TiCDC's restarts, when rows come again, its answers go back."""

    def __init__(self, log: FakeLog, messages: Iterable[Message], seed: int) -> None:
        self._log, self._chance = log, random.Random(f"api {seed}")
        found = [envelope(message.value).tidb for message in messages]
        last = max(one.watermark_ts for one in found if one)
        left = [one.commit_ts for one in found if one and one.commit_ts]
        lowest = list(accumulate(reversed(left), min))
        self._by_left = [last, *(ts - 1 for ts in lowest)]
        """By how many messages are still to come."""

    def checkpoint(self) -> TicdcCheckpoint:
        """See `CheckpointApi.checkpoint`."""
        if self._chance.random() < _SILENT:
            message = "TiCDC does not answer"
            raise SourceUnreachableError(message)
        return TicdcCheckpoint(ResolvedTs(max(1, self._by_left[len(self._log.coming)])), 0)

"""Plays a recorded history into a target in this process, with kills, and compares the rows with upstream's."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

from consumer.demo.fake_ticdc.changefeed import Message
from sinks.steps import Step
from tests.service.cells import Cells, Oracle, differences
from tests.service.local import Killed, LocalFeed

WINDOWS = (1, 3, 40, 1_000_000)
"""Rows that a window may hold."""

KILLED_AT = 0.1
"""How likely a driver dies at a step."""


def played(
    messages: Sequence[Message],
    upstream: Oracle,
    uri: str,
    cells: Cells,
    place: Path,
    *,
    window_rows: int,
    seed: int,
    killed_at: float = KILLED_AT,
    **sections: Mapping[str, Any],
) -> list[str]:
    """What is wrong with the target afterwards, a line each; drivers die as the seed has it. Raises ReconcilerError.

    `sections`: of the config, besides.
    """
    chance = Random(seed)

    def observe(_: Step) -> None:
        if chance.random() < killed_at:
            raise Killed

    feed = LocalFeed.into(uri, cells, place)
    feed.with_(target={"invalid-dates": "null"}, limits={"window-rows": window_rows}).with_(**sections)
    wrong = []
    for _ in range(2):  # all of it once more changes nothing
        feed.send(messages)
        while not feed.lives(observe):
            pass
        wrong += differences(upstream, feed.cells)
    return wrong

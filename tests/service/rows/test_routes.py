"""Routes: what comes of genuine messages and random histories is the upstream's final state by other names.

The model is `renamed`: the oracle of a recording with each table under the name that the routes give it.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from consumer.demo.fake_ticdc.changefeed import Message
from tests.histories.playing import WINDOWS, played
from tests.service.cells import VECTORS, Oracle, differences, oracle
from tests.service.ddl.test_ddl import TARGETS, made
from tests.service.lab import Feed, is_row, recorded
from tests.service.local import LocalFeed

__all__ = ["made"]
pytestmark = pytest.mark.service

ALL = {"dispatchers": [{"matcher": ["*.*"], "target-schema": "r_{schema}", "target-table": "{table}_of_{schema}"}]}
"""Every table lies elsewhere, and so does every database."""
HISTORIES = sorted(path.name.removesuffix(".jsonl.gz") for path in VECTORS.glob("history-*.jsonl.gz"))
WITHOUT_VIEWS = [name for name in HISTORIES if "VIEW" not in (VECTORS / f"{name}.sql").read_text().upper()]
RECORDINGS = (
    "split.index-value.raw", "unique-swaps.index-value.raw", "ddl-basic.table", "ddl-columns.index-value",
    "ddl-changes.index-value", "keys.index-value.split", "ddl-partitions.index-value", "ddl-defaults.index-value",
)  # fmt: skip


def renamed(upstream: Oracle) -> Oracle:
    """What the target has to hold."""
    pairs = ((name.split(".", maxsplit=1), table) for name, table in upstream.items())
    return {f"r_{database}.{table}_of_{database}": told for (database, table), told in pairs}


def applied(feed: Feed, messages: Iterable[Message], upstream: Oracle) -> None:
    """Send, run and compare; again, and nothing changes."""
    feed.with_(sink=ALL)
    for _ in range(2):
        feed.send(messages)
        outcome = feed.once()
        assert differences(renamed(upstream), feed.cells) == []
    assert outcome.counts.duplicates_unproven == sum(map(is_row, messages))


@pytest.mark.cells("every_feed", "consistency", by_turns=("recording",))
@pytest.mark.parametrize("recording", RECORDINGS)
@pytest.mark.parametrize("consistency", ["snapshot", "transaction", "row"])
def test_recordings(every_feed: Feed, recording: str, consistency: str) -> None:
    if consistency == "row":
        every_feed.by_tasks()
    every_feed.with_(target={"consistency": consistency, "invalid-dates": "null"})
    applied(every_feed, recorded(recording), oracle(recording.split(".", maxsplit=1)[0]))


@pytest.mark.cells("history", "made")
@pytest.mark.parametrize("seed", [7, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(20, 50))])
@pytest.mark.parametrize("history", WITHOUT_VIEWS)
@pytest.mark.parametrize("made", TARGETS, indirect=True)
def test_random_histories_with_kills(made: LocalFeed, history: str, seed: int) -> None:
    told: Mapping[str, Any] = {"sink": ALL}
    rows = WINDOWS[HISTORIES.index(history) % 2]
    messages, upstream = recorded(history), renamed(oracle(history))
    assert played(messages, upstream, made.uri, made.cells, made.directory, window_rows=rows, seed=seed, **told) == []

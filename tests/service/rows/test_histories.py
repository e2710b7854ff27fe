"""Random histories that `tests.histories` has written and recorded, played into every target: small windows, kills.

`history-110` and `history-112` once found a fault: a MODIFY of a primary key's column, views over what had changed.
"""

import pytest

from tests.histories.playing import WINDOWS, played
from tests.service.cells import VECTORS, oracle
from tests.service.ddl.test_ddl import TARGETS, made
from tests.service.lab import recorded
from tests.service.local import LocalFeed

__all__ = ["made"]
pytestmark = pytest.mark.service

HISTORIES = sorted(path.name.removesuffix(".jsonl.gz") for path in VECTORS.glob("history-*.jsonl.gz"))


@pytest.mark.cells("history", "made")
@pytest.mark.parametrize("seed", [7, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(20, 50))])
@pytest.mark.parametrize("history", HISTORIES)
@pytest.mark.parametrize("made", TARGETS, indirect=True)
def test_rows_are_as_upstream(made: LocalFeed, history: str, seed: int) -> None:
    rows = WINDOWS[HISTORIES.index(history) % 2]
    messages, upstream = recorded(history), oracle(history)
    assert played(messages, upstream, made.uri, made.cells, made.directory, window_rows=rows, seed=seed) == []


def test_there_are_histories() -> None:
    assert HISTORIES

"""Merged tables under random interleavings of rows and DDLs of shards, with kills, against the model.

More of them: `python -m tests.histories.merged_shards 5000`.
"""

from pathlib import Path

import pytest

from tests.histories.merged_shards import played
from tests.service.ddl.test_ddl import TARGETS, made
from tests.service.local import LocalFeed

__all__ = ["made"]
pytestmark = pytest.mark.service


@pytest.mark.parametrize("seed", [*range(4), *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(4, 300))])
def test_random_shards_in_sqlite(seed: int, tmp_path: Path) -> None:
    assert played(seed, tmp_path) == []


@pytest.mark.cells("made")
@pytest.mark.parametrize("seed", [7, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(20, 60))])
@pytest.mark.parametrize("made", TARGETS, indirect=True)
def test_random_shards(made: LocalFeed, seed: int) -> None:
    assert played(seed, made.directory, made.uri, made.cells) == []

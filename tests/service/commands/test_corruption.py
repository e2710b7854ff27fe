"""Random corruption of each target is found by the next scrub: a few changes in each run, hundreds in long tests."""

from pathlib import Path
from typing import Any

import pytest

from tests.cells import seed
from tests.service import corruption

pytestmark = pytest.mark.service
TARGETS = ["sqlite", "mariadb", "postgres", "tidb", pytest.param("mysql", marks=pytest.mark.mysql)]


@pytest.fixture
def server(request: pytest.FixtureRequest, target: str) -> Any:
    """None for SQLite."""
    return None if target == "sqlite" else request.getfixturevalue(f"{target}_server")


@pytest.mark.cells(by_turns=("target",))
@pytest.mark.parametrize("target", TARGETS)
def test_random_corruption_is_found(target: str, server: Any, tmp_path: Path) -> None:
    """A sample, another one for each commit; `python -m tests.service.corruption` plays thousands."""
    found = list(corruption.trials(target, 12, seed(), tmp_path, server))
    assert [what for what, was_found in found if not was_found] == [], seed()
    assert len({what for what, _ in found}) > 3


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("target", TARGETS)
def test_hundreds_of_corruptions_are_found(target: str, server: Any, tmp_path: Path) -> None:
    found = list(corruption.trials(target, 500, seed(), tmp_path, server))
    assert [what for what, was_found in found if not was_found] == [], seed()
    assert {what for what, _ in found} >= {f"changed {kind}" for kind in corruption.COLUMNS.values()}

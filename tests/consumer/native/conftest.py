"""The core of these sources, whether or not one was built when the environment was made."""

from pathlib import Path

import pytest

from consumer.native import Core, load
from tests.consumer.native.building import STRICT, built, can_build, sanitizer


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Without a compiler there is nothing to test: an installation has no core then either."""
    ours = [item for item in items if Path(__file__).parent in item.path.parents]
    lacking = {item for item in ours if not can_build() or ("bounds" in item.name and sanitizer() is None)}
    if lacking:
        config.hook.pytest_deselected(items=list(lacking))
        items[:] = [item for item in items if item not in lacking]


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("core"), *STRICT)


@pytest.fixture(scope="session")
def core(library: Path) -> Core:
    found, why = load(library)
    assert found is not None, why
    return found

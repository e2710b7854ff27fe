"""What the tests of containers share: the engine, and the images."""

from collections.abc import Iterator

import pytest

from tests.containers.engine import Engine, engine_to_use
from tests.containers.images import build_ours, servers


@pytest.fixture(scope="session")
def engine() -> Engine:
    """The engine."""
    return engine_to_use()


@pytest.fixture(scope="session")
def image(engine: Engine) -> str:
    """Our image, built once."""
    return build_ours(engine)


@pytest.fixture(scope="session")
def server_images(engine: Engine) -> Iterator[None]:
    """Those of the servers."""
    with servers(engine):
        yield

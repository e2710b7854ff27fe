"""One cluster for all tests; they leave it whole."""

from collections.abc import Iterator

import pytest

from tests.cluster.standalone import Standalone


@pytest.fixture(scope="package")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    """A master and two workers."""
    with Standalone(tmp_path_factory.mktemp("cluster")) as standalone:
        yield standalone

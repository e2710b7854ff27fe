"""What the crash tests share: one JVM that outlives the drivers they kill."""

from collections.abc import Iterator

import pytest

from tests.faults.kept_spark import kept_spark


@pytest.fixture(scope="package")
def environment() -> Iterator[dict[str, str]]:
    """The environment of processes that shall use the kept JVM."""
    with kept_spark() as found:
        yield found

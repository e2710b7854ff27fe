"""What tests of formats share."""

from collections.abc import Iterator

import pytest

from tests.service.schema_registry import FakeRegistry, schema_registry


@pytest.fixture
def registry() -> Iterator[FakeRegistry]:
    """A schema registry of the test's own."""
    with schema_registry() as found:
        yield found

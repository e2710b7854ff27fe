"""One browser for all tests of the page."""

from collections.abc import Iterator

import pytest

from tests.page.browser import Browser


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A Chromium; each test opens pages of its own."""
    with Browser(tmp_path_factory.mktemp("chromium")) as started:
        yield started

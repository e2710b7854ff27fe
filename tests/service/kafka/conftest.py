"""A broker that tests may break: stop, kill, change on disk. One for all of them."""

from collections.abc import Iterator

import pytest

from consumer.embedded import KafkaBroker

_CLEANING = {"log.cleaner.backoff.ms": "100", "log.cleaner.min.cleanable.ratio": "0.0"}
"""Its cleaner hardly rests; it compacts only topics that say so."""


@pytest.fixture(scope="package")
def breakable_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    """The broker itself, for `own_broker`."""
    with KafkaBroker(tmp_path_factory.mktemp("breaks"), extra=_CLEANING) as broker:
        yield broker


@pytest.fixture
def own_broker(breakable_broker: KafkaBroker) -> KafkaBroker:
    """The broker; it runs, whatever the test before did. Each test takes topics of its own."""
    breakable_broker.start()
    return breakable_broker

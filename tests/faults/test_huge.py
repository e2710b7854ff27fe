"""A transaction many times larger than a bucket, in short; 5,000,000 rows with --soak. See `huge`."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from consumer.embedded import KafkaBroker
from tests.faults.huge import Huge, applied, sent
from tests.faults.random_kills import Place

CONSISTENCIES = ["snapshot", "transaction", "row"]
MOST_MB = 2048
LONG = [pytest.mark.soak, pytest.mark.timeout(7200)]


pytestmark = [pytest.mark.service, pytest.mark.spark]


@pytest.fixture(scope="module")
def load_of(kafka_broker: KafkaBroker) -> Callable[[int], Huge]:
    """The transaction of so many rows, which is sent once for all."""
    return cache(lambda rows: sent(kafka_broker.bootstrap, rows, small=False))


@pytest.mark.by_turns(9)
@pytest.mark.cells("rows", by_turns=("target", "consistency"))
@pytest.mark.parametrize("target", ["mysql", "postgresql", "sqlite"])
@pytest.mark.parametrize("consistency", CONSISTENCIES)
@pytest.mark.parametrize(("rows", "most_worker_mb"), [(300_000, 400), pytest.param(5_000_000, MOST_MB, marks=LONG)])
def test_a_huge_transaction_stays_within_memory(
    rows: int,
    most_worker_mb: int,
    consistency: str,
    target: str,
    kafka_broker: KafkaBroker,
    load_of: Callable[[int], Huge],
    uri_of: Callable[[str], str],
    tmp_path: Path,
) -> None:
    place = Place(tmp_path, kafka_broker.bootstrap, uri_of(target))
    peaks = applied(place, load_of(rows), consistency)
    assert peaks.correct, peaks
    assert max(peaks.driver_mb, peaks.jvm_mb) < MOST_MB, peaks
    assert peaks.worker_mb < most_worker_mb, peaks

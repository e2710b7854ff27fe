"""Kills by the hundred, between all neighbouring steps, while a reader looks on all the time. See `bulk_kills`."""

from collections.abc import Callable
from pathlib import Path

import pytest

from consumer.embedded import KafkaBroker
from tests.faults.bulk_kills import BulkKills
from tests.faults.random_kills import Place, under_load

pytestmark = [pytest.mark.service, pytest.mark.spark, pytest.mark.soak, pytest.mark.timeout(10_800)]

KILLS = 500
LEAST_HITS = 20
LEAST_LOOKS = 10_000


@pytest.mark.parametrize(
    ("target", "consistency"),
    [("mysql", "snapshot"), ("postgresql", "transaction"), ("sqlite", "transaction"), ("mysql", "row")],
)
def test_kills_between_all_steps(
    target: str,
    consistency: str,
    kafka_broker: KafkaBroker,
    uri_of: Callable[[str], str],
    environment: dict[str, str],
    tmp_path: Path,
) -> None:
    killing = BulkKills(KILLS, seed=KILLS, consistency=consistency, environment=environment)
    place = Place(tmp_path, kafka_broker.bootstrap, uri_of(target), f'consistency = "{consistency}"\n')
    report = under_load(place, killing, seed=9, audited=consistency != "row")
    assert report.right, report
    assert min(killing.hits.values()) >= LEAST_HITS, killing.hits
    assert report.reads >= LEAST_LOOKS or not report.audited

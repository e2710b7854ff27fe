"""Kills at random moments under live load, in short; of Spark's processes too. See `random_kills`."""

import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from consumer.embedded import KafkaBroker
from tests.faults.random_kills import Place, Report, Victim, jvm, kills, python_workers, under_load
from tests.faults.targets import View

pytestmark = [pytest.mark.service, pytest.mark.spark]


@pytest.fixture
def place_on(kafka_broker: KafkaBroker, uri_of: Callable[[str], str], tmp_path: Path) -> Callable[[str, str], Place]:
    def place(target: str, consistency: str) -> Place:
        return Place(tmp_path, kafka_broker.bootstrap, uri_of(target), f'consistency = "{consistency}"\n')

    return place


@pytest.mark.by_turns(9)
@pytest.mark.cells  # a crash after each step is tried in each run: `test_crash_at_every_step`
@pytest.mark.parametrize(
    ("target", "consistency", "count"),
    [
        ("mysql", "snapshot", 1),
        ("sqlite", "transaction", 1),
        ("postgresql", "snapshot", 1),
        pytest.param("mysql", "transaction", 25, marks=[pytest.mark.soak, pytest.mark.timeout(1800)]),
        pytest.param("postgresql", "transaction", 25, marks=[pytest.mark.soak, pytest.mark.timeout(1800)]),
        pytest.param("sqlite", "snapshot", 25, marks=[pytest.mark.soak, pytest.mark.timeout(1800)]),
    ],
)
def test_kills_at_random_moments(
    target: str, consistency: str, count: int, place_on: Callable[[str, str], Place]
) -> None:
    report = under_load(place_on(target, consistency), kills(count, seed=count), seed=3)
    assert report.right, report


@pytest.mark.by_turns(9)
def test_the_driver_goes_on_without_workers_and_without_its_jvm(place_on: Callable[[str, str], Place]) -> None:

    def disturb(config: Path, view: View, report: Report) -> None:
        with Victim(config) as victim:
            for choose in (python_workers, jvm):
                victim.moved(view)
                for process in victim.part(choose):
                    process.send_signal(signal.SIGKILL)
                report.kills += 1
            victim.moved(view)
            assert victim.stop() == 0

    report = under_load(place_on("sqlite", "snapshot"), disturb, seed=4)
    assert report.kills == 2
    assert report.right, report

"""Kills at random moments under live load, in short; of Spark's processes too. See `random_kills`."""

import signal
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from consumer.embedded import KafkaBroker
from tests.faults.random_kills import Disturb, Place, Report, Victim, kills, lives, under_load
from tests.faults.targets import View, wait_until

pytestmark = [pytest.mark.service, pytest.mark.spark]


@pytest.fixture
def place_on(kafka_broker: KafkaBroker, uri_of: Callable[[str], str], tmp_path: Path) -> Callable[[str, str], Place]:
    def place(target: str, consistency: str) -> Place:
        return Place(tmp_path, kafka_broker.bootstrap, uri_of(target), f'consistency = "{consistency}"\n')

    return place


@pytest.mark.parametrize(
    ("target", "consistency", "count"),
    [
        ("mysql", "snapshot", 2),
        ("sqlite", "transaction", 2),
        ("postgresql", "snapshot", 2),
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


def killing(choose: Callable[[list[psutil.Process]], list[psutil.Process]]) -> Disturb:
    """Kill some of the driver's processes; the driver has to go on."""

    def disturb(config: Path, view: View, report: Report) -> None:
        with Victim(config) as victim:
            victim.moved(view)
            for process in choose(victim.tree):
                process.send_signal(signal.SIGKILL)
                report.kills += 1
            victim.moved(view)
            assert victim.stop() == 0

    return disturb


def python_workers(tree: list[psutil.Process]) -> list[psutil.Process]:
    """The forks of Spark's daemon."""
    daemons = {process.pid for process in tree if "consumer.spark.daemon" in " ".join(process.cmdline())}
    return [process for process in tree if process.pid in daemons and process.ppid() in daemons]


def jvm(tree: list[psutil.Process]) -> list[psutil.Process]:
    return [process for process in tree if process.name() == "java"]


@pytest.mark.parametrize("choose", [python_workers, jvm])
def test_the_driver_goes_on_without(
    choose: Callable[[list[psutil.Process]], list[psutil.Process]], place_on: Callable[[str, str], Place]
) -> None:
    report = under_load(place_on("sqlite", "snapshot"), killing(choose), seed=4)
    assert report.kills > 0
    assert report.right, report


def test_what_a_killed_driver_started_ends_with_it(place_on: Callable[[str, str], Place]) -> None:
    def disturb(config: Path, view: View, report: Report) -> None:
        with Victim(config) as victim:
            victim.moved(view)
            started = victim.tree
            assert jvm(started)
            assert python_workers(started)
            victim.process.send_signal(signal.SIGKILL)
            wait_until(lambda: not any(map(lives, started)), "the JVM and the workers end")
        report.kills += 1

    assert under_load(place_on("sqlite", "snapshot"), disturb, seed=5).right

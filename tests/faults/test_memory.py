"""Memory under a stuck watermark and under a backlog, in short; at full size with --soak. See `memory`."""

from pathlib import Path

import pytest

from consumer.embedded import KafkaBroker
from tests.embedded import MariaDbServer
from tests.faults.memory import stuck_watermark, work_off
from tests.faults.random_kills import Place

pytestmark = [pytest.mark.service, pytest.mark.spark]

MOST_GROWTH = 0.15
MOST_JVM_MB = 900
"""Its heap is limited to 1 GB."""
MOST_A_LOOK = 4 << 20
"""Bytes that the driver may receive for a window's watermarks: 1 MB a partition, however big the window is."""
LONG = [pytest.mark.soak, pytest.mark.timeout(3600)]


@pytest.fixture
def place(kafka_broker: KafkaBroker, mariadb_server: MariaDbServer, tmp_path: Path) -> Place:
    return Place(tmp_path, kafka_broker.bootstrap, mariadb_server.uri)


@pytest.mark.by_turns
@pytest.mark.parametrize(("warm", "held"), [(40_000, 50_000), pytest.param(100_000, 500_000, marks=LONG)])
def test_a_stuck_watermark_costs_no_memory(warm: int, held: int, place: Place) -> None:
    report = stuck_watermark(place, warm=warm, held=held, portions=held // 5_000)
    assert not report.moved_meanwhile, report
    assert max(report.growth.values()) < MOST_GROWTH, report
    assert report.correct, report


@pytest.mark.by_turns(9)
@pytest.mark.parametrize(
    ("events", "window_rows", "most_of_topic"),
    [(200_000, 10_000, 0.4), pytest.param(2_000_000, 100_000, 0.08, marks=LONG)],
)
def test_a_backlog_is_worked_off_in_windows(events: int, window_rows: int, most_of_topic: float, place: Place) -> None:
    report = work_off(place, events=events, window_rows=window_rows)
    assert report.correct, report
    assert report.windows >= 15, report
    assert report.checked >= 4, report
    assert not report.wrong, report
    assert max(report.growth.values()) < MOST_GROWTH, report
    assert report.peak_mb["jvm"] < MOST_JVM_MB, report
    assert report.readers_at_once >= 2, report
    assert report.driver_bytes < min(MOST_A_LOOK * report.windows, most_of_topic * report.topic_bytes), report

"""Zones whose clocks are put back are told of: the hour that comes twice can't be told apart."""

from datetime import UTC, datetime

import pytest
from structlog.testing import capture_logs

from consumer.config.zone import repeats_an_hour, told_of_repeats, warn_of_repeats


@pytest.mark.parametrize(
    ("zone", "repeats"),
    [
        ("UTC", False),
        ("+08:00", False),
        ("-03:30", False),
        ("Asia/Shanghai", False),
        ("Asia/Kolkata", False),
        ("Europe/Berlin", True),
        ("America/New_York", True),
        ("Australia/Lord_Howe", True),  # by half an hour
    ],
)
@pytest.mark.parametrize("month", [1, 4, 7, 11, 12])
def test_only_zones_that_go_back_repeat_an_hour(zone: str, month: int, *, repeats: bool) -> None:
    assert repeats_an_hour(zone, datetime(2026, month, 1, tzinfo=UTC)) == repeats


def test_it_is_said_once_with_what_to_do() -> None:
    with capture_logs() as logs:
        warn_of_repeats("Asia/Shanghai")
        warn_of_repeats("Europe/Berlin")
    (told,) = logs
    assert told["log_level"] == "warning"
    assert "the first is taken" in told["event"]
    assert "--tz UTC" in told["event"]
    assert told_of_repeats("Asia/Shanghai") == ""

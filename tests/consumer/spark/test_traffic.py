"""On a cluster Spark's own connections are closed to strangers, unless the config says otherwise."""

import pytest
import structlog

from consumer.spark.traffic import traffic_settings, warn_of_open_traffic

SECRET = {"spark.authenticate.secret": "s"}
OFF = {"spark.authenticate": "false"}


@pytest.mark.parametrize(
    ("master", "settings", "is_closed"),
    [
        ("local[2]", {}, False),
        ("k8s://https://host:443", {}, True),
        ("yarn", {}, True),
        ("yarn", OFF, False),
        ("spark://host:7077", {}, False),
        ("spark://host:7077", SECRET, True),
        ("spark://host:7077", {"spark.authenticate.secret.file": "/s"}, True),
        ("spark://host:7077", {**SECRET, **OFF}, False),
    ],
)
def test_who_is_asked_for_a_secret(master: str, settings: dict[str, str], is_closed: bool) -> None:
    chosen = traffic_settings(master, settings)
    assert bool(chosen) == is_closed
    with structlog.testing.capture_logs() as logged:
        warn_of_open_traffic(master, settings)
    assert bool(logged) == (not is_closed and not master.startswith("local"))

"""On one machine Java and Python talk through sockets in a private directory: over TCP each answer waits 40 ms."""

import stat
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from pyspark import SparkContext

from consumer.config.model import SparkSection
from consumer.spark.context import settings_of

SOCKETS = "spark.python.unix.domain.socket.enabled"
HELD_BACK_S = 0.03
"""Less than what the system holds an answer back for, with room for a busy machine."""
JOBS = 40


@pytest.mark.parametrize(
    ("master", "place", "by_sockets"),
    [
        ("local[2]", "/tmp/short", True),
        ("local[2]", f"/tmp/{'long' * 20}", False),
        ("local[2]", f"/tmp/{'ü' * 30}", False),
        ("local[2]", None, False),
        ("spark://host:7077", "/tmp/short", False),
    ],
)
def test_where_there_are_sockets(master: str, place: str | None, *, by_sockets: bool) -> None:
    found = settings_of(SparkSection(master=master), None if place is None else Path(place))
    assert (SOCKETS in found) == by_sockets


def test_the_config_has_the_last_word() -> None:
    found = settings_of(SparkSection(master="local[2]", **{SOCKETS: "false"}), Path("/tmp/short"))
    assert found[SOCKETS] == "false"


def waited(numbers: Iterable[int]) -> Iterator[float]:
    """How long a task waited for what it was given, in seconds."""
    begun = time.monotonic()
    list(numbers)
    yield time.monotonic() - begun


@pytest.mark.spark
def test_no_task_and_no_answer_is_held_back(spark: SparkContext) -> None:
    scratch = Path(str(spark.getConf().get("spark.local.dir")))
    assert list(scratch.glob(".*.sock"))
    assert stat.S_IMODE(scratch.stat().st_mode) == 0o700
    assert min(_waits(spark)) < HELD_BACK_S


def _waits(context: SparkContext) -> list[float]:
    return [context.parallelize([1], 1).mapPartitions(waited).collect()[0] for _ in range(JOBS)]

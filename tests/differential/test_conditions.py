"""Random conditions of event filters are judged as TiDB does, or refused: recorded ones, and new ones on TiDB."""

import gzip
import json
import time
from itertools import count
from pathlib import Path

import pytest

from tests.differential.conditions import Judged, Upstream, connected, judged, live
from tests.embedded import TidbServer
from tests.service.cells import VECTORS

_SHARE = 0.4
"""So many answers at least have to be given: many random conditions mix types for which there is no rule here."""


@pytest.fixture
def recording() -> tuple[list[dict[str, str | None]], dict[str, list[int | None]]]:
    told = json.loads(gzip.decompress((VECTORS / "filter-conditions.json.gz").read_bytes()))
    return told["rows"], dict(told["answers"])


def test_recorded_conditions_are_judged_as_by_tidb(
    recording: tuple[list[dict[str, str | None]], dict[str, list[int | None]]],
) -> None:
    rows, answers = recording
    found = judged(rows, answers)
    assert found.wrong == []
    assert found.counts["judged"] > _SHARE * len(rows) * len(answers)


def test_a_wrong_answer_is_told(
    recording: tuple[list[dict[str, str | None]], dict[str, list[int | None]]],
) -> None:
    """Of the harness itself."""
    rows, _ = recording
    found = judged(rows[:1], {"i = 7": [0], "i < 8": [1], "i = m": [0], "nowhere()": [1], "d = '12abc'": [1]})
    assert found.wrong == ["row 0: 0 upstream: i = 7"]
    assert (found.counts["judged"], found.counts["stopped"], found.counts["refused"]) == (2, 2, 1)
    assert any("can't be compared with" in reason for reason in found.stops)


@pytest.mark.by_turns
@pytest.mark.service
@pytest.mark.tidb
@pytest.mark.parametrize(
    ("seconds", "seed"), [(5, 1_000), pytest.param(300, 100_000, marks=[pytest.mark.soak, pytest.mark.timeout(900)])]
)
def test_new_conditions_are_judged_as_by_tidb(tmp_path: Path, seconds: int, seed: int) -> None:
    with TidbServer(tmp_path) as server:
        upstream = Upstream(connected(server))
        found: list[Judged] = list(live(count(seed), time.monotonic() + seconds, 1_000_000, upstream))
    assert [line for one in found for line in one.wrong] == []
    assert sum(one.counts["judged"] for one in found) > 0

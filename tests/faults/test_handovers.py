"""Leaders that are frozen, killed and ended under live load, in short; 500 of them with --soak. See `handovers`."""

from collections.abc import Callable
from math import inf
from pathlib import Path

import pytest

from consumer.embedded import KafkaBroker, RedisServer
from tests.faults.audit import judged
from tests.faults.handovers import HandOvers
from tests.faults.random_kills import Place, under_load

pytestmark = [pytest.mark.service, pytest.mark.spark]

MOST_S = 10.0
TRIES = 3
"""So often short ones are tried until they take less: the machine may be busy with something else."""
LONG = [pytest.mark.soak, pytest.mark.timeout(10_800)]
LEASE_S = 6.0


@pytest.mark.by_turns(9)
@pytest.mark.parametrize(
    ("target", "consistency", "kinds", "count", "with_redis"),
    [
        pytest.param("mysql", "snapshot", ["stop", "end"], 2, True, marks=pytest.mark.timeout(600)),
        pytest.param("mysql", "snapshot", ["stop"], 500, True, marks=LONG),
        pytest.param("mysql", "snapshot", ["kill", "end", "stop"], 60, True, marks=LONG),
        pytest.param("postgresql", "transaction", ["stop", "kill", "end"], 60, False, marks=LONG),
        pytest.param("sqlite", "transaction", ["kill", "end"], 40, False, marks=LONG),
        pytest.param("postgresql", "row", ["stop", "kill"], 40, True, marks=LONG),
    ],
)
def test_hand_overs(
    target: str,
    consistency: str,
    kinds: list[str],
    count: int,
    with_redis: bool,
    kafka_broker: KafkaBroker,
    redis_server: RedisServer,
    uri_of: Callable[[str], str],
    tmp_path: Path,
) -> None:
    redis = redis_server.uri if with_redis else ""
    extra = f'consistency = "{consistency}"\n[redis]\nuri = "{redis}"\n[limits]\nlease-seconds = {LEASE_S}\n'
    place = Place(tmp_path, kafka_broker.bootstrap, uri_of(target), extra)
    times = [inf]
    for _ in range(TRIES if count <= len(kinds) else 1):
        if max(times) >= MOST_S:
            handing = HandOvers(kinds, count, 2, seed=count)
            report = under_load(place, handing, seed=3, audited=consistency != "row")
            assert report.right, report
            assert not handing.verdict.wrong
            assert handing.verdict.leaders > 1
            times = [led for kind in kinds for led in handing.times[kind].led]
    assert max(times) < MOST_S, times


@pytest.mark.parametrize(
    ("lines", "fault"),
    [
        ([(1, 5, 7), (1, 6, 7), (2, 6, 8), (2, 9, 8)], ""),
        ([(1, 5, 7), (2, 5, 8), (1, 6, 7)], "line 2"),
        ([(1, 5, 7), (1, 4, 7)], "line 1"),
        ([(1, 5, 7), (1, 6, 8), (1, 7, 7)], "line 1"),
        ([(1, 5, 7), (2, 5, 7), (3, 5, 8)], ""),
    ],
)
def test_the_audit_sees_two_leaders(lines: list[tuple[int, int, int]], fault: str) -> None:
    assert judged(lines).wrong.startswith(fault)
    assert bool(judged(lines).wrong) == bool(fault)

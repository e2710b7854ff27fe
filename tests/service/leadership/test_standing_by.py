"""One instance leads, the others stand by: on real targets, without Spark and Kafka."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest
from redis import Redis

from consumer.embedded import RedisServer
from consumer.runtime.signals import Stopped
from ordering.errors import LeaderLivesError, LeadershipLostError, TargetUnreachableError
from sinks.bookkeeping.progress_rows import Lease
from tests.service.acting import FIRST, LEASE_S, Actor, Stage
from tests.service.lab import DEADLINE_S, eventually

pytestmark = pytest.mark.service


@pytest.fixture(params=["sqlite", "mariadb", "postgres", "tidb"])
def stage(request: pytest.FixtureRequest, tmp_path: Path, database_prefix: str) -> Iterator[Stage]:
    server = None if request.param == "sqlite" else request.getfixturevalue(f"{request.param}_server")
    found = Stage(server.uri if server else f"sqlite:///{tmp_path}/out", f"{database_prefix}feed")
    yield found
    for actor in found.actors:
        actor.stopping.set()
        actor.ends()


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor() as found:
        yield found


def waiting(stage: Stage, pool: ThreadPoolExecutor) -> "tuple[Actor, Future[Lease | None]]":
    """Another instance, which stands by."""
    actor = stage.enter()
    turn = pool.submit(actor.waits)
    eventually("it is on the list", lambda: stage.listed() == [1, 0])
    return actor, turn


@pytest.mark.cells(by_turns=("stage",))
def test_a_stand_by_waits_while_the_leader_lives_and_leads_at_once_when_it_ends(
    stage: Stage, pool: ThreadPoolExecutor
) -> None:
    leader = stage.enter()
    assert leader.waits() is None
    assert leader.leads() == 1
    other, turn = waiting(stage, pool)
    with pytest.raises(TimeoutError):
        turn.result(1.5 * LEASE_S)
    leader.ends()
    assert turn.result(DEADLINE_S) is None, "nobody leads; after a silence it is a Lease that is taken over"
    assert other.leads() == 2
    eventually("the list tells", lambda: stage.listed() == [2])


@pytest.mark.cells(by_turns=("stage",))
def test_a_leader_that_is_frozen_is_taken_over_from_and_writes_nothing_more(
    stage: Stage, pool: ThreadPoolExecutor
) -> None:
    leader = stage.enter()
    leader.waits()
    leader.leads()
    other, turn = waiting(stage, pool)
    leader.freezes()
    held = turn.result(DEADLINE_S)
    assert held == Lease(stage.changefeed, 1)
    assert other.leads(held) == 2
    assert leader.lease is not None
    with pytest.raises((LeadershipLostError, TargetUnreachableError)):
        leader.target.save(FIRST, leader.lease)
    leader.target.close()
    leader.target.connect()
    with pytest.raises(LeadershipLostError):  # also over a new connection
        leader.target.claim(stage.changefeed, FIRST, leader.lease)
    with pytest.raises(LeadershipLostError):  # and one who comes too late to take over has to wait as well
        stage.enter().target.claim(stage.changefeed, FIRST, held)
    other.target.save(FIRST, Lease(stage.changefeed, 2))


@pytest.mark.cells(by_turns=("stage",))
def test_a_leader_that_was_frozen_before_any_sign_of_life_is_taken_over_from(stage: Stage) -> None:
    leader = stage.enter()
    assert leader.target.try_lead(stage.changefeed)
    assert leader.target.claim(stage.changefeed, FIRST).epoch == 1
    other = stage.enter()
    limit = threading.Timer(DEADLINE_S, other.stopping.set)
    limit.start()
    held = other.waits()
    limit.cancel()
    assert held == Lease(stage.changefeed, 1)
    assert other.leads(held) == 2


@pytest.mark.cells(by_turns=("stage",))
def test_who_cannot_wait_for_ever_is_told_who_leads(stage: Stage) -> None:
    leader, other = stage.enter(), stage.enter()
    leader.waits()
    leader.leads()
    with pytest.raises(LeaderLivesError, match=leader.presence.name) as caught:
        other.waits(give_up_s=0.1)
    assert caught.value.exit_code == 5


def test_a_stand_by_that_is_stopped_stops(stage: Stage, pool: ThreadPoolExecutor) -> None:
    leader = stage.enter()
    leader.waits()
    leader.leads()
    other, turn = waiting(stage, pool)
    other.stopping.set()
    with pytest.raises(Stopped):
        turn.result(DEADLINE_S)


@pytest.mark.by_turns
def test_a_lease_that_ran_out_halves_the_wait(
    mariadb_server: object, redis_server: RedisServer, pool: ThreadPoolExecutor, database_prefix: str
) -> None:
    stage = Stage(mariadb_server.uri, f"{database_prefix}feed", redis_server.uri)  # type: ignore[attr-defined]
    leader = stage.enter()
    leader.waits()
    leader.leads()
    _, turn = waiting(stage, pool)
    with Redis(port=redis_server.port) as client:
        eventually("Redis knows", lambda: client.exists(f"ticdc-reconciler:{stage.changefeed}:leader") == 1)
        began = time.monotonic()
        client.flushall()  # the leader renews it, so this means nothing
        with pytest.raises(TimeoutError):
            turn.result(LEASE_S)
        leader.freezes()
        began = time.monotonic()
        turn.result(DEADLINE_S)
        assert time.monotonic() - began > LEASE_S / 6
    for actor in stage.actors:
        actor.ends()

"""One instance leads, the others stand by: on real targets, without Spark and Kafka."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from redis import Redis

from consumer.embedded import RedisServer
from consumer.presence import Presence, RedisLease
from consumer.signals import Stopped
from consumer.standing_by import StandBy
from ordering.errors import LeaderLivesError, LeadershipLostError, TargetUnreachableError
from ordering.progress import Progress
from ordering.timestamps import CheckpointTs
from sinks.opening import open_target
from sinks.target import Lease, Target
from sinks.values import ValueRules
from tests.service.lab import eventually

pytestmark = pytest.mark.service

FIRST = Progress.first(CheckpointTs(0), "", "")
LEASE_S = 3.0


@dataclass
class Actor:
    """One instance: its target, its sign of life, its wait."""

    target: Target
    changefeed: str
    redis: str
    presence: Presence = field(init=False)
    stopping: threading.Event = field(default_factory=threading.Event)
    lease: Lease | None = None

    def __post_init__(self) -> None:
        self.target.connect()
        self.redis_lease = RedisLease(self.redis, self.changefeed, LEASE_S)
        self.presence = Presence(self.target.instances(self.changefeed), self.redis_lease, LEASE_S)

    def waits(self, give_up_s: float | None = None) -> Lease | None:
        """Stand by until it may lead."""
        self.presence.stand_by()
        lease = RedisLease(self.redis, self.changefeed, LEASE_S)
        return StandBy(self.target, self.changefeed, lease, LEASE_S, self.stopping).wait(lambda: None, give_up_s)

    def leads(self, held: Lease | None = None) -> int:
        """Lead; the epoch."""
        self.lease = Lease(self.changefeed, self.target.claim(self.changefeed, FIRST, held).epoch)
        self.presence.lead(self.lease.epoch)
        return self.lease.epoch

    def freezes(self) -> None:
        """Show no sign of life any more, and keep all connections: what SIGSTOP does."""
        self.presence._beat = lambda _: None  # type: ignore[method-assign]
        self.presence._lease = RedisLease("", self.changefeed, LEASE_S)

    def ends(self) -> None:
        self.target.close()
        self.presence.stop()


@dataclass
class Stage:
    """A target and its instances."""

    uri: str
    changefeed: str
    redis: str = ""
    actors: list[Actor] = field(default_factory=list)

    def enter(self) -> Actor:
        self.actors.append(Actor(open_target(self.uri, ValueRules()), self.changefeed, self.redis))
        return self.actors[-1]

    def listed(self) -> list[int]:
        """The epochs on the list."""
        looking = open_target(self.uri, ValueRules())
        try:
            return [instance.epoch for instance in looking.running(self.changefeed)]
        finally:
            looking.close()


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


def test_a_stand_by_waits_while_the_leader_lives_and_leads_at_once_when_it_ends(
    stage: Stage, pool: ThreadPoolExecutor
) -> None:
    leader = stage.enter()
    assert leader.waits() is None
    assert leader.leads() == 1
    other, turn = waiting(stage, pool)
    with pytest.raises(TimeoutError):
        turn.result(1.5 * LEASE_S)
    began = time.monotonic()
    leader.ends()
    assert turn.result(10) is None
    assert time.monotonic() - began < LEASE_S
    assert other.leads() == 2
    eventually("the list tells", lambda: stage.listed() == [2])


def test_a_leader_that_is_frozen_is_taken_over_from_and_writes_nothing_more(
    stage: Stage, pool: ThreadPoolExecutor
) -> None:
    leader = stage.enter()
    leader.waits()
    leader.leads()
    other, turn = waiting(stage, pool)
    leader.freezes()
    held = turn.result(4 * LEASE_S)
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
        turn.result(10)


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
        turn.result(4 * LEASE_S)
        assert time.monotonic() - began > LEASE_S / 6
    for actor in stage.actors:
        actor.ends()

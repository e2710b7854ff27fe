"""Instances of a changefeed on a real target, without Spark and Kafka: for tests of who leads."""

import threading
from dataclasses import dataclass, field

from consumer.run.heartbeat import Heartbeat, RedisLease
from consumer.run.standby import StandBy
from ordering.progress import Progress
from ordering.timestamps import CheckpointTs
from sinks.bookkeeping.progress_rows import Lease
from sinks.registry import open_target
from sinks.rows.values import ValueRules
from sinks.target import Target

FIRST = Progress.first(CheckpointTs(0), "", "")
LEASE_S = 3.0


@dataclass
class Actor:
    """One instance: its target, its sign of life, its wait."""

    target: Target
    changefeed: str
    redis: str
    presence: Heartbeat = field(init=False)
    stopping: threading.Event = field(default_factory=threading.Event)
    lease: Lease | None = None

    def __post_init__(self) -> None:
        self.target.connect()
        self.redis_lease = RedisLease(self.redis, self.changefeed, LEASE_S)
        self.presence = Heartbeat(self.target.instances(self.changefeed), self.redis_lease, LEASE_S)

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
    concurrent_indexes: bool = False
    actors: list[Actor] = field(default_factory=list)

    def enter(self) -> Actor:
        target = open_target(self.uri, ValueRules(), concurrent_indexes=self.concurrent_indexes)
        self.actors.append(Actor(target, self.changefeed, self.redis))
        return self.actors[-1]

    def listed(self) -> list[int]:
        """The epochs on the list."""
        looking = open_target(self.uri, ValueRules())
        try:
            return [instance.epoch for instance in looking.running(self.changefeed)]
        finally:
            looking.close()

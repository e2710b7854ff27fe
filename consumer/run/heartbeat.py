"""Says that this instance lives, in the target and in Redis, from a thread of its own; see `ordering.takeover`.

The thread has its own connections: a window's transaction may take minutes, and the leader has to be seen alive
meanwhile. Nothing here decides who may write, so what fails here is said once and tried again.
"""

import os
import socket
import threading
from contextvars import copy_context
from uuid import uuid4

import structlog

from consumer.redis.client import UNUSABLE, redis_client
from ordering.errors import ReconcilerError, TargetError
from sinks.bookkeeping.instances import Instances

_RENEWALS = 3
"""How often the lease in Redis is renewed before it would run out."""
_MOST_WAIT_S = 1.0
log = structlog.get_logger()


def own_name() -> str:
    """What this instance is called in `status`: host, process, and a number that no other has."""
    return f"{socket.gethostname()}:{os.getpid()}:{uuid4().hex[:6]}"


class RedisLease:
    """The leader's lease in Redis. No method raises for Redis's sake: what it can't tell is None.

    redis-py's `Lock` does not fit: it is acquired while nobody holds the key, but the target decides who leads, and a
    new leader takes the key over. If another one takes it between the GET and the DEL of `release`, the key is missing
    until its next renewal: stand-bys look at the target alone meanwhile.
    """

    def __init__(self, uri: str, changefeed: str, lease_s: float) -> None:
        self._key, self._ttl_ms = f"ticdc-reconciler:{changefeed}:leader", int(lease_s * 500)
        wait_s = min(_MOST_WAIT_S, lease_s / 6)
        self._redis = redis_client(uri, wait_s, wait_s) if uri else None

    def renew(self, name: str) -> None:
        """Hold it for half of `lease-seconds` from now."""
        if self._redis is not None:
            try:
                self._redis.set(self._key, name, px=self._ttl_ms)
            except UNUSABLE as error:
                log.debug("the lease in Redis can't be renewed; stand-bys look at the target alone", error=str(error))

    def is_held(self) -> bool | None:
        """Whether somebody holds it."""
        if self._redis is None:
            return None
        try:
            return bool(self._redis.exists(self._key))
        except UNUSABLE:
            return None

    def release(self, name: str) -> None:
        """Let go of it, if it is ours."""
        if self._redis is not None:
            try:
                if self._redis.get(self._key) == name.encode():
                    self._redis.delete(self._key)
            except UNUSABLE:
                return  # it runs out

    def close(self) -> None:
        """Close the connection."""
        if self._redis is not None:
            self._redis.close()


class Heartbeat:
    """One instance on the list."""

    def __init__(self, instances: Instances, lease: RedisLease, lease_s: float) -> None:
        self.name = own_name()
        self._instances, self._lease = instances, lease
        self._tick_s = lease_s / (2 * _RENEWALS)
        self._epoch, self._followed = 0, 0
        self._silenced = False
        self.is_superseded = False
        """Whether the list names a leader after us."""
        self._changed, self._stopping = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None

    def stand_by(self) -> None:
        """Be on the list as one that waits for its turn."""
        self._be(0)

    def lead(self, epoch: int) -> None:
        """Be on the list as the leader."""
        self._be(epoch)

    def _be(self, epoch: int) -> None:
        former, self._epoch = self._epoch, epoch
        self.is_superseded = False
        if self._thread is None:
            ours = copy_context()  # its lines name the changefeed as ours do
            self._thread = threading.Thread(target=ours.run, args=(self._run,), name="presence", daemon=True)
            self._thread.start()
        elif former != epoch:
            self._changed.set()

    def stop(self) -> None:
        """Leave the list, at once: the next leader need not wait for anything."""
        if self._thread is not None:
            self._stopping.set()
            self._changed.set()
            self._thread.join(2 * _MOST_WAIT_S)

    def _run(self) -> None:
        odd = True
        while not self._stopping.is_set():
            changed, odd = self._changed.is_set(), not odd
            self._changed.clear()
            epoch = self._epoch
            if epoch:
                self._lease.renew(self.name)
            if changed or not odd:
                self._beat(epoch)
            self._changed.wait(self._tick_s)
        self._leave()

    def _beat(self, epoch: int) -> None:
        try:
            if epoch and epoch != self._followed:
                self._instances.follow(self.name, epoch)
                self._followed = epoch
            else:
                self._instances.beat(self.name, epoch)
                leader = self._instances.leader() if epoch else None
                self.is_superseded = leader is not None and leader.epoch > epoch == self._epoch
        except ReconcilerError as error:
            if not self._silenced:
                log.warning("the heartbeat can't be written to the target", error=error.fact, where=error.where)
            self._silenced = True
            self._instances.close()
        else:
            self._silenced = False

    def _leave(self) -> None:
        if self._epoch:
            self._lease.release(self.name)
        try:
            self._instances.leave(self.name)
        except TargetError as error:
            log.debug("the list of instances still names this one", error=error.fact)
        self._instances.close()
        self._lease.close()

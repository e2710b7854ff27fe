"""Standing by: waits until this instance may lead. What the target holds decides; see `ordering.takeover`.

An instance leads at once where nobody does: who leads holds a lock of its connection's (of its process's, in SQLite),
which is free as soon as that has ended. A leader that still holds it and shows no sign of life is taken over from.
"""

import threading
import time
from collections.abc import Callable

import structlog

from consumer.run.heartbeat import RedisLease
from consumer.runtime.signals import Stopped
from ordering.errors import LeaderLivesError
from ordering.takeover import Sign, Watch
from sinks.bookkeeping.progress_rows import Lease
from sinks.target import Target

_LOOK_S = 0.25
_ALIVE_AFTER = 2
"""So many signs of life while we waited, and the leader lives beyond doubt."""
log = structlog.get_logger()


class StandBy:
    """One wait for a turn."""

    def __init__(
        self, target: Target, changefeed: str, lease: RedisLease, lease_s: float, stopping: threading.Event
    ) -> None:
        self._target, self._changefeed, self._lease, self._stopping = target, changefeed, lease, stopping
        self._watch = Watch(lease_s)
        self._began = time.monotonic()
        self._told: str | None = None

    def wait(self, looked: Callable[[], None], give_up_s: float | None) -> Lease | None:
        """Wait; the leadership that is to be taken over, or None where nobody has it.

        `looked` is called at each look. `give_up_s`: so long at least, then a leader that lives ends the wait with
        LeaderLivesError; None: for ever. Raises Stopped, and what the target raises.
        """
        if self._target.try_lead(self._changefeed):
            return None
        instances = self._target.instances(self._changefeed)
        try:
            while not self._stopping.wait(_LOOK_S):
                if self._target.try_lead(self._changefeed):
                    log.info("taking over: the leader has ended", waited_s=self._waited())
                    return None
                sign = instances.leader()
                if self._is_gone(sign):
                    return self._leadership(sign)
                self._stay(sign, give_up_s)
                looked()
        finally:
            instances.close()
        raise Stopped

    def _waited(self) -> float:
        return round(time.monotonic() - self._began, 2)

    def _is_gone(self, sign: Sign | None) -> bool:
        now = time.monotonic()
        if not self._watch.is_gone(now, sign, self._lease.is_held()):
            return False
        silent_s = round(self._watch.silence(now, sign), 1)
        log.warning("taking over: the leader shows no sign of life", leader=_name(sign), silent_s=silent_s)
        return True

    def _leadership(self, sign: Sign | None) -> Lease | None:
        """What is taken over; of a leader that was frozen before it gave any sign the target knows the epoch."""
        if sign is not None:
            return Lease(self._changefeed, sign.epoch)
        stored = self._target.stored(self._changefeed)
        return None if stored is None else Lease(self._changefeed, stored.epoch)

    def _stay(self, sign: Sign | None, give_up_s: float | None) -> None:
        """Raise LeaderLivesError where the leader lives and nobody is to wait any longer."""
        now = time.monotonic()
        self._tell(sign)
        if give_up_s is not None and now - self._began >= give_up_s and self._watch.changes >= _ALIVE_AFTER:
            raise LeaderLivesError(
                f"another instance of changefeed {self._changefeed!r} leads: {_name(sign)}",
                where=self._target.name,
                hint="it applies what the topics hold; `reconciler status` shows it. Stop it first to run another one",
            )

    def _tell(self, sign: Sign | None) -> None:
        if self._told != _name(sign):
            self._told = _name(sign)
            log.info("standing by: another instance leads", leader=self._told, epoch=sign.epoch if sign else "?")


def _name(sign: Sign | None) -> str:
    return sign.name if sign else "unknown"

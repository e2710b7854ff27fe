"""Who leads on TiDB: a named lock as on MySQL, and beside it who holds it (`sinks.tidb.lock_holders` says why)."""

from tenacity import Retrying, retry_if_result, stop_after_delay, wait_fixed

from sinks.mysql.connection import MysqlConnection
from sinks.mysql.named_lock import LOCK_S, does_not_end, lock_name, locks, unlock
from sinks.target_session import TargetSession
from sinks.tidb.lock_holders import erase, living, of_earlier_version, write_down

_LOOK_S = 0.2
"""How often a connection that is to end is looked at."""
_FREE_S = 1
"""What TiDB takes as the shortest time to wait for a named lock."""


class TidbLock:
    """See `sinks.leadership.Leadership`."""

    def __init__(self, at: TargetSession[MysqlConnection]) -> None:
        self._at = at

    def try_lead(self, changefeed: str) -> bool:
        """See `Leadership.try_lead`: a lock that is free proves nothing while the connection of who held it lives."""
        db, name = self._at.db, lock_name(changefeed)
        return living(db, name) is None and locks(db, name, _FREE_S)

    def is_led(self, changefeed: str) -> bool:
        """See `Leadership.is_led`: TiDB tells it only to who tries."""
        db, name = self._at.db, lock_name(changefeed)
        if living(db, name) is not None:
            return True
        free = locks(db, name, _FREE_S)
        if free:
            unlock(db, name)
        return not free

    def take(self, changefeed: str) -> None:
        """See `Leadership.take`."""
        self.fence(changefeed)

    def fence(self, holder: str) -> None:
        """See `Leadership.fence`: TiDB does not tell who holds a named lock, so holders write it down."""
        db, name = self._at.db, lock_name(holder)
        if former := living(db, name):
            db.end_connection(former)
            self._await_end(name, former)
        if not locks(db, name, _FREE_S):
            unmarked = of_earlier_version(db, name)
            if unmarked is not None:
                db.end_connection(unmarked)
            if not locks(db, name, LOCK_S):
                raise does_not_end(unmarked, self._at.name)
        write_down(db, name)

    def _await_end(self, name: str, connection: int) -> None:
        """KILL returns before the connection has ended, and what it runs goes on for so long."""
        limit, asking = stop_after_delay(LOCK_S), retry_if_result(lambda found: found is not None)
        look = Retrying(retry=asking, wait=wait_fixed(_LOOK_S), stop=limit, retry_error_callback=lambda _: connection)
        if look(living, self._at.db, name) is not None:
            raise does_not_end(connection, self._at.name)

    def release(self, holder: str) -> None:
        """See `Leadership.release`."""
        name = lock_name(holder)
        erase(self._at.db, name)  # who holds it next would end this connection, which goes on
        unlock(self._at.db, name)

    def close(self) -> None:
        """See `Leadership.close`: all ends with the connection."""

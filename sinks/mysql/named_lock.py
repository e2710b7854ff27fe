"""Who leads on a MySQL-family server: a connection holds a named lock, so the server knows which one it is."""

import xxhash

from ordering.errors import TargetError, TargetUnreachableError
from sinks.mysql.connection import MysqlConnection
from sinks.target_session import TargetSession

LOCK_S = 30
"""How long a killed connection may take to let go of its named lock."""


class NamedLock:
    """See `sinks.leadership.Leadership`. The server lets go of a named lock when its connection ends."""

    def __init__(self, at: TargetSession[MysqlConnection]) -> None:
        self._at = at

    def try_lead(self, changefeed: str) -> bool:
        """See `Leadership.try_lead`."""
        return locks(self._at.db, lock_name(changefeed), 0)

    def is_led(self, changefeed: str) -> bool:
        """See `Leadership.is_led`."""
        holder = self._at.db.value("SELECT IS_USED_LOCK(%s)", (lock_name(changefeed),))
        return holder is not None and holder != self._at.db.value("SELECT CONNECTION_ID()")

    def take(self, changefeed: str) -> None:
        """See `Leadership.take`."""
        self.fence(changefeed)

    def fence(self, holder: str) -> None:
        """See `Leadership.fence`."""
        name, db = lock_name(holder), self._at.db
        connection = db.value("SELECT IS_USED_LOCK(%s)", (name,))
        if connection is not None and connection != db.value("SELECT CONNECTION_ID()"):
            db.end_connection(int(connection))
        if not locks(db, name, LOCK_S):
            raise does_not_end(connection, self._at.name)

    def release(self, holder: str) -> None:
        """See `Leadership.release`."""
        unlock(self._at.db, lock_name(holder))

    def close(self) -> None:
        """See `Leadership.close`: all ends with the connection."""


def lock_name(holder: str) -> str:
    """The name of a lock; they have 64 characters at most."""
    return f"ticdc-reconciler {xxhash.xxh3_64_hexdigest(holder.encode())}"


def locks(db: MysqlConnection, name: str, seconds: int) -> bool:
    """Hold a named lock, for which it waits so long; whether it is held."""
    return bool(db.value("SELECT GET_LOCK(%s, %s)", (name, seconds)) == 1)


def unlock(db: MysqlConnection, name: str) -> None:
    """Let go of a named lock."""
    db.value("SELECT RELEASE_LOCK(%s)", (name,))


def does_not_end(connection: int | None, where: str) -> TargetError:
    """The error for a connection that was ended and lives on."""
    return TargetUnreachableError(f"the former connection {connection} does not end", where=where)

"""Who leads in PostgreSQL: a session holds an advisory lock, so the server knows which one it is."""

import xxhash

from ordering.errors import TargetBusyError, TargetUnreachableError
from sinks.postgres.connection import PostgresConnection
from sinks.target_session import TargetSession

_HOLDERS = (
    "locktype = 'advisory' AND granted AND objsubid = 1 AND classid = %s AND objid = %s"
    " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)
"""Finds an advisory lock's holders by the halves of its key (PostgreSQL manual, "pg_locks")."""


class AdvisoryLock:
    """See `sinks.leadership.Leadership`. The server lets go of an advisory lock when its session ends."""

    def __init__(self, at: TargetSession[PostgresConnection]) -> None:
        self._at = at

    def try_lead(self, changefeed: str) -> bool:
        """See `Leadership.try_lead`."""
        key, db = _lock(changefeed), self._at.db
        holders = db.query(f"SELECT pid = pg_backend_pid() FROM pg_locks WHERE {_HOLDERS}", _halves(key))  # noqa: S608 a constant
        if any(ours for (ours,) in holders):
            return True  # asked for again it would have to be let go of twice
        return not holders and db.value("SELECT pg_try_advisory_lock(%s)", (key,)) is True

    def is_led(self, changefeed: str) -> bool:
        """See `Leadership.is_led`."""
        found = f"SELECT count(*) FROM pg_locks WHERE {_HOLDERS} AND pid <> pg_backend_pid()"  # noqa: S608 a constant
        return bool(self._at.db.value(found, _halves(_lock(changefeed))))

    def take(self, changefeed: str) -> None:
        """See `Leadership.take`."""
        self.fence(changefeed)

    def fence(self, holder: str) -> None:
        """See `Leadership.fence`."""
        key, db = _lock(holder), self._at.db
        found = f"SELECT pid, pid = pg_backend_pid() FROM pg_locks WHERE {_HOLDERS}"  # noqa: S608 a constant
        holders = db.query(found, _halves(key))
        if any(ours for _, ours in holders):
            return
        for pid, _ in holders:
            db.value("SELECT pg_terminate_backend(%s)", (pid,))
        try:
            db.value("SELECT pg_advisory_lock(%s)", (key,))
        except TargetBusyError as error:
            pids = ", ".join(str(pid) for pid, _ in holders)
            raise TargetUnreachableError(f"the former connection {pids} does not end", where=self._at.name) from error

    def release(self, holder: str) -> None:
        """See `Leadership.release`."""
        self._at.db.value("SELECT pg_advisory_unlock(%s)", (_lock(holder),))

    def close(self) -> None:
        """See `Leadership.close`: all ends with the connection."""


def _lock(holder: str) -> int:
    """The key of an advisory lock: a signed number of 64 bits."""
    digest = xxhash.xxh3_64_intdigest(f"ticdc-reconciler {holder}".encode())
    return digest - (1 << 64) if digest >> 63 else digest


def _halves(key: int) -> tuple[int, int]:
    """A lock's key as pg_locks shows it."""
    return key >> 32 & 0xFFFFFFFF, key & 0xFFFFFFFF

"""Who leads in PostgreSQL: a session holds an advisory lock, so the server knows which one it is.

Progress and lock go by a changefeed's name, and a database may hold both the tables of a copy and the catalog of a
lake. Two targets of one name would take turns, and each would lack what the other one got: lakes' names are kept apart.
"""

from typing import Any

import xxhash

from ordering.errors import TargetBusyError, TargetError, TargetUnreachableError
from sinks.bookkeeping.tables import PROGRESS_DATABASE
from sinks.target_session import TargetSession

LAKES = "iceberg_changefeed"
_PLACE = f"{PROGRESS_DATABASE}.{LAKES}"
CREATION = f"CREATE TABLE IF NOT EXISTS {_PLACE} (changefeed text NOT NULL PRIMARY KEY)"
_HOLDERS = (
    "locktype = 'advisory' AND granted AND objsubid = 1 AND classid = %s AND objid = %s"
    " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)
"""Finds an advisory lock's holders by the halves of its key (PostgreSQL manual, "pg_locks")."""


class AdvisoryLock:
    """See `sinks.leadership.Leadership`. The server lets go of an advisory lock when its session ends.

    `is_lake`: whether the database holds the catalog of an Iceberg target for this session, or a copy's tables.
    """

    def __init__(self, at: TargetSession[Any], *, is_lake: bool = False) -> None:
        self._at, self._is_lake = at, is_lake

    def try_lead(self, changefeed: str) -> bool:
        """See `Leadership.try_lead`. Raises as `take`."""
        _refuse_shared(self._at, changefeed, is_lake=self._is_lake)
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
        """See `Leadership.take`. Raises TargetError for the name of a target of the other kind."""
        _refuse_shared(self._at, changefeed, is_lake=self._is_lake)
        self.fence(changefeed)
        _take_name(self._at, changefeed, is_lake=self._is_lake)

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


def _refuse_shared(at: TargetSession[Any], changefeed: str, *, is_lake: bool) -> None:
    """Raise TargetError where the name has progress of the other kind."""
    is_known = _is_known(at, changefeed, is_lake=is_lake)
    if is_known is not is_lake and at.books.progress.applied(changefeed) is not None:
        other = "an Iceberg target's" if is_known else "a copy's into tables"
        hint = "give this changefeed a name of its own (`changefeed`): progress is kept by the name"
        raise TargetError(f"the progress of changefeed {changefeed!r} is {other}", where=at.name, hint=hint)


def _take_name(at: TargetSession[Any], changefeed: str, *, is_lake: bool) -> None:
    """Know the name as one of this kind; called by who holds its lock. Raises as `_refuse_shared`."""
    _refuse_shared(at, changefeed, is_lake=is_lake)
    if _is_known(at, changefeed, is_lake=is_lake) is is_lake:
        return
    if is_lake:
        at.db.run(f"INSERT INTO {_PLACE} VALUES (%s) ON CONFLICT DO NOTHING", (changefeed,))  # noqa: S608 a constant
    else:
        at.db.run(f"DELETE FROM {_PLACE} WHERE changefeed = %s", (changefeed,))  # noqa: S608 a constant


def _is_known(at: TargetSession[Any], changefeed: str, *, is_lake: bool) -> bool:
    """Whether it is known as a lake's. A copy whose user may not read these names shares none of them."""
    if not at.db.has_table(LAKES):
        return False
    if not is_lake and not at.db.value("SELECT has_table_privilege(%s, 'SELECT')", (_PLACE,)):
        return False
    return bool(at.db.value(f"SELECT count(*) FROM {_PLACE} WHERE changefeed = %s", (changefeed,)))  # noqa: S608 a constant

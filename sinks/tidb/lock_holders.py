"""Which connection holds a named lock: TiDB does not tell, so who holds one writes it down.

A named lock of TiDB lies in a transaction, which ends after performance.max-txn-ttl (an hour by default; TiDB
documentation, "TiDB Configuration File"), and its session does not notice: GET_LOCK still answers 1. So a lock that is
free proves nothing while the connection of who held it lives, and one that is held proves nothing to its holder.

Connection ids come again after a restart of the server. Each row is therefore followed by one that identifies the
connection, by its user and by its own end of the line (host and port) as the server sees them: nobody else is ended.
The second row is one of its own, not a column, since instances of the former version write while an upgrade rolls.
"""

from collections.abc import Sequence
from typing import Any

import xxhash

from ordering.errors import TargetError
from sinks.bookkeeping.tables import PROGRESS_DATABASE
from sinks.mysql.connection import MysqlConnection

_HOLDER = f"{PROGRESS_DATABASE}.holder"
CREATION = f"""CREATE TABLE IF NOT EXISTS {_HOLDER} (
  name VARCHAR(64) NOT NULL PRIMARY KEY, connection BIGINT UNSIGNED NOT NULL
) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"""
_RECORDED = f"SELECT name, connection, connection = CONNECTION_ID() FROM {_HOLDER} WHERE name IN (%s, %s)"  # noqa: S608 a constant
_RECORD = f"REPLACE INTO {_HOLDER} VALUES (%s, %s), (%s, %s)"  # noqa: S608 a constant
_SESSION = "SELECT ID, USER, HOST FROM information_schema.CLUSTER_PROCESSLIST WHERE ID = "
"""A user sees its own connections there, on all servers of the cluster; no right is needed for it."""


def living(db: MysqlConnection, name: str) -> int | None:
    """The connection, another one than ours, that wrote down that it holds this name, if it lives still."""
    found = _recorded(db, name)
    connection, is_ours = found.get(name, (0, True))
    if is_ours or _marked(name) not in found:
        return None
    rows = db.query(f"{_SESSION}%s", (connection,))
    return connection if rows and _mark(rows[0]) == found[_marked(name)][0] else None


def of_earlier_version(db: MysqlConnection, name: str) -> int | None:
    """The connection that holds this name, as a version wrote it down that did not identify it."""
    found = _recorded(db, name)
    return None if _marked(name) in found or name not in found else found[name][0]


def write_down(db: MysqlConnection, name: str) -> None:
    """Write down that this connection holds the name. Raises TargetError if the server does not list it."""
    rows = db.query(f"{_SESSION}CONNECTION_ID()")
    if not rows:
        raise TargetError(
            "information_schema.CLUSTER_PROCESSLIST lacks our own connection",
            where=db.where,
            hint="the TiDB servers ask each other for it at their status ports: let them reach each other there",
        )
    db.run(_RECORD, (name, rows[0][0], _marked(name), _mark(rows[0])))


def erase(db: MysqlConnection, name: str) -> None:
    """Write down that nobody holds the name."""
    db.run(f"DELETE FROM {_HOLDER} WHERE name IN (%s, %s)", (name, _marked(name)))  # noqa: S608 a constant


def _recorded(db: MysqlConnection, name: str) -> dict[str, tuple[int, bool]]:
    """The rows of a name: their value, and whether that is our connection."""
    rows = db.query(_RECORDED, (name, _marked(name)))
    return {str(row): (int(value), bool(ours)) for row, value, ours in rows}


def _marked(name: str) -> str:
    return f"{name} mark"


def _mark(session: Sequence[Any]) -> int:
    """What identifies a connection."""
    return xxhash.xxh3_64_intdigest("\n".join(map(str, session)).encode())

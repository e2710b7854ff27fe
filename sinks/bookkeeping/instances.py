"""The list of a changefeed's instances, in the target: who leads, who stands by, and that they live.

Each instance keeps a row of its own, over a connection of its own, which goes on while the leader's long transaction
holds the other one. Nothing is decided by it alone: it tells a stand-by when to try, and people who is there.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ordering.takeover import Sign

KEPT_S = 3600
"""A row that nobody renewed for so long is of an instance that crashed."""


class Beating(Protocol):
    """A connection: statements with `%s` for bound values. Raises TargetError and its kinds."""

    def run(self, sql: str, parameters: Sequence[Any] | None = None) -> int:
        """Execute a statement; rows affected, also those that it found as they were to be."""
        ...

    def query(self, sql: str, parameters: Sequence[Any] | None = None) -> list[tuple[Any, ...]]:
        """Execute a query; all rows."""
        ...

    def close(self) -> None:
        """Close the socket."""
        ...


@dataclass(frozen=True, slots=True)
class Instance:
    """A row: `epoch` is that of its leadership, 0 for a stand-by; `silent_s` by the target's clock."""

    name: str
    epoch: int
    silent_s: float


@dataclass(frozen=True, slots=True)
class InstanceSql:
    """How a target spells it: the table, what makes it, its clock in seconds."""

    table: str
    clock: str

    @property
    def creation(self) -> str:
        """The statement that makes the table."""
        return (
            f"CREATE TABLE IF NOT EXISTS {self.table} (changefeed VARCHAR(191) NOT NULL, name VARCHAR(191) NOT NULL,"
            " epoch BIGINT NOT NULL, beats BIGINT NOT NULL, seen_at DOUBLE PRECISION NOT NULL,"
            " PRIMARY KEY (changefeed, name))"
        )


class Instances:
    """The list, over a connection of its own; opened when it is first needed. Raises TargetError and its kinds."""

    def __init__(self, connect: Callable[[], Beating], dialect: InstanceSql, changefeed: str) -> None:
        self._connect, self._dialect, self._changefeed = connect, dialect, changefeed
        self._open: Beating | None = None

    @property
    def _db(self) -> Beating:
        if self._open is None:
            self._open = self._connect()
        return self._open

    def close(self) -> None:
        """Close the connection; the next call opens another one."""
        if self._open is not None:
            self._open.close()
            self._open = None

    def beat(self, name: str, epoch: int) -> None:
        """Say that this instance lives."""
        table, clock = self._dialect.table, self._dialect.clock
        renew = (
            f"UPDATE {table} SET epoch = %s, beats = beats + 1, seen_at = {clock} WHERE changefeed = %s AND name = %s"  # noqa: S608 constants
        )
        if not self._db.run(renew, (epoch, self._changefeed, name)):
            add = f"INSERT INTO {table} VALUES (%s, %s, %s, 1, {clock})"  # noqa: S608 constants
            self._db.run(add, (self._changefeed, name, epoch))

    def follow(self, name: str, epoch: int) -> None:
        """Beat for the first time as the leader, and forget leaders before, and who crashed long ago."""
        self.beat(name, epoch)
        former = (
            f"DELETE FROM {self._dialect.table} WHERE changefeed = %s AND name <> %s"  # noqa: S608 constants
            f" AND (epoch > 0 OR seen_at < {self._dialect.clock} - {KEPT_S})"
        )
        self._db.run(former, (self._changefeed, name))

    def leave(self, name: str) -> None:
        """Take this instance off the list."""
        self._db.run(
            f"DELETE FROM {self._dialect.table} WHERE changefeed = %s AND name = %s",  # noqa: S608 constants
            (self._changefeed, name),
        )

    def leader(self) -> Sign | None:
        """What was last heard of the leader: of leaders' rows the one with the highest epoch."""
        rows = self._db.query(
            f"SELECT name, epoch, beats FROM {self._dialect.table} WHERE changefeed = %s AND epoch > 0"  # noqa: S608 constants
            " ORDER BY epoch DESC LIMIT 1",
            (self._changefeed,),
        )
        return Sign(*rows[0]) if rows else None

    def all(self) -> list[Instance]:
        """Every instance, the leader first."""
        rows = self._db.query(
            f"SELECT name, epoch, {self._dialect.clock} - seen_at FROM {self._dialect.table}"  # noqa: S608 constants
            " WHERE changefeed = %s ORDER BY epoch DESC, name",
            (self._changefeed,),
        )
        return [Instance(name, epoch, max(0.0, float(silent))) for name, epoch, silent in rows]

"""What targets on database servers share: one connection, and the progress tables in SQL that all of them speak."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from datetime import UTC
from functools import partial
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from ordering.errors import TargetError
from ordering.events import TableName
from sinks.instances import Dialect, Instance, Instances
from sinks.saving import progress_of, select_of
from sinks.schema import Catalog, TableSchema
from sinks.target import PROGRESS_DATABASE, Lease, Stored, Target
from sinks.uri import TargetUri
from sinks.values import ValueRules

CHECKPOINT = f"{PROGRESS_DATABASE}.checkpoint"
START = f"{PROGRESS_DATABASE}.window_start"
WRITER = f"{PROGRESS_DATABASE}.writer"
DDL = f"{PROGRESS_DATABASE}.ddl"
QUARANTINE = f"{PROGRESS_DATABASE}.quarantine"
INSTANCE = f"{PROGRESS_DATABASE}.instance"
_HAS_REASON = (
    "SELECT COUNT(*) FROM information_schema.columns WHERE table_schema = %s AND table_name = 'ddl'"
    " AND column_name = 'reason'"
)
"""Whether the DDL log has the column that was added last."""


class Session(Protocol):
    """A connection: statements with `%s` for bound values. Raises TargetError and its kinds."""

    def run(self, sql: str, parameters: Sequence[Any] | None = None) -> int:
        """Execute a statement; rows affected."""
        ...

    def query(self, sql: str, parameters: Sequence[Any] | None = None) -> list[tuple[Any, ...]]:
        """Execute a query; all rows."""
        ...

    def value(self, sql: str, parameters: Sequence[Any] | None = None) -> Any:
        """The first column of the first row, or None."""
        ...

    def rollback(self) -> None:
        """Drop the transaction."""
        ...

    def close(self) -> None:
        """Close the socket."""
        ...


S = TypeVar("S", bound=Session)


class ServerTarget(Target, Generic[S]):
    """A target that one connection to a server reaches; it is made when it is first needed."""

    _instances: ClassVar[Dialect]

    def __init__(self, uri: TargetUri, rules: ValueRules) -> None:
        self.name = f"{uri.kind} at {uri.place}"
        self._uri, self._rules = uri, rules
        self._open: S | None = None

    def opener(self) -> Callable[[], Target]:
        """See `Target.opener`."""
        return partial(type(self), self._uri, self._rules)

    @abstractmethod
    def _connected(self) -> S:
        """A new connection."""

    def _has_progress_table(self) -> bool:
        return self._has_table("checkpoint")

    def instances(self, changefeed: str) -> Instances:
        """See `Target.instances`."""
        return Instances(self._connected, self._instances, changefeed)

    def running(self, changefeed: str) -> list[Instance]:
        """See `Target.running`."""
        if not self._has_table("instance"):
            return []
        found = self.instances(changefeed)
        try:
            return found.all()
        finally:
            found.close()

    @abstractmethod
    def _read_catalog(self) -> Catalog: ...

    @property
    def _db(self) -> S:
        if self._open is None:
            self._open = self._connected()
        return self._open

    def close(self) -> None:
        """See `Target.close`."""
        if self._open is not None:
            self._open.close()
            self._open = None

    def catalog(self) -> Catalog:
        """See `Target.catalog`."""
        if self._catalog is None:
            self._catalog = self._read_catalog()
        return self._catalog

    def forget_catalog(self) -> None:
        """See `Target.forget_catalog`."""
        self._catalog = None

    def _schema(self, table: TableName) -> TableSchema:
        schema = self.catalog().get(table)
        if schema is None:
            raise TargetError(f"table {table} is missing in the target", where=self.name)
        schema.check_fit()
        return schema

    def stored(self, changefeed: str) -> Stored | None:
        """See `Target.stored`."""
        if not self._has_progress_table():
            return None
        start = START if self._has_table("window_start") else ""
        rows = self._log_query(select_of(CHECKPOINT, start), (changefeed,))
        if not rows:
            return None
        epoch, updated_at = rows[0][3:5]
        # MySQL's DATETIME knows no zone: ours is UTC
        saved_at = updated_at if updated_at.tzinfo else updated_at.replace(tzinfo=UTC)
        return Stored(progress_of(rows[0], self.name), epoch, saved_at)

    def is_empty(self, table: TableName) -> bool:
        """See `LoadTable.is_empty`."""
        return not self._db.query(f"SELECT 1 FROM {self._place(table)} LIMIT 1")  # noqa: S608 quoted

    _start_table = START
    _ddl_table = DDL
    _ddl_columns_seen = False

    def _log_run(self, sql: str, parameters: Sequence[Any]) -> int:
        return self._db.run(sql.replace("?", "%s"), parameters)

    def _log_query(self, sql: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
        return self._db.query(sql.replace("?", "%s"), parameters)

    def _has_ddl_log(self) -> bool:
        return self._has_table("ddl")

    def _lacks_ddl_columns(self) -> bool:
        self._ddl_columns_seen = self._ddl_columns_seen or bool(self._db.value(_HAS_REASON, (PROGRESS_DATABASE,)))
        return not self._ddl_columns_seen

    def _has_quarantine(self) -> bool:
        return self._has_table("quarantine")

    @abstractmethod
    def _has_table(self, name: str) -> bool:
        """Whether there is this table of ours."""

    def _set_permits(self, changefeed: str, name: str, parts: int) -> None:
        self._db.run(f"DELETE FROM {WRITER} WHERE changefeed = %s", (changefeed,))  # noqa: S608 a constant
        if parts:
            marks = ", ".join(["(%s, %s, %s, 0)"] * parts)
            values = [value for part in range(parts) for value in (changefeed, part, name)]
            self._db.run(f"INSERT INTO {WRITER} VALUES {marks}", values)  # noqa: S608 a constant

    def _permits(self, changefeed: str) -> list[int]:
        rows = self._db.query(f"SELECT part FROM {WRITER} WHERE changefeed = %s", (changefeed,))  # noqa: S608 a constant
        return [part for (part,) in rows]

    def _locked_permit(self, changefeed: str, part: int) -> tuple[str, int] | None:
        rows = self._db.query(
            f"SELECT phase, attempt FROM {WRITER} WHERE changefeed = %s AND part = %s FOR UPDATE",  # noqa: S608 a constant
            (changefeed, part),
        )
        return (rows[0][0], rows[0][1]) if rows else None

    def _take_permit(self, changefeed: str, part: int, attempt: int) -> None:
        self._db.run(
            f"UPDATE {WRITER} SET attempt = %s WHERE changefeed = %s AND part = %s",  # noqa: S608 a constant
            (attempt, changefeed, part),
        )

    def _raise_epoch(self, changefeed: str) -> None:
        self._db.run(f"UPDATE {CHECKPOINT} SET epoch = epoch + 1 WHERE changefeed = %s", (changefeed,))  # noqa: S608 a constant

    def _confirm(self, lease: Lease, session: S | None = None) -> None:
        """Raise LeadershipLostError if the epoch is no longer ours: right before what is no part of a transaction.

        `session`: the one that is going to do it, where that is another one than this target's.
        """
        look = f"SELECT epoch FROM {CHECKPOINT} WHERE changefeed = %s"  # noqa: S608 a constant
        self._compare((session or self._db).value(look, (lease.changefeed,)), lease)

    def _locked_epoch(self, changefeed: str) -> int | None:
        return self._db.value(f"SELECT epoch FROM {CHECKPOINT} WHERE changefeed = %s FOR UPDATE", (changefeed,))  # type: ignore[no-any-return]  # noqa: S608

    def _rollback(self) -> None:
        if self._open is not None:
            self._open.rollback()

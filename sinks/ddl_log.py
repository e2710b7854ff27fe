"""The DDL log: one line in the target for every DDL that came, what became of it, and what an operator decides.

    intent -> done                          executed
    intent -> running -> done               the target goes on by itself, while rows are written (indexes of TiDB)
    intent -> failed                        the target refuses it, or it can't be read: the changefeed stands still
    failed | intent -> skip -> skipped      an operator leaves it out
    failed | intent -> take -> done         an operator has made the change by hand
    ignored                                 the config, or TiCDC's rules, leave it out

`intent` is committed before the statement runs. A decision stands in the line until the next run meets the DDL.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from enum import Enum
from typing import Any

import orjson

from ordering.events import DdlEvent

KEPT = 1000
"""Lines that are kept of each changefeed; open ones are kept always."""


class DdlState(Enum):
    """What became of a DDL."""

    INTENT = "intent"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    IGNORED = "ignored"
    SKIP = "skip"
    TAKE = "take"
    SKIPPED = "skipped"


DECIDED = {DdlState.SKIP: DdlState.SKIPPED, DdlState.TAKE: DdlState.DONE}
"""What an operator decided -> what it is once the next run has met the DDL."""

_OPEN = "'intent', 'running', 'failed', 'skip', 'take'"


@dataclass(frozen=True, slots=True)
class DdlRecord:
    """A line of the DDL log: what came, what was executed in the target (or why nothing was), when it was done.

    `duration_ms`: how long executing took, None where nothing was; `reason`: the error, or the operator's.
    """

    id: int
    commit_ts: int
    database: str
    table: str
    sql: str
    executed: str
    state: str
    updated_at: str
    duration_ms: int | None
    reason: str

    def is_of(self, ddl: DdlEvent) -> bool:
        """Whether it is about this DDL."""
        own = (self.commit_ts, self.database, self.table, self.sql)
        return own == (ddl.commit_ts, ddl.database, ddl.table, ddl.sql)


@dataclass(frozen=True, slots=True)
class Entered:
    """The line of a DDL that is to be executed. `before`: as it was noted; `torn`: by a run that did not end it."""

    id: int
    before: dict[str, Any]
    torn: bool


class DdlLog(ABC):
    """The log's SQL, in which all targets agree but for quotes and the form of a moment."""

    _ddl_table: str
    _database_column = '"database"'

    @abstractmethod
    def _log_run(self, sql: str, parameters: Sequence[Any]) -> int:
        """Execute a statement with `?` for bound values."""

    @abstractmethod
    def _log_query(self, sql: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
        """Execute a query with `?` for bound values."""

    def _log_now(self) -> str:
        """This moment as the log keeps it."""
        return datetime.now(UTC).isoformat()

    def _has_ddl_log(self) -> bool:
        return True

    def _lacks_ddl_columns(self) -> bool:
        """Whether the log is an earlier version's, without durations and reasons: the next run adds them."""
        return False

    def ddl_log(self, changefeed: str, limit: int, *, only_open: bool = False) -> list[DdlRecord]:
        """The latest DDLs, newest first; `only_open`: those that the checkpoint does not cover yet."""
        if not self._has_ddl_log():
            return []
        added = "NULL, ''" if self._lacks_ddl_columns() else "duration_ms, reason"
        rows = self._log_query(
            f"SELECT id, commit_ts, {self._database_column}, name, statement, executed, state, updated_at, {added}"  # noqa: S608 constants
            f" FROM {self._ddl_table} WHERE changefeed = ? {_only_open(only_open)} ORDER BY id DESC LIMIT ?",
            (changefeed, limit),
        )
        return [_line(*row) for row in rows]

    def open_ddls(self, changefeed: str) -> list[DdlRecord]:
        """What is not settled: what killed runs left, what failed, what an operator decided and no run has met yet."""
        return self.ddl_log(changefeed, KEPT, only_open=True)

    def _enter(self, ddl: DdlEvent, executed: str, changefeed: str, before: Mapping[str, Any]) -> Entered:
        """Note that a DDL is to be executed, in the transaction that has begun.

        A line that a killed run left is taken on as it is, with what was there before it.
        """
        torn = self._torn(ddl, changefeed)
        if torn is not None:
            return torn
        line = self._open_line(ddl, changefeed)
        if line is None:
            return Entered(self._add(ddl, executed, DdlState.INTENT, changefeed, before), dict(before), torn=False)
        self._log_run(
            f"UPDATE {self._ddl_table} SET state = 'intent', executed = ?, before_it = ?, reason = '', updated_at = ?"  # noqa: S608 a constant
            " WHERE id = ?",
            (executed, _json(before), self._log_now(), line.id),
        )
        return Entered(line.id, dict(before), torn=False)

    def _torn(self, ddl: DdlEvent, changefeed: str) -> Entered | None:
        """The line that a run left which was killed before it could end the DDL."""
        line = self._open_line(ddl, changefeed)
        if line is None or line.state != DdlState.INTENT.value:
            return None
        ((noted,),) = self._log_query(f"SELECT before_it FROM {self._ddl_table} WHERE id = ?", (line.id,))  # noqa: S608 a constant
        return Entered(line.id, orjson.loads(noted or "{}"), torn=True)

    def _open_line(self, ddl: DdlEvent, changefeed: str) -> DdlRecord | None:
        lines = (line for line in self.open_ddls(changefeed) if line.is_of(ddl))
        return next(lines, None)

    def _add(
        self, ddl: DdlEvent, executed: str, state: DdlState, changefeed: str, before: Mapping[str, Any] | None = None
    ) -> int:
        """Add a line, and let the oldest go."""
        told = (changefeed, ddl.commit_ts, ddl.database, ddl.table, ddl.sql, executed, state.value)
        self._log_run(
            f"INSERT INTO {self._ddl_table} (changefeed, commit_ts, {self._database_column}, name, statement, executed,"  # noqa: S608 constants
            " state, before_it, updated_at, reason) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, '')",
            (*told, _json(before or {}), self._log_now()),
        )
        newest = f"SELECT id FROM {self._ddl_table} WHERE changefeed = ? ORDER BY id DESC LIMIT 1"  # noqa: S608 a constant
        ((own,),) = self._log_query(newest, (changefeed,))
        for (old,) in self._log_query(f"{newest} OFFSET {KEPT}", (changefeed,)):
            self._log_run(
                f"DELETE FROM {self._ddl_table} WHERE changefeed = ? AND id <= ? AND state NOT IN ({_OPEN})",  # noqa: S608 constants
                (changefeed, old),
            )
        return int(own)

    def _close_line(
        self, line: int, state: DdlState, duration_ms: int | None = None, executed: str | None = None
    ) -> None:
        """Say how it ended, in the transaction that has begun."""
        self._log_run(
            f"UPDATE {self._ddl_table} SET state = ?, duration_ms = ?, executed = COALESCE(?, executed), updated_at = ?"  # noqa: S608 a constant
            " WHERE id = ?",
            (state.value, duration_ms, executed, self._log_now(), line),
        )

    def _forget_intents(self, changefeed: str) -> None:
        """Of DDLs that were begun nothing is known any more: the tables may be others now."""
        self._log_run(
            f"UPDATE {self._ddl_table} SET state = 'failed', reason = ?, updated_at = ?"  # noqa: S608 a constant
            " WHERE changefeed = ? AND state = 'intent'",
            ("an operator replaced the progress", self._log_now(), changefeed),
        )

    def _judge_line(self, line: int, state: DdlState, reason: str) -> None:
        """Say why it failed, or what an operator decided and why."""
        self._log_run(
            f"UPDATE {self._ddl_table} SET state = ?, reason = ?, updated_at = ? WHERE id = ?",  # noqa: S608 a constant
            (state.value, reason, self._log_now(), line),
        )


def _only_open(wanted: bool) -> str:
    return f"AND state IN ({_OPEN})" if wanted else ""


def _line(*row: Any) -> DdlRecord:
    names = [field.name for field in fields(DdlRecord)]
    told = dict(zip(names, row, strict=True))
    return DdlRecord(**{**told, "updated_at": _text(told["updated_at"])})


def _json(value: Mapping[str, Any]) -> str:
    return orjson.dumps(value).decode()


def _text(moment: Any) -> str:
    """A moment in UTC; MySQL's DATETIME knows no zone: ours is UTC."""
    if not isinstance(moment, datetime):
        return str(moment)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC).isoformat()


def milliseconds_since(begun: float) -> int:
    """Whole milliseconds since a moment of the monotonic clock."""
    return round(1000 * (time.monotonic() - begun))

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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from enum import Enum
from typing import Any

import orjson

from ordering.errors import TargetError, TargetUnreachableError
from ordering.events import DdlEvent
from sinks.bookkeeping.tables import Book, as_held, as_moment

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

REPLACED = "an operator replaced the progress"
"""Why a DDL is open of which nothing is known any more: it has failed only once a run meets it again."""
_UNDER_WAY = {state.value for state in (DdlState.INTENT, *DECIDED)}

SAME_PLACE = "sink.dispatchers give its table the same name as before"
"""Why a RENAME is ignored that only upstream sees: what has the old name afterwards is another table all the same."""
SAME_ORIGIN = "its rows keep their origin"
"""The same of a merged table."""

_RAN = {DdlState.DONE.value, DdlState.INTENT.value, DdlState.RUNNING.value, DdlState.TAKE.value}
_OPEN = "'intent', 'running', 'failed', 'skip', 'take'"
_NEWEST = "commit_ts DESC, updated_at DESC, id DESC"
"""How lines are ordered: each server of a TiDB counts ids by itself, so a later line may have a lower one."""
_REPLICATED = "/replicated"
"""In `before_it`, and no table's name: what of the statement is executed, where that is not all of it."""


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

    @property
    def happened(self) -> bool:
        """Whether names or rows may be others behind it: it was executed, or moves its table upstream only."""
        is_unseen = self.state == DdlState.IGNORED.value and self.executed in (SAME_PLACE, SAME_ORIGIN)
        return is_unseen or self.state in _RAN

    def is_of(self, ddl: DdlEvent) -> bool:
        """Whether it is about this DDL.

        A statement has a commitTs for itself, and of an EXCHANGE PARTITION topics name the one table, files the other.
        """
        return (self.commit_ts, self.sql) == (ddl.commit_ts, as_held(ddl.sql))


@dataclass(frozen=True, slots=True)
class Entered:
    """The line of a DDL that is to be executed. `before`: as it was noted; `torn`: by a run that did not end it."""

    id: int
    before: dict[str, Any]
    torn: bool


class DdlLog:
    """The log of all changefeeds of a target."""

    def __init__(self, book: Book) -> None:
        self._book = book
        self._is_whole = False
        """Whether the columns that were added last have been seen."""

    @property
    def _table(self) -> str:
        return self._book.place("ddl")

    def latest(self, changefeed: str, limit: int, *, only_open: bool = False) -> list[DdlRecord]:
        """The latest DDLs, newest first; `only_open`: those that the checkpoint does not cover yet."""
        if not self._book.has("ddl"):
            return []
        added = "duration_ms, reason" if self.is_whole() else "NULL, ''"
        rows = self._book.query(
            f'SELECT id, commit_ts, "database", name, statement, executed, state, updated_at, {added}'  # noqa: S608 constants
            f" FROM {self._table} WHERE changefeed = ? {_only_open(only_open)} ORDER BY {_NEWEST} LIMIT ?",
            (changefeed, limit),
        )
        return [_line(*row) for row in rows]

    def told(self, changefeed: str, limit: int, checkpoint_ts: int) -> list[DdlRecord]:
        """The latest DDLs for people: open ones that the checkpoint does not cover first, then the newest.

        Before a reset there may have been many of a later commitTs than the one that stops the changefeed now.
        """
        running = DdlState.RUNNING.value
        waiting = [x for x in self.unsettled(changefeed) if x.commit_ts >= checkpoint_ts or x.state == running]
        rest = [line for line in self.latest(changefeed, limit) if line not in waiting]
        return (waiting + rest)[: max(limit, len(waiting))]

    def unsettled(self, changefeed: str) -> list[DdlRecord]:
        """What killed runs left, what failed, what an operator decided and no run has met yet; newest first."""
        return self.latest(changefeed, KEPT, only_open=True)

    def under_way(self, changefeed: str) -> list[DdlRecord]:
        """What a run began, or an operator decided about, and no run has ended."""
        return [line for line in self.unsettled(changefeed) if line.state in _UNDER_WAY]

    def is_whole(self) -> bool:
        """Whether the log has the columns that were added last; asked outside of transactions at first."""
        if not self._is_whole:
            try:
                self._book.query(f"SELECT l.duration_ms, l.reason FROM {self._table} l WHERE 1 = 0")  # noqa: S608 constants
            except TargetUnreachableError:
                raise
            except TargetError:
                return False
            self._is_whole = True
        return True

    def complete(self) -> None:
        """Add the columns that an earlier version's log lacks; not inside a transaction."""
        if not self.is_whole():
            types = self._book.types
            for column in ("duration_ms BIGINT", f"reason {types.text} NOT NULL{types.text_default}"):
                self._book.run(f"ALTER TABLE {self._table} ADD COLUMN {column}")

    def enter(self, ddl: DdlEvent, executed: str, changefeed: str, before: Mapping[str, Any]) -> Entered:
        """Note that a DDL is to be executed, in the transaction that has begun.

        A line that a killed run left is taken on as it is, with what was there before it.
        """
        torn = self.torn(ddl, changefeed)
        if torn is not None:
            return torn
        line = self.open_line(ddl, changefeed)
        noted = {**before, **({_REPLICATED: ddl.replicated} if ddl.replicated else {})}
        if line is None:
            return Entered(self.add(ddl, executed, DdlState.INTENT, changefeed, noted), dict(before), torn=False)
        self._book.run(
            f"UPDATE {self._table} SET state = 'intent', executed = ?, before_it = ?, reason = '', updated_at = ?"  # noqa: S608 a constant
            " WHERE id = ?",
            (executed, _json(noted), self._book.now(), line.id),
        )
        return Entered(line.id, dict(before), torn=False)

    def torn(self, ddl: DdlEvent, changefeed: str) -> Entered | None:
        """The line that a run left which was killed before it could end the DDL."""
        line = self.open_line(ddl, changefeed)
        if line is None or line.state != DdlState.INTENT.value:
            return None
        noted = self._noted(line)
        return Entered(line.id, {name: what for name, what in noted.items() if name != _REPLICATED}, torn=True)

    def replicated(self, line: DdlRecord) -> str:
        """What of its statement is executed, as it was decided when it was begun; "": all of it."""
        return str(self._noted(line).get(_REPLICATED, ""))

    def _noted(self, line: DdlRecord) -> dict[str, Any]:
        ((noted,),) = self._book.query(f"SELECT before_it FROM {self._table} WHERE id = ?", (line.id,))  # noqa: S608 a constant
        return dict(orjson.loads(noted or "{}"))

    def open_line(self, ddl: DdlEvent, changefeed: str) -> DdlRecord | None:
        """The line of this DDL, if it is not settled."""
        lines = (line for line in self.unsettled(changefeed) if line.is_of(ddl))
        return next(lines, None)

    def add(
        self, ddl: DdlEvent, executed: str, state: DdlState, changefeed: str, before: Mapping[str, Any] | None = None
    ) -> int:
        """Add a line, and let the oldest go; its id."""
        older = self._ids(ddl, changefeed)
        told = (changefeed, ddl.commit_ts, ddl.database, ddl.table, ddl.sql, executed, state.value)
        self._book.run(
            f'INSERT INTO {self._table} (changefeed, commit_ts, "database", name, statement, executed,'  # noqa: S608 constants
            " state, before_it, updated_at, reason) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, '')",
            (*told, _json(before or {}), self._book.now()),
        )
        (own,) = self._ids(ddl, changefeed) - older
        self._let_go(changefeed, own)
        return own

    def _let_go(self, changefeed: str, own: int) -> None:
        """Delete what is settled of the lines beyond `KEPT`, but for the newest: see `reaches_back`."""
        look = (
            f"SELECT commit_ts, id FROM {self._table} WHERE changefeed = ?"  # noqa: S608 a constant
            f" ORDER BY commit_ts DESC, id DESC LIMIT 1 OFFSET {KEPT}"
        )
        for ts, last in self._book.query(look, (changefeed,)):
            self._book.run(
                f"DELETE FROM {self._table} WHERE changefeed = ? AND (commit_ts < ? OR (commit_ts = ? AND id <= ?))"  # noqa: S608 constants
                f" AND id <> ? AND state NOT IN ({_OPEN})",
                (changefeed, ts, ts, last, own),
            )

    def _ids(self, ddl: DdlEvent, changefeed: str) -> set[int]:
        """The lines of a DDL's commitTs: a changefeed's leader alone adds any."""
        look = f"SELECT id FROM {self._table} WHERE changefeed = ? AND commit_ts = ?"  # noqa: S608 a constant
        return {int(own) for (own,) in self._book.query(look, (changefeed, ddl.commit_ts))}

    def close(self, line: int, state: DdlState, duration_ms: int | None = None, executed: str | None = None) -> None:
        """Say how it ended, in the transaction that has begun."""
        self._book.run(
            f"UPDATE {self._table} SET state = ?, duration_ms = ?, executed = COALESCE(?, executed), updated_at = ?"  # noqa: S608 a constant
            " WHERE id = ?",
            (state.value, duration_ms, executed, self._book.now(), line),
        )

    def forget_open(self, changefeed: str, *, begun: bool) -> None:
        """Of DDLs that were decided about nothing is known any more: the tables may be others now.

        `begun`: nor of those that were begun.
        """
        states = "'skip', 'take', 'intent'" if begun else "'skip', 'take'"
        self._book.run(
            f"UPDATE {self._table} SET state = 'failed', reason = ?, updated_at = ?"  # noqa: S608 constants
            f" WHERE changefeed = ? AND state IN ({states})",
            (REPLACED, self._book.now(), changefeed),
        )

    def judge(self, line: int, state: DdlState, reason: str) -> None:
        """Say why it failed, or what an operator decided and why."""
        self._book.run(
            f"UPDATE {self._table} SET state = ?, reason = ?, updated_at = ? WHERE id = ?",  # noqa: S608 a constant
            (state.value, reason, self._book.now(), line),
        )


def reaches_back(log: Sequence[DdlRecord], ts: int) -> bool:
    """Whether the newest `KEPT` lines of a changefeed hold all above a commitTs: older ones may be gone."""
    return len(log) < KEPT or min(line.commit_ts for line in log) <= ts


def _only_open(wanted: bool) -> str:
    return f"AND state IN ({_OPEN})" if wanted else ""


def _line(*row: Any) -> DdlRecord:
    names = [field.name for field in fields(DdlRecord)]
    told = dict(zip(names, row, strict=True))
    return DdlRecord(**{**told, "updated_at": as_moment(told["updated_at"]).isoformat()})


def _json(value: Mapping[str, Any]) -> str:
    return orjson.dumps(value).decode()


def milliseconds_since(begun: float) -> int:
    """Whole milliseconds since a moment of the monotonic clock."""
    return round(1000 * (time.monotonic() - begun))

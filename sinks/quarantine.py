"""The table `ticdc_reconciler.quarantine` of messages that were set aside, in SQL that all targets speak."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from ordering.events import Position
from ordering.quarantine import Changes, Quarantined, State

_COLUMNS = (
    '"topic", "partition", "offset", "reason", "timestamp", "key", "value", "commit_ts", "row_key", "about", "state",'
    ' "note", "updated_at"'
)
_WHERE = 'WHERE "changefeed" = ? AND "topic" = ? AND "partition" = ? AND "offset" = ?'


@dataclass(frozen=True, slots=True)
class QuarantineTypes:
    """A dialect's names: of the table, of a short text, a long one, bytes, a TSO; the quote; what ends CREATE TABLE."""

    table: str
    short: str
    text: str
    binary: str
    tso: str
    quote: str = '"'
    tail: str = ""

    @property
    def creation(self) -> str:
        """The CREATE TABLE."""
        columns = [
            f'"changefeed" {self.short} NOT NULL',
            f'"topic" {self.short} NOT NULL',
            '"partition" INTEGER NOT NULL',
            '"offset" BIGINT NOT NULL',
            f'"reason" {self.text} NOT NULL',
            '"timestamp" BIGINT',
            f'"key" {self.binary}',
            f'"value" {self.binary}',
            f'"commit_ts" {self.tso}',
            f'"row_key" {self.binary}',
            f'"about" {self.text} NOT NULL',
            f'"state" {self.short} NOT NULL',
            f'"note" {self.text} NOT NULL',
            f'"updated_at" {self.short} NOT NULL',
            'PRIMARY KEY ("changefeed", "topic", "partition", "offset")',
        ]
        return f"CREATE TABLE IF NOT EXISTS {self.table} ({', '.join(columns)}){self.tail}"


class QuarantineTable(ABC):
    """What a target holds of messages that were set aside."""

    _quarantine_types: QuarantineTypes

    @abstractmethod
    def _log_run(self, sql: str, parameters: Sequence[Any]) -> int:
        """Execute a statement with `?` for bound values."""

    @abstractmethod
    def _log_query(self, sql: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
        """Execute a query with `?` for bound values."""

    def _has_quarantine(self) -> bool:
        return True

    def _make_quarantine(self) -> None:
        """Make the table if it is missing; not inside a transaction."""
        if not self._has_quarantine():
            self._log_run(self._spelled(self._quarantine_types.creation), ())

    def _spelled(self, sql: str) -> str:
        return sql.replace('"', self._quarantine_types.quote)

    def quarantined(self, changefeed: str) -> list[Quarantined]:
        """All of a changefeed, by position, without the messages' bytes."""
        if not self._has_quarantine():
            return []
        columns = _COLUMNS.replace('"key", "value"', "NULL, NULL")
        select = f'SELECT {columns} FROM {self._quarantine_types.table} WHERE "changefeed" = ? ORDER BY 1, 2, 3'  # noqa: S608 constants
        return [_entry(*row) for row in self._log_query(self._spelled(select), (changefeed,))]

    def quarantined_message(self, changefeed: str, position: Position) -> Quarantined | None:
        """One message, with its bytes."""
        select = f"SELECT {_COLUMNS} FROM {self._quarantine_types.table} {_WHERE}"  # noqa: S608 constants
        rows = self._log_query(self._spelled(select), (changefeed, *position)) if self._has_quarantine() else []
        return _entry(*rows[0]) if rows else None

    def _change_quarantine(self, changefeed: str, changes: Changes) -> None:
        """Add and decide, in the transaction that has begun. A message that is known is not added once more."""
        for one in changes.held:
            self._hold(changefeed, one)
        update = f'UPDATE {self._quarantine_types.table} SET "state" = ?, "note" = ?, "updated_at" = ? {_WHERE}'  # noqa: S608 constants
        for position, state, note in changes.decided:
            self._log_run(self._spelled(update), (state.value, note, _now(), changefeed, *position))

    def _hold(self, changefeed: str, one: Quarantined) -> None:
        delete = f"DELETE FROM {self._quarantine_types.table} {_WHERE}"  # noqa: S608 constants
        self._log_run(self._spelled(delete), (changefeed, *one.position))
        insert = (
            f'INSERT INTO {self._quarantine_types.table} ("changefeed", {_COLUMNS})'  # noqa: S608 constants
            f" VALUES ({', '.join('?' * 14)})"
        )
        told = (one.reason, one.timestamp, one.key, one.value, one.commit_ts, one.row, one.about, one.state.value)
        self._log_run(self._spelled(insert), (changefeed, *one.position, *told, one.note, _now()))


def states(entries: Iterable[Quarantined]) -> dict[str, int]:
    """How many messages are in each state."""
    found = dict.fromkeys((state.value for state in State), 0)
    for one in entries:
        found[one.state.value] += 1
    return found


def _entry(topic: str, partition: int, offset: int, reason: str, timestamp: int | None, *rest: Any) -> Quarantined:
    key, value, commit_ts, row, about, state, note, updated_at = rest
    return Quarantined(
        Position(topic, partition, offset),
        reason,
        timestamp,
        _bytes(key),
        _bytes(value),
        commit_ts,
        _bytes(row),
        about,
        State(state),
        note,
        updated_at,
    )


def _bytes(value: Any) -> bytes | None:
    return None if value is None else bytes(value)


def _now() -> str:
    return datetime.now(UTC).isoformat()

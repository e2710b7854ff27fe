"""The table `ticdc_reconciler.quarantine` of messages that were quarantined, in SQL that all targets speak."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from ordering.events import Position
from ordering.quarantine import Changes, Quarantined, QuarantineState
from sinks.bookkeeping.tables import Book

_COLUMNS = (
    '"topic", "partition", "offset", "reason", "timestamp", "key", "value", "commit_ts", "row_key", "about", "state",'
    ' "note", "updated_at"'
)
_WHERE = 'WHERE "changefeed" = ? AND "topic" = ? AND "partition" = ? AND "offset" = ?'


class QuarantineTable:
    """What a target holds of messages that were quarantined."""

    def __init__(self, book: Book) -> None:
        self._book = book

    @property
    def _table(self) -> str:
        return self._book.place("quarantine")

    def make(self) -> None:
        """Make the table if it is missing."""
        if self._book.has("quarantine"):
            return
        types = self._book.types
        columns = [
            f'"changefeed" {types.short} NOT NULL',
            f'"topic" {types.short} NOT NULL',
            '"partition" INTEGER NOT NULL',
            '"offset" BIGINT NOT NULL',
            f'"reason" {types.text} NOT NULL',
            '"timestamp" BIGINT',
            f'"key" {types.binary}',
            f'"value" {types.binary}',
            f'"commit_ts" {types.tso}',
            f'"row_key" {types.binary}',
            f'"about" {types.text} NOT NULL',
            f'"state" {types.short} NOT NULL',
            f'"note" {types.text} NOT NULL',
            f'"updated_at" {types.short} NOT NULL',
            'PRIMARY KEY ("changefeed", "topic", "partition", "offset")',
        ]
        self._book.run(f"CREATE TABLE IF NOT EXISTS {self._table} ({', '.join(columns)}){types.tail}")

    def all(self, changefeed: str) -> list[Quarantined]:
        """All of a changefeed, by position, without the messages' bytes."""
        if not self._book.has("quarantine"):
            return []
        columns = _COLUMNS.replace('"key", "value"', "NULL, NULL")
        select = f'SELECT {columns} FROM {self._table} WHERE "changefeed" = ? ORDER BY 1, 2, 3'  # noqa: S608 constants
        return [_entry(*row) for row in self._book.query(select, (changefeed,))]

    def message(self, changefeed: str, position: Position) -> Quarantined | None:
        """One message, with its bytes."""
        select = f"SELECT {_COLUMNS} FROM {self._table} {_WHERE}"  # noqa: S608 constants
        rows = self._book.query(select, (changefeed, *position)) if self._book.has("quarantine") else []
        return _entry(*rows[0]) if rows else None

    def change(self, changefeed: str, changes: Changes) -> None:
        """Add and decide, in the transaction that has begun. A message that is known is not added once more."""
        for one in changes.held:
            self._hold(changefeed, one)
        update = f'UPDATE {self._table} SET "state" = ?, "note" = ?, "updated_at" = ? {_WHERE}'  # noqa: S608 constants
        for position, state, note in changes.decided:
            self._book.run(update, (state.value, note, _now(), changefeed, *position))

    def _hold(self, changefeed: str, one: Quarantined) -> None:
        self._book.run(f"DELETE FROM {self._table} {_WHERE}", (changefeed, *one.position))  # noqa: S608 constants
        insert = f'INSERT INTO {self._table} ("changefeed", {_COLUMNS}) VALUES ({", ".join("?" * 14)})'  # noqa: S608 constants
        told = (one.reason, one.timestamp, one.key, one.value, one.commit_ts, one.row, one.about, one.state.value)
        self._book.run(insert, (changefeed, *one.position, *told, one.note, _now()))


def states(entries: Iterable[Quarantined]) -> dict[str, int]:
    """How many messages are in each state."""
    found = dict.fromkeys((state.value for state in QuarantineState), 0)
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
        QuarantineState(state),
        note,
        updated_at,
    )


def _bytes(value: Any) -> bytes | None:
    return None if value is None else bytes(value)


def _now() -> str:
    return datetime.now(UTC).isoformat()

"""What the upstream held after any commit: the oracle that a target is compared with.

Ten lines on purpose: all old images of a transaction out, then all new ones in, by handle key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from consumer.demo.fake_ticdc.database import Commit, DatabaseState, Entry

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from consumer.demo.fake_ticdc.database import Key, Row


class Oracle:
    """Tables as they stand after the entries applied so far."""

    def __init__(self) -> None:
        self._state = DatabaseState()

    def apply(self, entry: Entry) -> None:
        """Apply the next commit or DDL."""
        if not isinstance(entry, Commit):
            entry.ddl.apply(self._state)
            return
        rows = self._state.rows
        for table, old, _ in entry.changes:
            if old is not None:
                del rows[table.full_name][table.key(old)]
        for table, _, new in entry.changes:
            if new is not None:
                rows[table.full_name][table.key(new)] = new

    def snapshot(self) -> dict[str, dict[Key, Row]]:
        """Tell what every table holds: {"database.table": {handle key: row}}."""
        return {name: dict(rows) for name, rows in self._state.rows.items()}  # type: ignore[arg-type]


def snapshot_at(log: Iterable[Entry], ts: int) -> dict[str, dict[Key, Row]]:
    """Tell what every table held once everything with commitTs <= `ts` was committed."""
    oracle = Oracle()
    for entry in log:
        if entry.commit_ts > ts:
            break
        oracle.apply(entry)
    return oracle.snapshot()


def snapshots(log: Iterable[Entry]) -> Iterator[tuple[int, dict[str, dict[Key, Row]]]]:
    """Yield every commitTs with what the tables held after it."""
    oracle = Oracle()
    for entry in log:
        oracle.apply(entry)
        yield entry.commit_ts, oracle.snapshot()

"""Rows of tables without a key: which of equal messages are copies of a row, and which repetitions.

Such a row is its content. A transaction may insert two equal rows, which gives two equal messages; after a restart
TiCDC sends both again. So a partition's messages are told apart by *passes*: within one pass each copy comes once, and
an event happened as often as the fullest pass tells. A pass ends where TiCDC goes back: at a watermark that is not
above the last one, and, for one table (a table that moved to another server is sent again alone), at a row at or below
the last watermark or below the table's last row. `_tidb.rowkey`, where TiCDC sends it, tells copies apart by itself.

What this can't tell: a producer that sends one message twice inside a pass, and a restart whose first watermark is
above the partition's last, where the table goes on with its last commitTs. `ordering.rows.equal_rows` finds both.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ordering.events import RowOp, TableName
from ordering.rows.identity import commit_ts_of
from ordering.timestamps import CommitTs


class Passes:
    """The passes of one partition, from a place on; `watermark` is the last one before it, if there is any."""

    def __init__(self, watermark: int | None) -> None:
        self._watermark = watermark
        self._all = 0
        self._own: dict[TableName, int] = {}
        self._last: dict[TableName, int] = {}
        self._again: set[TableName] = set()

    def watermark(self, ts: int) -> None:
        """Take a watermark. TiCDC sends each once: one that is not above the last is from after a restart."""
        if self._watermark is not None and ts <= self._watermark:
            self._all += 1
            self._last.clear()
        self._watermark = ts
        self._again.clear()

    def row(self, table: TableName, commit_ts: int) -> tuple[int, int]:
        """Take a row event; the pass of its table that it is in."""
        behind = self._watermark is not None and commit_ts <= self._watermark
        if (behind and table not in self._again) or commit_ts < self._last.get(table, 0):
            self._own[table] = self._own.get(table, 0) + 1
            if behind:
                self._again.add(table)
        self._last[table] = commit_ts
        return self._all, self._own.get(table, 0)


class Copies(NamedTuple):
    """How often one event happened to rows of one content: so many deleted or written copies at one commitTs.

    `content`: canonical bytes of table and row; `mark`: the row key that TiCDC sent, or b"".
    """

    content: bytes
    order: int
    mark: bytes
    times: int


class CopyCounter:
    """Counts the copies of a partition's events, pass by pass."""

    def __init__(self) -> None:
        self._counts: dict[tuple[bytes, int, bytes], tuple[tuple[int, int], int, int]] = {}

    def add(self, content: bytes, order: int, mark: bytes, in_pass: tuple[int, int]) -> int:
        """Count one message; which copy of its event it is, from 0."""
        key = (content, order, mark)
        known, count, most = self._counts.get(key, (in_pass, 0, 0))
        count = 1 if mark or known != in_pass else count + 1
        self._counts[key] = (in_pass, count, max(most, count))
        return count - 1

    def found(self) -> list[Copies]:
        """What was counted."""
        return [Copies(*key, most) for key, (_, _, most) in self._counts.items()]


def merged(found: Iterable[Copies]) -> list[Copies]:
    """The counts of several partitions: equal events go to one, unless the dispatcher was changed in between."""
    most: dict[tuple[bytes, int, bytes], int] = {}
    for content, order, mark, count in found:
        key = (content, order, mark)
        most[key] = max(count, most.get(key, 0))
    return [Copies(*key, count) for key, count in most.items()]


def net_copies(found: Iterable[Copies]) -> dict[bytes, int]:
    """How many copies of each content are left to write (positive) or to delete (negative)."""
    net: dict[bytes, int] = {}
    for content, order, _, count in found:
        net[content] = net.get(content, 0) + (count if order & RowOp.WRITE else -count)
    return {content: count for content, count in net.items() if count}


def by_commit(found: Iterable[Copies]) -> Mapping[CommitTs, list[Copies]]:
    """The copies by transaction, in commitTs order."""
    groups: dict[CommitTs, list[Copies]] = {}
    for copies in sorted(found, key=lambda one: one.order):
        groups.setdefault(commit_ts_of(copies.order), []).append(copies)
    return groups

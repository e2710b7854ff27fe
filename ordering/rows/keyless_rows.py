"""Rows of tables without a key: which of equal messages are copies of a row, and which repetitions.

All values of such a row together identify it. A transaction may insert two equal rows, which gives two equal messages;
after a restart TiCDC sends both again. So a partition's messages are told apart by *passes*: within one pass each copy
comes once, and an event happened as often as the fullest pass tells. An UPDATE is counted as a whole: it lies in the
partition of its new row, so equal rows that two UPDATEs replace may be told in two partitions. A pass ends where TiCDC
goes back: at a watermark that is not above the last one, and, for one table (a table that moved to another server is
sent again alone), at a row at or below the last watermark or below the table's last row. `_tidb.rowkey`, where TiCDC
sends it, tells copies apart by itself.

What this can't tell: a producer that sends one message twice inside a pass, and a restart whose first watermark is
above the partition's last, where the table goes on with its last commitTs. `ordering.rows.equal_rows` finds both.
"""

from collections import Counter
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


class EventHalf(NamedTuple):
    """What one event does to rows of one content, at one commitTs.

    `content`: canonical bytes of table and row; `mark`: the row key that TiCDC sent, or b""; `other`: the content of an
    UPDATE's other half, b"" for an event that has one half.
    """

    content: bytes
    order: int
    mark: bytes
    other: bytes = b""


class Copies(NamedTuple):
    """How often one event happened: so many copies of a row came or went with it."""

    half: EventHalf
    times: int


class CopyCounter:
    """Counts the copies of a partition's events, pass by pass."""

    def __init__(self) -> None:
        self._rows: dict[EventHalf, tuple[tuple[int, int], int]] = {}
        self._events: dict[EventHalf, tuple[tuple[int, int], int, int]] = {}

    def add(self, half: EventHalf, in_pass: tuple[int, int]) -> int:
        """Count one message; which copy of its row it is, from 0, whatever became of the others or had been before."""
        row = half._replace(other=b"")
        known, copies = self._rows.get(row, (in_pass, 0))
        copies = 1 if half.mark or known != in_pass else copies + 1
        self._rows[row] = (in_pass, copies)
        known, count, most = self._events.get(half, (in_pass, 0, 0))
        count = 1 if half.mark or known != in_pass else count + 1
        self._events[half] = (in_pass, count, max(most, count))
        return copies - 1

    def found(self) -> list[Copies]:
        """What was counted."""
        return [Copies(half, most) for half, (_, _, most) in self._events.items()]


def merged(found: Iterable[Copies]) -> list[Copies]:
    """The counts of several partitions: equal events go to one, unless the dispatcher was changed in between.

    Without marks: an event that came with one and without is a repetition too, from before TiCDC was told to send them.
    """
    most: dict[EventHalf, int] = {}
    for half, count in found:
        most[half] = max(count, most.get(half, 0))
    marked: Counter[EventHalf] = Counter()
    for half, count in most.items():
        marked[half._replace(mark=b"")] += count if half.mark else 0
    return [Copies(event, max(count, most.get(event, 0))) for event, count in marked.items()]


def net_copies(found: Iterable[Copies]) -> dict[bytes, int]:
    """How many copies of each content are left to write (positive) or to delete (negative)."""
    net: dict[bytes, int] = {}
    for half, count in found:
        net[half.content] = net.get(half.content, 0) + (count if half.order & RowOp.WRITE else -count)
    return {content: count for content, count in net.items() if count}


def by_commit(found: Iterable[Copies]) -> Mapping[CommitTs, list[Copies]]:
    """The copies by transaction, in commitTs order."""
    groups: dict[CommitTs, list[Copies]] = {}
    for copies in sorted(found, key=lambda one: one.half.order):
        groups.setdefault(commit_ts_of(copies.half.order), []).append(copies)
    return groups

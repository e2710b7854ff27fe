"""Equal rows of one commitTs in a table without a key: whether they are several rows, or one that was sent again.

`ordering.rows.keyless_rows` tells passes apart by what goes back. Two repetitions go back nowhere: a restart of TiCDC
that begins with the last transaction that it had sent, before a watermark that rises (its first one may lie above the
last one: it is written a second after the start, `cdc/owner/ddl_sink.go` of pingcap/tiflow), and a request that its
producer sends again, for it is not idempotent (`pkg/sink/kafka/sarama_config.go` of pingcap/ticdc). Neither puts a
message twice into one batch of Kafka: a restart has a producer of its own, and a batch holds each message once. So

- rows of one batch are several rows;
- where some batch holds a row of the transaction that no later batch holds, this batch was not sent again;
- where all rows of a batch come again in later ones, nothing tells whether they are others.

A repetition may end within the transaction: TiCDC is restarted once more and goes back. What comes after that counts as
later too, for it alone tells whether the last rows of that pass were sent again.

Pure.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from ordering.events import Partition, TableName

_Pass = tuple[int, int]


class EqualRows(NamedTuple):
    """The row events of one commitTs in one pass of a table, in offset order, some of which are equal."""

    table: TableName
    commit_ts: int
    rows: list[tuple[int, int]]
    """Offset, and a number that equal events share."""
    is_last: bool = False
    """Whether the pass ends with it, and another one begins."""


class _Group(NamedTuple):
    commit_ts: int
    in_pass: _Pass
    rows: list[tuple[int, int]]

    def has_equal_rows(self) -> bool:
        return len({event for _, event in self.rows}) < len(self.rows)


class EqualRowsFinder:
    """Finds them in one partition; holds of each table the events of its last commitTs."""

    def __init__(self) -> None:
        self._groups: dict[TableName, _Group] = {}
        self._found: list[EqualRows] = []
        self._met: set[tuple[TableName, int]] = set()
        """Of which a pass is found already: what the next one has of them tells how many there are."""

    def add(self, table: TableName, commit_ts: int, in_pass: _Pass, offset: int, event: int) -> None:
        """Take a row event. `event`: a number that equal ones share."""
        group = self._groups.get(table)
        if group is None or (group.commit_ts, group.in_pass) != (commit_ts, in_pass):
            self._keep(table, group, is_last=group is not None and group.in_pass != in_pass)
            group = self._groups[table] = _Group(commit_ts, in_pass, [])
        group.rows.append((offset, event))

    def _keep(self, table: TableName, group: _Group | None, *, is_last: bool = False) -> None:
        if group is not None and (group.has_equal_rows() or (table, group.commit_ts) in self._met):
            self._met.add((table, group.commit_ts))
            self._found.append(EqualRows(table, group.commit_ts, group.rows, is_last))

    def found(self) -> list[EqualRows]:
        """What was found so far."""
        for table in list(self._groups):
            self._keep(table, self._groups.pop(table))
        return self._found


class Doubt(NamedTuple):
    """Equal rows of which nothing tells whether they were sent once each."""

    partition: Partition
    offset: int
    table: TableName
    commit_ts: int


Batches = Callable[[Partition, int, int], Sequence[int]]
"""Where the batches of Kafka begin that hold the offsets [start, stop) of a partition, in order."""


def doubts(found: Iterable[tuple[Partition, EqualRows]], batches: Batches) -> Iterator[Doubt]:
    """Those in doubt. What a pass without doubt has as often is not: that pass tells how many rows there are."""
    certain: dict[tuple[TableName, int], Counter[int]] = {}
    doubtful: list[tuple[Doubt, Counter[int]]] = []
    for partition, starts, equal, after in _with_batches(found, batches):
        counts, at = Counter(event for _, event in equal.rows), _sent_again(equal.rows, starts, after)
        if at is None:
            known = certain.setdefault((equal.table, equal.commit_ts), Counter())
            known |= counts
        else:
            doubtful.append((Doubt(partition, at, equal.table, equal.commit_ts), counts))
    for doubt, counts in doubtful:
        if not counts <= certain.get((doubt.table, doubt.commit_ts), Counter()):
            yield doubt


def _with_batches(
    found: Iterable[tuple[Partition, EqualRows]], batches: Batches
) -> Iterator[tuple[Partition, Sequence[int], EqualRows, Counter[int]]]:
    """With what else of a transaction came after the pass: nothing is told of one that did not end with it."""
    by_partition: dict[Partition, list[EqualRows]] = {}
    for partition, equal in found:
        by_partition.setdefault(partition, []).append(equal)
    for partition, some in by_partition.items():
        offsets = [offset for equal in some for offset, _ in equal.rows]
        starts = batches(partition, min(offsets), max(offsets) + 1)
        after: dict[tuple[TableName, int], Counter[int]] = {}
        for equal in reversed(some):
            later = after.setdefault((equal.table, equal.commit_ts), Counter())
            yield partition, starts, equal, later.copy() if equal.is_last else Counter()
            later.update(event for _, event in equal.rows)


def _sent_again(rows: Sequence[tuple[int, int]], starts: Sequence[int], after: Counter[int]) -> int | None:
    """Where the first row of a batch lies all of whose rows come again in later batches; None: there is none such.

    `after`: how often events came after the pass.
    """
    by_batch: dict[int, list[tuple[int, int]]] = {}
    for offset, event in rows:
        by_batch.setdefault(bisect_right(starts, offset), []).append((offset, event))
    later, found = after, None
    for batch in reversed(by_batch.values()):
        counts = Counter(event for _, event in batch)
        if counts <= later:
            found = batch[0][0]
        later += counts
    return found

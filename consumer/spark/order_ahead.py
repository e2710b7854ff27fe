"""Orders the small segments of a window some ahead, so that a segment costs no Spark job of its own.

What was ordered ahead counts only if its tables are still what they were then: between two segments DDLs are executed.
While the driver writes some segments, Spark orders the next.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from consumer.tasks.jobs import Outcome, chunks_in, tables_of
from consumer.tasks.order import Answered, Failure, OrderTask
from ordering.rows.segments import Segment

_AT_ONCE_BYTES = 16 << 20
"""Of rows that come to the driver with one job; twice that may wait there."""
_MOST_SEGMENTS = 64

Ordered = list[Outcome | Answered]


@dataclass(slots=True)
class OrderAhead:
    """The rows of segments in their order. `run` gives the outcomes of some of their buckets, each apart."""

    segments: Sequence[Segment]
    cores: int
    run: Callable[[OrderTask, list[int]], list[Ordered]]
    _order: OrderTask | None = None
    _held: dict[int, Ordered] = field(default_factory=dict)
    _next: Future[dict[int, Ordered]] | None = None
    _count: int = 1
    _pool: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "order-ahead"))

    def outcomes(self, segment: Segment, order: OrderTask) -> Ordered:
        """The outcomes of a segment of one bucket, ordered by this task."""
        found = self._found(segment)
        if found is None or self._order is None or not still_fits(found, self._order, order):
            self._count = 1 if found is not None else self.cores
            self._next = None  # what runs still is dropped
            self._held, self._order = self._ordered(order, self._group(segment)), order
            found = self._held.pop(segment.first)
        return found

    def _found(self, segment: Segment) -> Ordered | None:
        """What was ordered ahead of a segment. Once all of it is taken, the next ones are begun."""
        if segment.first not in self._held and self._next is not None:
            self._held, self._next = self._next.result(), None
        found = self._held.pop(segment.first, None)
        if found is not None and self._order is not None and self._next is None:
            last = max([segment.first, *self._held])
            if group := self._group(next((s for s in self.segments if s.first > last), None)):
                self._next = self._pool.submit(self._ordered, self._order, group)
        return found

    def _group(self, first: Segment | None) -> list[Segment]:
        """So many segments from one on as come to the driver at once; none of more than one bucket."""
        found: list[Segment] = []
        for segment in self.segments:
            if first is None or segment.first < first.first:
                continue
            if segment.buckets > 1 or len(found) == self._count:
                break
            found.append(segment)
        return found

    def _ordered(self, order: OrderTask, group: list[Segment]) -> dict[int, Ordered]:
        outcomes = self.run(order, [segment.first + 1 for segment in group])
        size = sum(len(chunk.payload) for some in outcomes for chunk in chunks_in(some))
        fitting = _AT_ONCE_BYTES * len(group) // max(1, size)
        self._count = max(self.cores, min(2 * len(group), fitting, _MOST_SEGMENTS))
        return {segment.first: own_numbers(some, segment) for segment, some in zip(group, outcomes, strict=True)}


def own_numbers(outcomes: Ordered, segment: Segment) -> Ordered:
    """The outcomes, with the segment's buckets counted from 1."""
    return [replace(one, bucket=one.bucket - segment.first) if isinstance(one, Answered) else one for one in outcomes]


def still_fits(found: Ordered, then: OrderTask, now: OrderTask) -> bool:
    """Whether rows that were ordered by one task would be the same, ordered by another."""
    if replace(then, schemas={}) != replace(now, schemas={}) or any(isinstance(one, Failure) for one in found):
        return False
    return all(then.schemas.get(table) == now.schemas.get(table) for table in tables_of(found))

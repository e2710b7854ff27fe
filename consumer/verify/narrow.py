"""From a chunk whose sums differ to the rows that do: its buckets' sums, then the rows of the buckets that differ.

A sum that is equal proves the rows equal; one that differs may only mean another spelling
(`sinks.compare.value_forms`): rows decide.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from consumer.verify.plan import Comparison, batches
from ordering.events import TableName
from sinks.compare.digests import Buckets, Selection, Span, Sum
from sinks.compare.value_forms import Pair

ROWS_A_BUCKET = 500
ROWS_AT_ONCE = 200_000
"""Rows of both sides that are compared in memory."""
LARGE_ROWS_AT_ONCE = 20_000
"""The same of a table whose values may be large, and whose chunks are not."""
MOST_ROWS = 2_000_000
"""Rows of a chunk that can't be parted into buckets, beyond which it is not looked into."""

UNNAMED = "unnamed"
"""The kind of a difference of which no row is known."""
Row = tuple[str | None, ...]
Answer = TypeVar("Answer")
Ask = Callable[[int, Callable[[Selection], Answer]], Answer]


@dataclass(frozen=True, slots=True)
class Difference:
    """A row that is missing in the target, extra, or different; or rows of a chunk that can't be named (`unnamed`).

    `left`, `right`: the row's texts on each side, in the order of the comparison's columns.
    """

    table: TableName
    kind: str
    left: Row | None = None
    right: Row | None = None
    note: str = ""

    def key(self, comparison: Comparison) -> dict[str, str | None]:
        """The row's key; without one, all of the row."""
        row = self.right if self.left is None else self.left
        texts = dict(zip((p.left.name for p in comparison.pairs), row or (), strict=False))
        return {pair.left.name: texts.get(pair.left.name) for pair in comparison.keys or comparison.pairs}

    def identity(self, comparison: Comparison) -> tuple[object, ...]:
        """What the row's key means, whichever side spells it."""
        row = (self.right if self.left is None else self.left) or ()
        cells = zip(comparison.pairs, row, strict=False)
        return tuple(pair.meaning(text) for pair, text in cells if pair in comparison.keys)

    def changed(self, comparison: Comparison) -> list[tuple[Pair, str | None, str | None]]:
        """The columns that differ, with both values; none unless the row is on both sides."""
        if self.left is None or self.right is None:
            return []
        cells = zip(comparison.pairs, self.left, self.right, strict=True)
        return [(pair, a, b) for pair, a, b in cells if pair.meaning(a) != pair.meaning(b)]


@dataclass(slots=True)
class Found:
    """What a chunk came to: rows of the side that has more, and the differences in the order of their keys."""

    rows: int = 0
    differences: list[Difference] = field(default_factory=list)


@dataclass(slots=True)
class Narrowing:
    """One chunk of a table. `sides`: both selections; `pace` is told how many rows are going to be read."""

    comparison: Comparison
    sides: tuple[Selection, Selection]
    spans: tuple[Span, Span]
    ask: Callable[[int, Callable[[], object]], object]
    pace: Callable[[int], None]

    def found(self) -> Found:
        """Compare the chunk."""
        left, right = (self._on(side, lambda s, span: s.sum(span), Sum) for side in (0, 1))
        found = Found(max(left.rows, right.rows))
        if left != right:
            found.differences = list(self._differences(left, right))
        return found

    def _on(self, side: int, call: Callable[[Selection, Span], object], kind: type[Answer]) -> Answer:
        answer = self.ask(side, lambda: call(self.sides[side], self.spans[side]))
        if not isinstance(answer, kind):
            raise TypeError(kind)
        return answer

    def _differences(self, left: Sum, right: Sum) -> Iterator[Difference]:
        rows = max(left.rows, right.rows)
        count = max(1, rows // ROWS_A_BUCKET) if self.comparison.bucketed else 1
        if count == 1:
            if left.rows + right.rows > MOST_ROWS:
                note = f"{rows} rows in one piece: too many to be compared one by one"
                yield Difference(self.comparison.name, UNNAMED, note=note)
            else:
                yield from self._rows(Buckets())
            return
        self.pace(rows)
        sums = [self._on(side, lambda s, span: s.sums(span, Buckets(count)), dict) for side in (0, 1)]
        differing = {b for b in sums[0].keys() | sums[1].keys() if sums[0].get(b) != sums[1].get(b)}
        sizes = {b: sum(side[b].rows for side in sums if b in side) for b in differing}
        for some in batches(sizes, self._at_once()):
            self.pace(rows)
            yield from self._rows(Buckets(count, some))

    def _at_once(self) -> int:
        """Each batch costs a reading of the chunk: a table that is one chunk has few."""
        large = self.spans[0].column and any(pair.is_large for pair in self.comparison.pairs)
        return LARGE_ROWS_AT_ONCE if large else ROWS_AT_ONCE

    def _rows(self, buckets: Buckets) -> list[Difference]:
        left, right = (self._on(side, lambda s, span: s.rows(span, buckets), list) for side in (0, 1))
        return different(self.comparison, left, right)


def different(comparison: Comparison, left: Sequence[Row], right: Sequence[Row]) -> list[Difference]:
    """What differs between rows of both sides, by key; copies of a row count."""
    places = [comparison.pairs.index(pair) for pair in comparison.keys or comparison.pairs]
    by_key: dict[object, tuple[list[Row], list[Row]]] = {}
    for side, rows in enumerate((left, right)):
        for row in rows:
            key = tuple(comparison.pairs[at].meaning(row[at]) for at in places)
            by_key.setdefault(key, ([], []))[side].append(row)
    found = [one for pair in by_key.values() for one in _of_key(comparison, *pair)]
    return sorted(found, key=lambda one: _order(one, places))


def still_differing(
    comparison: Comparison, before: Sequence[Difference], now: Sequence[Difference]
) -> list[Difference]:
    """What a second look leaves of the first: only rows that it found equal are dropped, whatever the others hold now.

    Rows that can't be told apart by a key are all that the second look found; one without a name was not looked at.
    """
    keys = {one.identity(comparison) for one in before if one.kind != UNNAMED}
    unnamed = [one for one in before if one.kind == UNNAMED]
    return unnamed + [one for one in now if not comparison.keys or one.identity(comparison) in keys]


def _of_key(comparison: Comparison, left: list[Row], right: list[Row]) -> Iterator[Difference]:
    left, right = list(left), list(right)
    meanings = [_meaning(comparison, row) for row in right]
    for row in list(left):
        meaning = _meaning(comparison, row)
        if meaning in meanings:
            at = meanings.index(meaning)
            left.remove(row)
            del meanings[at], right[at]
    for a, b in zip(left, right, strict=False):
        yield Difference(comparison.name, "different", a, b)
    yield from (Difference(comparison.name, "missing", row) for row in left[len(right) :])
    yield from (Difference(comparison.name, "extra", None, row) for row in right[len(left) :])


def _meaning(comparison: Comparison, row: Row) -> tuple[object, ...]:
    return tuple(pair.meaning(text) for pair, text in zip(comparison.pairs, row, strict=True))


def _order(one: Difference, places: Sequence[int]) -> tuple[object, ...]:
    """By key, numbers as numbers; NULL comes first."""
    row = (one.right if one.left is None else one.left) or ()
    return tuple(_sortable(row[at]) for at in places), one.kind


def _sortable(text: str | None) -> tuple[int, int, str]:
    if text is None:
        return (0, 0, "")
    number = text.lstrip("-")
    return (1, int(text), "") if number.isdecimal() and len(number) < 25 and text.count("-") < 2 else (2, 0, text)  # noqa: PLR2004

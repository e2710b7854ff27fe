"""A table's sums taken piece by piece, each at a checkpoint of its own, and carried on by the events since then.

A piece is a range of the key's first column, where that holds whole numbers, whose order is the same everywhere; a
table with another key is one piece. So no transaction of the target lasts longer than reading one piece. What a piece
held at its checkpoint, and the events of its keys above that checkpoint, are what it holds later: at the end all
pieces stand for one moment.
"""

from bisect import bisect_left
from dataclasses import dataclass, field

from consumer.codec.canal_json import Image
from ordering.rows.content_sums import ContentSum, ContentSums, RowDigest, added, rows_in, step
from ordering.rows.identity import commit_ts_of
from sinks.compare.canonical import CanonicalColumn, CanonicalRows, table_sums
from sinks.compare.digests import Span, TableReader, rows_where, whole_number
from sinks.compare.value_forms import Form

_LARGEST_BOUND = (1 << 63) - 1
"""A larger number is a text in SQLite: what is above it is the last piece."""


@dataclass(slots=True)
class TablePass:
    """One reading of a table. `sums`: what was read, carried on; None where the server can't make a row's text."""

    rows: CanonicalRows
    sums: dict[int, ContentSum] | None = field(default_factory=dict)
    is_done: bool = False
    _bounds: list[int] = field(default_factory=list)
    _read_at: list[int] = field(default_factory=list)
    """The checkpoint of each piece; the last one, without a bound, has one more of them."""

    def next_span(self, reader: TableReader, size: int) -> Span:
        """The next piece, of about so many rows: more where many rows have one value. Raises TargetError."""
        column = _range_column(self.rows, reader)
        if column is None:
            return Span()
        low = self._bounds[-1] if self._bounds else None
        return Span(column.column.name, low, _bound(self.rows, reader, column, low, size))

    def read(self, reader: TableReader, checkpoint_ts: int, span: Span) -> int:
        """Read the next piece; how many rows it had. Raises TargetError, and is then as it was."""
        found = table_sums(self.rows, reader, span)
        if span.high is not None:
            self._bounds.append(span.high)
        self._read_at.append(checkpoint_ts)
        self.is_done = span.high is None
        if found is None or self.sums is None:
            self.sums, self.is_done = None, True
            return 0
        self.sums = dict(added(self.sums, found))
        return rows_in(found)

    def carry(self, piece: int, order: int, digest: RowDigest, times: int = 1) -> None:
        """Take a half of an event, so often: it counts if its row's piece was read before."""
        if self.sums is not None and piece < len(self._read_at) and commit_ts_of(order) > self._read_at[piece]:
            step(self.sums, digest, order, times)

    def piece_of(self, image: Image) -> int:
        """The piece that a row lies in; of a table that is one piece, 0."""
        if not self._bounds:
            return 0
        first = self.rows.keys[0]
        text = first.spell(image[first.column.name] or "")
        return bisect_left(self._bounds, int(text or 0))


def whole_sums(rows: CanonicalRows, reader: TableReader) -> ContentSums | None:
    """The sums of all rows in one snapshot; None where the server can't make a row's text. Raises TargetError."""
    if not reader.piece_rows:
        return table_sums(rows, reader)
    one = TablePass(rows)
    while not one.is_done:
        one.read(reader, 0, one.next_span(reader, reader.piece_rows))
    return one.sums


def has_more_rows(rows: CanonicalRows, reader: TableReader, span: Span, most: int) -> bool:
    """Whether a piece has more than so many rows; it reads no more of them. Raises TargetError."""
    some = rows_where(rows.schema, reader, span.conditions(reader))
    ((found,),) = reader.query(f"SELECT COUNT(*) FROM (SELECT 1 AS one FROM {some} LIMIT {most + 1}) AS x")  # noqa: S608 quoted
    return int(found) > most


def _range_column(rows: CanonicalRows, reader: TableReader) -> CanonicalColumn | None:
    first = rows.keys[0] if rows.keys else None
    return first if first is not None and first.form is Form.NUMBER and reader.is_whole_number(first.column) else None


def _bound(rows: CanonicalRows, reader: TableReader, column: CanonicalColumn, low: int | None, size: int) -> int | None:
    """The value up to which about so many rows lie above `low`; None if there are fewer."""
    name = reader.quoted(column.column.name)
    some = rows_where(rows.schema, reader, Span(column.column.name, low).conditions(reader))
    found = reader.query(f"SELECT {name} AS k FROM {some} ORDER BY {name} LIMIT 1 OFFSET {size - 1}")  # noqa: S608 quoted
    bound = whole_number(found[0][0]) if found else None
    if bound is None or bound > _LARGEST_BOUND or bound == low:
        return None  # what somebody wrote by hand may lie between two whole numbers: the rest is one piece
    return bound

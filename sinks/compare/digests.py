"""Reading a table for comparison: sums over digests of rows that are computed where the rows are, and rows as texts.

Each dialect says how it spells a value (`text`), a row (`joined`) and a row's digest, so that equal rows have equal
digests whatever the dialect. A digest is 60 bits of a SHA-256: MySQL 9 has no MD5 any more.
Digests are added up, so that the order of rows does not matter and copies count.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ordering.events import TableName
from sinks.compare.value_forms import Form, Pair, Trait
from sinks.rows.schema import Catalog, Column, TableSchema

if TYPE_CHECKING:
    from sinks.compare.repair_sql import Mender

DIGITS = 15
"""Hexadecimal digits of a digest."""
HALF = 16
"""Hexadecimal digits of half a digest of 128 bits."""
NOTHING = "N"
"""What stands for NULL in a row's text: no other text of a value begins so."""


@dataclass(frozen=True, slots=True)
class Span:
    """Rows whose `column` lies in (low, high]; None is no bound, and NULL is below all. Without a column: all rows."""

    column: str = ""
    low: int | None = None
    high: int | None = None

    def conditions(self, reader: "TableReader") -> list[str]:
        """The SQL conditions that hold for just these rows."""
        name = reader.quoted(self.column) if self.column else ""
        if self.low is None:  # what was made by hand may hold NULLs in it
            return [] if self.high is None else [f"({name} <= {self.high} OR {name} IS NULL)"]
        return [f"{name} > {self.low}", *([] if self.high is None else [f"{name} <= {self.high}"])]


@dataclass(frozen=True, slots=True)
class Sum:
    """How many rows there are, and the sum of their digests. A sum that nothing could be computed of equals none."""

    rows: int = 0
    digests: int = 0


@dataclass(frozen=True, slots=True)
class Buckets:
    """Some of the `count` parts that a table's rows fall into by the digests of their keys; all if `chosen` is None."""

    count: int = 1
    chosen: tuple[int, ...] | None = None


class TableReader(ABC):
    """One connection that reads one snapshot of a database. Raises TargetError and its kinds."""

    several = True
    """Whether more than one can read the same snapshot at once."""
    calendar_only = False
    """Whether its dates are those of the calendar alone: no zero dates, no 31 February."""
    piece_rows = 0
    """How many rows at once cost least; 0: all of a table."""

    @abstractmethod
    def begin(self, snapshot: str = "") -> str:
        """Begin to read; `snapshot`: what another reader's `begin` returned, or a TSO, "" for the present state.

        Returns what names the snapshot for others, "" where it can't be shared.
        """

    @abstractmethod
    def mender(self) -> "Mender":
        """What repairs rows of this database."""

    @abstractmethod
    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """All rows of a query."""

    @abstractmethod
    def stream(self, sql: str) -> Iterator[tuple[Any, ...]]:
        """The rows of a query, a few at a time; until its end no other one may be asked."""

    @abstractmethod
    def catalog(self) -> Catalog:
        """The tables at this moment."""

    @abstractmethod
    def close(self) -> None:
        """Close the connection."""

    @abstractmethod
    def place(self, table: TableName) -> str:
        """A table as statements name it."""

    @abstractmethod
    def quoted(self, name: str) -> str:
        """A name as an identifier."""

    @abstractmethod
    def trait(self, column: Column) -> Trait | None:
        """What is known of a column's values; None if it stores whatever it is given."""

    @abstractmethod
    def is_comparable(self, column: Column) -> bool:
        """Whether `text` can spell its values."""

    @abstractmethod
    def text(self, form: Form, column: Column) -> str:
        """An expression for a value's text, NULL for NULL."""

    def hides_members(self, column: Column) -> bool:
        """Whether names do not tell an ENUM's or SET's values apart; `text` has its number as BITS."""
        del column
        return False

    def held(self, form: Form, column: Column) -> str:
        """As `text`, of a float with all digits that are held, also those that the server does not show."""
        return self.text(form, column)

    def truncates(self, column: Column) -> int | None:
        """Digits behind the point that a float of a column is cut to when it is stored; None if it is not."""
        del column
        return None

    def late_value(self, form: Form, column: Column) -> str:
        """An expression for a value that servers spell in several ways: as `text`, of floats with all digits."""
        return self.text(form, column)

    def fetched(self, form: Form, column: Column) -> str:
        """An expression for a value that is to travel: as `text`, or bytes, which become hexadecimal digits here."""
        return self.text(form, column)

    @abstractmethod
    def sized(self, text: str) -> str:
        """An expression for a text with its length in bytes in front: what follows it can't be taken for its end."""

    @abstractmethod
    def joined(self, parts: Sequence[str]) -> str:
        """An expression for several texts in a row; NULL if one of them is."""

    @abstractmethod
    def digest(self, text: str) -> str:
        """An expression for the digest of a text: a number of 60 bits."""

    def shared_out(self, text: str, count: int) -> str:
        """An expression for the digest modulo `count`: in which of so many parts a row lies, in each query the same."""
        return f"({self.digest(text)} % {count})"

    @abstractmethod
    def hashed(self, text: str) -> str:
        """An expression for the SHA-256 of a text as hexadecimal digits in lower case; NULL where that can't be had."""

    def bucket(self, text: str) -> str:
        """An expression for the first digit of `hashed`: as that digit, or as the number that it stands for."""
        return f"SUBSTR({self.hashed(text)}, 1, 1)"

    def halves(self, text: str) -> str:
        """An expression for the first 32 digits of `hashed`, in the form that `half` takes; NULL where it is."""
        return f"SUBSTR({self.hashed(text)}, 1, {2 * HALF})"

    @abstractmethod
    def half(self, name: str, at: int) -> str:
        """An expression for the number that the first (0) or second (1) 16 digits of `halves` make; modulo 2^64."""

    def once(self, span: Span, table: str) -> str:
        """What ends a query of a table so that each of its columns is computed once a row, not once a use; or "".

        Servers put the expressions in the columns' places else.
        """
        del span, table
        return ""

    @abstractmethod
    def added(self, digest: str) -> str:
        """An aggregate: the sum of digests."""

    def is_whole_number(self, column: Column) -> bool:
        """Whether values are whole numbers that compare as such."""
        trait = self.trait(column)
        return trait is not None and trait.form is Form.NUMBER and trait.scale == 0


def whole_number(found: object) -> int | None:
    """A whole number as a server tells it; None for NULL and what was written by hand: a text in SQLite, a NaN."""
    try:
        return int(str(found).partition(".")[0])
    except ValueError:
        return None


def rows_where(table: TableSchema, reader: TableReader, conditions: Sequence[str]) -> str:
    """What stands behind FROM for the rows of a table that meet SQL conditions.

    If the table is merged with others here, these are its own rows only.
    """
    own = [f"{reader.quoted(column)} = {reader.mender().text(value)}" for column, value in table.origin]
    where = " AND ".join([*own, *conditions])
    return reader.place(table.here) + (f" WHERE {where}" if where else "")


@dataclass(frozen=True, slots=True)
class Selection:
    """A table of one side: which columns are compared, and which of them make the key. `side`: 0 left, 1 right."""

    reader: TableReader
    table: TableSchema
    pairs: tuple[Pair, ...]
    keys: tuple[Pair, ...]
    side: int

    def sum(self, span: Span) -> Sum:
        """The sum over all rows of a span."""
        digest = self.reader.added(self._digest(self.pairs))
        ((rows, digests),) = self.reader.query(f"SELECT COUNT(*), {digest} AS d FROM {self._from(span)}")  # noqa: S608 quoted
        return Sum(int(rows), int(digests or 0))

    def sums(self, span: Span, buckets: Buckets) -> dict[int, Sum]:
        """The sums by bucket; empty ones are left out."""
        inner = f"SELECT {self._bucket(buckets)} AS b, {self._digest(self.pairs)} AS d FROM {self._from(span)}"  # noqa: S608 quoted
        sql = f"SELECT b, COUNT(*), {self.reader.added('d')} AS s FROM ({inner}) AS x GROUP BY b"  # noqa: S608 quoted
        return {int(b): Sum(int(rows), int(digests or 0)) for b, rows, digests in self.reader.query(sql)}

    def rows(self, span: Span, buckets: Buckets) -> list[tuple[str | None, ...]]:
        """The texts of the rows of some buckets."""
        # a title that is made of the expression may be cut in the middle of a character
        fetched = (self.reader.fetched(pair.form, pair.side(self.side)) for pair in self.pairs)
        texts = ", ".join(f"{one} AS c{at}" for at, one in enumerate(fetched)) or "1"
        some = "" if buckets.chosen is None else f"{self._bucket(buckets)} IN ({', '.join(map(str, buckets.chosen))})"
        found = self.reader.query(f"SELECT {texts} FROM {self._from(span, some)}")  # noqa: S608 quoted
        return [tuple(v.hex().upper() if isinstance(v, bytes) else v for v in row) for row in found]

    def bound(self, span: Span, rows: int) -> int | None:
        """The value in a span's column that has so many rows up to it; None if there are fewer."""
        name = self.reader.quoted(span.column)
        sql = f"SELECT {name} AS k FROM {self._from(span)} ORDER BY {name} LIMIT 1 OFFSET {rows - 1}"  # noqa: S608 quoted
        found = self.reader.query(sql)
        return whole_number(found[0][0]) if found else None

    def _text(self, pair: Pair) -> str:
        return self.reader.text(pair.form, pair.side(self.side))

    def _packed(self, pair: Pair) -> str:
        text = self._text(pair)
        name = self.reader.quoted(pair.side(self.side).name)
        # a text that can't be made may be NULL too: only the column itself says that it is
        return f"CASE WHEN {name} IS NULL THEN '{NOTHING}' ELSE {self.reader.sized(text) if pair.sized else text} END"

    def _digest(self, pairs: Sequence[Pair]) -> str:
        return self.reader.digest(self._joined(pairs))

    def _joined(self, pairs: Sequence[Pair]) -> str:
        return self.reader.joined([self._packed(pair) for pair in pairs])

    def _bucket(self, buckets: Buckets) -> str:
        named = self._joined(self.keys or self.pairs)
        return self.reader.shared_out(named, buckets.count) if buckets.count > 1 else "0"

    def _from(self, span: Span, *conditions: str) -> str:
        """The table, and which rows of it."""
        return rows_where(self.table, self.reader, [*span.conditions(self.reader), *filter(None, conditions)])

"""One text for each value, made here of what a message says and in SQL of what a target holds: for sums of content.

`CanonicalColumn` says of a column how its text is made of a message's; the target's `TableReader` spells the same text
in SQL, in the forms that `verify` compares by (`TableReader.text`). A column has no such text where nobody sends its
values, or where its type is none of upstream's: such columns are left out of the sums, and named.

Some values are spelled by servers in several ways, though they mean the same: JSON, vectors, very large and very small
floats. Such a value is *late*: in the row's text `LATE` stands for it; its row is fetched, and its own text, made here,
is hashed together with the digest of that text. Rows without one never leave the server.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from struct import Struct
from typing import Any

from ordering.rows.content_sums import BUCKETS, EMPTY, ContentSum, ContentSums, RowDigest, sums_of
from sinks.compare.digests import HALF, NOTHING, Span, TableReader, rows_where
from sinks.compare.spelling import LATE, Spell, spelling_of
from sinks.compare.value_forms import PLAIN_FROM, PLAIN_TO, Form, Trait
from sinks.rows.chained import chained
from sinks.rows.schema import Column, Shape, TableSchema
from sinks.rows.values import ValueRules

_ALL = Span()
_ALL_SENT: Mapping[str, str] = {}
_MASK = (1 << 64) - 1
_WAY = "digests 2"
"""In each signature: sums of another way of making digests are not compared with these."""
_HALVES = Struct(">QQ")
"""Both halves of a digest."""
_BUCKET_DIGITS = 1
"""Of the key's digest; 16 to the power of it is `BUCKETS`."""
_BY_SHAPE = {
    Shape.INTEGER: Form.NUMBER,
    Shape.EXACT: Form.NUMBER,
    Shape.BYTES: Form.BYTES,
    Shape.TIMESTAMP: Form.TIMESTAMP,
    Shape.REAL: Form.REAL,
    Shape.JSON: Form.JSON,
}
"""Of a target whose columns store whatever they are given. Dates are texts to it."""


_UNTOLD = "? longer than the server can tell"
"""What stands for a late value that the server can't make a text of; no JSON, no vector and no number is it."""
_REALS = {Form.REAL, Form.FLOAT}
_OWN_TYPES = ("uuid", "inet")


@dataclass(frozen=True, slots=True)
class CanonicalColumn:
    """A column of the sums: in which form its text is, and how a message's text becomes it."""

    column: Column
    form: Form
    spell: Spell
    is_sized: bool
    """Whether its text may hold any character, so that its length stands in front."""
    is_late: bool
    """Whether each value that is not NULL is late; of floats only those are that `spell` says so of."""

    @property
    def may_be_late(self) -> bool:
        """Whether a value of it may be late."""
        return self.is_late or self.form in _REALS

    def lateness(self, reader: TableReader) -> str:
        """The SQL condition that a value is late."""
        name = reader.quoted(self.column.name)
        plain = f"({name} = 0 OR ({_inside(name)}))"
        return f"({name} IS NOT NULL)" if self.is_late else f"({name} IS NOT NULL AND NOT {plain})"

    def fetched(self, reader: TableReader) -> str:
        """An expression for a late value, `_UNTOLD` for one without a text; NULL for a value that is not late."""
        text = reader.late_value(self.form, self.column)
        text = text if self.form in _REALS else f"COALESCE({text}, '{_UNTOLD}')"
        return f"CASE WHEN {self.lateness(reader)} THEN {text} END"

    def late_text(self, found: Any) -> str:
        """A late value's text; of what is no value of its type, which somebody has written by hand, what it is."""
        text = found.decode(errors="surrogateescape") if isinstance(found, bytes) else str(found)
        try:
            spelled = self.spell(text)
        except ValueError:
            spelled = None
        return spelled if spelled is not None and spelled.startswith(LATE) else f"?{text}"


@dataclass(frozen=True, slots=True)
class CanonicalRows:
    """A table as its sums see it. `left_out`: column -> why it is in no sum.

    `keys`: what the bucket is made of; empty where no key tells rows apart, then it is made of the whole row.
    """

    schema: TableSchema
    columns: tuple[CanonicalColumn, ...]
    keys: tuple[CanonicalColumn, ...]
    left_out: Mapping[str, str]

    @property
    def signature(self) -> list[str]:
        """What has to be the same for sums to be comparable."""
        own = [entry(one.column.name, f"{one.column.type}\t{one.form.value}") for one in self.columns]
        out = [entry(name, "") for name in self.left_out]
        return [_WAY, *own, *out, "key", *(_named(one.column.name) for one in self.keys)]

    def digest(self, image: Mapping[str, str | None]) -> RowDigest:
        """The digest of a row, from its texts as messages spell them.

        Raises KeyError for a column that the image lacks, ValueError for a text that is none of its column's.
        """
        key, _ = _packed(self.keys or self.columns, image)
        parts, late = _packed(self.columns, image)
        return _row_digest(_hash(key), _hash(parts), late)

    def sums(self, columns: Mapping[str, Sequence[str | None]]) -> ContentSums:
        """The sums of many rows, which are told column by column. Raises as `digest`."""
        if self.late:
            rows = (dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))
            return sums_of(map(self.digest, rows))
        packed = {one.column.name: _packed_alike(one, columns[one.column.name]) for one in self.columns}
        digests = (
            _hashes_of([packed[one.column.name] for one in some]) for some in (self.keys or self.columns, self.columns)
        )
        return sums_of(RowDigest(key[0] >> 4, *_HALVES.unpack_from(row)) for key, row in zip(*digests, strict=True))

    @property
    def late(self) -> tuple[CanonicalColumn, ...]:
        """The columns that may have late values."""
        return tuple(one for one in self.columns if one.may_be_late)


def _row_digest(key: str, row: str, late: Sequence[str]) -> RowDigest:
    whole = _hash([row, *late]) if late else row
    return RowDigest(int(key[:_BUCKET_DIGITS], 16), int(whole[:HALF], 16), int(whole[HALF : 2 * HALF], 16))


def columns_of(signature: Sequence[str], *, in_sums: bool = False) -> list[str]:
    """The columns that a table had; `in_sums`: without those that were in no sum."""
    return [name for name, is_column, told in map(parts_of, signature) if is_column and (told or not in_sums)]


def entry(column: str, told: str) -> str:
    """What a signature says of a column."""
    return f"{_named(column)}\t{told}"


def parts_of(found: str) -> tuple[str, bool, str]:
    """An entry's column, whether it is an entry of one, and what is told of it; "" of one that is in no sum."""
    name, tab, told = found.partition("\t")
    return name.replace("\0", "\t"), bool(tab), told


def _named(column: str) -> str:
    """A name in an entry: a tab ends it, and no name has a NUL."""
    return column.replace("\t", "\0")


def canonical_rows(
    schema: TableSchema, reader: TableReader, rules: ValueRules, unsent: Mapping[str, str] = _ALL_SENT
) -> CanonicalRows:
    """How the rows of a table are summed up.

    `unsent`: columns that upstream's rows lack, or that are left out of them on the way, and why.
    """
    columns: list[CanonicalColumn] = []
    left_out: dict[str, str] = {}
    for column in schema.columns:
        why = _why_not(column, reader) or unsent.get(column.name, "")
        if why:
            left_out[column.name] = why
        else:
            columns.append(_canonical(column, reader, rules))
    by_name = {one.column.name: one for one in columns}
    whole = all(name in by_name for name in schema.handle_key)
    keys = tuple(by_name[name] for name in schema.handle_key) if whole else ()
    return CanonicalRows(schema, tuple(columns), keys, left_out)


def _canonical(column: Column, reader: TableReader, rules: ValueRules) -> CanonicalColumn:
    trait = reader.trait(column)
    form = _BY_SHAPE.get(column.shape, Form.TEXT) if trait is None else trait.form
    form = Form.BITS if reader.hides_members(column) else form
    is_vector = trait is not None and column.type.lower().startswith("vector")
    is_late = form is Form.JSON or is_vector or _is_unbounded(trait)
    spell = spelling_of(column, form, reader, rules, is_vector=is_vector)
    # a column without a trait stores whatever it is given, a text among numbers too
    return CanonicalColumn(column, form, spell, form is Form.TEXT or trait is None, is_late)


def table_sums(rows: CanonicalRows, reader: TableReader, span: Span = _ALL) -> ContentSums | None:
    """The sums that the target itself computes, of one snapshot; None where the server can't make a row's text.

    Rows with late values are fetched, some at a time. Raises TargetError.
    """
    late = rows.late
    late_rows = f"({chained(' OR ', [one.lateness(reader) for one in late])})" if late else ""
    always = any(one.is_late and not one.column.nullable for one in late)
    found = {} if always else _computed(rows, reader, span, [f"NOT {late_rows}"] if late else [])
    if found is None or not late:
        return found
    more = _fetched(rows, reader, [*span.conditions(reader), late_rows])
    if more is None:
        return None
    for bucket, one in more.items():
        found[bucket] = found.get(bucket, EMPTY).plus(*one)
    return found


def _computed(
    rows: CanonicalRows, reader: TableReader, span: Span, conditions: Sequence[str]
) -> dict[int, ContentSum] | None:
    """The sums of these rows, which have no late value: one query, a line for each bucket."""
    high, low = (reader.added(reader.half("h", at)) for at in (0, 1))
    key, row = _texts(rows, reader)
    some = rows_where(rows.schema, reader, [*span.conditions(reader), *conditions])
    inner = f"SELECT {reader.bucket(key)} AS k, {reader.halves(row)} AS h FROM {some}"  # noqa: S608 quoted
    inner += reader.once(span, reader.place(rows.schema.here))
    sql = f"SELECT k AS b, COUNT(*) AS n, COUNT(h) AS m, {high} AS u, {low} AS v FROM ({inner}) AS x GROUP BY k"  # noqa: S608 quoted
    found: dict[int, ContentSum] = {}
    for digit, count, hashed, upper, lower in reader.query(sql):
        if digit is None or count != hashed:
            return None
        found[digit if isinstance(digit, int) else int(digit, 16)] = ContentSum(
            int(count), int(upper) & _MASK, int(lower) & _MASK
        )
    if any(bucket >= BUCKETS for bucket in found):
        raise AssertionError(sorted(found))
    return found


def _fetched(rows: CanonicalRows, reader: TableReader, conditions: Sequence[str]) -> dict[int, ContentSum] | None:
    """The sums of these rows, each of which has a late value."""
    values = [f"{one.fetched(reader)} AS c{at}" for at, one in enumerate(rows.late)]
    found: dict[int, ContentSum] = {}
    for key, row, *fetched in reader.stream(_hashes(rows, reader, conditions, values)):
        if key is None or row is None or _UNTOLD in fetched:
            return None
        late = [
            _sized(one.late_text(value)) for one, value in zip(rows.late, fetched, strict=True) if value is not None
        ]
        bucket, high, low = _row_digest(key, row, late)
        found[bucket] = found.get(bucket, EMPTY).plus(1, high, low)
    return found


def _hashes(rows: CanonicalRows, reader: TableReader, conditions: Sequence[str], more: Sequence[str]) -> str:
    """The query for the digest of each row's key (k) and of its text (h), and for more."""
    key, row = map(reader.hashed, _texts(rows, reader))
    chosen = ", ".join([f"{key} AS k", f"{row} AS h", *more])
    return f"SELECT {chosen} FROM {rows_where(rows.schema, reader, conditions)}"  # noqa: S608 quoted


def _texts(rows: CanonicalRows, reader: TableReader) -> tuple[str, str]:
    """Expressions for the texts of a row's key and of the row."""
    parts = ([_packed_in_sql(one, reader) for one in some] for some in (rows.keys or rows.columns, rows.columns))
    key, row = map(reader.joined, parts)
    return key, row


def _inside(name: str) -> str:
    """Whether servers spell a float alike."""
    return f"ABS({name}) >= {PLAIN_FROM} AND ABS({name}) < {PLAIN_TO}"


def _packed_in_sql(one: CanonicalColumn, reader: TableReader) -> str:
    name = reader.quoted(one.column.name)
    if one.is_late:
        return f"CASE WHEN {name} IS NULL THEN '{NOTHING}' ELSE '{LATE}' END"
    text = reader.held(one.form, one.column)
    if one.form in _REALS:
        text = f"CASE WHEN {name} = 0 THEN '0' WHEN {_inside(name)} THEN {text} ELSE '{LATE}' END"
    # a text that can't be made may be NULL too: only the column itself says that it is
    return f"CASE WHEN {name} IS NULL THEN '{NOTHING}' ELSE {reader.sized(text) if one.is_sized else text} END"


def _packed(columns: Sequence[CanonicalColumn], image: Mapping[str, str | None]) -> tuple[list[str], list[str]]:
    """What each column puts into a row's text, and the texts of its late values."""
    parts, late = [], []
    for one in columns:
        text = image[one.column.name]
        spelled = None if text is None else one.spell(text)
        if spelled is None:
            parts.append(NOTHING)
        elif one.may_be_late and spelled.startswith(LATE):
            parts.append(LATE if one.is_late or not one.is_sized else _sized(LATE))
            late.append(_sized(spelled))
        else:
            parts.append(_sized(spelled) if one.is_sized else spelled)
    return parts, late


def _packed_alike(one: CanonicalColumn, texts: Sequence[str | None]) -> list[str]:
    """What a column without late values puts into the texts of many rows."""
    spelled = [None if text is None else one.spell(text) for text in texts]
    if one.is_sized:
        return [NOTHING if text is None else _sized(text) for text in spelled]
    return [NOTHING if text is None else text for text in spelled]


def _hashes_of(parts: Sequence[Sequence[str]]) -> Iterator[bytes]:
    """`_hash` of many rows, as bytes."""
    return (sha256(text.encode("utf-8", "surrogatepass")).digest() for text in map("|".join, zip(*parts, strict=True)))


def _sized(text: str) -> str:
    return f"{len(text.encode(errors='surrogateescape'))}:{text}"


def _hash(parts: Sequence[str]) -> str:
    return sha256("|".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


def _why_not(column: Column, reader: TableReader) -> str:
    """Why a column is in no sum; "" if it is."""
    if column.generated:
        return "the target computes it"
    if not reader.is_comparable(column) or (reader.trait(column) and column.type.lower().startswith(_OWN_TYPES)):
        return f"a {column.type} is none of upstream's types"
    return ""


def _is_unbounded(trait: Trait | None) -> bool:
    """Whether it is a number with any digits behind the point."""
    return trait is not None and trait.form is Form.NUMBER and trait.scale is None

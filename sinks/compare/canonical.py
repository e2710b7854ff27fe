"""One text for each value, made here of what a message says and in SQL of what a target holds: for sums of content.

`CanonicalColumn` says of a column how its text is made of a message's; the target's `TableReader` spells the same text
in SQL, in the forms that `verify` compares by (`TableReader.text`). A column has no common text where servers spell one
value in several ways, or where nobody sends its values: such columns are left out of the sums, and named.
"""

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from hashlib import sha256

from ordering.rows.content_sums import BUCKETS, ContentSum, ContentSums, RowDigest
from sinks.compare.digests import NOTHING, Span, TableReader
from sinks.compare.value_forms import PLAIN_FROM, PLAIN_TO, Form, Trait, is_plain, real_text
from sinks.rows import plain_values
from sinks.rows.schema import Column, Shape, TableSchema
from sinks.rows.values import ValueRules, member_name, set_names, utc_of

Spell = Callable[[str], str | None]
"""A message's text as the canonical one. Raises ValueError."""
_ALL = Span()
_MASK = (1 << 64) - 1
_HALF = 16
"""Hexadecimal digits of half a digest."""
_BUCKET_DIGITS = 1
"""Of the key's digest; 16 to the power of it is `BUCKETS`."""
_BY_SHAPE = {
    Shape.INTEGER: Form.NUMBER,
    Shape.EXACT: Form.NUMBER,
    Shape.BYTES: Form.BYTES,
    Shape.TIMESTAMP: Form.TIMESTAMP,
    Shape.REAL: Form.REAL,
}
"""Of a target whose columns store whatever they are given. Dates are texts to it."""


_REALS = {Form.REAL, Form.FLOAT}
_BEYOND = "beyond"
"""What stands for a float that servers spell in several ways: it is only known that it is such a one."""


@dataclass(frozen=True, slots=True)
class CanonicalColumn:
    """A column of the sums: in which form its text is, and how a message's text becomes it."""

    column: Column
    form: Form
    spell: Spell
    is_sized: bool
    """Whether its text may hold any character, so that its length stands in front."""


@dataclass(frozen=True, slots=True)
class CanonicalRows:
    """A table as its sums see it. `left_out`: column -> why it is in no sum."""

    schema: TableSchema
    columns: tuple[CanonicalColumn, ...]
    keys: tuple[CanonicalColumn, ...]
    left_out: Mapping[str, str]

    @property
    def signature(self) -> list[str]:
        """What has to be the same for sums to be comparable."""
        own = [f"{one.column.name}\t{one.column.type}\t{one.form.value}" for one in self.columns]
        out = [f"{name}\t" for name in self.left_out]
        return [*own, *out, "key", *(one.column.name for one in self.keys)]

    def digest(self, image: Mapping[str, str | None]) -> RowDigest:
        """The digest of a row, from its texts as messages spell them.

        Raises KeyError for a column that the image lacks, ValueError for a text that is none of its column's.
        """
        key = _hash([_packed(one, image[one.column.name]) for one in self.keys])
        row = _hash([_packed(one, image[one.column.name]) for one in self.columns])
        return RowDigest(int(key[:_BUCKET_DIGITS], 16), int(row[:_HALF], 16), int(row[_HALF : 2 * _HALF], 16))


def columns_of(signature: Sequence[str]) -> list[str]:
    """The columns that a table had."""
    return [name for name, tab, _ in (entry.partition("\t") for entry in signature) if tab]


def canonical_rows(schema: TableSchema, reader: TableReader, rules: ValueRules) -> CanonicalRows:
    """How the rows of a table are summed up. `keys` is empty where they can't be told apart."""
    columns: list[CanonicalColumn] = []
    left_out: dict[str, str] = {}
    for column in schema.columns:
        why = _why_not(column, reader)
        if why:
            left_out[column.name] = why
        else:
            trait = reader.trait(column)
            form = _form(column, trait)
            spell = _spelling(column, form, reader, rules)
            # a column without a trait stores whatever it is given, a text among numbers too
            columns.append(CanonicalColumn(column, form, spell, is_sized=form is Form.TEXT or trait is None))
    by_name = {one.column.name: one for one in columns}
    whole = all(name in by_name for name in schema.handle_key)
    keys = tuple(by_name[name] for name in schema.handle_key) if whole else ()
    return CanonicalRows(schema, tuple(columns), keys, left_out)


def table_sums(rows: CanonicalRows, reader: TableReader, span: Span = _ALL) -> ContentSums | None:
    """The sums that the target itself computes in one query; None where the server can't make a row's text."""
    row, key = (_hashed_row(some, reader) for some in (rows.columns, rows.keys))
    where = " AND ".join(span.conditions(reader))
    inner = f"SELECT {key} AS k, {row} AS h FROM {reader.place(rows.schema.here)}"  # noqa: S608 quoted
    inner += f" WHERE {where}" if where else ""
    high, low = (reader.added(reader.number_of("h", at, _HALF)) for at in (1, 1 + _HALF))
    bucket = f"SUBSTR(k, 1, {_BUCKET_DIGITS})"
    sql = f"SELECT {bucket} AS b, COUNT(*) AS n, COUNT(h) AS m, {high} AS u, {low} AS v FROM ({inner}) AS x GROUP BY {bucket}"  # noqa: S608, E501 quoted
    found: dict[int, ContentSum] = {}
    for digits, count, hashed, upper, lower in reader.query(sql):
        if digits is None or count != hashed:
            return None
        found[int(digits, 16)] = ContentSum(int(count), int(upper) & _MASK, int(lower) & _MASK)
    if any(bucket >= BUCKETS for bucket in found):
        raise AssertionError(sorted(found))
    return found


def _hashed_row(columns: Sequence[CanonicalColumn], reader: TableReader) -> str:
    return reader.hashed(reader.joined([_packed_in_sql(one, reader) for one in columns]))


def _packed_in_sql(one: CanonicalColumn, reader: TableReader) -> str:
    text = reader.text(one.form, one.column)
    name = reader.quoted(one.column.name)
    if one.form in _REALS:
        inside = f"ABS({name}) >= {PLAIN_FROM} AND ABS({name}) < {PLAIN_TO}"
        text = f"CASE WHEN {name} = 0 THEN '0' WHEN {inside} THEN {text} ELSE '{_BEYOND}' END"
    # a text that can't be made may be NULL too: only the column itself says that it is
    return f"CASE WHEN {name} IS NULL THEN '{NOTHING}' ELSE {reader.sized(text) if one.is_sized else text} END"


def _packed(one: CanonicalColumn, text: str | None) -> str:
    spelled = None if text is None else one.spell(text)
    if spelled is None:
        return NOTHING
    return f"{len(spelled.encode())}:{spelled}" if one.is_sized else spelled


def _hash(parts: Sequence[str]) -> str:
    return sha256("|".join(parts).encode()).hexdigest()


def _why_not(column: Column, reader: TableReader) -> str:
    """Why a column is in no sum; "" if it is."""
    if column.generated:
        return "the target computes it"
    trait = reader.trait(column)
    is_cut = column.shape is Shape.REAL and trait is not None and "(" in column.type  # a DOUBLE(10, 2)
    if column.shape is Shape.JSON or is_cut or not reader.is_comparable(column):
        return f"servers spell a {column.type} in several ways"
    if trait is not None and (trait.form is Form.JSON or _is_unbounded(column, trait)):
        return f"servers spell a {column.type} in several ways"
    return ""


def _real(text: str) -> str:
    number = float(text)
    return "0" if not number else real_text(number) if is_plain(number) else _BEYOND


def _float(text: str) -> str:
    """As the 64-bit float that a 32-bit one is."""
    (near,) = struct.unpack("f", struct.pack("f", float(text)))
    return _real(repr(near))


def _is_unbounded(column: Column, trait: Trait) -> bool:
    """Whether it is a number with any digits behind the point, or a type that no message has."""
    known = trait.form is not Form.NUMBER or trait.scale is not None
    return not known or column.type.lower().startswith(("uuid", "vector", "inet"))


def _form(column: Column, trait: Trait | None) -> Form:
    return _BY_SHAPE.get(column.shape, Form.TEXT) if trait is None else trait.form


def _spelling(column: Column, form: Form, reader: TableReader, rules: ValueRules) -> Spell:
    trait = reader.trait(column)
    if column.shape is Shape.ENUM:
        return lambda text: member_name(column.members, text)
    if column.shape is Shape.SET:
        return lambda text: set_names(column.members, text)
    if form is Form.NUMBER or form is Form.BITS:
        return _decimals(trait.scale) if trait is not None and trait.scale else _whole
    if form in _MOMENTS:
        return _moments(form, rules, null=reader.calendar_only and rules.invalid_dates == "null")
    return _SPELLINGS.get(form, str)


def _bytes(text: str) -> str:
    return text.encode("latin-1").hex().upper()


def _whole(text: str) -> str:
    if text.isascii() and text.isdigit() and text[0] != "0":
        return text
    return str(int(plain_values.exact(text)))


def _decimals(scale: int) -> Spell:
    def spelled(text: str) -> str:
        whole, _, fraction = plain_values.exact(text).lstrip("-").partition(".")
        if len(fraction.rstrip("0")) > scale:
            message = f"{text[:50]!r} has more than {scale} digits behind the point"
            raise ValueError(message)
        number = f"{int(whole or '0')}.{fraction[:scale].ljust(scale, '0')}"
        return f"-{number}" if text.startswith("-") and number.strip("0.") else number

    return spelled


def _fraction(text: str) -> str:
    """Without zeros at the end of a second."""
    return text.rstrip("0").removesuffix(".") if "." in text else text


_MOMENTS = {Form.DATE, Form.DATETIME, Form.TIMESTAMP}


def _moments(form: Form, rules: ValueRules, *, null: bool) -> Spell:
    """`null`: what is no date of the calendar is NULL in the target."""
    utc = utc_of(rules.time_zone) if form is Form.TIMESTAMP else str
    parse: Callable[[str], date] = date.fromisoformat if form is Form.DATE else datetime.fromisoformat

    def spelled(text: str) -> str | None:
        moment = plain_values.moment(text)
        if null:
            try:
                parse(moment)
            except ValueError:
                return None
        return _fraction(utc(moment))

    return spelled


_SPELLINGS: dict[Form, Spell] = {Form.BYTES: _bytes, Form.REAL: _real, Form.FLOAT: _float, Form.TIME: _fraction}

"""A message's text as the canonical one of its column: what the target's SQL makes of the same value.

Where servers spell a value in several ways, the canonical text is made here for both, and begins with `LATE`.
"""

import struct
from collections.abc import Callable
from datetime import date, datetime
from math import floor, isinf

from sinks.compare.digests import TableReader
from sinks.compare.documents import decimal_text, document_text
from sinks.compare.value_forms import Form, is_plain, real_text
from sinks.rows import plain_values
from sinks.rows.schema import Column, Shape
from sinks.rows.values import ValueRules, member_name, set_mask, set_names, shown_number, utc_of

Spell = Callable[[str], str | None]
"""A message's text as the canonical one. Raises ValueError."""
LATE = "~"
_DAY = len("2026-01-02")
_MOMENTS = {Form.DATE, Form.DATETIME, Form.TIMESTAMP}


def spelling_of(column: Column, form: Form, reader: TableReader, rules: ValueRules, *, is_vector: bool) -> Spell:
    """How a column's texts are spelled."""
    if is_vector:
        return _vector
    if column.shape in {Shape.ENUM, Shape.SET}:
        return _members(column, numbers=form is Form.BITS)
    if form is Form.NUMBER or form is Form.BITS:
        return _number(column, form, reader)
    if form in {Form.REAL, Form.FLOAT}:
        return _floats(form, reader.truncates(column))
    if form in _MOMENTS:
        return _moments(form, rules, null=reader.calendar_only)
    return _SPELLINGS.get(form, str)


def _members(column: Column, *, numbers: bool) -> Spell:
    """As names, or as numbers where the server does not tell the names."""
    is_set, members = column.shape is Shape.SET, column.members
    if numbers:
        return lambda text: str(set_mask(members, text, shown_number) if is_set else shown_number(members, text))
    return lambda text: set_names(members, text) if is_set else member_name(members, text)


def _number(column: Column, form: Form, reader: TableReader) -> Spell:
    trait = reader.trait(column)
    if form is Form.NUMBER and trait is not None and trait.scale is None:
        return _unbounded
    return _decimals(trait.scale) if trait is not None and trait.scale else _whole


def _unbounded(text: str) -> str:
    """A number with any digits; a float may come with an exponent."""
    return LATE + decimal_text(text if plain_values.is_number(text) else plain_values.exact(text))


def _truncated(text: str, digits: int) -> float:
    """A float as MySQL and MariaDB hold it in a DOUBLE(m, digits): they cut what is above the next lower integer."""
    number = plain_values.double(text)
    whole = floor(number)
    return whole + round((number - whole) * 10.0**digits) / 10.0**digits


def _floats(form: Form, digits: int | None) -> Spell:
    if digits is None:
        return _real if form is Form.REAL else _float
    return lambda text: _spelled(_near(_truncated(text, digits)) if form is Form.FLOAT else _truncated(text, digits))


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


def _real(text: str) -> str:
    return _spelled(plain_values.double(text))


def _float(text: str) -> str:
    """As the 64-bit float that a 32-bit one is."""
    return _spelled(_single(text))


def _spelled(number: float) -> str:
    return "0" if not number else real_text(number) if is_plain(number) else LATE + repr(number)


def _single(text: str) -> float:
    return _near(plain_values.double(text))


def _near(number: float) -> float:
    (near,) = struct.unpack("f", struct.pack("f", number))
    if isinf(near):
        message = f"{number!r} is beyond a float of 32 bits"
        raise ValueError(message)
    return float(near)


def _vector(text: str) -> str:
    numbers = text.strip().removeprefix("[").removesuffix("]")
    return LATE + ",".join(repr(_single(one.strip())) for one in numbers.split(",") if one.strip())


def _json(text: str) -> str:
    return LATE + document_text(text)


def _fraction(text: str) -> str:
    """Without zeros at the end of a second."""
    return text.rstrip("0").removesuffix(".") if "." in text else text


def _moments(form: Form, rules: ValueRules, *, null: bool) -> Spell:
    """`null`: what is no date of the calendar is NULL in the target.

    Whether it is refused by now does not matter: what was let in before is there, and what is refused is not applied.
    """
    utc = utc_of(rules.time_zone) if form is Form.TIMESTAMP else str
    parse: Callable[[str], date] = date.fromisoformat if form is Form.DATE else datetime.fromisoformat

    def spelled(text: str) -> str | None:
        moment = plain_values.moment(text)
        if form is not Form.DATE and len(moment) == _DAY:  # a DATE upstream, in a column made by hand
            moment += " 00:00:00"
        if null:
            try:
                parse(moment)
            except ValueError:
                return None
        return _fraction(utc(moment))

    return spelled


_SPELLINGS: dict[Form, Spell] = {
    Form.BYTES: _bytes,
    Form.TIME: _fraction,
    Form.JSON: _json,
}

"""As what the values of two columns are compared, one of each side, and when two texts stand for one value.

Every dialect spells a value of a form as one text (`sinks.compare.digests`). Equal texts always mean equal values.
Where a form is not `exact`, equal values may be spelled differently too, by JSON's order of keys or a float's
exponent: then their rows are fetched, and `meaning` decides.
"""

import re
import struct
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from math import isinf

from sinks.compare.documents import document_text
from sinks.rows.plain_values import are_moments, is_number
from sinks.rows.schema import Column, Shape

PLAIN_FROM, PLAIN_TO = 0.0001, 1_000_000_000_000_000
"""Between these servers spell floats without an exponent."""


INFINITIES = ("Infinity", "-Infinity")
"""How servers that store them spell them; upstream has none."""


class Form(Enum):
    """What a text that a dialect makes of a value looks like."""

    NUMBER = "number"
    """Digits, with a sign and a point: integers, decimals, years."""
    REAL = "real"
    FLOAT = "float"
    """A float of 32 bits; its text may be that of the 64-bit one."""
    TEXT = "text"
    BYTES = "bytes"
    """Hexadecimal digits in upper case."""
    BITS = "bits"
    """The unsigned number that the bits stand for."""
    DATE = "date"
    DATETIME = "datetime"
    """Without zeros at the end of the fraction; so are the next two."""
    TIMESTAMP = "timestamp"
    """In UTC."""
    TIME = "time"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class Trait:
    """What a dialect knows of a column's values. `scale`: digits behind the point or of a second; None: any."""

    form: Form
    scale: int | None = None


@dataclass(frozen=True, slots=True)
class Pair:
    """A column of both sides, and how its values are compared.

    `sized`: a text of it may hold any character. `dateless`: what is no date of the calendar counts as NULL.
    """

    left: Column
    right: Column
    form: Form
    exact: bool
    sized: bool
    dateless: bool = False
    digits: int = 0
    """Of a second, as the side that knows it spells them."""
    between: frozenset[Form] = frozenset()
    """The forms of both sides, where they differ."""

    @property
    def is_large(self) -> bool:
        """Whether a value may be of megabytes."""
        return any(kind in f"{self.left.type} {self.right.type}".lower() for kind in ("text", "blob", "json", "bytea"))

    def side(self, number: int) -> Column:
        """The column of the left side (0) or the right one (1)."""
        return self.right if number else self.left

    def meaning(self, text: str | None) -> Hashable:
        """What a text stands for: equal for equal values."""
        if text is None:
            return None
        between = _BETWEEN.get(self.between)
        meant = text if between is None else between(text)
        if self.dateless:
            return _moment(Form.DATETIME if between is _midnight else self.form, meant)
        rule = None if between is not None else _MEANINGS.get(self.form)
        return meant if rule is None else rule(meant)


_DAY = re.compile(r"\d{4,}-\d\d-\d\d")
_FRACTION = re.compile(r"(?:\d{4,}-\d\d-\d\d )?-?\d+:\d\d:\d\d\.\d+")
_MOMENTS = {Form.DATE, Form.DATETIME, Form.TIMESTAMP}
_INEXACT = {Form.REAL, Form.FLOAT, Form.JSON}
_BY_SHAPE = {
    Shape.INTEGER: Form.NUMBER,
    Shape.EXACT: Form.NUMBER,
    Shape.REAL: Form.REAL,
    Shape.BYTES: Form.BYTES,
    Shape.JSON: Form.JSON,
}


def paired(
    left: Column, right: Column, traits: tuple[Trait | None, Trait | None], *, invalid_dates_are_null: bool
) -> Pair:
    """How two columns are compared. A side that has no trait stores whatever it is given: the other one decides."""
    first, second = traits
    known = first or second
    if known is None:
        form = _BY_SHAPE.get(left.shape, Form.TEXT)
        return Pair(left, right, form, exact=form not in _INEXACT, sized=form in {Form.TEXT, Form.JSON})
    if first and second and first.form is not second.form and Form.BYTES in {first.form, second.form}:
        known = Trait(Form.BYTES)  # a text is bytes too, bytes are no text
    alike = first is None or second is None or first.form is second.form
    scales = {t.scale for t in traits if t is not None}
    exact = alike and known.form not in _INEXACT and (known.form is not Form.NUMBER or (len(scales) == 1))
    dateless = invalid_dates_are_null and known.form in _MOMENTS
    exact = exact and not dateless and not (known.form is Form.NUMBER and None in scales)
    # a column that only one side knows the type of may hold any text at the other
    sized = known.form in {Form.TEXT, Form.JSON} or first is None or second is None or not alike
    digits = (known.scale or 0) if known.form is not Form.NUMBER else 0
    between = frozenset[Form]() if alike or first is None or second is None else frozenset({first.form, second.form})
    return Pair(left, right, known.form, exact, sized, dateless, digits, between)


def is_plain(number: float) -> bool:
    """Whether servers spell a float alike: with the fewest digits that mean it, without an exponent."""
    return not number or PLAIN_FROM <= abs(number) < PLAIN_TO


def real_text(number: float) -> str:
    """A float as servers spell it, in the usual range, or without an end."""
    if isinf(number):
        return INFINITIES[number < 0]
    return format(Decimal(repr(number)), "f").removesuffix(".0") if is_plain(number) else repr(number)


def _number(text: str) -> Hashable:
    return Decimal(text) if is_number(text) else text


def _real(text: str) -> Hashable:
    return float(text) if is_number(text) else text


def _float(text: str) -> Hashable:
    number = _real(text)
    if not isinstance(number, float):
        return number
    try:
        (near,) = struct.unpack("f", struct.pack("f", number))
    except OverflowError:
        return number
    return float(near)


def _moment(form: Form, text: str) -> Hashable:
    """A date of the calendar, or None, as `sinks.postgres.encoder` writes it under `invalid-dates = "null"`.

    What upstream can't hold, PostgreSQL's infinity, years before Christ or beyond 9999, is what it is.
    """
    parse: Callable[[str], date] = date.fromisoformat if form is Form.DATE else datetime.fromisoformat
    try:
        parse(text)
    except ValueError:
        return None if are_moments([text]) else text
    return text


def _midnight(text: str) -> str:
    """A day as its first moment."""
    return f"{text} 00:00:00" if _DAY.fullmatch(text) else text


def _trimmed(text: str) -> str:
    """A moment or a time without the zeros that a column of texts keeps at the end of its fraction."""
    return text.rstrip("0").rstrip(".") if _FRACTION.fullmatch(text) else text


_BETWEEN: dict[frozenset[Form], Callable[[str], str]] = {
    frozenset({Form.DATE, Form.DATETIME}): _midnight,
    frozenset({Form.DATETIME, Form.TEXT}): _trimmed,
    frozenset({Form.TIME, Form.TEXT}): _trimmed,
}
"""Of columns of two forms; others have the meaning of `Pair.form`."""
_MEANINGS: dict[Form, Callable[[str], Hashable]] = {
    Form.NUMBER: _number,
    Form.BITS: _number,
    Form.REAL: _real,
    Form.FLOAT: _float,
    Form.JSON: document_text,
}

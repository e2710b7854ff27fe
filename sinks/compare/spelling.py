"""A message's text as the canonical one of its column: what the target's SQL makes of the same value.

Where servers spell a value in several ways, the canonical text is made here for both, and begins with `LATE`.
"""

import json
import struct
from collections.abc import Callable
from datetime import date, datetime
from math import isinf

import orjson

from sinks.compare.digests import TableReader
from sinks.compare.value_forms import Form, is_plain, real_text
from sinks.rows import plain_values
from sinks.rows.schema import Column, Shape
from sinks.rows.values import ValueRules, member_name, set_names, utc_of

Spell = Callable[[str], str | None]
"""A message's text as the canonical one. Raises ValueError."""
LATE = "~"
_MOMENTS = {Form.DATE, Form.DATETIME, Form.TIMESTAMP}


def spelling_of(column: Column, form: Form, reader: TableReader, rules: ValueRules, *, is_vector: bool) -> Spell:
    """How a column's texts are spelled."""
    if is_vector:
        return _vector
    if column.shape is Shape.ENUM:
        return lambda text: member_name(column.members, text)
    if column.shape is Shape.SET:
        return lambda text: set_names(column.members, text)
    if form is Form.NUMBER or form is Form.BITS:
        return _number(column, form, reader)
    if form in _MOMENTS:
        return _moments(form, rules, null=reader.calendar_only and rules.invalid_dates == "null")
    return _SPELLINGS.get(form, str)


def _number(column: Column, form: Form, reader: TableReader) -> Spell:
    trait = reader.trait(column)
    if form is Form.NUMBER and trait is not None and trait.scale is None:
        return lambda text: f"{LATE}{_decimal(plain_values.exact(text))}"
    return _decimals(trait.scale) if trait is not None and trait.scale else _whole


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
    number = float(text)
    return "0" if not number else real_text(number) if is_plain(number) else LATE + repr(number)


def _float(text: str) -> str:
    """As the 64-bit float that a 32-bit one is."""
    return _real(repr(_single(text)))


def _single(text: str) -> float:
    number = float(text)
    (near,) = struct.unpack("f", struct.pack("f", number))
    if isinf(near) and not isinf(number):
        message = f"{text[:50]!r} is beyond a float of 32 bits"
        raise ValueError(message)
    return float(near)


def _vector(text: str) -> str:
    numbers = text.strip().removeprefix("[").removesuffix("]")
    return LATE + ",".join(repr(_single(one)) for one in numbers.split(",") if one.strip())


def _decimal(text: str) -> str:
    """A number's text, the same for 1, 1.0 and 10e-1: its digits without zeros around, and where the point is."""
    mantissa, _, exponent = text.lower().partition("e")
    whole, _, fraction = mantissa.lstrip("-").partition(".")
    digits = (whole + fraction).lstrip("0")
    kept = digits.rstrip("0")
    sign = "-" if mantissa.startswith("-") else ""
    return f"{sign}{kept}e{int(exponent or 0) - len(fraction) + len(digits) - len(kept)}" if kept else "0"


def _json(text: str) -> str:
    """By value: numbers as such, an object's keys in order. What is no document, or has a key twice, is its text.

    So is what only a person can have written: more levels than upstream's 100, half a character.
    """
    try:
        found = _DECODER.decode(text)
        return LATE + _encoded(found)
    except (ValueError, RecursionError):
        return f"{LATE}?{text}"


def _encoded(found: object) -> str:
    """A document as JSON. orjson, which is quicker, writes the same, and refuses deep ones and halves of characters.

    Raises RecursionError, and ValueError for half a character, which has no bytes.
    """
    try:
        return orjson.dumps(found).decode()
    except orjson.JSONEncodeError:
        text = _ENCODER.encode(found)
        text.encode()
        return text


def _as_number(text: str) -> dict[str, str]:
    """A number; `_object` makes of each object of the document one whose key is another."""
    return {"#": _decimal(text)}


def _no_number(text: str) -> dict[str, str]:
    """What Python takes for a number and JSON does not: NaN and the like."""
    return {"#": text}


def _object(pairs: list[tuple[str, object]]) -> dict[str, list[list[object]]]:
    if len({key for key, _ in pairs}) < len(pairs):
        message = "a key comes twice"
        raise ValueError(message)
    return {"{}": [[key, value] for key, value in sorted(pairs, key=lambda pair: pair[0])]}


_DECODER = json.JSONDecoder(
    parse_int=_as_number, parse_float=_as_number, parse_constant=_no_number, object_pairs_hook=_object
)
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def _fraction(text: str) -> str:
    """Without zeros at the end of a second."""
    return text.rstrip("0").removesuffix(".") if "." in text else text


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


_SPELLINGS: dict[Form, Spell] = {
    Form.BYTES: _bytes,
    Form.REAL: _real,
    Form.FLOAT: _float,
    Form.TIME: _fraction,
    Form.JSON: _json,
}

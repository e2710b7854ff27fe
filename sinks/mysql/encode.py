"""Rows for the MySQL family: lines as LOAD DATA reads them; binary columns travel as hexadecimal digits."""

import struct
from collections.abc import Callable, Sequence
from functools import partial

from sinks import plain
from sinks.chunk import Texts
from sinks.schema import Column, Shape
from sinks.tabbed import FieldsOf, TabbedRows, escaped, payload_of, plain_numbers, plain_texts
from sinks.values import ValueRules, checked_json, member_number, set_mask, utc_of

_YEAR_DIGITS = 4
_SPATIAL = ("geometry", "point", "linestring", "polygon", "multi", "geomcollection", "geometrycollection")

Convert = Callable[[str], str]


def _hex(text: str) -> str:
    return text.encode("latin-1").hex()


def _year(text: str) -> str:
    """A year of four digits: of one or two the server would make another one, of '0' the year 2000."""
    if text == "0":
        return "0000"
    if len(plain.unsigned(text)) != _YEAR_DIGITS:
        message = f"{text!r} is no year of {_YEAR_DIGITS} digits"
        raise ValueError(message)
    return text


def _json(text: str) -> str:
    # MariaDB checks JSON by a constraint, and constraints are off for rows that upstream has taken
    return escaped(checked_json(text))


def _timed(digits: int, convert: Convert) -> Convert:
    """The server would cut off digits of a second that the column has no place for, without a word."""

    def checked(text: str) -> str:
        if "." in text and text.partition(".")[2][digits:].strip("0"):
            message = f"{text[:50]!r} has more than the {digits} digits of a second that the column holds"
            raise ValueError(message)
        return convert(text)

    return checked


def _float(text: str) -> str:
    """A 32-bit float as the 64-bit one that it is: MariaDB takes the shortest text of the largest for out of range."""
    try:
        return repr(struct.unpack("f", struct.pack("f", plain.double(text)))[0])
    except OverflowError as error:
        message = f"{text[:50]!r} is out of a FLOAT's range"
        raise ValueError(message) from error


def _refused(kind: str, text: str) -> str:
    message = f"values of the type {kind} are not known from TiDB: {text[:50]!r}"
    raise ValueError(message)


class MysqlEncoder(TabbedRows):
    """Texts to LOAD DATA's format. TIMESTAMP becomes UTC, ENUM and SET become numbers."""

    def __init__(self, rules: ValueRules) -> None:
        self._utc = utc_of(rules.time_zone)

    def encode(self, columns: Sequence[Column], rows: Sequence[Texts]) -> bytes:
        """See `sinks.chunk.Encoder`."""
        return payload_of([self._fields(column) for column in columns], rows)

    def _fields(self, column: Column) -> FieldsOf:
        convert = self._converter(column)
        return FieldsOf(convert, _PLAIN.get(convert))

    def _converter(self, column: Column) -> Convert:
        shape, kind = column.shape, column.type.lower()
        if shape in _TIMES:
            digits = int(kind.partition("(")[2].partition(")")[0] or 0)
            own = plain.span if shape is Shape.TIME else plain.moment
            return _timed(digits, self._utc if shape is Shape.TIMESTAMP else own)
        if shape is Shape.ENUM:
            return lambda text: str(member_number(column.members, text))
        if shape is Shape.SET:
            return lambda text: str(set_mask(column.members, text))
        if (number := _NUMBERS.get(kind.partition("(")[0].partition(" ")[0])) is not None:
            return number
        if kind.startswith(_SPATIAL):
            return partial(_refused, kind)
        return _CONVERTERS.get(shape, escaped)


_PLAIN: dict[Convert, Callable[[Sequence[str]], bool]] = {
    escaped: plain_texts,
    plain.whole: plain_numbers,
    plain.moment: plain.are_moments,
}
_NUMBERS: dict[str, Convert] = {"year": _year, "float": _float, "decimal": plain.exact}
_TIMES = {Shape.DATETIME, Shape.TIMESTAMP, Shape.TIME}
_CONVERTERS: dict[Shape, Convert] = {
    Shape.BYTES: _hex,
    Shape.INTEGER: plain.whole,  # MariaDB would round '1.5' without a word
    Shape.BIT: plain.unsigned,
    Shape.REAL: plain.real,
    Shape.DATE: plain.moment,
    Shape.JSON: _json,
}

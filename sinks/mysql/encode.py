r"""Rows for the MySQL family: the text that LOAD DATA reads, in its default format.

Fields end with a tab, rows with a newline; backslash escapes both, itself, NUL, and spells NULL as `\N` (MySQL
documentation, "LOAD DATA", field and line handling). Binary columns travel as hexadecimal digits.
"""

import struct
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from sinks.chunk import Texts
from sinks.schema import Column, Shape
from sinks.values import ValueRules, checked_json, member_number, set_mask, utc_of

_ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r", "\0": "\\0"})
_UNESCAPES = {"t": "\t", "n": "\n", "r": "\r", "0": "\0", "\\": "\\"}
_SPATIAL = ("geometry", "point", "linestring", "polygon", "multi", "geomcollection", "geometrycollection")

Convert = Callable[[str], str]


def _hex(text: str) -> str:
    return text.encode("latin-1").hex()


def _escaped(text: str) -> str:
    # most texts hold nothing to escape, and asking so is ten times faster than translating
    return text if text.isprintable() and "\\" not in text else text.translate(_ESCAPES)


def _whole(text: str) -> str:
    """A whole number: MariaDB would round '1.5' without a word."""
    if not (text.isdigit() or (text[:1] == "-" and text[1:].isdigit())):
        message = f"{text[:50]!r} is no whole number"
        raise ValueError(message)
    return text


def _year(text: str) -> str:
    # as a text, '0' would be the year 2000
    return "0000" if text == "0" else _whole(text)


def _json(text: str) -> str:
    # MariaDB checks JSON by a constraint, and constraints are off for rows that upstream has taken
    return _escaped(checked_json(text))


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
        return repr(struct.unpack("f", struct.pack("f", float(text)))[0])
    except OverflowError as error:
        message = f"{text[:50]!r} is out of a FLOAT's range"
        raise ValueError(message) from error


def _refused(kind: str, text: str) -> str:
    message = f"values of the type {kind} are not known from TiDB: {text[:50]!r}"
    raise ValueError(message)


class MysqlEncoder:
    """Texts to LOAD DATA's format. TIMESTAMP becomes UTC, ENUM and SET become numbers."""

    def __init__(self, rules: ValueRules) -> None:
        self._utc = utc_of(rules.time_zone)

    def encode(self, columns: Sequence[Column], rows: Sequence[Texts]) -> bytes:
        """See `sinks.chunk.Encoder`."""
        converters = [self._converter(column) for column in columns]
        lines = ["\t".join("\\N" if t is None else f(t) for f, t in zip(converters, row, strict=True)) for row in rows]
        return ("\n".join(lines) + "\n").encode() if lines else b""

    def split(self, payload: bytes) -> list[bytes]:
        """See `sinks.chunk.Encoder`."""
        return [line + b"\n" for line in payload.split(b"\n")[:-1]]

    def joined(self, rows: Sequence[bytes]) -> bytes:
        """See `sinks.chunk.Encoder`."""
        return b"".join(rows)

    def _converter(self, column: Column) -> Convert:
        shape, kind = column.shape, column.type.lower()
        if shape in _TIMES:
            digits = int(kind.partition("(")[2].partition(")")[0] or 0)
            return _timed(digits, self._utc if shape is Shape.TIMESTAMP else _escaped)
        if shape is Shape.ENUM:
            return lambda text: str(member_number(column.members, text))
        if shape is Shape.SET:
            return lambda text: str(set_mask(column.members, text))
        if kind.startswith(("year", "float")):
            return _year if kind.startswith("year") else _float
        if kind.startswith(_SPATIAL):
            return partial(_refused, kind)
        return _CONVERTERS.get(shape, _escaped)


_TIMES = {Shape.DATETIME, Shape.TIMESTAMP, Shape.TIME}
_CONVERTERS: dict[Shape, Convert] = {
    Shape.BYTES: _hex,
    Shape.INTEGER: _whole,
    Shape.BIT: _whole,
    Shape.JSON: _json,
}


def decode_rows(payload: bytes) -> Iterator[list[str | None]]:
    """The rows of a payload, for multi-row statements with bound values."""
    # not splitlines(): that would also split at U+2028 and others
    for line in payload.decode().split("\n")[:-1]:
        yield [None if field == "\\N" else _unescaped(field) for field in line.split("\t")]


def _unescaped(field: str) -> str:
    if "\\" not in field:
        return field
    parts = field.split("\\")
    text = [parts[0]]
    rest = iter(parts[1:])
    for part in rest:
        if part:
            text.append(_UNESCAPES[part[0]] + part[1:])
        else:  # an escaped backslash: the next part follows it as it is
            text.append("\\" + next(rest, ""))
    return "".join(text)

"""Rows for the MySQL family: lines as LOAD DATA reads them; binary columns travel as hexadecimal digits."""

import re
import struct
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from sinks.rows import plain_values
from sinks.rows.chunk import Texts
from sinks.rows.field_rules import FieldFlag, FieldKind, FieldRule, zone_parts
from sinks.rows.schema import Column, Shape
from sinks.rows.tsv import FieldsOf, TabbedRows, escaped, payload_of, plain_numbers, plain_texts
from sinks.rows.values import ValueRules, checked_json, set_mask, shown_number, utc_of

_YEAR_DIGITS = 4
_SHOWN = 50
_DAY = len("2026-01-02")
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)
_MODIFIERS = re.compile(r"\(([0-9]+)(?:,([0-9]+))?\)")
_SPATIAL = ("geometry", "point", "linestring", "polygon", "multi", "geomcollection", "geometrycollection")

Convert = Callable[[str], str]


def _hex(text: str) -> str:
    return text.encode("latin-1").hex()


def _padded_hex(length: int, text: str) -> str:
    """The server would fill a shorter value up with zero bytes without a word."""
    if len(text) != length:
        message = f"a value of {len(text)} bytes does not fill the {length} bytes of the column"
        raise ValueError(message)
    return _hex(text)


def _unpadded(text: str) -> str:
    """A CHAR keeps no blanks at the end."""
    if text.endswith(" "):
        message = f"{text[-_SHOWN:]!r} ends with blanks, which the column does not keep: make it VARCHAR"
        raise ValueError(message)
    return escaped(text)


def _not_cut(length: int, text: str) -> str:
    """Of blanks at the end the server cuts off what is too long, whatever the SQL mode is."""
    if text.endswith(" ") and len(text) > length:
        message = f"{text[-_SHOWN:]!r} has {len(text)} characters, of which the column would cut off blanks"
        raise ValueError(message)
    return escaped(text)


def _plain_without_blanks(texts: Sequence[str]) -> bool:
    return plain_texts(texts) and " \n" not in "\n".join(texts) + "\n"


def _day(text: str) -> str:
    """The server would cut off the time of the day."""
    if plain_values.moment(text)[_DAY:].strip(" 0:."):
        message = f"{text!r} has a time of the day, for which the column has no place"
        raise ValueError(message)
    return text


def _are_days(texts: Sequence[str]) -> bool:
    return plain_values.are_moments(texts) and len(max(texts, key=len)) == _DAY


def _uuid(text: str) -> str:
    """MariaDB reads several spellings and keeps one."""
    if _UUID.fullmatch(text) is None:
        message = f"{text[:_SHOWN]!r} is not spelled as the server spells this UUID: make the column CHAR(36)"
        raise ValueError(message)
    return text


def _scaled(scale: int, convert: Convert, text: str) -> str:
    """The server would round to the digits of the column."""
    return convert(plain_values.scaled(scale, text))


def _year(text: str) -> str:
    """A year of four digits: of one or two the server would make another one, of '0' the year 2000."""
    if text == "0":
        return "0000"
    if len(plain_values.unsigned(text)) != _YEAR_DIGITS:
        message = f"{text!r} is no year of {_YEAR_DIGITS} digits"
        raise ValueError(message)
    return text


def _json(text: str) -> str:
    # MariaDB checks JSON by a constraint, and constraints are off for rows that upstream has taken
    return escaped(checked_json(text))


def _timed(digits: int, convert: Convert, text: str) -> str:
    """The server would cut off digits of a second that the column has no place for, without a word."""
    if "." in text and text.partition(".")[2][digits:].strip("0"):
        message = f"{text[:50]!r} has more than the {digits} digits of a second that the column holds"
        raise ValueError(message)
    return convert(text)


def _float(text: str) -> str:
    """A 32-bit float as the 64-bit one that it is: MariaDB takes the shortest text of the largest for out of range."""
    try:
        return repr(struct.unpack("f", struct.pack("f", plain_values.double(text)))[0])
    except OverflowError as error:
        message = f"{text[:50]!r} is out of a FLOAT's range"
        raise ValueError(message) from error


def _member(members: tuple[str, ...], text: str) -> str:
    return str(shown_number(members, text))


def _mask(members: tuple[str, ...], text: str) -> str:
    return str(set_mask(members, text, shown_number))


def _refused(kind: str, text: str) -> str:
    message = f"values of the type {kind} are not known from TiDB: {text[:50]!r}"
    raise ValueError(message)


class MysqlEncoder(TabbedRows):
    """Texts to LOAD DATA's format. TIMESTAMP becomes UTC, ENUM and SET become numbers."""

    def __init__(self, rules: ValueRules) -> None:
        self._utc = utc_of(rules.time_zone)

    def encode(self, columns: Sequence[Column], rows: Sequence[Texts]) -> bytes:
        """See `sinks.rows.chunk.Encoder`."""
        return payload_of([self._fields(column) for column in columns], rows)

    def _fields(self, column: Column) -> FieldsOf:
        convert = self._converter(column)
        known = convert.func if isinstance(convert, partial) else convert
        # of NULL the server may make the present, the next number, or '' in a statement that is not strict
        return FieldsOf(convert, _PLAIN.get(known), column.nullable)

    def rule(self, column: Column) -> FieldRule | None:
        """See `TabbedRows.rule`."""
        rule = _rule_of(self._converter(column))
        return rule and replace(rule, flags=rule.flags | FieldFlag.NOT_NULL * (not column.nullable))

    def _converter(self, column: Column) -> Convert:
        shape, kind = column.shape, column.type.lower()
        if shape in _TIMES:
            digits = int(kind.partition("(")[2].partition(")")[0] or 0)
            own = plain_values.span if shape is Shape.TIME else plain_values.moment
            return partial(_timed, digits, self._utc if shape is Shape.TIMESTAMP else own)
        if shape in _MEMBERS:
            return partial(_MEMBERS[shape], column.members)
        if kind.startswith(_SPATIAL):
            return partial(_refused, kind)
        return _of_type(kind) or _CONVERTERS.get(shape, escaped)


def _rule_of(convert: Convert) -> FieldRule | None:
    """What the core does for a converter; None: nothing."""
    if not isinstance(convert, partial):
        return _RULES.get(convert)
    make = _RULES_WITH.get(convert.func)
    return None if make is None else make(*convert.args)


def _rule_of_times(digits: int, convert: Convert) -> FieldRule | None:
    if convert is plain_values.span:
        return FieldRule(FieldKind.SPAN, digits=digits)
    zone = zone_parts(convert.args[0]) if isinstance(convert, partial) else ()
    return FieldRule(FieldKind.MOMENT, digits=digits, zone=zone) if zone or convert is plain_values.moment else None


def _rule_of_scaled(digits: int, convert: Convert) -> FieldRule | None:
    rule = _rule_of(convert)
    return rule and replace(rule, digits=digits)


def _of_type(kind: str) -> Convert | None:
    """How values of a type are spelled that its shape alone does not tell."""
    base, sizes = kind.partition("(")[0].partition(" ")[0], _sizes(kind)
    if sizes and base in _BY_LENGTH:
        return partial(_BY_LENGTH[base], sizes[0])
    own = _BY_TYPE.get(base)
    return partial(_scaled, sizes[1], own) if own is not None and len(sizes) > 1 else own


def _sizes(kind: str) -> list[int]:
    """What stands in a type's brackets: a length, or digits and how many of them are behind the point."""
    match = _MODIFIERS.search(kind)
    return [int(size) for size in match.groups() if size] if match else []


_PLAIN: dict[Callable[..., str], Callable[[Sequence[str]], bool]] = {
    escaped: plain_texts,
    _unpadded: _plain_without_blanks,
    _not_cut: _plain_without_blanks,
    plain_values.whole: plain_numbers,
    plain_values.moment: plain_values.are_moments,
    _day: _are_days,
}
_MEMBERS: dict[Shape, Callable[[tuple[str, ...], str], str]] = {Shape.ENUM: _member, Shape.SET: _mask}
_BY_LENGTH: dict[str, Callable[[int, str], str]] = {"varchar": _not_cut, "binary": _padded_hex}
_BY_TYPE: dict[str, Convert] = {
    "year": _year,
    "float": _float,
    "double": plain_values.exact_double,
    "decimal": plain_values.exact,
    "char": _unpadded,
    "uuid": _uuid,
}
_TIMES = {Shape.DATETIME, Shape.TIMESTAMP, Shape.TIME}
_CONVERTERS: dict[Shape, Convert] = {
    Shape.BYTES: _hex,
    Shape.INTEGER: plain_values.whole,  # MariaDB would round '1.5' without a word
    Shape.BIT: plain_values.unsigned,
    Shape.DATE: _day,
    Shape.JSON: _json,
}
_RULES: dict[Convert, FieldRule] = {
    escaped: FieldRule(FieldKind.TEXT),
    _unpadded: FieldRule(FieldKind.TEXT, FieldFlag.NO_BLANK_END),
    _json: FieldRule(FieldKind.JSON),
    _hex: FieldRule(FieldKind.HEX),
    _year: FieldRule(FieldKind.YEAR),
    _float: FieldRule(FieldKind.FLOAT),
    _day: FieldRule(FieldKind.DAY),
    _uuid: FieldRule(FieldKind.UUID),
    plain_values.whole: FieldRule(FieldKind.WHOLE),
    plain_values.unsigned: FieldRule(FieldKind.UNSIGNED),
    plain_values.exact: FieldRule(FieldKind.DECIMAL),
    plain_values.exact_double: FieldRule(FieldKind.DOUBLE),
}
_RULES_WITH: dict[Callable[..., str], Callable[..., FieldRule | None]] = {
    _not_cut: lambda length: FieldRule(FieldKind.TEXT, FieldFlag.KEEPS_BLANKS, length),
    _padded_hex: lambda length: FieldRule(FieldKind.HEX, size=length),
    _member: lambda members: FieldRule(FieldKind.MEMBER, size=len(members)),
    _mask: lambda members: FieldRule(FieldKind.MASK, size=len(members)),
    _timed: _rule_of_times,
    _scaled: _rule_of_scaled,
}

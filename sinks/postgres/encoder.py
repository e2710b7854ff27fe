"""Rows for PostgreSQL: lines as COPY reads them. What the server would round or cut without a word is refused here."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import partial

from sinks.rows import plain_values
from sinks.rows.chunk import Texts
from sinks.rows.field_rules import FieldFlag, FieldKind, FieldRule, zone_parts
from sinks.rows.schema import Column, Shape
from sinks.rows.tsv import FieldsOf, TabbedRows, escaped, payload_of, plain_texts
from sinks.rows.values import UnstorableError, ValueRules, member_name, set_names, utc_of

Spelling = Callable[[str], str | None]
"""From a text as sent to the one that PostgreSQL reads as the same value."""

_FLOAT_DIGITS = 9
"""So many digits tell any two 32-bit floats apart; a text with more was no such float."""
_NAME_BYTES = 63
_NUMBERS = re.compile(r"-?\d+")
_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,64}", re.ASCII)
_WHOLE_LENGTH = 66
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)
_INVALID_DATES = 'set target.invalid-dates = "null" to write NULL for such dates, or correct the value upstream'
_NO_YEAR = "0000"
"""How a dump spells the YEAR 0."""


def _text(text: str) -> str:
    if "\0" in text:
        fact = f"PostgreSQL's texts can't hold U+0000: {text[:50]!r}"
        raise UnstorableError(fact, "correct the value upstream, leave the table out with filter.rules, or use MySQL")
    return text


def _text_of(length: int, text: str) -> str:
    """The server cuts off spaces beyond the length without a word."""
    if len(text) > length:
        message = f"{text[:50]!r} has {len(text)} characters of at most {length}"
        raise ValueError(message)
    return _text(text)


def _padded_text_of(length: int, text: str) -> str:
    """To `character`, blanks at the end mean nothing."""
    if text.endswith(" "):
        message = f"{text[:50]!r} ends with a blank, which the type character does not keep: make the column text"
        raise ValueError(message)
    return _text_of(length, text)


def _name(text: str) -> str:
    """The server cuts off what is longer without a word."""
    if len(text.encode()) > _NAME_BYTES:
        message = f"{text[:50]!r} has more than the {_NAME_BYTES} bytes of a name: make the column text"
        raise ValueError(message)
    return _text(text)


def _whole(text: str) -> str:
    """The server would read '007' as 7, which upstream may tell apart."""
    if text == _NO_YEAR:
        return "0"
    if _WHOLE.fullmatch(text) is None:
        message = f"{text[:50]!r} is no whole number as upstream spells one"
        raise ValueError(message)
    return text


def plain_wholes(texts: Sequence[str]) -> bool:
    """Whether texts are numbers as upstream spells them; False also of some that are."""
    joined = "\t" + "\t\t".join(texts) + "\t"
    if joined.count("\t0") != joined.count("\t0\t") or "\t-0" in joined or "\t-\t" in joined:
        return False
    digits = joined.replace("\t-", "").replace("\t", "")
    return digits.isascii() and digits.isdigit() and all(texts) and max(map(len, texts)) <= _WHOLE_LENGTH


def _decimal(scale: int, text: str) -> str:
    whole, _, fraction = plain_values.exact(text).partition(".")
    if len(fraction.rstrip("0")) > max(scale, 0) or (scale < 0 and int(whole) % 10**-scale):
        message = f"{text[:50]!r} has more than {scale} digits behind the point"
        raise ValueError(message)
    return _number(text)


def _number(text: str) -> str:
    """One spelling for each number."""
    if text.lstrip("-").partition(".")[0] != "0" and text.lstrip("-").startswith("0"):
        message = f"{text[:50]!r} is no number as upstream spells one"
        raise ValueError(message)
    return plain_values.real(text)


def _double(text: str) -> str:
    return _text(plain_values.exact_double(text))


def _uuid(text: str) -> str:
    """The server reads many spellings, in either case, and keeps one."""
    if _UUID.fullmatch(text) is None:
        message = f"{text[:50]!r} is not spelled as PostgreSQL spells this uuid: make the column text"
        raise ValueError(message)
    return text


def _boolean(text: str) -> str:
    if text not in {"0", "1"}:
        message = f"{text[:50]!r} is neither 0 nor 1: make the column smallint"
        raise ValueError(message)
    return text


def _never(kind: str, text: str) -> str:
    fact = f"{text[:50]!r} may be changed by the type {kind} without notice"
    raise UnstorableError(fact, "make the column one of the types that `reconciler help targets` lists")


def _float(text: str) -> str:
    digits = plain_values.real(text).lower().partition("e")[0].lstrip("-").replace(".", "").strip("0")
    if len(digits) > _FLOAT_DIGITS:
        message = f"{text[:50]!r} has more digits than a 32-bit float holds"
        raise ValueError(message)
    return _text(text)


def _bytes(text: str) -> str:
    # binary strings come as one code point U+0000..U+00FF a byte
    return "\\x" + text.encode("latin-1").hex()


def _bits(width: int, text: str) -> str:
    number = plain_values.integer(text)
    if number < 0 or number.bit_length() > width:
        message = f"{text[:50]!r} is no number of {width} bits"
        raise ValueError(message)
    return f"{number:0{width}b}"


def _time(digits: int, text: str) -> str:
    if text.partition(".")[2][digits:].strip("0"):
        message = f"{text[:50]!r} has more than the {digits} digits of a second that the column holds"
        raise ValueError(message)
    return text


def _member(members: tuple[str, ...], text: str) -> str:
    return _text(member_name(members, text))


def _members_of(members: tuple[str, ...], text: str) -> str:
    return _text(set_names(members, text))


def _span(digits: int, text: str) -> str:
    return _time(digits, plain_values.span(text))


@dataclass(frozen=True, slots=True)
class _Moment:
    """A date or time of the calendar; MySQL also holds zero and partial dates, and 31 February."""

    parse: Callable[[str], date]
    spell: Callable[[str], str]
    digits: int
    null: bool

    def __call__(self, text: str) -> str | None:
        try:
            self.parse(plain_values.moment(text))  # the parser takes more than dates: weeks, offsets, any separator
        except ValueError as error:
            if self.null:
                return None
            fact = f"{text[:50]!r} is no date of the calendar, and PostgreSQL holds no others"
            raise UnstorableError(fact, _INVALID_DATES) from error
        return self.spell(_time(self.digits, text))


def _modifiers(column: Column) -> list[int]:
    """What stands in the brackets of a type."""
    return [int(number) for number in _NUMBERS.findall(column.type.partition("(")[2].partition(")")[0])]


def spelling(column: Column, rules: ValueRules) -> Spelling:
    """How values of a column are spelled."""
    numbers, kind = _modifiers(column), column.type
    rule = _SPELLINGS.get(column.shape)
    if rule is not None:
        return rule(column, numbers, rules)
    return _of_type(kind, numbers)


def _of_type(kind: str, numbers: list[int]) -> Spelling:
    """How values are spelled for a type that no shape stands for."""
    if kind.startswith("numeric("):
        return partial(_decimal, numbers[1] if len(numbers) > 1 else 0)
    if kind.startswith("character varying") and numbers:
        return partial(_text_of, numbers[0])
    if kind.startswith("character("):
        return partial(_padded_text_of, numbers[0])
    if kind.startswith("time"):
        return partial(_span, (numbers or [6])[0])
    if kind.startswith("interval ") or kind in {'"char"', "money"}:
        return partial(_never, kind)
    return _BY_TYPE.get(kind, _text)


def _with_offset(utc: Callable[[str], str], text: str) -> str:
    return utc(text) + "+00"


def _moment(column: Column, numbers: list[int], rules: ValueRules) -> Spelling:
    if column.shape is Shape.DATE:
        return _Moment(date.fromisoformat, str, 0, rules.invalid_dates == "null")
    spell: Callable[[str], str] = str
    if column.shape is Shape.TIMESTAMP:
        spell = partial(_with_offset, utc_of(rules.time_zone))
    return _Moment(datetime.fromisoformat, spell, numbers[0] if numbers else 6, rules.invalid_dates == "null")


_BY_TYPE: dict[str, Spelling] = {
    "real": _float,
    "double precision": _double,
    "numeric": _number,
    "uuid": _uuid,
    "boolean": _boolean,
    "name": _name,
}
_SPELLINGS: dict[Shape, Callable[[Column, list[int], ValueRules], Spelling]] = {
    Shape.INTEGER: lambda *_: _whole,
    Shape.REAL: lambda column, _numbers, _rules: _float if column.type == "real" else _double,
    Shape.BYTES: lambda *_: _bytes,
    Shape.BIT: lambda _column, numbers, _rules: partial(_bits, (numbers or [64])[0]),
    Shape.ENUM: lambda column, _numbers, _rules: partial(_member, column.members),
    Shape.SET: lambda column, _numbers, _rules: partial(_members_of, column.members),
    Shape.TIME: lambda _column, numbers, _rules: partial(_span, (numbers or [6])[0]),
    Shape.DATE: _moment,
    Shape.DATETIME: _moment,
    Shape.TIMESTAMP: _moment,
}


def _field(spell: Spelling, text: str) -> str | None:
    spelled = spell(text)
    return None if spelled is None else escaped(spelled)


def _fields(column: Column, rules: ValueRules) -> FieldsOf:
    spell = spelling(column, rules)
    # what is printable holds no U+0000
    return FieldsOf(partial(_field, spell), _PLAIN.get(spell))


_PLAIN: dict[Spelling, Callable[[Sequence[str]], bool]] = {_text: plain_texts, _whole: plain_wholes}


@dataclass(frozen=True, slots=True)
class PostgresEncoder(TabbedRows):
    """Texts to COPY's text format."""

    rules: ValueRules

    def encode(self, columns: Sequence[Column], rows: Sequence[Texts]) -> bytes:
        """See `sinks.rows.chunk.Encoder`."""
        return payload_of([_fields(column, self.rules) for column in columns], rows)

    def rule(self, column: Column) -> FieldRule | None:
        """See `TabbedRows.rule`."""
        return _rule_of(spelling(column, self.rules))


def _rule_of(spell: Spelling) -> FieldRule | None:
    """What the core does for a spelling; None: nothing."""
    if isinstance(spell, _Moment):
        return _rule_of_moment(spell)
    if not isinstance(spell, partial):
        return _RULES.get(spell)
    make = _RULES_WITH.get(spell.func)
    return None if make is None else make(*spell.args)


def _rule_of_moment(spell: _Moment) -> FieldRule | None:
    if spell.parse == date.fromisoformat:
        return FieldRule(FieldKind.DAY, FieldFlag.CALENDAR)
    if not isinstance(spell.spell, partial):
        return FieldRule(FieldKind.MOMENT, FieldFlag.CALENDAR, digits=spell.digits)
    utc = spell.spell.args[0]
    zone = zone_parts(utc.args[0]) if isinstance(utc, partial) else ()
    if not zone and utc is not plain_values.moment:
        return None
    return FieldRule(FieldKind.MOMENT, FieldFlag.CALENDAR | FieldFlag.MARKED, digits=spell.digits, zone=zone)


def _rule_of_members(kind: FieldKind, members: tuple[str, ...]) -> FieldRule | None:
    if any("\0" in name for name in members):
        return None
    return FieldRule(kind, size=len(members), members=tuple(map(escaped, members)))


_RULES: dict[Spelling, FieldRule] = {
    _text: FieldRule(FieldKind.TEXT, FieldFlag.NO_NUL),
    _whole: FieldRule(FieldKind.WHOLE, FieldFlag.ONE_SPELLING),
    _number: FieldRule(FieldKind.DECIMAL, FieldFlag.ONE_SPELLING),
    _float: FieldRule(FieldKind.FLOAT_TEXT),
    _double: FieldRule(FieldKind.DOUBLE),
    _uuid: FieldRule(FieldKind.UUID),
    _boolean: FieldRule(FieldKind.BOOLEAN),
    _bytes: FieldRule(FieldKind.HEX, FieldFlag.MARKED),
}
_RULES_WITH: dict[Callable[..., str | None], Callable[..., FieldRule | None]] = {
    _text_of: lambda length: FieldRule(FieldKind.TEXT, FieldFlag.NO_NUL, length),
    _padded_text_of: lambda length: FieldRule(FieldKind.TEXT, FieldFlag.NO_NUL | FieldFlag.NO_BLANK_END, length),
    _decimal: lambda scale: FieldRule(FieldKind.DECIMAL, FieldFlag.ONE_SPELLING, digits=scale) if scale >= 0 else None,
    _bits: lambda width: FieldRule(FieldKind.BITS, size=width),
    _span: lambda digits: FieldRule(FieldKind.SPAN, digits=digits),
    _member: partial(_rule_of_members, FieldKind.NAME),
    _members_of: partial(_rule_of_members, FieldKind.NAMES),
}

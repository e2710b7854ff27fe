"""Which column of a target holds every value of an upstream type with its meaning. Pure.

A message's text alone does not say what it is: ENUM and SET come as numbers, binary strings as a code point a byte
(TiDB documentation, "TiCDC Canal-JSON Protocol"). In a column of another kind the number would stand for the member's
name, other bytes for the bytes, a day for a moment, and the target would say nothing. Messages name each column's type
in `mysqlType`; tables that the changefeed made itself always fit, others are compared before anything is written.

What is too narrow (`INT` into `SMALLINT`) is not refused here: the target or the encoder refuses the value.
"""

import re
from collections.abc import Sequence
from enum import Enum

from sinks.rows.values import as_shown


class Holds(Enum):
    """What a column of the target holds."""

    WHOLE = "whole numbers"
    EXACT = "decimal numbers"
    REAL = "floats of 64 bits"
    SINGLE = "floats of 32 bits"
    BITS = "bits"
    TRUTH = "truth values"
    YEAR = "years"
    UNTYPED = "numbers as they are"
    """A column of SQLite without a type."""
    TEXT = "texts"
    UUID = "UUIDs"
    BYTES = "bytes"
    DATE = "dates"
    DATETIME = "dates with times"
    INSTANT = "instants"
    TIME = "times"
    CLOCK = "dates and times as texts"
    """A column of SQLite whose affinity makes numbers of texts that look like one."""
    ENUM = "members of an enumeration"
    SET = "sets of members"
    JSON = "JSON, not as it is spelled"
    JSON_TEXT = "JSON as it is spelled"
    VECTOR = "vectors"
    OTHER = "values that TiDB does not have"


_H = Holds
_NUMBERS = {_H.WHOLE, _H.EXACT, _H.REAL, _H.UNTYPED, _H.TEXT}
"""What takes any number; a float or a whole number refuses the values that it would round."""
_WIDE = frozenset({*_NUMBERS, _H.BITS, _H.TRUTH, _H.YEAR})
_NARROW = frozenset({*_WIDE, _H.SINGLE})
_TEXTS = frozenset({_H.TEXT, _H.JSON_TEXT})
_NAMES = frozenset({*_TEXTS, _H.UUID})
_BYTES = frozenset({_H.BYTES})
_MOMENTS = frozenset({_H.DATETIME, _H.INSTANT, _H.CLOCK, _H.TEXT})
ACCEPTED: dict[str, frozenset[Holds]] = {
    **dict.fromkeys(("tinyint", "smallint", "mediumint"), _NARROW),
    **dict.fromkeys(("int", "bigint"), _WIDE),
    "year": frozenset({*_NUMBERS, _H.SINGLE, _H.YEAR}),
    "bit": frozenset({*_NUMBERS, _H.BITS, _H.TRUTH}),
    "decimal": frozenset(_NUMBERS),
    "float": frozenset({*_NUMBERS, _H.SINGLE}),
    "double": frozenset(_NUMBERS),
    **dict.fromkeys(("char", "varchar", "var_string"), _NAMES),
    **dict.fromkeys(("tinytext", "text", "mediumtext", "longtext"), _TEXTS),
    **dict.fromkeys(("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"), _BYTES),
    "date": frozenset({_H.DATE, _H.DATETIME, _H.CLOCK, _H.TEXT}),
    **dict.fromkeys(("datetime", "timestamp"), _MOMENTS),
    "time": frozenset({_H.TIME, _H.CLOCK, _H.TEXT}),
    "enum": frozenset({_H.ENUM, _H.WHOLE, _H.EXACT, _H.UNTYPED}),
    "set": frozenset({_H.SET, _H.WHOLE, _H.EXACT, _H.BITS, _H.UNTYPED}),
    "json": frozenset({_H.JSON, _H.JSON_TEXT, _H.TEXT}),
    "vector": frozenset({_H.VECTOR, _H.TEXT}),
}
"""By upstream's type: what takes its values, or refuses by itself those that it can't hold."""
_MOVED = {"datetime", "timestamp"}
_WITH_MEMBERS = {"enum", "set"}
_MEMBER = re.compile(r"'((?:[^'\\]|''|\\.)*)'", re.DOTALL)
_ESCAPED = re.compile(r"''|\\.", re.DOTALL)
_ESCAPES = {"n": "\n", "r": "\r", "0": "\0"}


def members_of(column_type: str) -> tuple[str, ...]:
    """The members of an ENUM or SET, as a server spells its type: quotes doubled, some characters with backslash."""
    return tuple(_ESCAPED.sub(_plain, quoted) for quoted in _MEMBER.findall(column_type))


def _are_members(own: Sequence[str], there: Sequence[str]) -> bool:
    """Whether upstream's members are those of the target, as the server shows them."""
    pairs = zip(own, there, strict=False)
    same = all(name.rstrip(" ") in {one.rstrip(" "), as_shown(one).rstrip(" ")} for one, name in pairs)
    return same and len(own) == len(there)


def _plain(match: re.Match[str]) -> str:
    return "'" if match[0] == "''" else _ESCAPES.get(match[0][1], match[0][1])


def unlike(upstream: str, holds: Holds, members: Sequence[str], *, in_utc: bool = True) -> str:
    """Why a column does not hold the values of an upstream type (`mysqlType`) as they are meant; "" where it does.

    `members`: of the target's ENUM or SET. Upstream's are there with `content-compatible=true` alone. `in_utc`: whether
    TIMESTAMP comes in UTC; from another zone it is converted, by the column's type, and no other type may be.
    """
    base = upstream.partition("(")[0].partition(" ")[0].lower()
    accepted = ACCEPTED.get(base)
    if accepted is None:
        return "a type that is not known here"
    if holds not in accepted:
        return f"the column holds {holds.value}"
    if not in_utc and base in _MOVED and (base == "timestamp") != (holds is _H.INSTANT):
        return f"the column holds {holds.value}, and source.time-zone is not UTC: only TIMESTAMP is converted to UTC"
    own = members_of(upstream) if base in _WITH_MEMBERS and "\\" not in upstream else ()
    if own and members and not _are_members(own, members[: len(own)]):
        return "the column has other members, or in another order: messages hold their numbers"
    return ""

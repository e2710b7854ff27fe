"""How a column's values become fields, told so that the compiled core can do it: which rule, and with which numbers.

An encoder's Python functions say what is right. A rule names the one that a column has; where there is none, or for a
value that the core does not take, the function is called. The same numbers stand in `native/fields.h`.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from enum import IntEnum, IntFlag
from functools import cache
from itertools import pairwise
from typing import NamedTuple

UNLIMITED = -1
_STEP = timedelta(days=1)
"""Since 1970 no zone has changed its clocks twice within six days (IANA time zone database, 2025b)."""
_FIRST, _LAST = datetime(1969, 12, 30, tzinfo=UTC), datetime(2038, 1, 21, tzinfo=UTC)
"""Around what a TIMESTAMP holds (TiDB documentation, "Date and Time Types")."""


class FieldKind(IntEnum):
    """What is done with a value."""

    SKIPPED = 0
    """It is left out."""
    TEXT = 1
    JSON = 2
    WHOLE = 3
    UNSIGNED = 4
    DECIMAL = 5
    YEAR = 6
    FLOAT = 7
    """A 32-bit float, written as the 64-bit one that it is."""
    FLOAT_TEXT = 8
    """The same as it stands, where it has few digits enough."""
    DOUBLE = 9
    DAY = 10
    MOMENT = 11
    SPAN = 12
    HEX = 13
    BITS = 14
    MEMBER = 15
    """The number of a member."""
    MASK = 16
    """The numbers of several, as bits."""
    NAME = 17
    """The name of a member, from its number."""
    NAMES = 18
    UUID = 19
    BOOLEAN = 20


class FieldFlag(IntFlag):
    """What else is asked of a value."""

    NONE = 0
    NOT_NULL = 1
    NO_NUL = 2
    """U+0000 is left to Python."""
    NO_BLANK_END = 4
    KEEPS_BLANKS = 8
    """Only of a text that ends with a blank the length counts."""
    ONE_SPELLING = 16
    """No zeros in front."""
    CALENDAR = 32
    """Only days and times that there are."""
    MARKED = 64
    """With the sign of bytes in front, or the offset of UTC behind."""


class ZonePart(NamedTuple):
    """Between two changes of a zone's clocks: what they show, in seconds since 1970, and how far they are ahead."""

    begin: int
    end: int
    ahead: int


@dataclass(frozen=True, slots=True)
class FieldRule:
    """How a column's values become fields. `members`: the fields of an ENUM's or SET's names, in their order."""

    kind: FieldKind
    flags: FieldFlag = FieldFlag.NONE
    size: int = UNLIMITED
    digits: int = UNLIMITED
    members: tuple[str, ...] = ()
    zone: tuple[ZonePart, ...] = ()
    """Where times are turned into UTC: those of which it does not tell are left to Python."""


SKIPPED = FieldRule(FieldKind.SKIPPED)


@cache
def zone_parts(zone: tzinfo) -> tuple[ZonePart, ...]:
    """What the clocks of a zone show, from 1970 to 2038; empty for one whose clocks change too oddly for a table."""
    parts, begin, moment, ahead = list[ZonePart](), _FIRST, _FIRST, _ahead(zone, _FIRST)
    while moment < _LAST:
        later, before = moment + _STEP, ahead
        ahead = _ahead(zone, later)
        if ahead != before or later >= _LAST:
            end = _change(zone, moment, later)
            parts.append(_part(begin, end, before))
            begin = end
        moment = later
    rises = all(a.begin < b.begin and a.end < b.end for a, b in pairwise(parts))
    return tuple(parts) if rises else ()


def _ahead(zone: tzinfo, moment: datetime) -> timedelta:
    return moment.astimezone(zone).utcoffset() or timedelta()


def _change(zone: tzinfo, before: datetime, after: datetime) -> datetime:
    """The second from which on the clocks show what they show at `after`."""
    known = _ahead(zone, before)
    while after - before > timedelta(seconds=1):
        middle = before + (after - before) // 2
        middle = middle.replace(microsecond=0)
        before, after = (middle, after) if _ahead(zone, middle) == known else (before, middle)
    return after


def _part(begin: datetime, end: datetime, ahead: timedelta) -> ZonePart:
    seconds = int(ahead.total_seconds())
    return ZonePart(int(begin.timestamp()) + seconds, int(end.timestamp()) + seconds, seconds)

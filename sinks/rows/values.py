"""How values are read that a message alone does not settle."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import partial
from typing import Literal
from zoneinfo import ZoneInfo

import msgspec

from sinks.rows.plain_values import is_unsigned, moment

_SECONDS = len("2026-01-02 03:04:05")
_BEYOND = re.compile("[\U00010000-\U0010ffff]")
_OFFSET = re.compile(r"([+-])(\d{2}):(\d{2})")
_read_json = msgspec.json.Decoder(msgspec.Raw).decode
_UTC_NAMES = {"UTC", "ETC/UTC", "Z", "+00:00", "-00:00"}


@dataclass(frozen=True, slots=True)
class ValueRules:
    """`time_zone`: the one of TIMESTAMP texts. `invalid_dates`: zero and partial dates where the target has none.

    `volatile_defaults`: what rows get that are there when a column with a default of the moment is added.
    """

    time_zone: str = "UTC"
    invalid_dates: Literal["error", "null"] = "error"
    volatile_defaults: Literal["error", "commit-time"] = "commit-time"

    def moment(self, commit_ms: int) -> str:
        """What stands for such a default: a DDL's commit time, to the microsecond; "" where it is an error."""
        if self.volatile_defaults == "error":
            return ""
        then = datetime.fromtimestamp(commit_ms / 1000, tz=zone_of(self.time_zone))
        return then.strftime("%Y-%m-%d %H:%M:%S.%f")


def utc_of(zone: str) -> Callable[[str], str]:
    """Turns a TIMESTAMP text of this zone into UTC's.

    Raises ValueError for what is no such text, and for a time that the zone's clocks skipped.

    An hour that the clocks go through twice is taken for the first of the two, as nothing in the text tells which; with
    a zone without clock changes upstream (`--tz UTC`) nothing is ambiguous. The zero date is no moment: it stays.
    """
    return moment if is_utc(zone) else partial(_to_utc, zone_of(zone))


def is_utc(zone: str) -> bool:
    """Whether a zone's name is one of UTC's."""
    return zone.upper() in _UTC_NAMES


def zone_of(name: str) -> tzinfo:
    """A time zone by its name or offset."""
    if is_utc(name):
        return UTC
    match = _OFFSET.fullmatch(name)
    if match is None:
        return ZoneInfo(name)
    offset = timedelta(hours=int(match[2]), minutes=int(match[3]))
    return timezone(offset if match[1] == "+" else -offset)


class UnstorableError(ValueError):
    """A value that the target or the config, not the table's columns, keeps from being written; `hint`: what helps."""

    def __init__(self, fact: str, hint: str) -> None:
        super().__init__(fact)
        self.hint = hint


def hint_of(error: ValueError, otherwise: str) -> str:
    """What helps against a value that can't be written; `otherwise` where the column is at fault."""
    return error.hint if isinstance(error, UnstorableError) else otherwise


def _to_utc(zone: tzinfo, text: str) -> str:
    if moment(text).startswith("0000-00-00"):
        return text
    there = datetime.fromisoformat(text[:_SECONDS]).replace(tzinfo=zone)
    utc = in_another_zone(there, UTC)
    if in_another_zone(utc, zone).replace(tzinfo=None) != there.replace(tzinfo=None):
        fact = f"{text!r} is no time in {zone}: its clocks skip it"
        raise UnstorableError(fact, "set source.time-zone to the zone of the TiCDC server (its --tz)")
    # a zone's offset is whole seconds: the fraction stays as it is
    return utc.strftime("%Y-%m-%d %H:%M:%S") + text[_SECONDS:]


def in_another_zone(moment_: datetime, zone: tzinfo) -> datetime:
    """A time in another zone. Raises ValueError where it is in none of the years 1 to 9999 there."""
    try:
        return moment_.astimezone(zone)
    except OverflowError:
        message = f"{moment_.isoformat()} is in none of the years 1 to 9999 in {zone}"
        raise ValueError(message) from None


def checked_json(text: str) -> str:
    """The text, if it is JSON. Raises ValueError; for targets that would take it unseen."""
    try:
        _read_json(text)
    except (msgspec.DecodeError, RecursionError) as error:
        message = f"invalid JSON: {error}"
        raise ValueError(message) from error
    return text


def member_number(members: tuple[str, ...], text: str) -> int:
    """An ENUM's number from its number or its member's name; 0 is the invalid value ''. Raises ValueError."""
    if is_unsigned(text):
        number = int(text)
    elif text in members:
        number = members.index(text) + 1
    else:
        number = 0 if text == "" else -1
    if not 0 <= number <= len(members):
        message = f"{text[:50]!r} is none of its {len(members)} members"
        raise ValueError(message)
    return number


def member_name(members: tuple[str, ...], text: str) -> str:
    """An ENUM's value from its number or its member's name. Raises ValueError."""
    number = member_number(members, text)
    return members[number - 1] if number else ""


def as_shown(name: str) -> str:
    """A member's name as MySQL and MariaDB tell it in a column's type: with `?` for each character beyond U+FFFF."""
    return _BEYOND.sub("?", name)


def shown_number(members: tuple[str, ...], text: str) -> int:
    """As `member_number` of members that a server may have told as `as_shown`; those shown alike raise ValueError."""
    name = text if text in members else as_shown(text)
    if members.count(name) > 1:
        message = f"{text[:50]!r} is a name that the server shows of several members"
        raise ValueError(message)
    return member_number(members, name)


def set_mask(members: tuple[str, ...], text: str, number: Callable[[tuple[str, ...], str], int] = member_number) -> int:
    """A SET's bits from their number or its members' names; `number` knows a name. Raises ValueError."""
    if is_unsigned(text):
        mask = int(text)
    else:
        mask = sum(1 << (number(members, name) - 1) for name in text.split(",")) if text else 0
    if mask >> len(members):
        message = f"{text[:50]!r} names more than its {len(members)} members"
        raise ValueError(message)
    return mask


def set_names(members: tuple[str, ...], text: str) -> str:
    """A SET's value: the names of its members, separated by commas. Raises ValueError."""
    mask = set_mask(members, text)
    return ",".join(name for bit, name in enumerate(members) if mask >> bit & 1)

"""Dates and times as TiDB reads them out of literals: compact, loose, with two digits of a year, rounded.

The rules are pingcap/tidb's (`types/time.go`: `parseDatetime`, `ParseDuration`), held to by a recording
(`ddl-default-forms`). What is not known here is refused: a wrong moment would change rows in silence.
"""

import re
from datetime import datetime, timedelta

_COMPACT = re.compile(r"(\d{4}|\d{2})(\d{2})(\d{2})(?:(\d{2})(\d{2})(\d{2}))?(?:\.(\d*))?")
_LOOSE = re.compile(
    r"(\d{1,4})[^\w\s]+(\d{1,2})[^\w\s]+(\d{1,2})"
    r"(?:(?:T|\s+)(\d{1,2})(?:[^\w\s](\d{1,2})(?:[^\w\s](\d{1,2})(?:\.(\d*))?)?)?)?"
)
_SPAN = re.compile(r"(-?)(?:(\d+) +)?(\d{1,3}):(\d{1,2})(?::(\d{1,2})(?:\.(\d*))?)?")
_COMPACT_DIGITS = {6, 8, 12, 14}
_CENTURY = 70
"""From this on two digits are a year of 19.., below of 20.. ."""


def full_year(text: str) -> int:
    """A year as it is meant: of two digits or one, the nearest century's."""
    year = int(text)
    return year + (1900 if year >= _CENTURY else 2000) if len(text) <= len("24") else year


def date_and_time(text: str, digits: int) -> str:
    """`YYYY-MM-DD HH:MM:SS[.ffffff]` with that many digits of a fraction, rounded half up. Raises ValueError."""
    text = text.strip()
    whole = text.partition(".")[0]
    match = _COMPACT.fullmatch(text) if whole.isdecimal() and len(whole) in _COMPACT_DIGITS else _LOOSE.fullmatch(text)
    if match is None:
        message = f"{text!r} is no date of a form that is known here"
        raise ValueError(message)
    year, month, day, hour, minute, second = (part or "0" for part in match.groups()[:6])
    date = f"{full_year(year):04}-{int(month):02}-{int(day):02}"
    seconds = int(hour) * 3600 + int(minute) * 60 + int(second)
    micros, carry = _rounded(match[7] or "", digits)
    if carry:
        moment = datetime.fromisoformat(date) + timedelta(seconds=seconds + 1)
        return moment.strftime("%Y-%m-%d %H:%M:%S") + micros
    return f"{date} {int(hour):02}:{int(minute):02}:{int(second):02}{micros}"


def time_span(text: str, digits: int) -> str:
    """`[-]HH:MM:SS[.ffffff]`, rounded half up. Raises ValueError."""
    text = text.strip()
    if match := _SPAN.fullmatch(text):
        sign, days, hours, minutes, seconds, fraction = match.groups()
        total = (int(days or 0) * 24 + int(hours)) * 3600 + int(minutes) * 60 + int(seconds or 0)
    elif (match := re.fullmatch(r"(-?)(\d{1,7})(?:\.(\d*))?", text)) is not None:
        sign, fraction, number = match[1], match[3], int(match[2])
        total = number // 10_000 * 3600 + number // 100 % 100 * 60 + number % 100
    else:
        message = f"{text!r} is no time of a form that is known here"
        raise ValueError(message)
    micros, carry = _rounded(fraction or "", digits)
    total += carry
    return f"{sign}{total // 3600:02}:{total // 60 % 60:02}:{total % 60:02}{micros}"


def _rounded(fraction: str, digits: int) -> tuple[str, int]:
    """A fraction of a second with its point, and the second that rounding adds."""
    if len(fraction) > digits:
        number = int(fraction[:digits] or "0") + (fraction[digits] >= "5")
        carry, number = divmod(number, 10**digits)
        fraction = f"{number:0{digits}}"
    else:
        carry, fraction = 0, fraction.ljust(digits, "0")
    return (f".{fraction}" if digits else ""), carry

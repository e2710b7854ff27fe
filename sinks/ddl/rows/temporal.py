"""Dates and times as TiDB reads them out of literals and texts: compact, loose, with two digits of a year, rounded.

The rules are pingcap/tidb's (`pkg/types/time.go`: `parseDatetime`, `ParseDuration`), held to by recordings
(`ddl-default-forms`, `defaults`, `conversions`). What is not known here is refused: a wrong moment would change rows in
silence. So is an offset (`+02:00`, `Z`) behind a date, for the session's zone decides what becomes of it.
"""

import re
from datetime import datetime, timedelta

_SIGN = r"[!-/:-@\[-`{-~]"
_PARTS = re.compile(rf"\d+{_SIGN}+\d+{_SIGN}+\d+(?:(?:[\sT]|{_SIGN})+\d+(?:{_SIGN}+\d+){{0,2}})?", re.ASCII)
_FRACTION = re.compile(r"(.*\d)\.(\d*)", re.DOTALL | re.ASCII)
_DIGITS = re.compile(r"[0-9]+")
_TIME = re.compile(r"(-?)\s*(?:(?:(\d+)\s+)?(\d+)\s*(?::\s*(\d+)\s*(?::\s*(\d+))?)?)\s*(?:\.(\d*))?", re.ASCII)
_DATED = re.compile(r"\d{11,}|\d+[^\w\s:]+\d+[^\w\s:]+\d", re.ASCII)
"""What is read as a date with a time where a time is wanted."""
_MONTH = len("MM")
_LONGEST_TIME = 7
"""Digits of a compact time, `HHHMMSS`."""
_LONGEST = 838 * 3600 + 59 * 60 + 59
"""Seconds that a TIME may have."""
_SHORT = {5: 2, 6: 2, 7: 2, 8: 4, 9: 2, 10: 2, 11: 2, 12: 2, 14: 4}
"""Compact dates, by how many digits they have, and how many of these are the year's."""
_WITH_SECONDS = 11
_ALL_PARTS = 6
_LIMITS = (9999, 12, 31, 23, 59, 59)
_CENTURY = 70
"""From this on two digits are a year of 19.., below of 20.. ."""


def full_year(text: str) -> int:
    """A year as it is meant: of two digits or one, the nearest century's."""
    year = int(text)
    return year + (1900 if year >= _CENTURY else 2000) if len(text) <= len("24") else year


def date_and_time(text: str, digits: int) -> str:
    """`YYYY-MM-DD HH:MM:SS[.ffffff]` with that many digits of a fraction, rounded half up. Raises ValueError."""
    parts, fraction = _dated(text.strip())
    numbers = [full_year(parts[0]) if any(map(int, parts)) else 0, *map(int, parts[1:])]
    numbers += [0] * (_ALL_PARTS - len(numbers))
    if any(number > limit for number, limit in zip(numbers, _LIMITS, strict=True)):
        raise _unknown(text)
    year, month, day, hour, minute, second = numbers
    micros, carry = _rounded(fraction, digits)
    if carry:
        moment = datetime(year, month, day, hour, minute, second) + timedelta(seconds=1)  # noqa: DTZ001 of no zone
        return moment.isoformat(" ", "seconds") + micros
    return f"{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}{micros}"


def date_of_number(text: str) -> str:
    """A number that stands for a date, as a text that says the same: zeros lead it."""
    whole, point, fraction = text.partition(".")
    width = next((width for width in (6, 8, 12, 14) if len(whole) <= width), 0)
    if len(whole) == len("YYYMMDDHHMMSS") or not width or not _DIGITS.fullmatch(whole):
        raise _unknown(text)
    return f"{whole:0>{width}}{point}{fraction}"


def _dated(text: str) -> tuple[list[str], str]:
    """The digits of year, month, day and so on, as far as they are given, and those of the fraction of a second."""
    found = _FRACTION.fullmatch(text)
    whole, fraction = (found[1], found[2]) if found else (text, "")
    if _DIGITS.fullmatch(whole) and len(whole) >= min(_SHORT):
        return _compact(whole, fraction)
    if len(_DIGITS.findall(whole)) < _ALL_PARTS:
        whole, fraction = f"{whole}.{fraction}" if fraction else whole, ""  # the point is a separator
    if _PARTS.fullmatch(whole) is None:
        raise _unknown(text)
    return _DIGITS.findall(whole), fraction


def _compact(whole: str, fraction: str) -> tuple[list[str], str]:
    """Of digits in a row; behind a date alone a fraction is the time's digits."""
    if len(whole) not in _SHORT:
        raise _unknown(whole)
    behind = ""
    if len(whole) < _WITH_SECONDS:
        length = 3 if len(whole) in {5, 6, 8} else 1 if len(whole) > len("YYMMDDH") else 0
        behind, fraction = fraction[: _MONTH * length], ""
    year, rest = whole[: _SHORT[len(whole)]], whole[_SHORT[len(whole)] :]
    pairs = [rest[at : at + _MONTH] for at in range(0, len(rest), _MONTH)]
    return [year, *pairs, *(behind[at : at + _MONTH] for at in range(0, len(behind), _MONTH))], fraction


def time_span(text: str, digits: int) -> str:
    """`[-]HH:MM:SS[.ffffff]`, rounded half up; of a date with a time that time. Raises ValueError."""
    text = text.strip()
    found = _TIME.fullmatch(text)
    if found is None or _DATED.match(text):
        if _DATED.match(text) is None:
            raise _unknown(text)
        return date_and_time(text, digits)[len("2024-01-02 ") :]
    sign, days, first, second, third, fraction = found.groups()
    if days is None and second is None:
        number = int(first)
        if len(first) > _LONGEST_TIME:
            raise _unknown(text)
        hours, minutes, seconds = number // 10_000, number // 100 % 100, number % 100
    else:
        hours, minutes, seconds = int(days or 0) * 24 + int(first), int(second or 0), int(third or 0)
    if max(minutes, seconds) > _LIMITS[-1]:
        raise _unknown(text)
    micros, carry = _rounded(fraction or "", digits)
    total = hours * 3600 + minutes * 60 + seconds + carry
    if total > _LONGEST or (total == _LONGEST and micros.strip(".0")):
        raise _unknown(text)
    sign = sign if total or micros.strip(".0") else ""
    return f"{sign}{total // 3600:02}:{total // 60 % 60:02}:{total % 60:02}{micros}"


def _unknown(text: str) -> ValueError:
    return ValueError(f"{text[:50]!r} is no date or time of a form that is known here")


def _rounded(fraction: str, digits: int) -> tuple[str, int]:
    """A fraction of a second with its point, and the second that rounding adds."""
    if len(fraction) > digits:
        number = int(fraction[:digits] or "0") + (fraction[digits] >= "5")
        carry, number = divmod(number, 10**digits)
        fraction = f"{number:0{digits}}"
    else:
        carry, fraction = 0, fraction.ljust(digits, "0")
    return (f".{fraction}" if digits else ""), carry

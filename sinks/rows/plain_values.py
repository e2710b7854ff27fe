"""Texts of messages as numbers and times: matched in full and of bounded length before anything converts them.

Python's own conversions take more than a server sends (`²`, `1_0`, `NaN`, Arabic digits, blanks around), and their time
and memory grow with the length of a text or with the exponent that it names: `1e999999` written out is a megabyte.
Limits are TiDB's: DECIMAL has at most 65 digits, BIGINT and BIT 64 bits, and a DOUBLE without an exponent takes 309
digits before the point and, for the smallest, 343 behind it (TiDB documentation, "Numeric Types").
"""

import re
from collections.abc import Sequence
from decimal import Decimal
from math import isfinite

_SHOWN = 50
_DOUBLE_DIGITS = 15
"""So many digits any 64-bit float keeps."""
_UNSIGNED = re.compile(r"[0-9]{1,20}")
_WHOLE = re.compile(r"-?[0-9]{1,65}")
_EXACT = re.compile(r"-?(?:[0-9]{1,65}(?:\.[0-9]{0,65})?|\.[0-9]{1,65})")
_REAL = re.compile(r"[+-]?(?:[0-9]{1,400}(?:\.[0-9]{0,400})?|\.[0-9]{1,400})(?:[eE][+-]?[0-9]{1,4})?")
_MOMENT_TEXT = r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?: [0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,9})?)?"
_SPAN_TEXT = r"-?[0-9]{1,3}:[0-9]{1,2}:[0-9]{1,2}(?:\.[0-9]{1,9})?"
_MOMENT, _SPAN = re.compile(_MOMENT_TEXT), re.compile(_SPAN_TEXT)
_MOMENTS = re.compile(rf"(?:{_MOMENT_TEXT}\n)+")
_DIGITS = re.compile(r"[0-9A-Fa-f]*")


def _matched(pattern: re.Pattern[str], text: str, kind: str) -> str:
    if pattern.fullmatch(text) is None:
        message = f"{text[:_SHOWN]!r} is no {kind}"
        raise ValueError(message)
    return text


def is_unsigned(text: str) -> bool:
    """Whether it is a whole number of at most 20 digits."""
    return _UNSIGNED.fullmatch(text) is not None


def is_whole(text: str) -> bool:
    """Whether it is a whole number of at most 65 digits."""
    return _WHOLE.fullmatch(text) is not None


def is_number(text: str) -> bool:
    """Whether it is a number that SQL reads as it stands."""
    return _REAL.fullmatch(text) is not None


def is_hex(text: str) -> bool:
    """Whether it is whole bytes as hexadecimal digits."""
    return len(text) % 2 == 0 and _DIGITS.fullmatch(text) is not None


def are_moments(texts: Sequence[str]) -> bool:
    """Whether all are what `moment` takes: one look at a whole column."""
    return _MOMENTS.fullmatch("\n".join(texts) + "\n") is not None


def unsigned(text: str) -> str:
    """The text, if it is a whole number without a sign. Raises ValueError."""
    return _matched(_UNSIGNED, text, "whole number from 0 to 2^64")


def whole(text: str) -> str:
    """The text, if it is a whole number. Raises ValueError."""
    return _matched(_WHOLE, text, "whole number")


def exact(text: str) -> str:
    """The text, if it is a number without an exponent. Raises ValueError."""
    return _matched(_EXACT, text, "decimal number")


def real(text: str) -> str:
    """The text, if it is a number that a DOUBLE holds. Raises ValueError."""
    if not isfinite(float(_matched(_REAL, text, "number"))):
        message = f"{text[:_SHOWN]!r} is out of a DOUBLE's range"
        raise ValueError(message)
    return text


def scaled(digits: int, text: str) -> str:
    """The text, if it has no more digits behind the point than these, but for zeros. Raises ValueError."""
    if len(text.partition(".")[2].rstrip("0")) > digits:
        message = f"{text[:_SHOWN]!r} has more than the {digits} digits behind the point that the column holds"
        raise ValueError(message)
    return text


def exact_double(text: str) -> str:
    """The text, if it is a number that a DOUBLE holds without rounding it. Raises ValueError."""
    if len(real(text)) > _DOUBLE_DIGITS and Decimal(repr(float(text))) != Decimal(text):
        message = f"{text[:_SHOWN]!r} has more digits than a 64-bit float holds"
        raise ValueError(message)
    return text


def moment(text: str) -> str:
    """The text, if it is a date with or without a time, of the calendar or not. Raises ValueError."""
    return _matched(_MOMENT, text, "date")


def span(text: str) -> str:
    """The text, if it is a TIME. Raises ValueError."""
    return _matched(_SPAN, text, "time")


def integer(text: str) -> int:
    """A whole number. Raises ValueError."""
    return int(whole(text))


def decimal(text: str) -> Decimal:
    """A number without an exponent. Raises ValueError."""
    return Decimal(exact(text))


def double(text: str) -> float:
    """A finite number. Raises ValueError."""
    return float(real(text))

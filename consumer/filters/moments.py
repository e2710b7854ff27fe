"""What TiDB takes for a date or a time beside one: texts and numbers, as `sinks.ddl.rows.temporal` reads them.

Held to TiDB by `tests.differential.conditions`. Pure.
"""

from datetime import datetime
from decimal import Decimal

from consumer.filters.mysql_values import BLANKS, EvaluationError, Moment, Number, TimeSpan, Value, moment, span
from sinks.ddl.rows.temporal import date_and_time, time_span

_FULL_NUMBER, _LONGEST_TIME, _SIXTY = 10**13, 8385959, 60
"""The least number with a time and a year of four digits; the largest TIME as a number."""
_LONGEST_TEXT = len("-838:59:59.000000")


def beside_moment(value: Value, other: Value) -> Value:
    """What TiDB compares with a DATE, DATETIME or TIME: a text as one, NULL if it is none. Raises EvaluationError."""
    if isinstance(value, Moment | TimeSpan) and isinstance(other, str):
        return moment_or_none(other) if isinstance(value, Moment) else _time_beside(other)
    if isinstance(value, Moment | TimeSpan) and isinstance(other, int | float | Decimal):
        _check_number(value, other)
    return other


def _check_number(value: Moment | TimeSpan, number: Number) -> None:
    """TiDB reads a constant as a date or time, and a column not."""
    if number != int(number):
        raise EvaluationError(f"a date or time can't be compared with {number} here: CAST one of them")
    if isinstance(value, Moment) and len(value.text) > len("2026-01-02") and 0 < abs(float(number)) < _FULL_NUMBER:
        raise EvaluationError(f"a DATETIME can't be compared with {number} here: CAST one of them")
    if isinstance(value, TimeSpan) and not _is_clock(abs(int(number))):
        raise EvaluationError(f"a TIME can't be compared with {number} here: CAST one of them")


def _is_clock(number: int) -> bool:
    return number <= _LONGEST_TIME and number % 100 < _SIXTY and number // 100 % 100 < _SIXTY


def moment_or_none(text: str, digits: int = 6) -> Moment | None:
    """A text as a date and time, rounded to so many digits of a second; None for what TiDB takes for none.

    Raises EvaluationError for a form that is not known here: it may be one to TiDB.
    """
    text = text.strip(BLANKS)
    if not text[:1].isdecimal():
        return None
    if "." in text.rpartition(":")[0] or ("." in text and ":" not in text):
        raise EvaluationError(f"{text[:100]!r} is no date of a form that is known here")
    try:
        found = date_and_time(text, digits)
    except ValueError as error:
        raise EvaluationError(f"{text[:100]!r} is no date of a form that is known here") from error
    return moment(found) if _is_date(found) else None


def _is_date(text: str) -> bool:
    """Whether TiDB takes a text for a date: one with a month or day 0 it does, but not the zero date."""
    if "-00" in text[: len("2026-01-02")]:
        return not text.startswith("0000-00-00")
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def _time_beside(text: str) -> TimeSpan:
    fact = f"{text[:100]!r} is no time of a form that is known here"
    if "-" in text.strip(BLANKS)[1:] or len(text) > _LONGEST_TEXT:
        raise EvaluationError(fact)  # maybe a date
    try:
        return span(time_span(text, 6))
    except ValueError as error:
        raise EvaluationError(fact) from error

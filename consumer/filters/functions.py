"""What the operators and functions of a condition compute, by MySQL's rules (MySQL 8.0 Reference Manual, 12).

Each takes values and gives one; NULL in, NULL out, unless a function is for NULL. Conditions give 1, 0 or NULL.
"""

import math
import re
from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import Decimal, localcontext
from functools import lru_cache

import re2

from consumer.filters.moments import beside_moment, moment_or_none
from consumer.filters.mysql_values import (
    Bits,
    EvaluationError,
    Member,
    Moment,
    Number,
    TimeSpan,
    Value,
    compare,
    moment,
    number_of,
    same_kind,
    span,
    text_of,
    truth_of,
    year_beside,
)
from consumer.go_regex import compiled

Function = Callable[..., Value]
_DIVISION_SCALE = 4
"""Decimal places that a division adds (MySQL's div_precision_increment), rounded up to words of TiDB's decimals."""
_WORD = 9
_AS_FLOATS = (str, bytes, Member)
"""What arithmetic takes for a DOUBLE; a literal of bits is a whole number."""
_DIGITS = 100
_PATTERN = 10_000
_SECOND = 1_000_000
"""Microseconds."""
_LEAST, _MOST_UNSIGNED = -(2**63), 2**64 - 1


def _of_values(function: Function) -> Function:
    """NULL for NULL."""

    def strict(*values: Value) -> Value:
        return None if any(v is None for v in values) else function(*values)

    return strict


def _comparison(holds: Callable[[int], bool]) -> Function:
    compared = _of_values(lambda left, right: int(holds(compare(left, right))))
    return lambda left, right: compared(beside_moment(right, left), beside_moment(left, right))


def _calculation(calculate: Callable[[Number, Number], Number | None]) -> Function:
    def exact(left: Value, right: Value) -> Value:
        numbers = same_kind(
            *(
                float(number_of(v)) if isinstance(v, _AS_FLOATS) and not isinstance(v, Bits) else number_of(v)
                for v in (left, right)
            )
        )
        try:
            with localcontext(prec=_DIGITS):
                found = calculate(*numbers)
        except (ArithmeticError, ValueError) as error:
            raise EvaluationError(f"a number is out of range: {error}") from error
        if isinstance(found, float) and not math.isfinite(found):
            raise EvaluationError("a DOUBLE is out of range")
        return found

    return _of_values(exact)


def _calculated(value: Value) -> Number:
    is_float = isinstance(value, _AS_FLOATS) and not isinstance(value, Bits)
    return float(number_of(value)) if is_float else number_of(value)


def _divided(left: Number, right: Number) -> Number | None:
    if right == 0:
        return None
    if isinstance(left, float) or isinstance(right, float):
        return float(left) / float(right)
    exact = Decimal(left)
    places = -(-(max(0, -int(exact.as_tuple().exponent)) + _DIVISION_SCALE) // _WORD) * _WORD
    return (exact / Decimal(right)).quantize(Decimal(1).scaleb(-places), rounding="ROUND_DOWN")


def _whole(left: Number, right: Number) -> Number | None:
    if right == 0:
        return None
    return int(left / float(right)) if isinstance(left, float) else _truncated(left, right)


def _truncated(left: Number, right: Number) -> int:
    exact, divisor = Decimal(left), Decimal(right)
    return int(exact / divisor) if exact % divisor else int((exact / divisor).to_integral_value())


def _rest(left: Number, right: Number) -> Number | None:
    """With the sign of the dividend."""
    if right == 0:
        return None
    if isinstance(left, float):
        return math.fmod(left, right)
    rest = Decimal(left) % Decimal(right)
    return int(rest) if isinstance(left, int) and isinstance(right, int) else rest


def both(left: Value, right: Value) -> Value:
    """AND."""
    one, other = truth_of(left), truth_of(right)
    if one is False or other is False:
        return 0
    return None if one is None or other is None else 1


def either(left: Value, right: Value) -> Value:
    """OR."""
    one, other = truth_of(left), truth_of(right)
    if one or other:
        return 1
    return None if one is None or other is None else 0


def negated(value: Value) -> Value:
    """NOT."""
    truth = truth_of(value)
    return None if truth is None else int(not truth)


def _exclusive(left: Value, right: Value) -> Value:
    return int(bool(truth_of(left)) != bool(truth_of(right)))


def _same(left: Value, right: Value) -> Value:
    """`<=>`: NULL is like NULL."""
    if left is None or right is None:
        return int(left is right)
    left, right = beside_moment(right, left), beside_moment(left, right)
    return int(left is right) if left is None or right is None else int(compare(left, right) == 0)


def _among(value: Value, *others: Value) -> Value:
    """IN: NULL where it is in the list, or nothing is known."""
    found: Value = 0
    for other in others:
        found = either(found, _EQUALS(value, other))
    return found


def _between(value: Value, low: Value, high: Value) -> Value:
    return both(FUNCTIONS[">="](value, low), FUNCTIONS["<="](value, high))


@lru_cache(maxsize=1000)
def _pattern(like: str, escape: str) -> "re2._Regexp[str]":
    """A LIKE pattern as a regular expression."""
    found, chars = "(?s)^", iter(like)
    for char in chars:
        if char == escape:
            found += re2.escape(next(chars, char))
        else:
            found += {"%": ".*", "_": "."}.get(char) or re2.escape(char)
    return compiled(f"{found}$", whose=f"LIKE {like!r}")


def _short(pattern: str) -> str:
    """A pattern may be a column's value, and many are kept."""
    if len(pattern) > _PATTERN:
        raise EvaluationError(f"a pattern of {len(pattern)} characters is more than {_PATTERN}")
    return pattern


def _like(text: Value, pattern: Value, escape: Value = "\\") -> Value:
    return int(_pattern(_short(text_of(pattern)), text_of(escape)).search(text_of(text)) is not None)


@lru_cache(maxsize=1000)
def _expression(pattern: str) -> "re2._Regexp[str]":
    return compiled(pattern, whose=f"REGEXP {pattern!r}")


def _regexp(text: Value, pattern: Value) -> Value:
    return int(_expression(_short(text_of(pattern))).search(text_of(text)) is not None)


def _coalesce(*values: Value) -> Value:
    return next((value for value in values if value is not None), None)


def _null_if(left: Value, right: Value) -> Value:
    return None if _EQUALS(left, right) == 1 else left


def _case(*values: Value) -> Value:
    """Condition and result in turn, then the result of ELSE."""
    for condition, result in zip(values[:-1:2], values[1:-1:2], strict=True):
        if truth_of(condition):
            return result
    return values[-1]


def _substring(text: Value, start: Value, length: Value = None) -> Value:
    whole, first = text_of(text), int(number_of(start))
    begin = len(whole) + first if first < 0 else first - 1
    if first == 0 or begin < 0:
        return ""
    return whole[begin:] if length is None else whole[begin : begin + max(0, int(number_of(length)))]


def _left(text: Value, count: Value) -> Value:
    return text_of(text)[: max(0, int(number_of(count)))]


def _right(text: Value, count: Value) -> Value:
    size = int(number_of(count))
    return text_of(text)[-size:] if size > 0 else ""


def _bytes(value: Value) -> bytes:
    return value if isinstance(value, bytes) else text_of(value).encode()


def _signed(value: Value) -> Value:
    whole = _integer(value)
    return whole - _MOST_UNSIGNED - 1 if whole >= -_LEAST else whole


def _unsigned(value: Value) -> Value:
    if isinstance(value, Decimal) and value < 0:
        return 0
    return _integer(value, _MOST_UNSIGNED) % (_MOST_UNSIGNED + 1)


def _integer(value: Value, most: int = -_LEAST - 1) -> int:
    """From -2^63 to 2^64 - 1; a number with a fraction is at most `most` (found by asking TiDB)."""
    if isinstance(value, str | bytes) and not isinstance(value, Bits):
        match = re.match(r"\s*([+-]?\d{1,65})", text_of(value), re.ASCII)
        return max(_LEAST, min(int(match[1]), _MOST_UNSIGNED)) if match else 0
    number = number_of(_to_the_second(value) if isinstance(value, Moment | TimeSpan) else value)
    if isinstance(number, int):
        return max(_LEAST, min(number, _MOST_UNSIGNED))
    rounding = "ROUND_HALF_EVEN" if isinstance(number, float) else "ROUND_HALF_UP"
    return max(_LEAST, min(int(Decimal(number).to_integral_value(rounding=rounding)), most))


def _to_the_second(value: Moment | TimeSpan) -> Moment | TimeSpan:
    """Rounded: halves up, also of a negative TIME. A date stays, and so does one that is none."""
    if isinstance(value, TimeSpan):
        return _span_of((value.microseconds + _SECOND // 2) // _SECOND)
    if value.parts[-1] < _SECOND // 2 or not all(value.parts[:3]):
        return Moment(value.text.partition(".")[0], (*value.parts[:-1], 0))
    year, month, day, hour, minute, second = value.parts[:-1]
    later = datetime(year, month, day, hour, minute, second) + timedelta(seconds=1)  # noqa: DTZ001 no zone of its own
    return moment(later.strftime("%Y-%m-%d %H:%M:%S").zfill(len("2026-01-02 03:04:05")))


def _span_of(seconds: int) -> TimeSpan:
    size = abs(seconds)
    return span(f"{'-' * (seconds < 0)}{size // 3600:02}:{size // 60 % 60:02}:{size % 60:02}")


def _as_datetime(value: Value) -> Value:
    found = _to_the_second(value) if isinstance(value, Moment) else moment_or_none(text_of(value), 0)
    is_whole = not isinstance(found, Moment) or len(found.text) > len("2026-01-02")
    return found if is_whole else moment(f"{text_of(found)} 00:00:00")


def _as_date(value: Value) -> Value:
    """Of a text rounded, so that it may be the next day."""
    found = value if isinstance(value, Moment) else moment_or_none(text_of(value), 0)
    return None if found is None else moment(found.text[: len("2026-01-02")])


def _as_time(value: Value) -> Value:
    """Of a text halves go away from zero; NULL for one that begins with a letter, as in TiDB."""
    if isinstance(value, TimeSpan):
        return _to_the_second(value)
    text = text_of(value).strip()
    if not text or text[0].isalpha():
        return None
    found = span(text)
    size = (abs(found.microseconds) + _SECOND // 2) // _SECOND
    return _span_of(-size if found.microseconds < 0 else size)


def _whole_of(rounded: Callable[[Number], int], number: Number) -> Number:
    """Of a DOUBLE a DOUBLE."""
    return float(rounded(number)) if isinstance(number, float) else rounded(number)


def _negative(value: Value) -> Value:
    number = number_of(value)
    if isinstance(number, Decimal):
        return -float(number) if isinstance(value, str) else number.copy_negate()  # a minus sign would round
    return -number


def _absolute(value: Value) -> Value:
    number = number_of(value)
    return number.copy_abs() if isinstance(number, Decimal) else abs(number)


_EQUALS = _comparison(lambda order: order == 0)

FUNCTIONS: dict[str, Function] = {
    "=": _EQUALS,
    "<>": _comparison(lambda order: order != 0),
    "<": _comparison(lambda order: order < 0),
    "<=": _comparison(lambda order: order <= 0),
    ">": _comparison(lambda order: order > 0),
    ">=": _comparison(lambda order: order >= 0),
    "<=>": _same,
    "and": both,
    "or": either,
    "xor": _of_values(_exclusive),
    "not": negated,
    "in": _among,
    "between": _between,
    "is null": lambda value: int(value is None),
    "is true": lambda value: int(truth_of(value) is True),
    "is false": lambda value: int(truth_of(value) is False),
    "like": _of_values(_like),
    "regexp": _of_values(_regexp),
    "+": _calculation(lambda left, right: left + right),  # type: ignore[operator]  # see same_kind
    "-": _calculation(lambda left, right: left - right),  # type: ignore[operator]
    "*": _calculation(lambda left, right: left * right),  # type: ignore[operator]
    "/": _calculation(_divided),
    "div": _calculation(_whole),
    "mod": _calculation(_rest),
    "negative": _of_values(_negative),
    "abs": _of_values(_absolute),
    "floor": _of_values(lambda value: _whole_of(math.floor, _calculated(value))),
    "ceil": _of_values(lambda value: _whole_of(math.ceil, _calculated(value))),
    "as decimal": _of_values(lambda value: Decimal(number_of(value))),
    "as real": _of_values(lambda value: float(number_of(value))),
    "coalesce": _coalesce,
    "nullif": _null_if,
    "case": _case,
    "lower": _of_values(lambda value: text_of(value).lower()),
    "upper": _of_values(lambda value: text_of(value).upper()),
    "concat": _of_values(lambda *values: "".join(map(text_of, values))),
    "length": _of_values(lambda value: len(_bytes(value))),
    "char_length": _of_values(lambda value: len(text_of(value))),
    "left": _of_values(_left),
    "right": _of_values(_right),
    "substring": _of_values(_substring),
    "trim": _of_values(lambda value: text_of(value).strip(" ")),
    "ltrim": _of_values(lambda value: text_of(value).lstrip(" ")),
    "rtrim": _of_values(lambda value: text_of(value).rstrip(" ")),
    "cast to binary": _of_values(_bytes),
    "cast to char": _of_values(text_of),
    "cast to signed": _of_values(_signed),
    "cast to unsigned": _of_values(_unsigned),
    "cast to date": _of_values(_as_date),
    "cast to datetime": _of_values(_as_datetime),
    "cast to time": _of_values(_as_time),
    "beside": year_beside,
}

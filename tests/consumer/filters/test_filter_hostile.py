"""Conditions over hostile values: each is judged, or refused with its place; none takes long, none ends a task."""

import random
import time
from collections.abc import Iterator
from decimal import Decimal

import msgspec
import pytest

from consumer.filters.events import EventFilter, EventFilters
from consumer.filters.expressions import condition
from consumer.filters.mysql_values import EvaluationError, leading, value_of
from consumer.filters.tables import table_filter
from ordering.errors import UnfitRowError
from ordering.events import Kind, Position

PLACE = Position("orders", 3, 1234)
INPUTS = 10_000
LONGEST_S = 0.5
TYPES = [
    "int",
    "bigint unsigned",
    "decimal(65,30)",
    "double",
    "float",
    "bit(64)",
    "year",
    "enum('a','b')",
    "set('a','b')",
    "varchar(255)",
    "text",
    "varbinary(255)",
    "date",
    "datetime(6)",
    "timestamp",
    "time",
    "json",
    "bool",
    "",
    "numeric",
]
HOSTILE = [
    "NaN",
    "sNaN",
    "-NaN123",
    "Infinity",
    "-inf",
    "1e999999",
    "-1e999999",
    "1e-999999",
    "1e9999999999999999999",
    "0e999999",
    "9" * 5000,
    "9" * 1_000_000,
    "0." + "0" * 1_000_000 + "1",
    "1" + "0" * 100_000 + "e-100000",
    "²",
    "٣",
    "1_000",
    " 7 ",
    "--1",
    "+",
    ".",
    "e5",
    "1e",
    "0x10",
    "\0",
    "",
    "-1",
    "18446744073709551616",
    "2026-02-30",
    "٢٠٢٦-01-01",
    "838:59:59",
    "-999:99:99",
    "9999-99-99 99:99:99." + "9" * 100_000,
    "(" * 1000,
    "[" * 1000,
    "%" * 10_000,
    "a" * 1_000_000,
    " " * 100_000 + "1",
    "(a+)+" * 2_000,
    "\\",
    "1" * 400 + "." + "1" * 399,
    "1e308",
    "-1.7976931348623157e308",
    "5e-324",
]
CONDITIONS = [
    "a > 5",
    "a = 5",
    "a + 1 > 2",
    "a * a * a > 1",
    "a / 3 > 1",
    "a div 3 = 1",
    "a % 7 = 1",
    "-a < 0",
    "abs(a) > 1",
    "floor(a) = 1",
    "ceil(a) = 1",
    "cast(a as signed) = 1",
    "cast(a as char) = '1'",
    "length(a) = 3",
    "left('abc', a) = 'a'",
    "substring('abc', a, a) = 'a'",
    "right('abc', a) = 'c'",
    "'x' like a",
    "'x' regexp a",
    "a like '%1%'",
    "a = '1'",
    "concat(a, a) = '11'",
    "a between 1 and 9",
    "a in (1, 2.5, 3e0)",
    "cast(a as date) = '2026-01-01'",
    "1 / a > 1",
    "1 % a = 0",
    "7 div a = 1",
    "a * 1e308 * 1e308 - a * 1e308 * 1e308 = 0",
    "cast(a as time) = '10:00:00'",
    "!a",
]


def inputs() -> Iterator[tuple[str, str, str]]:
    """Type, text and condition; each hostile text with each type at least once."""
    choose = random.Random(11)
    texts = [*HOSTILE, *(a + b for a in HOSTILE[:10] for b in ("", "1", "e5", " "))]
    every = [(kind, text) for kind in TYPES for text in HOSTILE]
    for i in range(INPUTS):
        kind, text = every[i] if i < len(every) else (choose.choice(TYPES), choose.choice(texts))
        yield kind, text, CONDITIONS[i % len(CONDITIONS)]


def refusal(filters: EventFilters, message: bytes) -> UnfitRowError | None:
    try:
        filters.ignores_row(Kind.INSERT, ("d", "t"), message, lambda: PLACE)
    except UnfitRowError as error:
        return error
    return None


def test_each_of_many_is_judged_or_refused_with_its_place() -> None:
    filters = {
        text: EventFilters((EventFilter(table_filter(["*.*"]), insert=condition(text, "key")),)) for text in CONDITIONS
    }
    worst, refused = (0.0, ""), 0
    for kind, text, asked in inputs():
        message = msgspec.json.encode({"data": [{"a": text}], "mysqlType": {"a": kind}})
        began = time.thread_time()
        error = refusal(filters[asked], message)
        if error is not None:
            refused += 1
            assert error.where == str(PLACE)
            assert len(error.fact) < 1000
        worst = max(worst, (time.thread_time() - began, f"{asked} with {kind} {text[:40]!r}"))
    assert refused
    assert worst[0] < LONGEST_S, worst


@pytest.mark.parametrize("kind", ["decimal(10,2)", "double", "float", "int", "enum('a')", "bit(1)", "numeric"])
@pytest.mark.parametrize("text", ["NaN", "inf", "1e999999", "9" * 5000, "²", "1_0", "٣", "", " 1"])
def test_what_is_no_number_of_its_type(kind: str, text: str) -> None:
    with pytest.raises(EvaluationError):
        value_of(text, kind)


def test_texts_beyond_a_doubles_range_are_its_limits() -> None:
    largest = Decimal("1.7976931348623157e308")
    assert leading("1e999999") == leading("1e99999999999999999999x") == largest
    assert leading("-1e999999") == -largest
    assert leading("1e-999999") == leading("0e999999") == leading("x") == 0
    assert leading(" \t12.5abc") == Decimal("12.5")
    with pytest.raises(EvaluationError, match="too long"):
        leading("9" * 1000)


def test_a_sign_does_not_round() -> None:
    digits = "9" * 35 + "." + "9" * 30
    assert condition(f"-a = -{digits}", "key").holds(lambda _: value_of(digits, "decimal(65,30)"))

"""Conditions over rows compute what a server computes: the same tables are held against one in `tests/service`."""

import pickle
import time

import pytest

from consumer.filters.expressions import DEEPEST, LONGEST, condition
from consumer.filters.families import typed
from consumer.filters.mysql_values import EvaluationError, Value, value_of
from ordering.errors import ConfigError
from tests.consumer.filters.conditions import COLUMNS, FALSE, TRUE


def row(name: str) -> Value:
    kind, text, members = COLUMNS[name.lower()]
    return value_of(text, kind, members)


def holds(text: str) -> bool:
    return typed(condition(text, "key"), {name: kind for name, (kind, *_) in COLUMNS.items()}).holds(row)


@pytest.mark.parametrize("text", TRUE)
def test_it_holds(text: str) -> None:
    assert holds(text)


@pytest.mark.parametrize("text", FALSE)
def test_it_does_not_hold(text: str) -> None:
    assert not holds(text)


def test_precedence_is_mysqls() -> None:
    assert condition("1 or 1 and 0", "key").holds(row)
    assert not condition("(1 or 1) and 0", "key").holds(row)
    assert condition("1 or 1 xor 1", "key").holds(row)
    assert condition("0 xor 1 and 1", "key").holds(row)
    assert condition("not 1 = 2", "key").holds(row)
    assert not condition("!1 = 2", "key").holds(row)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("age >= 32 and and age < 48", "no SQL condition"),
        ("age = ", "no SQL condition"),
        ("", "no SQL condition"),
        ("age = 1; drop table t", "SQL expression"),
        ("age = 1 order by age", "not one SQL expression"),
        ("age = 1 limit 1", "not one SQL expression"),
        ("age in (select 1)", "can't be computed"),
        ("error(age) > 20", "can't be computed"),
        ("error(price) == null", ""),
        ("now() > a", "can't be computed"),
        ("a collate utf8mb4_general_ci = 'x'", "can't be computed"),
        ("(a, b) = (1, 2)", "can't be computed"),
        ("json_extract(a, '$.x') = 1", "can't be computed"),
        ("a = @x", "can't be computed"),
        ("a & 1", "can't be computed"),
    ],
)
def test_what_cannot_be_computed_is_told_at_once(text: str, told: str) -> None:
    with pytest.raises(ConfigError) as raised:
        condition(text, "filter.event-filters.0.ignore-insert-value-expr")
    assert "ignore-insert-value-expr" in raised.value.fact
    assert told in raised.value.fact


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (f"age = {'CHAR(' * 60}1{' USING utf8)' * 60}", "60 brackets within each other"),
        (f"age = {'CHAR(' * DEEPEST}1{' USING utf8)' * DEEPEST}", "can't be computed"),
        (f"{'(' * 400}age = 1{')' * 400}", "brackets within each other"),
        (f"age = 1{' AND age = 1' * 1300}", "nested too deeply"),
        (f"age = {'- ' * 4000}1", "nested too deeply"),
        (f"age IN (1{',1' * LONGEST})", "characters, more than"),
    ],
    ids=["twice-as-long", "deepest", "brackets", "chain", "signs", "long"],
)
def test_what_is_too_deep_or_too_long_to_read_is_told_at_once(text: str, told: str) -> None:
    """A form that sqlglot reads in a time that doubles with each bracket, and others."""
    begin = time.thread_time()
    with pytest.raises(ConfigError, match=told):
        condition(text, "key")
    assert time.thread_time() - begin < 3


@pytest.mark.parametrize(
    "text", ["doc = 1", "born = '12abc'", "span = 'x'", "doc like '%a%'", "tags = 1 or kind like 'B' and doc > 2"]
)
def test_what_has_no_answer_is_an_error(text: str) -> None:
    with pytest.raises(EvaluationError):
        holds(text)


def test_a_member_without_a_name_compares_by_number_only() -> None:
    unnamed = value_of("2", "enum")
    assert condition("kind = 2", "key").holds(lambda _: unnamed)
    with pytest.raises(EvaluationError, match="compare with its number"):
        condition("kind = 'B'", "key").holds(lambda _: unnamed)
    assert value_of("0", "enum('a')") == value_of("0", "enum")


def test_a_text_that_is_no_value_of_its_type_is_an_error() -> None:
    with pytest.raises(EvaluationError, match="no value of type int"):
        value_of("x", "int")
    with pytest.raises(EvaluationError, match="no date"):
        value_of("x", "date")


def test_quotients_are_as_long_as_tidbs() -> None:
    assert condition("1 / 3 > 0.3333 and 1 / 3 < 0.3334", "key").holds(row)


def test_sides_that_are_not_needed_are_not_looked_at() -> None:
    def absent(name: str) -> Value:
        raise EvaluationError(name)

    assert not condition("0 and a = 1", "key").holds(absent)
    assert condition("1 or a = 1", "key").holds(absent)


def test_it_names_its_columns_and_travels() -> None:
    found = pickle.loads(pickle.dumps(condition("a > 1 and (`B c` like 'x%' or t.d is null)", "key")))  # noqa: S301 our own bytes
    assert found.columns() == {"a", "B c", "d"}

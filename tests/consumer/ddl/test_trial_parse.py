"""Statements and conditions that are slow to read: they hold a process that is ended, never this one."""

import time
from contextlib import suppress

import pytest

from consumer.ddl.trial_parse import SHORT, check_time
from consumer.filters.expressions import condition
from consumer.runtime import trial
from ordering.errors import ConfigError
from sinks.ddl.parse import branching
from sinks.ddl.parse.views import CannotSayError, read_view
from sinks.ddl.parse.words import Words

TWICE_AS_LONG = {
    "char": ("", "CHAR(", " USING utf8)"),
    "decimal": ("", "DECIMAL(", ")"),
    "members": ("", "ENUM(", ")"),
    "arrays": ("", "ARRAY[", "]"),
    "trimmed": ("", "TRIM(~ARRAY[", "])"),
    "joins": ("1 FROM t ", "JOIN `t` ", ""),
    "straight": ("1 FROM t ", "STRAIGHT_JOIN `q` ", ""),
}
"""What sqlglot reads in one way first and then in another: all that is in it is read twice, or more often."""


def view(form: str, deep: int) -> str:
    begin, opening, closing = TWICE_AS_LONG[form]
    return f"CREATE OR REPLACE View `v` AS SELECT {begin}{opening * deep}1{closing * deep}"


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "LIMIT_S", 2.0)
    monkeypatch.setattr(trial, "_KEPT_VERDICTS", type(trial._KEPT_VERDICTS)())


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("form", ["char", "joins"])
def test_a_short_view_that_would_take_years_is_given_up_at_once(form: str) -> None:
    """It is left out of the target, as others that can't be said there."""
    sql = view(form, 60)
    assert len(sql) < SHORT
    check_time(sql)
    with pytest.raises(CannotSayError):
        read_view(sql).parsed()


@pytest.mark.usefixtures("short")
def test_a_condition_that_would_take_years_is_refused() -> None:
    with pytest.raises(ConfigError, match="can't be read within"):
        condition(f"1 IN (SELECT 1 FROM t{' JOIN t' * 60})", "key")


@pytest.mark.parametrize("form", TWICE_AS_LONG)
def test_what_is_read_at_once_is_read_soon(form: str) -> None:
    """The longest of each kind that is not read elsewhere first."""
    deep = next(n for n in range(99) if branching.may_be_slow(Words(read_view(view(form, n + 1)).query).words))
    begin = time.thread_time()
    with suppress(CannotSayError):
        read_view(view(form, deep)).parsed()
    assert time.thread_time() - begin < 2


def test_a_view_as_tidb_prints_it_is_read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "_KEPT_VERDICTS", type(trial._KEPT_VERDICTS)())
    check_time(
        "CREATE ALGORITHM = UNDEFINED DEFINER = `root`@`%` SQL SECURITY DEFINER VIEW `v` (`a`, `b`) AS SELECT"
        " `a`.`id` AS `a`,`b`.`v` AS `b` FROM (`d`.`t` AS `a`) JOIN `d`.`t` AS `b` ON `a`.`id` = `b`.`id` WHERE"
        " `a`.`v` > 7"
    )
    assert not trial._KEPT_VERDICTS


def test_a_view_with_many_brackets_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "_KEPT_VERDICTS", type(trial._KEPT_VERDICTS)())
    check_time(f"CREATE VIEW `v` AS SELECT {'(' * 50}1{')' * 50} FROM t")
    assert list(trial._KEPT_VERDICTS.values()) == [True]


def test_a_trial_has_a_limit_of_memory() -> None:
    assert not trial._ends("tests.consumer.ddl.greedy_reader", b"")
    assert trial._ends("consumer.filters.trial_condition", b"a = 1")

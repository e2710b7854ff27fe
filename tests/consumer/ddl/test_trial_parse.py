"""Statements that are slow to read: they hold a process that is ended, never this one."""

import time

import pytest

from consumer.ddl import trial_parse
from consumer.ddl.trial_parse import FEW_BRACKETS, check_time
from ordering.errors import InputError
from sinks.ddl.parse.views import read_view

TWICE_AS_LONG = ("CHAR(", " USING utf8)"), ("DECIMAL(", ")")
"""What sqlglot takes for a type first, then for a function: all that is in it is read twice."""


def view(opening: str, closing: str, deep: int) -> str:
    return f"CREATE OR REPLACE View `v` AS SELECT {opening * deep}1{closing * deep} FROM t"


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial_parse, "LIMIT_S", 3.0)
    monkeypatch.setattr(trial_parse, "_read", type(trial_parse._read)())


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("form", TWICE_AS_LONG, ids=["char", "decimal"])
def test_a_short_view_that_would_take_years_is_refused(form: tuple[str, str]) -> None:
    sql = view(*form, 60)
    assert len(sql) < trial_parse.SHORT
    for _ in range(2):
        with pytest.raises(InputError, match="can't be read within"):
            check_time(sql)


@pytest.mark.parametrize("form", TWICE_AS_LONG, ids=["char", "decimal"])
def test_what_is_read_at_once_is_read_soon(form: tuple[str, str]) -> None:
    begin = time.thread_time()
    read_view(view(*form, FEW_BRACKETS)).parsed()
    assert time.thread_time() - begin < 2


def test_a_view_with_many_brackets_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial_parse, "_read", type(trial_parse._read)())
    check_time(view("(", ")", 50))
    assert list(trial_parse._read.values()) == [True]

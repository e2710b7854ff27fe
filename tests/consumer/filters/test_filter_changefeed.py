"""Which changes of a filter a running changefeed may see (R8)."""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest

from consumer.config.changefeed_filter import ChangefeedFilter, read_filter, told
from consumer.config.table_sections import FilterSection
from ordering.errors import ConfigError, InputError
from ordering.events import TableName
from sinks.rows.schema import Catalog, Column, Shape, TableSchema

INSERTS = {"matcher": ["*.*"], "ignore-event": ["insert"]}
VALUES = {"matcher": ["a.*"], "ignore-insert-value-expr": "id > 5"}
DDLS = {"matcher": ["*.*"], "ignore-event": ["drop table"], "ignore-sql": ["^drop"]}


def wanted(
    rules: Sequence[str] = ("*.*",), *event_filters: dict[str, Any], cased: bool = False, force: bool = False
) -> ChangefeedFilter:
    values = {"rules": list(rules), "case-sensitive": cased, "event-filters": list(event_filters)}
    values["force-replicate"] = force
    return read_filter(FilterSection.model_validate(values))


@pytest.mark.parametrize(
    ("before", "after", "fault"),
    [
        (wanted(), wanted(), ""),
        (wanted(), wanted([]), ""),
        (wanted(["a.*"]), wanted(["a.*", "# more", " "]), ""),
        (wanted(["a.*"]), wanted(["b.*"]), "filter.rules"),
        (wanted(["a.*"]), wanted(["a.*", "b.*"]), "filter.rules"),
        (wanted(["a.*"]), wanted(["a.*", "!a.b", "!a.c"]), ""),
        (wanted(["a.*", "!a.b"]), wanted(["a.*"]), "filter.rules"),
        (wanted(["a.*"]), wanted(["a.*", "!a.b", "a.c"]), "filter.rules"),
        (wanted(["a.*"]), wanted(["a.*"], cased=True), "filter.case-sensitive"),
        (wanted(["a.*"], cased=True), wanted(["a.*"]), ""),
        (wanted(["/^A$/.*"], cased=True), wanted(["/^A$/.*"]), "filter.case-sensitive"),  # no run stopped at a.t
        (wanted(["a.*", "[A]*.*"], cased=True), wanted(["a.*", "[A]*.*"]), "filter.case-sensitive"),
        (wanted(), wanted(["*.*"], INSERTS), ""),
        (wanted(["*.*"], INSERTS), wanted(), "filter.event-filters"),
        (wanted(["*.*"], INSERTS), wanted(["*.*"], VALUES, INSERTS), ""),
        (wanted(["*.*"], INSERTS), wanted(["*.*"], {**INSERTS, "ignore-event": ["all dml"]}), ""),
        (wanted(["*.*"], INSERTS), wanted(["*.*"], {**INSERTS, "matcher": ["a.*"]}), "filter.event-filters"),
        (wanted(["*.*"], VALUES), wanted(["*.*"], {**VALUES, "ignore-insert-value-expr": "id > 6"}), "event-filters"),
        (wanted(["*.*"], DDLS), wanted(), ""),
    ],
)
def test_only_what_takes_in_more_is_refused(before: ChangefeedFilter, after: ChangefeedFilter, fault: str) -> None:
    with pytest.raises(InputError, match=fault) if fault else nullcontext() as raised:
        after.check_change(before.digest, "orders")
    if raised is not None:
        assert raised.value.where == "changefeed orders"
        assert "start-ts" in raised.value.hint


def test_a_window_that_is_half_written_is_finished_with_the_filter_that_began_it() -> None:
    before, after = wanted(), wanted(["*.*"], INSERTS)
    before.check_change(before.digest, "orders", torn=True)
    with pytest.raises(InputError, match="half written"):
        after.check_change(before.digest, "orders", torn=True)


def test_what_another_version_kept_is_refused() -> None:
    with pytest.raises(InputError, match="another version"):
        wanted().check_change("2:abc:", "orders")


def test_tables_without_a_key_are_not_taken_in_later() -> None:
    """Their rows below the checkpoint were left out."""
    before, after = wanted(), wanted(force=True)
    with pytest.raises(InputError, match=r"filter\.force-replicate") as raised:
        after.check_change(before.digest, "orders")
    assert raised.value.hint
    before.check_change(after.digest, "orders")
    after.check_change(after.digest, "orders")


def catalog(**tables: str) -> Catalog:
    names = [TableName("a", table) for table in tables]
    return Catalog({
        name: TableSchema(name, tuple(Column(c, "int", Shape.INTEGER) for c in tables[name.table].split()), (), ())
        for name in names
    })  # fmt: skip


def test_check_says_what_the_filter_does() -> None:
    found = wanted(["a.*", "!a.u"], VALUES)
    assert told(found, catalog(t="ID v", u="v", w="id")) == [
        "2 rules: 2 of 3 tables in the target",
        "event filter 0: 2 tables in the target",
    ]
    assert told(found, None) == ["2 rules, 1 event filter"]


def test_check_finds_a_column_that_is_not_there() -> None:
    with pytest.raises(ConfigError, match="has no column for: id"):
        told(wanted(["*.*"], VALUES), catalog(t="v"))


def test_tasks_are_told_of_members() -> None:
    column = Column("kind", "enum", Shape.ENUM, members=("x", "y"))
    name = TableName("a", "t")
    found = wanted(["*.*"], INSERTS).for_rows(Catalog({name: TableSchema(name, (column,), (), ())}))
    assert found is not None
    assert found.members == {name: {"kind": ("x", "y")}}
    hidden = replace(column, members=("x", "?", "y"))
    catalog_of = Catalog({name: TableSchema(name, (hidden,), (), ())}, shows_members=False)
    found = wanted(["*.*"], INSERTS).for_rows(catalog_of)
    assert found is not None
    assert found.members == {name: {"kind": ("x", None, "y")}}


def test_case_may_cease_to_count() -> None:
    """While it counted, the run stopped at what case alone left out, and this is the advice."""
    wanted(["a.*"]).check_change(wanted(["a.*"], cased=True).digest, "c")

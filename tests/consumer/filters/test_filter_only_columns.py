"""`ignore-update-only-columns`, as TiCDC's `update_only_columns_filter.go` has it; its cases and those of keys."""

import json
from typing import Any

import pytest

from consumer.config.changefeed_filter import read_filter, told
from consumer.config.table_sections import FilterSection
from ordering.events import Kind, Position, TableName
from sinks.rows.schema import Catalog, Column, Shape, TableSchema

NAME = TableName("d", "t")
ROW = {"id": "1", "code": "a", "n": "1", "Version": "1", "seen": None}
Row = dict[str, str | None]


def catalog(*unique_keys: tuple[str, ...], handle_key: tuple[str, ...] = ("id",)) -> Catalog:
    columns = tuple(Column(name, "text", Shape.TEXT) for name in ROW)
    return Catalog({NAME: TableSchema(NAME, columns, handle_key, unique_keys)})


def ignored(
    new: Row, names: list[str], *, old: Row | None = None, kind: Kind = Kind.UPDATE, upstream: str = "{}",
    known: Catalog | None = None, table: str = "t", cased: bool = False,
) -> bool:  # fmt: skip
    section = {"case-sensitive": cased, "event-filters": [{"matcher": ["d.t"], "ignore-update-only-columns": names}]}
    events = read_filter(FilterSection.model_validate(section)).for_rows(known or catalog(("id",), ("code",)))
    assert events is not None
    value = {"data": [{**ROW, **new}], "old": [ROW if old is None else old], "mysqlType": {}, "pkNames": ["id"]}
    message = json.dumps({**value, "_tidb": json.loads(upstream)}).encode()
    return events.ignores_row(kind, ("d", table), message, lambda: Position("t", 0, 1))


@pytest.mark.parametrize(
    ("new", "names", "expected"),
    [
        ({"Version": "2"}, ["version"], True),
        ({"Version": "2"}, ["version", "seen", "version"], True),
        ({"Version": "2", "seen": "x"}, ["version", "seen"], True),
        ({"seen": "x"}, ["seen"], True),
        ({"Version": None}, ["version"], True),
        ({"Version": "2", "n": "2"}, ["version"], False),
        ({"n": "2"}, ["version"], False),
        ({}, ["version"], True),
        ({}, ["nowhere"], False),
        ({"Version": "2"}, ["nowhere"], False),
        ({"Version": "2"}, ["nowhere", "version"], True),
        ({"id": "2"}, ["id"], False),
        ({"code": "b"}, ["code"], False),
        ({"code": "b", "Version": "2"}, ["code", "version"], False),
    ],
)
def test_updates_of_nothing_but_what_is_named(new: Row, names: list[str], expected: bool) -> None:
    assert ignored(new, names) is expected


def test_only_updates_of_tables_that_match() -> None:
    assert not ignored({"Version": "2"}, ["version"], kind=Kind.INSERT)
    assert not ignored({"Version": "2"}, ["version"], kind=Kind.DELETE)
    assert not ignored({"Version": "2"}, ["version"], table="u")


def test_columns_fold_as_tables_do() -> None:
    assert not ignored({"Version": "2"}, ["version"], cased=True)
    assert ignored({"Version": "2"}, ["Version"], cased=True)


def test_old_images_of_what_changed_alone() -> None:
    """`only-output-updated-columns=true`."""
    assert ignored({"Version": "2"}, ["version"], old={"Version": "1"})
    assert not ignored({"Version": "2"}, ["version"], old={"Version": "1", "n": "7"})


@pytest.mark.parametrize(
    "known",
    [
        catalog(handle_key=()),
        catalog(("code",), handle_key=()),
        catalog(("id",), ("",)),
        catalog(("id",), ("VERSION", "n")),
        Catalog({}),
    ],
    ids=["no key", "keys that may be null", "a prefix or an expression", "composite", "unknown"],
)
def test_what_may_be_a_key_is_kept(known: Catalog) -> None:
    """Of a table without a handle key a row is all its values."""
    assert not ignored({"Version": "2"}, ["version"], known=known)


@pytest.mark.parametrize("upstream", ['{"onlyHandleKey": true}', '{"claimCheckLocation": "f"}'])
def test_a_row_that_is_not_in_its_message_is_kept(upstream: str) -> None:
    assert not ignored({"Version": "2"}, ["version"], upstream=upstream)


def test_any_filter_and_any_condition_suffices() -> None:
    only = {"matcher": ["*.*"], "ignore-update-only-columns": ["version"]}
    other = {"matcher": ["*.*"], "ignore-update-only-columns": ["n"], "ignore-update-new-value-expr": "n = 5"}
    events = read_filter(FilterSection.model_validate({"event-filters": [only, other]})).for_rows(catalog(("id",)))
    assert events is not None

    def goes(**new: str) -> bool:
        types = dict.fromkeys(ROW, "int")
        message = json.dumps({"data": [{**ROW, **new}], "old": [ROW], "mysqlType": types, "pkNames": ["id"]})
        return events.ignores_row(Kind.UPDATE, ("D", "T"), message.encode(), lambda: Position("t", 0, 1))

    assert [goes(Version="2"), goes(n="2"), goes(n="5", Version="2"), goes(n="2", Version="2")] == [True] * 3 + [False]


def test_a_change_of_the_columns_takes_in_rows() -> None:
    def with_names(*names: str) -> Any:
        one = {"matcher": ["*.*"], "ignore-update-only-columns": list(names)}
        return read_filter(FilterSection.model_validate({"event-filters": [one]}))

    assert with_names("a", "B").digest == with_names("b", "a").digest
    assert with_names("a").digest != with_names("a", "b").digest
    with pytest.raises(Exception, match=r"filter\.event-filters"):
        with_names("a").check_change(with_names("a", "b").digest, "orders")


def test_check_tells_of_tables_that_have_none_of_the_columns() -> None:
    one = {"matcher": ["*.*"], "ignore-update-only-columns": ["nowhere"]}
    found = read_filter(FilterSection.model_validate({"event-filters": [one]}))
    assert told(found, catalog())[-1] == "event filter 0: d.t has none of the columns of ignore-update-only-columns"

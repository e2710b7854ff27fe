"""Event filters as TiCDC has them (TiCDC documentation, "Changefeed Log Filters"; cases of tiflow's `pkg/filter`)."""

import json
import pickle
from typing import Any

import pytest

from consumer.filters.events import NAMES, EventFilter, EventFilters, ignored_events, ignored_sql
from consumer.filters.expressions import condition
from consumer.filters.tables import table_filter
from ordering.errors import ConfigError, InputError
from ordering.events import Kind, Position, TableName
from sinks.ddl.ticdc_allow_list import Event, clauses_of

PLACE = Position("t", 0, 5)


def one(rules: list[str], **more: Any) -> EventFilters:
    return EventFilters((EventFilter(table_filter(rules, case_sensitive=True), **more),))


def by_events(rules: list[str], *names: str) -> EventFilters:
    return one(rules, events=ignored_events(names))


def by_sql(rules: list[str], *texts: str) -> EventFilters:
    return one(rules, sql=ignored_sql(texts))


def ignored(filters: EventFilters, database: str, table: str, sql: str) -> bool:
    return bool(filters.ignores_ddl(database, table, clauses_of(sql).events, sql))


@pytest.mark.parametrize(
    ("filters", "database", "table", "sql", "expected"),
    [
        (by_events(["test.t1"], "all ddl"), "test", "t1", "ALTER TABLE t1 MODIFY COLUMN age INT", True),
        (by_events(["test.t1"], "all ddl"), "test", "t1", "CREATE TABLE t1(id INT PRIMARY KEY)", True),
        (by_events(["test.t1"], "all ddl"), "test", "t2", "ALTER TABLE t2 MODIFY COLUMN age INT", False),
        (by_events(["test.t1"], "all ddl"), "test2", "t1", "ALTER TABLE t1 MODIFY COLUMN age INT", False),
        (by_events(["*.t1"], "drop database"), "test", "t1", "ALTER TABLE t1 DROP COLUMN age", False),
        (by_events(["*.t1"], "drop schema"), "test2", "", "DROP DATABASE test2", True),
        (by_events(["*.t1"], "drop database"), "test3", "t1", "DROP INDEX i3 ON t1", False),
        (by_events(["other.t1"], "drop database"), "test2", "", "DROP DATABASE test2", False),
        (by_sql(["*.t1"], "MODIFY COLUMN", "DROP COLUMN", "^DROP DATABASE"), "test", "t1",
         "ALTER TABLE t1 MODIFY COLUMN age INT", True),
        (by_sql(["*.t1"], "modify column", "^drop database"), "test", "t1", "ALTER TABLE t1 MODIFY COLUMN a INT", True),
        (by_sql(["*.t1"], "modify column", "^drop database"), "test2", "", "DROP DATABASE test", True),
        (by_sql(["*.t1"], "modify column", "^drop database"), "test3", "t1", "Drop Index i1 on test3.t1", False),
        (by_sql(["*.t1"], "--6"), "test", "t1", "DROP TABLE t1", False),
        (by_sql(["*.t1"], "tiflash"), "test", "t1", "ALTER TABLE t1 SET TIFLASH REPLICA 1", True),
        (by_events(["*.*"], "all ddl"), "test", "t1", "ALTER TABLE t1 SET TIFLASH REPLICA 1", False),
        (by_events(["event.*"], "alter table", "drop table"), "event", "t", "DROP INDEX i ON t", True),
        (by_events(["event.*"], "alter table", "drop table"), "event", "t", "CREATE INDEX i ON t(a)", True),
        (by_events(["event.*"], "alter table", "drop table"), "event", "t", "RENAME TABLE t TO u", True),
        (by_events(["event.*"], "alter table", "drop table"), "event", "t", "DROP TABLE t", True),
        (by_events(["event.*"], "alter table", "drop table"), "event", "t", "CREATE TABLE t(age INT)", False),
        (by_events(["*.*"], "add column"), "d", "t", "ALTER TABLE t ADD COLUMN a INT", True),
        (by_events(["*.*"], "add column"), "d", "t", "ALTER TABLE t ADD COLUMN a INT, ADD COLUMN b INT", False),
        (by_events(["*.*"], "multi schema change"), "d", "t", "ALTER TABLE t ADD COLUMN a INT, DROP COLUMN b", True),
        (by_events(["*.*"], "multi schema change"), "d", "t", "ALTER TABLE t ADD COLUMN a INT", False),
        (by_events(["*.*"], "alter table"), "d", "t", "ALTER TABLE t ADD COLUMN a INT, DROP COLUMN b", True),
        (by_events(["*.*"], "all dml"), "d", "t", "DROP TABLE t", False),
    ],
)  # fmt: skip
def test_ddls(filters: EventFilters, database: str, table: str, sql: str, expected: bool) -> None:
    assert ignored(filters, database, table, sql) is expected


def test_every_name_of_a_ddl_ignores_it() -> None:
    for event in Event:
        assert by_events(["*.*"], event.value).ignores_ddl("d", "t", [event], "no matter")
        assert by_events(["*.*"], "all ddl").ignores_ddl("d", "t", [event], "no matter")


def test_the_reason_names_the_filter() -> None:
    filters = EventFilters((*by_events(["a.*"], "drop table").filters, *by_sql(["*.*"], "^drop").filters))
    drop = [Event.DROP_TABLE]
    assert filters.ignores_ddl("a", "t", drop, "DROP TABLE t") == "filter.event-filters.0 ignores 'drop table'"
    assert filters.ignores_ddl("b", "t", drop, "DROP TABLE t") == "filter.event-filters.1.ignore-sql matches"


def message(data: dict[str, str | None], old: dict[str, str | None] | None = None, **types: str) -> bytes:
    kinds = {name: types.get(name, "int") for name in {**data, **(old or {})}}
    return json.dumps({"data": [data], "old": None if old is None else [old], "mysqlType": kinds}).encode()


def row_ignored(filters: EventFilters, kind: Kind, value: bytes, name: tuple[str, str] = ("test", "t1")) -> bool:
    return filters.ignores_row(kind, name, value, lambda: PLACE)


@pytest.mark.parametrize(
    ("name", "table", "expected"),
    [
        ("all dml", "t1", {Kind.INSERT, Kind.UPDATE, Kind.DELETE}),
        ("insert", "t1", {Kind.INSERT}),
        ("update", "t1", {Kind.UPDATE}),
        ("delete", "t1", {Kind.DELETE}),
        ("delete", "t2", set()),
        ("all ddl", "t1", set()),
    ],
)
def test_rows_by_kind(name: str, table: str, expected: set[Kind]) -> None:
    filters = by_events(["test.t1"], name)
    assert {kind for kind in Kind if row_ignored(filters, kind, b"not looked at", ("test", table))} == expected


STUDENT = one(
    ["test.*"],
    insert=condition("age >= 20 or gender = 'female'", "k"),
    delete=condition("age >= 32 and age < 48", "k"),
    update_old=condition("gender = 'male'", "k"),
    update_new=condition("age > 28", "k"),
)


def student(age: str | None, gender: str) -> dict[str, str | None]:
    return {"id": "1", "age": age, "gender": gender}


@pytest.mark.parametrize(
    ("kind", "new", "old", "expected"),
    [
        (Kind.INSERT, student("20", "male"), None, True),
        (Kind.INSERT, student("19", "female"), None, True),
        (Kind.INSERT, student("19", "male"), None, False),
        (Kind.INSERT, student(None, "male"), None, False),
        (Kind.DELETE, student("32", "x"), None, True),
        (Kind.DELETE, student("48", "x"), None, False),
        (Kind.UPDATE, student("20", "female"), student("20", "male"), True),
        (Kind.UPDATE, student("29", "female"), student("20", "female"), True),
        (Kind.UPDATE, student("20", "male"), student("20", "female"), False),
        (Kind.UPDATE, student("20", "male"), {"age": "19"}, True),
        (Kind.UPDATE, student("20", "male"), {"gender": "female"}, False),
        (Kind.UPDATE, student("20", "male"), {}, True),
    ],
)
def test_rows_by_value(
    kind: Kind, new: dict[str, str | None], old: dict[str, str | None] | None, expected: bool
) -> None:
    assert row_ignored(STUDENT, kind, message(new, old, gender="varchar")) is expected


def test_filters_add_up() -> None:
    both = EventFilters((*STUDENT.filters, *by_events(["*.t2"], "insert").filters))
    value = message(student("19", "male"), gender="varchar")
    assert not row_ignored(both, Kind.INSERT, value)
    assert row_ignored(both, Kind.INSERT, value, ("test", "t2"))


@pytest.mark.parametrize(
    ("kind", "value", "told"),
    [
        (Kind.INSERT, message({"id": "1"}), "lacks column 'age'"),
        (Kind.DELETE, message({"id": "1"}), "delete-only-output-handle-key-columns"),
        (Kind.INSERT, message({"id": "1"})[:-1] + b', "_tidb": {"onlyHandleKey": true}}', "too large for the message"),
        (Kind.INSERT, message({"age": "x"}), "no value of type int"),
        (Kind.INSERT, b'{"data": [{"age": 5}], "mysqlType": {}}', "can't be read"),
        (Kind.INSERT, b'{"data": [], "mysqlType": {}}', "can't be read"),
    ],
)
def test_a_row_that_cannot_be_judged_is_an_error_with_its_place(kind: Kind, value: bytes, told: str) -> None:
    with pytest.raises(InputError, match="row of") as raised:
        row_ignored(STUDENT, kind, value)
    assert told in raised.value.fact
    assert raised.value.where == str(PLACE)


def test_names_of_members_come_from_the_target_where_the_message_has_none() -> None:
    filters = one(["*.*"], insert=condition("gender = 'male'", "k"))
    value = message({"gender": "2"}, gender="enum")
    with pytest.raises(InputError, match="compare with its number"):
        row_ignored(filters, Kind.INSERT, value)
    telling = EventFilters(filters.filters, {TableName("test", "t1"): {"gender": ("female", "male")}})
    assert row_ignored(telling, Kind.INSERT, value)
    assert row_ignored(one(["*.*"], insert=condition("gender = 'a'", "k")), Kind.INSERT,
                       message({"gender": "1"}, gender="enum('a','b')"))  # fmt: skip


def test_columns_are_found_whatever_their_case() -> None:
    assert row_ignored(one(["*.*"], insert=condition("AGE > 1", "k")), Kind.INSERT, message({"Age": "2"}))


def test_unknown_events_are_refused_with_the_known_ones() -> None:
    with pytest.raises(ConfigError, match="unknown event 'Insert'") as raised:
        ignored_events(["all dml", "Insert"])
    assert raised.value.hint == "did you mean 'insert'?"
    with pytest.raises(ConfigError, match="unknown event 'xyzzy'") as raised:
        ignored_events(["xyzzy"])
    assert ", ".join(NAMES) in raised.value.hint
    assert len(NAMES) == len(set(NAMES))


def test_a_wrong_expression_is_named_alone() -> None:
    with pytest.raises(ConfigError, match="'b\\(' holds no regular expression"):
        ignored_sql(["a", "b("])


def test_they_travel_to_tasks() -> None:
    there = pickle.loads(pickle.dumps(STUDENT))  # noqa: S301 our own bytes
    assert row_ignored(there, Kind.INSERT, message(student("20", "male"), gender="varchar"))


def test_case_stops_a_run_only_where_the_filter_would_leave_something_out() -> None:
    of_rows, of_ddls = by_events(["Shop.t"], "delete"), by_events(["Shop.t"], "drop table")
    assert not ignored(of_rows, "shop", "t", "DROP TABLE t")
    assert not ignored(of_rows, "shop", "", "ALTER DATABASE shop CHARACTER SET utf8mb4")
    assert not of_rows.ignores_row(Kind.INSERT, ("shop", "t"), b"", lambda: PLACE)
    assert not of_ddls.ignores_row(Kind.DELETE, ("shop", "t"), b"", lambda: PLACE)
    with pytest.raises(ConfigError, match="but for case"):
        ignored(of_ddls, "shop", "t", "DROP TABLE t")
    with pytest.raises(ConfigError, match="but for case"):
        of_rows.ignores_row(Kind.DELETE, ("shop", "t"), b"", lambda: PLACE)

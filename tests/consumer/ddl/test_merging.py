"""Merged tables, without a target: what the config may say, and what a CREATE TABLE becomes."""

from typing import Any

import pytest
from pydantic import ValidationError

from consumer.config.routes import Routes, read_routes
from consumer.config.table_sections import SinkSection
from ordering.errors import InputError
from ordering.events import TableName
from sinks.ddl.parse.origin_columns import with_origin_columns
from sinks.ddl.parse.tables import read_table

TABLE = {"table-regexp": "t_(.*)", "target-column": "shard"}
MERGE = {"matcher": ["s*.t_*"], "target-table": "t", "merge": True, "extract-table": TABLE}


def routes_of(**keys: Any) -> Routes:
    kept = {name: value for name, value in {**MERGE, **keys}.items() if value is not None}
    return read_routes(SinkSection.model_validate({"dispatchers": [kept]}))


REFUSED = (
    ({"extract-table": None}, "needs extract-table or extract-schema"),
    ({"extract-table": None, "extract-source": {"source": "x", "target-column": "c"}}, "needs extract-table or"),
    ({"merge": None}, "need merge = true"),
    ({"target-table": None}, "needs target-schema or target-table"),
    ({"extract-table": {"table-regexp": "t_(.*)"}}, "need target-column and what it holds"),
    ({"extract-table": {**TABLE, "table-regexp": "t_.*"}}, "must have a group"),
    ({"extract-table": {**TABLE, "table-regexp": "t_(?=.)(.*)"}}, "no regular expression"),
    ({"extract-table": {**TABLE, "target-column": "c" * 65}}, "at most 64 characters"),
    ({"extract-source": {"source": " x", "target-column": "c"}}, "without blanks around it"),
    ({"extract-schema": {"schema-regexp": "(.*)", "target-column": "SHARD"}}, "need a target-column each"),
)


@pytest.mark.parametrize(("keys", "why"), REFUSED)
def test_what_a_config_may_not_say(keys: dict[str, Any], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        routes_of(**keys)


def test_an_origin_is_what_the_groups_find_whatever_the_case() -> None:
    two = routes_of(**{"extract-table": {**TABLE, "table-regexp": "t_(a.)|t_(b)-(c)"}})
    assert two.origin(TableName("S1", "T_AÉ")) == (("shard", "aé"),)
    assert two.origin(TableName("s1", "t_b-c")) == (("shard", "bc"),)
    assert two.origin(TableName("x", "y")) == ()
    for name in ("t_x", "t_a ", "t_a" + "\u0130"):
        if name != "t_a\u0130":
            with pytest.raises(InputError, match="finds no text"):
                two.origin(TableName("s1", name))
    assert two.origin(TableName("s1", "t_a\u0130")) == two.origin(TableName("s1", "t_ai"))


def test_what_merges_is_part_of_the_digest() -> None:
    plain = routes_of(**{"merge": None, "extract-table": None})
    others = [routes_of(), routes_of(**{"extract-table": {**TABLE, "target-column": "x"}}), plain]
    others.append(routes_of(**{"extract-source": {"source": "x", "target-column": "y"}}))
    assert len({one.digest for one in others}) == len(others)
    with pytest.raises(InputError, match="other places"):
        routes_of().check_change(plain.digest, "c")


MADE = (
    ("CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, u INT UNIQUE KEY COMMENT 'primary key', v INT)",
     {"PRIMARY": ["id", "a`b"], "u": ["u", "a`b"]}),
    ("CREATE TABLE t (a INT, b VARCHAR(9) DEFAULT 'PRIMARY KEY', PRIMARY KEY (a, b(3)), UNIQUE k (b), KEY i (a))",
     {"PRIMARY": ["a", "b", "a`b"], "k": ["b", "a`b"], "i": ["a"]}),
    ("CREATE TABLE t (`key` INT NOT NULL DEFAULT 1, CONSTRAINT c UNIQUE INDEX k USING BTREE (`key`))",
     {"k": ["key", "a`b"]}),
    ("CREATE TABLE t (a INT CHECK (a > (1)), UNIQUE KEY k ((a + 1)), FULLTEXT KEY f (a)) COMMENT = ')'",
     {"k": ["", "a`b"], "f": ["a"]}),
    ("CREATE TABLE t (a INT) PARTITION BY HASH (a) PARTITIONS 2", {}),
)  # fmt: skip


@pytest.mark.parametrize(("sql", "keys"), MADE)
def test_origin_columns_end_the_table_and_each_unique_key(sql: str, keys: dict[str, list[str]]) -> None:
    before, after = read_table(sql), read_table(with_origin_columns(sql, ["a`b"]))
    assert [one.name for one in after.columns] == [*(one.name for one in before.columns), "a`b"]
    assert not after.columns[-1].nullable
    found = {one.known_as: [part.column for part in one.parts] for one in after.indexes}
    assert found == keys
    assert (after.comment, after.partitions is None) == (before.comment, before.partitions is None)
    kept = {one.name: (one.type, one.default, one.automatic) for one in before.columns}
    assert kept == {one.name: (one.type, one.default, one.automatic) for one in after.columns[:-1]}

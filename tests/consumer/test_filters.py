"""TiDB's table filter syntax (TiDB documentation, "Table Filter")."""

import pytest

from consumer.filters import table_filter
from ordering.errors import ConfigError


@pytest.mark.parametrize(
    ("rules", "database", "table", "accepted"),
    [
        (["*.*"], "any", "thing", True),
        (["test.t*"], "test", "t1", True),
        (["test.t*"], "test", "n1", False),
        (["test.t*"], "Test", "t1", False),
        (["db.t?"], "db", "t12", False),
        (["db.t[0-9]"], "db", "t7", True),
        (["db.t[!0-9]"], "db", "t7", False),
        (["*.*", "!test.tmp_*"], "test", "tmp_1", False),
        (["!test.tmp_*", "*.*"], "test", "tmp_1", True),
        (["`a.b`.c"], "a.b", "c", True),
        (['"we*ird".c'], "we*ird", "c", True),
        (['"we*ird".c'], "weXird", "c", False),
        (["/^shop_[0-9]+$/.*"], "shop_12", "orders", True),
        (["/^shop_[0-9]+$/.*"], "shop_x", "orders", False),
        (["a\\.b.c"], "a.b", "c", True),
        ([], "any", "thing", False),
    ],
)
def test_the_last_matching_rule_decides(rules: list[str], database: str, table: str, accepted: bool) -> None:
    assert table_filter(rules)(database, table) is accepted


@pytest.mark.parametrize("rule", ["nodot", "a.b.c", "`open.t", "db./(/"])
def test_a_rule_that_cannot_be_read_is_named(rule: str) -> None:
    with pytest.raises(ConfigError) as raised:
        table_filter([rule])
    assert repr(rule) in str(raised.value)


def test_other_rules_have_another_digest() -> None:
    assert table_filter(["a.*"]).digest != table_filter(["b.*"]).digest
    assert table_filter(["a.*"]).digest == table_filter(["a.*"]).digest


def test_a_database_counts_if_a_table_of_it_can() -> None:
    rules = table_filter(["test.t*", "!test.*"])
    assert rules.accepts_database("test")
    assert not rules.accepts_database("other")

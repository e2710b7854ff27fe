"""TiDB's table filter syntax (TiDB documentation, "Table Filter"; its corners: tidb `pkg/util/table-filter`)."""

import pickle
from pathlib import Path

import pytest

from consumer.filters.tables import table_filter, with_files
from ordering.errors import ConfigError

SPECIAL = ["*.*", "!foo[bar].*", "!bar?.*", "!special\\\\.*"]
CLASSES = ["[!a-z].[^a-z]"]
QUOTED = ['"some ""quoted""".`identifiers?`']
LATER = ["db*.*", "!*.cfg*", "*.cfgsample"]


@pytest.mark.parametrize(
    ("rules", "database", "table", "cased", "uncased"),
    [
        (["*.*"], "any", "thing", True, True),
        (["test.t*"], "test", "t1", True, True),
        (["test.t*"], "test", "n1", False, False),
        (["test.t*"], "Test", "T1", False, True),
        (["BAR.*"], "bar", "a", False, True),
        (["中文.ä*"], "中文", "Äb", False, True),
        (["db.t?"], "db", "t12", False, False),
        (["db.t[0-9]"], "db", "t7", True, True),
        (["db.t[!0-9]"], "db", "t7", False, False),
        (["*.*", "!S.D[a-d]"], "S", "Da", False, False),
        (["*.*", "!S.D[a-d]"], "S", "DA", True, False),
        (["*.*", "!test.tmp_*"], "test", "tmp_1", False, False),
        (["!test.tmp_*", "*.*"], "test", "tmp_1", True, True),
        (["`a.b`.c"], "a.b", "c", True, True),
        (['"we*ird".c'], "we*ird", "c", True, True),
        (['"we*ird".c'], "weXird", "c", False, False),
        (["/^shop_[0-9]+$/.*"], "shop_12", "orders", True, True),
        (["/^shop_[0-9]+$/.*"], "shop_x", "orders", False, False),
        (["/^shop_[0-9]+$/.*"], "shop_1\n", "orders", False, False),
        (["/shop/.*"], "my_shop_2", "orders", True, True),
        (["/a\\/b/.*"], "a/b", "orders", True, True),
        (["/^foo/.*", "!/^foo/./^sbtest-\\d/"], "foo1", "sbtest-1", False, False),
        (["/^foo/.*", "!/^foo/./^sbtest-\\d/"], "foo1", "sbtest", True, True),
        (["*.*", "!/^FOO/.*"], "foo2", "b", True, False),
        (["a\\.b.c"], "a.b", "c", True, True),
        (["\\\\\\..*"], "\\.", "a", True, True),
        (["p_123$.45"], "p_123$", "45", True, True),
        (["p_123$.45"], "p_123", "45", False, False),
        (SPECIAL, "foor", "a", False, False),
        (SPECIAL, "foo[bar]", "b", True, True),
        (SPECIAL, "bar?", "d", False, False),
        (SPECIAL, "special\\", "e", False, False),
        (SPECIAL, "special\\$", "h", True, True),
        (CLASSES, "!", "^", True, True),
        (CLASSES, "1", "9", False, False),
        (CLASSES, "a", "z", False, False),
        (QUOTED, 'some "quoted"', "identifiers?", True, True),
        (QUOTED, 'SOME "QUOTED"', "IDENTIFIERS?", False, True),
        (QUOTED, 'some ""quoted""', "identifiers?", False, False),
        (LATER, "db1", "cfg1", False, False),
        (LATER, "else", "cfgsample", True, True),
        (["*.*"], "new\nline", "t", True, True),
        (["# comment", "  x.y \t", "   "], "x", "y", True, True),
        ([], "any", "thing", False, False),
        (["*.*"], "mysql", "user", False, False),
        (["*.*"], "INFORMATION_SCHEMA", "tables", False, False),
        (["*.*"], "tidb_cdc", "syncpoint_v1", False, False),
        (["mysql.*"], "mysql", "user", False, False),
    ],
)
def test_the_last_matching_rule_decides(
    rules: list[str], database: str, table: str, cased: bool, uncased: bool
) -> None:
    assert table_filter(rules, case_sensitive=True)(database, table) is cased
    assert table_filter(rules, case_sensitive=False)(database, table) is uncased


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        ("nodot", "schema.table"),
        ("db.", "schema.table"),
        (".t", "schema.table"),
        ("a.b.c", "schema.table"),
        ("`db`*.*", "schema.table"),
        ("`open.t", "closing `"),
        ('"open.t', 'closing "'),
        ("/db.*", "closing /"),
        ("db./(/", "no regular expression"),
        ("/^t[0-9]+((?!_copy).)*$/.*", "look-around"),
        ("a%b.c", "'%'"),
        ("db.tbl#not comment", "'#'"),
        ("a\\tb.c", "escapes a letter"),
        ("db\\", "escapes a letter, a digit or nothing"),
        ("[].*", "character class"),
        ("[.*", "character class"),
        ("[\\d\\D].*", "character class"),
        ("@rules.txt", "names a file"),
    ],
)
def test_a_rule_that_cannot_be_read_is_named(rule: str, told: str) -> None:
    with pytest.raises(ConfigError) as raised:
        table_filter([rule])
    assert repr(rule) in str(raised.value)
    assert told in str(raised.value)


def test_a_statement_about_a_database_counts_if_a_rule_takes_in_something_of_it() -> None:
    rules = table_filter(["test.t*", "!test.u", "foo.*", "!FOO.*", "!*.*x"])
    assert rules.accepts_database("test")
    assert rules.accepts_database("TEST")
    assert not rules.accepts_database("foo")
    assert not rules.accepts_database("other")
    assert not table_filter(["*.*"]).accepts_database("mysql")


def test_it_travels_to_tasks() -> None:
    there = pickle.loads(pickle.dumps(table_filter(["/^a/.T?"])))  # noqa: S301 our own bytes
    assert there("ab", "t1")
    assert not there("b", "t1")


def test_rules_come_from_files_beside_the_config(tmp_path: Path) -> None:
    (tmp_path / "one.txt").write_text("# mine\n\n\tdb?.tbl?\ndb02.tbl02\n")
    (tmp_path / "two.txt").write_text("!db4.tbl4\n")
    rules = with_files(["@one.txt", f"@{tmp_path}/two.txt", "db04.tbl04"], tmp_path, "filter.rules")
    assert rules == ["db?.tbl?", "db02.tbl02", "!db4.tbl4", "db04.tbl04"]


def test_a_byte_order_mark_is_no_part_of_the_first_rule(tmp_path: Path) -> None:
    (tmp_path / "rules.txt").write_text("shop.*\n", encoding="utf-8-sig")
    assert with_files(["@rules.txt"], tmp_path, "filter.rules") == ["shop.*"]


def test_what_is_wrong_in_a_file_is_told_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "rules.txt").write_text("a.b\n@one.txt\n")
    with pytest.raises(ConfigError, match="names a file") as raised:
        with_files(["@rules.txt"], tmp_path, "filter.rules")
    assert raised.value.where == f"{tmp_path}/rules.txt, line 2"
    with pytest.raises(ConfigError, match="can't read the rules file"):
        with_files(["@none.txt"], tmp_path, "filter.rules")


@pytest.mark.parametrize(
    ("rules", "name"),
    [(["Shop.*"], ("shop", "t")), (["*.*", "!Shop.*"], ("shop", "t")), (["shop.T"], ("shop", "t"))],
)
def test_a_message_whose_name_differs_by_case_alone_is_refused(rules: list[str], name: tuple[str, str]) -> None:
    """After a RENAME TiCDC spells the database in lower case: what is left out then is lost."""
    with pytest.raises(ConfigError) as caught:
        table_filter(rules, case_sensitive=True).of_message(*name)
    assert caught.value.where == "filter.case-sensitive"
    assert table_filter(rules).of_message(*name) is table_filter(rules)(*name)


@pytest.mark.parametrize(("rules", "taken"), [(["Shop.*"], False), (["*.*", "!Shop.*"], True), (["!Shop.t"], False)])
def test_a_database_that_differs_by_case_alone_is_refused(rules: list[str], taken: bool) -> None:
    found = table_filter(rules, case_sensitive=True)
    assert found.accepts_database("shop") is taken
    if rules == ["!Shop.t"]:  # a rule about one of its tables says nothing of it
        assert not found.database_of_message("shop")
    else:
        with pytest.raises(ConfigError, match="database shop"):
            found.database_of_message("shop")
    assert found.database_of_message("mysql") is False


def test_a_rule_that_tells_case_by_itself_is_taken_at_its_word() -> None:
    for rule in ("[A-Z]*.*", "/^[A-Z].*/.*"):
        assert not table_filter([rule], case_sensitive=True).of_message("shop", "t")
    both = table_filter(["Shop.*", "shop.*"], case_sensitive=True)
    assert both.of_message("shop", "t")
    assert both.of_message("Shop", "t")
    assert not table_filter(["Shop.*"], case_sensitive=True).of_message("other", "t")

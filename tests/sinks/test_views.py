"""Queries of views that no target's SQL is made of: each is left out with a reason."""

import time
from typing import Any

import pytest

from ordering.events import TableName
from sinks.ddl.kept_definitions import Definitions
from sinks.ddl.parse.views import LONGEST, CannotSayError, TooLongError, concerned, parsed, read_view, translated
from sinks.ddl.view_columns import ViewColumns
from sinks.rows.schema import Catalog, Column, Shape, TableSchema

TOO_MUCH = {
    "brackets": f"SELECT {'(' * 3000}1{')' * 3000}",
    "signs": f"SELECT {'- ' * 3000}1",
    "chain": f"SELECT 1 FROM t WHERE 1{' IS NOT NULL' * 900}",
    "long": f"SELECT 1{',1' * (LONGEST // 2)}",
}


@pytest.mark.parametrize("dialect", ["postgres", "sqlite"])
@pytest.mark.parametrize("case", sorted(TOO_MUCH))
def test_what_is_too_deep_or_too_long_is_left_out(case: str, dialect: str) -> None:
    with pytest.raises(CannotSayError, match=r"nested too deeply|more than the|may mean something else"):
        translated(read_view(f"CREATE VIEW v AS {TOO_MUCH[case]}"), "d", dialect, qualified=True)


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT `v` FROM `t` WHERE `v` IN ({', '.join(['`v`'] * 5000)})",
        f"SELECT `v` FROM `t` WHERE COALESCE({', '.join(['`v`'] * 5000)}) > 1",
        f"SELECT `v` FROM {'(SELECT COALESCE(`v`, `v`) AS `v` FROM ' * 20}`t`{') AS `t`' * 20} WHERE `v` > 1",
        f"SELECT `v` AS `a` FROM `t` WHERE {' AND '.join(['`v` = `v`'] * 2000)} ORDER BY {', '.join(['`a`'] * 2000)}",
    ],
)
def test_each_column_is_looked_at_once(query: str) -> None:
    """Each query around asked again, and each neighbour: 20 queries within each other would have taken a day."""
    asked: list[str] = []
    settle = _columns(asked).settle
    view = read_view(f"CREATE VIEW v AS {query}")
    assert "`t`.`v`" in translated(view, "d", "mysql", qualified=True, settle=settle)
    assert len(asked) == 1


def _columns(asked: list[str], dialect: str = "sqlite", others: int = 0) -> ViewColumns:
    """Of a database with a table `t` and a view `w` over it. `others`: further tables."""

    def ask(sql: str, _values: tuple[Any, ...]) -> list[tuple[str]]:
        asked.append(sql)
        return [('{"columns": {"v": {"base": "int"}}}',)]

    names = [TableName("d", "t"), *(TableName("d", f"o{number}") for number in range(others))]
    catalog = Catalog({name: TableSchema(name, (Column("v", "int", Shape.INTEGER),), (), ()) for name in names})
    kept, other = Definitions(ask, ask, "kept", "?", "c"), frozenset({"decimal"})
    texts = {TableName("d", "w"): 'CREATE VIEW "w" AS SELECT "t"."v" AS "v" FROM "t"'}
    return ViewColumns(catalog, kept, "d", other, dialect, lambda view: texts.get(view, ""))


MANY = {
    "joins": "SELECT a0.v FROM t a0" + "".join(f" JOIN t a{at} ON a{at}.v = a{at - 1}.v" for at in range(1, 1500)),
    "views": "SELECT a0.v FROM w a0" + "".join(f" JOIN w a{at} ON a{at}.v = a{at - 1}.v" for at in range(1, 1000)),
    "listed": "SELECT a0.v FROM t a0" + "".join(f", t a{at}" for at in range(1, 1500)),
    "using": "SELECT a0.v FROM t a0" + "".join(f" JOIN t a{at} USING (v)" for at in range(1, 1500)),
    "united": "SELECT v FROM t" + " UNION ALL SELECT v FROM t" * 1500,
    "told apart": "SELECT v FROM t" + " UNION SELECT v FROM t" * 1500,
}


@pytest.mark.parametrize("dialect", ["postgres", "sqlite"])
@pytest.mark.parametrize("case", sorted(MANY))
def test_time_grows_as_a_query_does(case: str, dialect: str) -> None:
    """Also where it is judged again: each took minutes or ended the run."""
    begun = time.process_time()
    settle = _columns([], dialect, others=3000).settle
    made = translated(read_view(f"CREATE VIEW x AS {MANY[case]}"), "d", dialect, qualified=True, settle=settle)
    assert not _columns([], dialect, others=3000).why_not_any_more(f"CREATE VIEW x AS {made}")
    assert time.process_time() - begun < 15


@pytest.mark.parametrize("dialect", ["mysql", "sqlite"])
def test_a_query_that_would_be_read_again_and_again_is_given_up(dialect: str) -> None:
    """2^60 times: joins without conditions, as earlier versions left them in SQLite."""
    query = "SELECT a0.v FROM t AS a0" + "".join(f" INNER JOIN t AS a{at}" for at in range(1, 60))
    with pytest.raises(TooLongError):
        parsed(query, dialect)
    assert not _columns([]).why_not_any_more(f'CREATE VIEW "x" AS {query}')


def test_a_star_stands_for_no_more_columns_than_memory_holds() -> None:
    settle = _columns([]).settle
    view = read_view("CREATE VIEW x AS SELECT * FROM t" + " UNION ALL SELECT * FROM t" * 4000)
    with pytest.raises(CannotSayError, match="more than 10000 columns"):
        _shown_often(view.query, settle)


def _shown_often(query: str, settle: Any) -> None:
    """As of a table with three columns."""
    settle(parsed(query.replace("SELECT * ", "SELECT t.*, t.*, t.* "), "mysql"))


def test_what_is_no_query_ends_no_run() -> None:
    """A view that somebody made in the target may be of what is not read."""
    with pytest.raises(CannotSayError, match="can't be read"):
        translated(read_view("CREATE VIEW v AS ;"), "d", "sqlite", qualified=True)
    assert not _columns([]).why_not_any_more('CREATE VIEW "x" AS VALUES (1), (2) garbage garbage')


def test_views_that_read_something_are_found_by_their_texts() -> None:
    texts = {"a": 'SELECT "X""y"."v" FROM "X""y"', "b": 'SELECT * FROM "a"', "c": 'SELECT * FROM "t"'}
    views = {TableName("d", name): text for name, text in texts.items()}
    assert concerned(views, [TableName("d", 'x"Y')]) == [TableName("d", "a"), TableName("d", "b")]

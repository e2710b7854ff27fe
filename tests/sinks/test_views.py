"""Queries of views that no target's SQL is made of: each is left out with a reason."""

from typing import Any

import pytest

from ordering.events import TableName
from sinks.ddl.kept_definitions import Definitions
from sinks.ddl.parse.views import LONGEST, CannotSayError, read_view, translated
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

    def ask(sql: str, _values: tuple[Any, ...]) -> list[tuple[str]]:
        asked.append(sql)
        return [('{"columns": {"v": {"base": "int"}}}',)]

    name = TableName("d", "t")
    catalog = Catalog({name: TableSchema(name, (Column("v", "int", Shape.INTEGER),), (), ())})
    kept, other = Definitions(ask, ask, "kept", "?", "c"), frozenset({"decimal"})
    settle = ViewColumns(catalog, kept, "d", other, "sqlite", lambda _view: "").settle
    view = read_view(f"CREATE VIEW v AS {query}")
    assert "`t`.`v`" in translated(view, "d", "mysql", qualified=True, settle=settle)
    assert len(asked) == 1

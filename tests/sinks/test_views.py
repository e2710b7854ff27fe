"""Queries of views that no target's SQL is made of: each is left out with a reason."""

import pytest

from sinks.ddl.parse.views import LONGEST, CannotSayError, read_view, translated

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

"""`*` in the query of a view: upstream takes it for the columns that were there when the view was made.

So they are named. A column that comes later is not in the view there; SQLite goes by what is there whenever it is
asked, and a view of PostgreSQL's is made again around each DDL.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from sinks.ddl import view_tree
from sinks.ddl.parse.views import CannotSayError

if TYPE_CHECKING:  # see `sinks.ddl.parse.views`
    from sqlglot import exp


class Shown(NamedTuple):
    """The columns that a source has; `moved`: upstream's may be in another order."""

    names: Sequence[str]
    moved: bool = False


_MOST = 10_000
"""Columns in the places of `*`: a query of 64 KiB may ask for a wide table's two thousand times."""
ShownBy = Callable[["exp.Expr"], Shown | None]
"""None where it is not known."""


def name_columns(query: "exp.Expr", shown_by: ShownBy) -> None:
    """Put columns in the place of each `*`, in the queries within first. Raises CannotSayError."""
    from sqlglot import exp  # noqa: PLC0415

    left = _MOST
    for select in reversed(list(query.find_all(exp.Select))):
        if any(map(_is_star, select.expressions)) and not isinstance(select.parent, exp.Exists):
            shown = list(islice(_named(select, list(view_tree.sources(select)), shown_by), left + 1))
            left -= len(shown)
            if left < 0:
                raise CannotSayError(f"its * stand for more than {_MOST} columns")
            select.set("expressions", shown)


def _is_star(shown: "exp.Expr") -> bool:
    from sqlglot import exp  # noqa: PLC0415

    return isinstance(shown, exp.Star) or (isinstance(shown, exp.Column) and isinstance(shown.this, exp.Star))


def _named(select: "exp.Select", sources: "list[exp.Expr]", shown_by: ShownBy) -> "Iterator[exp.Expr]":
    from sqlglot import exp  # noqa: PLC0415

    for shown in select.expressions:
        if not _is_star(shown):
            yield shown
            continue
        table = shown.table if isinstance(shown, exp.Column) else ""
        joined = [one.name for join in select.args.get("joins") or () for one in join.args.get("using") or ()]
        if not table and joined:
            message = "what * shows of tables that are joined with USING"
            raise CannotSayError(f"{message} is in an order of its own")
        for source in sources:
            if not table or source.alias_or_name.lower() == table.lower():
                yield from _columns_of(source, select, shown_by)


def _columns_of(source: "exp.Expr", select: "exp.Select", shown_by: ShownBy) -> "Iterator[exp.Expr]":
    from sqlglot import exp  # noqa: PLC0415

    found = shown_by(source)
    if found is None:
        raise CannotSayError(f"which columns {source.alias_or_name!r} has is not known here")
    if found.moved and select.find_ancestor(exp.Union) is not None:
        raise CannotSayError(f"upstream may have the columns of {source.alias_or_name!r} in another order")
    for name in found.names:
        yield exp.Column(this=exp.to_identifier(name, quoted=True), table=view_tree.called(source))

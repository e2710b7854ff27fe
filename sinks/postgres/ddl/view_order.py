"""Texts and moments in a view's query, where PostgreSQL goes by more than upstream does.

Texts come in the order of their bytes, whatever the database's collation is (that of most is a language's). A text
beside a TIMESTAMP is a moment of the reader's time zone, as upstream: else it is one of the session that made the view.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from sinks.ddl import view_tree
from sinks.ddl.view_columns import ViewColumns
from sinks.ddl.view_values import Comparisons, compared, united

if TYPE_CHECKING:  # see `sinks.ddl.parse.views`
    from sqlglot import exp

_TEXTS = ("text", "character")
"""How the target's types of texts begin: upstream's is not known of each column."""


def order_as_upstream(query: "exp.Expr", columns: ViewColumns) -> None:
    """Say by what texts are ordered, and what moments texts are. The query's columns are settled."""
    from sqlglot import exp  # noqa: PLC0415

    order = _Order(columns)
    for node in list(query.walk()):
        if isinstance(node, exp.Ordered) and isinstance(node.parent, exp.Order):
            for one in list(_ordered(node.this, node.parent)):
                order.by_bytes(one)
        elif isinstance(node, exp.Min | exp.Max):
            order.by_bytes(node.this.expressions[0] if isinstance(node.this, exp.Distinct) else node.this)
        elif isinstance(node, exp.GT | exp.GTE | exp.LT | exp.LTE | exp.Between):
            order.by_bytes(*compared(node))
        order.in_the_readers_zone(_operands(node))


class _Order:
    def __init__(self, columns: ViewColumns) -> None:
        self._columns, self._values = columns, Comparisons(columns)

    def by_bytes(self, node: "exp.Expr", *beside: "exp.Expr") -> None:
        """Order an expression by bytes, if it and what it is compared with are texts."""
        from sqlglot import exp  # noqa: PLC0415

        kinds = frozenset[str]().union(*map(self._kinds, (node, *beside)))
        if kinds != {"text"}:
            return
        collated = exp.Collate(this=exp.Null(), expression=exp.to_identifier("C", quoted=True))
        is_shown = isinstance(node, exp.Column) and isinstance(node.parent, exp.Select)
        inner, made = node.this if isinstance(node, exp.Alias) else node, collated
        inner.replace(exp.alias_(made, node.name, quoted=True, copy=False) if is_shown else made)
        collated.set("this", inner)

    def in_the_readers_zone(self, operands: "Sequence[exp.Expr]") -> None:
        """Make moments of the texts that are compared with some."""
        from sqlglot import exp  # noqa: PLC0415

        literals = [one for one in map(view_tree.bare, operands) if isinstance(one, exp.Literal) and one.is_string]
        if literals and any("moment" in self._values.value(one).families for one in operands):
            for literal in literals:
                literal.replace(exp.cast(literal.copy(), "TIMESTAMP"))

    def _kinds(self, node: "exp.Expr") -> frozenset[str]:
        """Families of values, without what is not known."""
        from sqlglot import exp  # noqa: PLC0415

        found, bare = self._values.value(node), view_tree.unnamed(node)
        kinds = (found.families - {""}) | {"text" for literal in found.literals if literal.is_string}
        if kinds or not isinstance(bare, exp.Column):
            return kinds
        types = [one.column.type for one in self._columns.meant(bare) if one.column is not None]
        return frozenset({"text"} if types and all(one.startswith(_TEXTS) for one in types) else ())


def _operands(node: "exp.Expr") -> "list[exp.Expr]":
    """What a comparison, or a CASE of a value, compares."""
    from sqlglot import exp  # noqa: PLC0415

    if isinstance(node, exp.Case) and node.this is not None:
        return [node.this, *(one.this for one in node.args["ifs"])]
    return compared(node)


def _ordered(shown: "exp.Expr", order: "exp.Order") -> "Iterator[exp.Expr]":
    """What is ordered: what a place or an alias stands for, in each query of a UNION; a DISTINCT shows it, too."""
    from sqlglot import exp  # noqa: PLC0415

    queries: Sequence[exp.Select] = [] if order.parent is None else list(united(order.parent))
    names = [one.alias_or_name.lower() for one in queries[0].expressions] if queries else []
    if isinstance(shown, exp.Literal) and not shown.is_string:
        at = int(shown.this) - 1
    elif isinstance(shown, exp.Column) and not shown.table and shown.name.lower() in names:
        at = names.index(shown.name.lower())
    else:
        distinct = (one for one in queries if one.args.get("distinct"))
        yield from (same for one in distinct for same in one.expressions if view_tree.unnamed(same) == shown)
        yield shown
        return
    yield from (one.expressions[at] for one in queries if 0 <= at < len(one.expressions))

"""Ways through the tree of a view's query."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ordering.events import TableName
from sinks.ddl.parse.views import from_clause

if TYPE_CHECKING:  # see `sinks.ddl.parse.views`
    from sqlglot import exp


def columns(tree: "exp.Expr") -> "list[exp.Column]":
    """All but `*`."""
    from sqlglot import exp  # noqa: PLC0415

    return [one for one in tree.find_all(exp.Column) if not isinstance(one.this, exp.Star)]


def scopes(column: "exp.Column") -> "Iterator[exp.Select]":
    """The queries around a column, from the inside."""
    from sqlglot import exp  # noqa: PLC0415

    found = column.find_ancestor(exp.Select)
    while found is not None:
        yield found
        found = found.find_ancestor(exp.Select)


def sources(select: "exp.Select") -> "Iterator[exp.Expr]":
    """What a query reads from."""
    for one in (from_clause(select), *(select.args.get("joins") or ())):
        if one is not None:
            yield one.this


def aliases(column: "exp.Column") -> "Iterator[exp.Alias]":
    """Of the queries around a column."""
    from sqlglot import exp  # noqa: PLC0415

    for select in scopes(column):
        yield from (one for one in select.expressions if isinstance(one, exp.Alias))


def join_using(select: "exp.Select", column: "exp.Column") -> "exp.Join | None":
    """The join by a column's name, if nothing says whose column is meant: then it is that of both."""
    joins = () if column.table else select.args.get("joins") or ()
    said = column.name.lower()
    return next((join for join in joins for one in join.args.get("using") or () if one.name.lower() == said), None)


def is_in_comparing_union(select: "exp.Select") -> bool:
    """Whether a query's rows are compared with those of others: told apart, or ordered among them."""
    from sqlglot import exp  # noqa: PLC0415

    union = select.find_ancestor(exp.Union)
    while union is not None and not (union.args.get("distinct") or union.args.get("order")):
        union = union.find_ancestor(exp.Union)
    return union is not None


def has_places(select: "exp.Select") -> bool:
    """Whether a query is ordered or grouped by the places of its columns."""
    from sqlglot import exp  # noqa: PLC0415

    parts = (one for clause in ("order", "group") for one in getattr(select.args.get(clause), "expressions", ()))
    return any(isinstance(one.this if isinstance(one, exp.Ordered) else one, exp.Literal) for one in parts)


def around(node: "exp.Expr", *kinds: "type[exp.Expr]") -> "exp.Expr":
    """The outermost of these around a node; itself where there is none."""
    while isinstance(node.parent, kinds):
        node = node.parent
    return node


def bare(node: "exp.Expr") -> "exp.Expr":
    """Without brackets and signs around."""
    from sqlglot import exp  # noqa: PLC0415

    while isinstance(node, exp.Paren | exp.Neg):
        node = node.this
    return node


def unnamed(node: "exp.Expr") -> "exp.Expr":
    """Without brackets and aliases around."""
    from sqlglot import exp  # noqa: PLC0415

    while isinstance(node, exp.Alias | exp.Paren | exp.Collate):
        node = node.this
    return node


def spell_table(table: "exp.Table", place: TableName) -> None:
    """Name a table as the target does, where that differs by case; its columns go on naming it as they did."""
    from sqlglot import exp  # noqa: PLC0415

    if place.table != table.name:
        if not table.alias:
            table.set("alias", exp.TableAlias(this=exp.to_identifier(table.name, quoted=True)))
        table.set("this", exp.to_identifier(place.table, quoted=True))
    if table.db and table.db != place.database:
        table.set("db", exp.to_identifier(place.database, quoted=True))


def called(source: "exp.Expr") -> "exp.Expr":
    """What stands before a source's columns: its alias, or its name."""
    found: exp.Expr = source.args["alias"].this.copy() if source.alias else source.this.copy()
    return found


def name_column(column: "exp.Column", source: "exp.Expr", name: str) -> None:
    """Name a column with its table in front, both as the target does."""
    column.set("table", called(source))
    column.set("db", None)
    respell(column, name)


def spell_column(column: "exp.Column", source: "exp.Expr", name: str) -> None:
    """Name a column of a query within or a view as that one does."""
    if column.table and source.alias_or_name:
        name_column(column, source, name)
    else:
        respell(column, name)


def respell(column: "exp.Column", name: str) -> None:
    """What a query shows is called as the query says."""
    from sqlglot import exp  # noqa: PLC0415

    said = column.name
    if said == name:
        return
    column.set("this", exp.to_identifier(name, quoted=True))
    if isinstance(column.parent, exp.Select) and column.arg_key == "expressions":
        alias = exp.Alias(this=exp.Null(), alias=exp.to_identifier(said, quoted=True))
        column.replace(alias)
        alias.set("this", column)

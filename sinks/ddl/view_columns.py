"""Columns in the query of a view: each has to be there, and whatever is done with it has to mean the same here.

SQLite takes a quoted name that is no column's for a text, so each column gets its table's name in front. What the
target keeps in another form than upstream (ENUM as a text, DECIMAL as one in SQLite) is only shown by a view that is
made: it is neither compared nor ordered, grouped or computed with.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from ordering.events import TableName
from sinks.ddl.kept_definitions import Definitions
from sinks.ddl.parse.views import CannotSayError
from sinks.ddl.rows.default_values import DATES, INTEGERS, REALS
from sinks.ddl.rows.modify_column import TEXTS
from sinks.rows.plain_values import are_moments
from sinks.rows.schema import Catalog, Column

if TYPE_CHECKING:  # see `sinks.ddl.parse.views`
    from sqlglot import exp

_NUMBERS = frozenset({*INTEGERS, *REALS, "decimal", "year", "bit"})


@dataclass(frozen=True, slots=True)
class ViewColumns:
    """The columns of a target. `database`: of tables that are named without one; `definitions`: as upstream has them.

    `other`: types that the target keeps in another form.
    """

    catalog: Catalog
    definitions: Definitions
    database: str
    other: frozenset[str]

    def settle(self, query: "exp.Expr") -> None:
        """Name the table of each column. Raises CannotSayError for a query that means something else here."""
        for column in _columns(query):
            found = self._meant(column)
            if _is_used(column):
                for one in found:
                    self._check(column, one)

    def _meant(self, column: "exp.Column") -> "list[_Meant]":
        """The target's columns behind one of a query; none where the table that has it is not known here."""
        if (alias := _alias_meant(column)) is not None:
            self._check_alias(column)
            return [found for inner in _columns(alias) if inner is alias.this for found in self._meant(inner)]
        scopes = list(_scopes(column))
        for select in scopes:
            sources = list(_sources(select))
            named = [one for one in sources if not column.table or one.alias_or_name.lower() == column.table.lower()]
            there = [(one, found) for one in named if (found := self._column(one, column.name)) is not None]
            if len(there) == 1:
                _name_table(column, there[0][0])
                return [self._typed(*there[0])]
            if there or any(self._schema(one) is None for one in named):
                return []
            if named and column.table:
                break
        own = [one for one in _aliases(column) if one.alias.lower() == column.name.lower() and not column.table]
        if scopes and not own:
            raise CannotSayError(f"column {column.name!r} is not in the target")
        return [found for one in own for inner in _columns(one) if inner is one.this for found in self._meant(inner)]

    def _check_alias(self, column: "exp.Column") -> None:
        """Raise CannotSayError where an alias goes before a column of its name upstream only: inside of expressions."""
        from sqlglot import exp  # noqa: PLC0415

        sources = [] if isinstance(column.parent, exp.Ordered) else list(_sources(next(_scopes(column))))
        if any(self._schema(one) is None or self._column(one, column.name) is not None for one in sources):
            raise CannotSayError(f"more is done with {column.name!r}, which is an expression, and maybe a column too")

    def _typed(self, source: "exp.Expr", column: Column) -> "_Meant":
        known = self.definitions.get(self._place(source))
        kind = None if known is None else known.type_of(column.name)
        if kind is None:
            return _Meant(column, "", "")
        moment = kind.base if kind.base == "date" else f"{kind.base}({kind.number(0, 0)})"
        family = "number" if kind.base in _NUMBERS else "text" if kind.base in TEXTS else kind.base
        if kind.base in DATES:
            family = moment if "timestamp" in self.other else "moment"  # else they are no texts here
        return _Meant(column, f"{kind.base} unsigned" if kind.unsigned else kind.base, family)

    def _place(self, source: "exp.Expr") -> TableName:
        return self.catalog.spelled(TableName(getattr(source, "db", "") or self.database, source.name))

    def _schema(self, source: "exp.Expr") -> object:
        from sqlglot import exp  # noqa: PLC0415

        return self.catalog.get(self._place(source)) if isinstance(source, exp.Table) else None

    def _column(self, source: "exp.Expr", name: str) -> Column | None:
        schema = self._schema(source)
        columns = getattr(schema, "columns", ())
        return next((one for one in columns if one.name.lower() == name.lower()), None)

    def _check(self, column: "exp.Column", meant: "_Meant") -> None:
        from sqlglot import exp  # noqa: PLC0415

        node = _around(column, exp.Paren)
        where = node.parent
        beside = [] if where is None else [one for one in where.iter_expressions() if one is not node]
        literals = [one for one in map(_bare, beside) if isinstance(one, exp.Literal)]
        if meant.type in self.other and not _is_member(meant, where, beside):
            fact = f"more is done with column {column.name!r} than showing it, and it is kept in another form"
            raise CannotSayError(fact)
        if isinstance(where, exp.EQ | exp.NEQ | exp.GT | exp.GTE | exp.LT | exp.LTE | exp.Between | exp.In):
            self._check_compared(column, meant, list(map(_bare, beside)))
        is_computed = isinstance(where, exp.Add | exp.Sub | exp.Mul | exp.Neg | exp.Sum)
        is_number = any(not one.is_string for one in literals)
        if meant.is_no_number and (is_computed or is_number):
            raise CannotSayError(f"column {column.name!r} is used as a number")

    def _check_compared(self, column: "exp.Column", meant: "_Meant", beside: "Sequence[exp.Expr]") -> None:
        """Raise CannotSayError for a comparison with what is of another kind, which upstream converts before."""
        from sqlglot import exp  # noqa: PLC0415

        for one in beside:
            others = self._meant(one) if isinstance(one, exp.Column) else []
            if any(meant.family and other.family not in {"", meant.family} for other in others):
                raise CannotSayError(f"columns {column.name!r} and {one.name!r} are of different types")
            if isinstance(one, exp.Literal) and one.is_string and not meant.is_spelled(one.this):
                raise CannotSayError(
                    f"{one.this[:50]!r} is not as the moments of column {column.name!r} are spelled here"
                )


class _Meant(NamedTuple):
    """A column of the target; `type`: upstream's, "" where it is not known; `family`: what it can be compared with."""

    column: Column
    type: str
    family: str

    @property
    def is_no_number(self) -> bool:
        return bool(self.type) and self.type.partition(" ")[0] not in _NUMBERS

    def is_spelled(self, text: str) -> bool:
        """Whether a text is spelled as the column's moments, where these are texts; True for other columns."""
        base, _, digits = self.family.rstrip(")").partition("(")
        if base not in DATES:
            return True
        longest = (
            len("2026-01-02 03:04:05") + bool(int(digits or 0)) + int(digits or 0) if digits else len("2026-01-02")
        )
        return are_moments([text]) and len(text) == longest


def _is_member(meant: _Meant, where: "exp.Expr | None", beside: "Sequence[exp.Expr]") -> bool:
    """Whether a member of an ENUM is asked for by its name."""
    from sqlglot import exp  # noqa: PLC0415

    names = all(isinstance(one, exp.Literal) and one.is_string for one in beside)
    return meant.type == "enum" and isinstance(where, exp.EQ | exp.NEQ | exp.In) and names


def _name_table(column: "exp.Column", source: "exp.Expr") -> None:
    column.set("table", source.args["alias"].this.copy() if source.alias else source.this.copy())
    column.set("db", None)


def _columns(tree: "exp.Expr") -> "list[exp.Column]":
    from sqlglot import exp  # noqa: PLC0415

    return [one for one in tree.find_all(exp.Column) if not isinstance(one.this, exp.Star)]


def _scopes(column: "exp.Column") -> "Iterator[exp.Select]":
    """The queries around a column, from the inside."""
    from sqlglot import exp  # noqa: PLC0415

    found = column.find_ancestor(exp.Select)
    while found is not None:
        yield found
        found = found.find_ancestor(exp.Select)


def _sources(select: "exp.Select") -> "Iterator[exp.Expr]":
    """What a query reads from."""
    begin = select.args.get("from_") or select.args.get("from")
    for one in (begin, *(select.args.get("joins") or ())):
        if one is not None:
            yield one.this


def _aliases(column: "exp.Column") -> "Iterator[exp.Alias]":
    from sqlglot import exp  # noqa: PLC0415

    for select in _scopes(column):
        yield from (one for one in select.expressions if isinstance(one, exp.Alias))


def _is_used(column: "exp.Column") -> bool:
    """Whether more is done with a column than showing it, counting it and asking for NULL."""
    from sqlglot import exp  # noqa: PLC0415

    node = _around(column, exp.Paren, exp.Alias)
    around = node.parent
    if isinstance(around, exp.Select) and node.arg_key == "expressions":
        return around.args.get("distinct") is not None or _is_in_distinct_union(around) or _has_places(around)
    return not isinstance(around, exp.Is | exp.Count)


def _is_in_distinct_union(select: "exp.Select") -> bool:
    from sqlglot import exp  # noqa: PLC0415

    union = select.find_ancestor(exp.Union)
    while union is not None and not union.args.get("distinct"):
        union = union.find_ancestor(exp.Union)
    return union is not None


def _has_places(select: "exp.Select") -> bool:
    """Whether a query is ordered or grouped by the places of its columns."""
    from sqlglot import exp  # noqa: PLC0415

    parts = (one for clause in ("order", "group") for one in getattr(select.args.get(clause), "expressions", ()))
    return any(isinstance(one.this if isinstance(one, exp.Ordered) else one, exp.Literal) for one in parts)


def _alias_meant(column: "exp.Column") -> "exp.Alias | None":
    """What a name in ORDER BY or HAVING means that an alias has, maybe a column too: there the alias goes first."""
    from sqlglot import exp  # noqa: PLC0415

    clause = column.find_ancestor(exp.Order, exp.Having, exp.AggFunc, exp.Select)
    if column.table or not isinstance(clause, exp.Order | exp.Having) or not isinstance(clause.parent, exp.Select):
        return None
    named = [one for one in clause.parent.expressions if isinstance(one, exp.Alias)]
    found = next((one for one in named if one.alias.lower() == column.name.lower()), None)
    is_same = (
        found is not None and isinstance(found.this, exp.Column) and found.this.name.lower() == column.name.lower()
    )
    return None if is_same else found


def _around(node: "exp.Expr", *kinds: "type[exp.Expr]") -> "exp.Expr":
    """The outermost of these around a node; itself where there is none."""
    while isinstance(node.parent, kinds):
        node = node.parent
    return node


def _bare(node: "exp.Expr") -> "exp.Expr":
    """Without brackets and signs around."""
    from sqlglot import exp  # noqa: PLC0415

    while isinstance(node, exp.Paren | exp.Neg):
        node = node.this
    return node

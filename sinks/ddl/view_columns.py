"""Columns in the query of a view: each has to be there, and whatever is done with it has to mean the same here.

SQLite takes a quoted name that is no column's for a text, so each column gets its table's name in front. What the
target keeps in another form than upstream (ENUM as a text, DECIMAL as one in SQLite) is only shown by a view that is
made: it is neither compared nor ordered, grouped or computed with.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from ordering.events import TableName
from sinks.ddl import view_tree
from sinks.ddl.kept_definitions import Definitions, Known
from sinks.ddl.parse.views import CannotSayError, NoColumnError, TooLongError, parsed
from sinks.ddl.rows.default_values import DATES, INTEGERS, REALS
from sinks.ddl.rows.modify_column import TEXTS
from sinks.ddl.view_stars import Shown, name_columns
from sinks.ddl.view_values import UNKNOWN, Comparisons, united
from sinks.rows.schema import Catalog, Column

if TYPE_CHECKING:  # see `sinks.ddl.parse.views`
    from sqlglot import exp

_NUMBERS = frozenset({*INTEGERS, *REALS, "decimal", "bit"})
_MOST_VIEWS = 30
"""That lie over each other."""


@dataclass(frozen=True, slots=True)
class ViewColumns:
    """The columns of a target. `database`: of tables that are named without one; `definitions`: as upstream has them.

    `other`: types that the target keeps in another form; `view`: the target's text of a view, "" where there is none.
    """

    catalog: Catalog
    definitions: Definitions
    database: str
    other: frozenset[str]
    dialect: str
    view: Callable[[TableName], str]
    _queries: "dict[TableName, exp.Expr | None]" = field(default_factory=dict)
    _under_way: list[str] = field(default_factory=list)
    _found: "dict[int, tuple[exp.Column, list[_Meant]]]" = field(default_factory=dict)
    """What is behind each column, by its identity: a column of a query within is asked about by each one around."""
    _types: dict[TableName, Known | None] = field(default_factory=dict)
    _clauses: "dict[int, _Clauses]" = field(default_factory=dict)
    _places: dict[TableName, TableName] = field(default_factory=dict)
    _in_scope: "dict[tuple[int, str, str], _Found]" = field(default_factory=dict)
    """What a query's sources have under a name: each column of many joins asks."""
    _joined: "dict[tuple[int, str], list[_Meant]]" = field(default_factory=dict)

    def settle(self, query: "exp.Expr") -> None:
        """Name the table of each column. Raises CannotSayError for a query that means something else here."""
        from sqlglot import exp  # noqa: PLC0415

        for table in list(query.find_all(exp.Table)):
            view_tree.spell_table(table, self._place(table))
        name_columns(query, self._shown)
        with_number: dict[int, bool] = {}
        for column in view_tree.columns(query):
            found = self.meant(column)
            if self._is_used(column):
                for one in found:
                    self._check(column, one, with_number)
        Comparisons(self).check(query)

    def why_not_any_more(self, text: str) -> str:
        """Why a view that was made may mean something else by now; "" where it does not, or ends as upstream's does."""
        from sqlglot import exp  # noqa: PLC0415
        from sqlglot.errors import SqlglotError  # noqa: PLC0415

        try:
            made = parsed(text, self.dialect)
            if not isinstance(made.expression, exp.Expr):
                return ""  # made by hand, of what is not read
            there = all(self._schema(one) or self.view(self._place(one)) for one in made.expression.find_all(exp.Table))
            if there:  # else it shows nothing, and is judged when what it reads comes
                self.settle(made.expression)
        except (NoColumnError, TooLongError, SqlglotError, RecursionError):
            return ""
        except CannotSayError as error:
            return str(error)
        return ""

    def meant(self, column: "exp.Column") -> "list[_Meant]":
        """The target's columns behind one of a query: none behind an alias of an expression."""
        if id(column) not in self._found:
            self._found[id(column)] = column, self._looked_up(column)
        return self._found[id(column)][1]

    def _looked_up(self, column: "exp.Column") -> "list[_Meant]":
        from sqlglot import exp  # noqa: PLC0415

        if (alias := self._alias_meant(column)) is not None:
            return self._meant_by_alias(column, alias, exp.Ordered)
        scopes = list(view_tree.scopes(column))
        for select in scopes:
            if (joined := view_tree.join_using(select, column)) is not None:
                return self.joined_by(joined, column.name)  # without a table it is what they have in common
            if (found := self._in_sources(column, select)) is not None:
                return found
            if column.table and self._clauses_of(select).named.get(column.table.lower()):
                break
            if (alias := self._alias_grouped_by(column, select)) is not None:
                return self._meant_by_alias(column, alias, exp.Group)
        every = () if column.table else view_tree.aliases(column)
        own = [one for one in every if one.alias.lower() == column.name.lower()]
        if scopes and not own:
            raise NoColumnError(f"column {column.name!r} is not in the target")
        if own:
            view_tree.respell(column, own[0].alias)
        return self._meant_by(own)

    def _in_sources(self, column: "exp.Column", select: "exp.Select") -> "list[_Meant] | None":
        """What a query's sources have under a column's name; None for nothing."""
        named, there, within = self._found_in(select, column.table.lower(), column.name.lower())
        if len(there) == 1:
            view_tree.name_column(column, there[0][0], there[0][1].name)
            return [self._typed(*there[0])]
        if len(within) == 1 and not there:
            source, names = within[0][0], self._names_of(within[0][0])[0]
            spelled = next(one for one in names if one.lower() == column.name.lower())
            view_tree.spell_column(column, source, spelled)
            return self._meant_by(within[0][1])
        if there or any(self._schema(one) is None for one in named):
            return [_Meant(None, "", UNKNOWN)]
        return None

    def _meant_by_alias(self, column: "exp.Column", alias: "exp.Alias", clause: "type[exp.Expr]") -> "list[_Meant]":
        self._check_alias(column, clause)
        view_tree.respell(column, alias.alias)
        return self._meant_by([alias])

    def _found_in(self, select: "exp.Select", table: str, name: str) -> "_Found":
        """The sources of a query that a table's name may mean, in lower case; "" means all."""
        key = id(select), table, name
        if key not in self._in_scope:
            clauses = self._clauses_of(select)
            named = clauses.named.get(table, []) if table else clauses.sources
            there = [(one, found) for one in named if (found := self._column(one, name)) is not None]
            within = [(one, shown) for one in named if (shown := self._shown_as(one, name))]
            self._in_scope[key] = _Found(named, there, within)
        return self._in_scope[key]

    def joined_by(self, join: "exp.Join", name: str) -> "list[_Meant]":
        """The columns of a name in all that a query reads."""
        from sqlglot import exp  # noqa: PLC0415

        select = join.find_ancestor(exp.Select)
        key = id(select), name.lower()
        if select is not None and key not in self._joined:
            sources = self._clauses_of(select).sources
            there = [self._typed(one, found) for one in sources if (found := self._column(one, name)) is not None]
            for one in sources:
                if self._schema(one) is None:
                    there += self._meant_by(self._shown_as(one, name)) or [_Meant(None, "", UNKNOWN)]
            self._joined[key] = there
        return self._joined.get(key, [])

    def _meant_by(self, shown: "Sequence[exp.Expr]") -> "list[_Meant]":
        """What is behind expressions that a query shows."""
        from sqlglot import exp  # noqa: PLC0415

        if len(self._under_way) > _MOST_VIEWS:
            message = "its query reads too many others"
            raise CannotSayError(message)
        self._under_way.append("")
        found: list[_Meant] = []
        for one in map(view_tree.unnamed, shown):
            if isinstance(one, exp.Column) and not isinstance(one.this, exp.Star):
                found += self.meant(one)
            else:
                value = Comparisons(self).value(one)
                kinds = {"text" if literal.is_string else "number" for literal in value.literals}
                found += [_Meant(None, "", family) for family in value.families | kinds]
        self._under_way.pop()
        return found

    def _shown_as(self, source: "exp.Expr", name: str) -> "list[exp.Expr]":
        """What a query within, or a view, shows under a name: of each query of a UNION one; none where that is open."""
        names, queries = self._names_of(source)
        names = [one.lower() for one in names]
        return [one.expressions[names.index(name.lower())] for one in queries] if name.lower() in names else []

    def _names_of(self, source: "exp.Expr") -> "tuple[list[str], list[exp.Select]]":
        """The columns of a query within, or of a view, and the queries that show them; none where that is open."""
        from sqlglot import exp  # noqa: PLC0415

        query = source.this if isinstance(source, exp.Subquery) else self._query_of(source)
        names: list[str] = []
        if isinstance(query, exp.Create):
            listed = query.this.expressions if isinstance(query.this, exp.Schema) else []
            names, query = [one.name for one in listed], query.expression
        queries = list(united(query))
        names = names or [one.alias_or_name for one in (queries[0].expressions if queries else ())]
        is_open = any(one.is_star for query in queries for one in query.expressions)
        return ([], []) if is_open or any(len(one.expressions) != len(names) for one in queries) else (names, queries)

    def _shown(self, source: "exp.Expr") -> Shown | None:
        """The columns of a source; None where they are not known. Raises CannotSayError where upstream has more."""
        schema = self._schema(source)
        if schema is None:
            names, _ = self._names_of(source)
            return Shown(names) if names and all(names) else None
        known, names = self._known(self._place(source)), [one.name for one in getattr(schema, "columns", ())]
        here = {name.lower() for name in names}
        if known is not None and (more := [name for name in known.columns if name.lower() not in here]):
            raise NoColumnError(f"column {more[0]!r} is not in the target")
        return Shown(names, known is not None and known.moved)

    def _query_of(self, source: "exp.Expr") -> "exp.Expr | None":
        """The CREATE VIEW of a view."""
        from sqlglot import exp  # noqa: PLC0415
        from sqlglot.errors import SqlglotError  # noqa: PLC0415

        if not isinstance(source, exp.Table) or self._schema(source) is not None:
            return None
        place = self._place(source)
        if place not in self._queries:
            try:
                text = self.view(place)
                self._queries[place] = parsed(text, self.dialect) if text else None
            except (TooLongError, SqlglotError, RecursionError):
                self._queries[place] = None
        return self._queries[place]

    def _check_alias(self, column: "exp.Column", clause: "type[exp.Expr]") -> None:
        """Raise CannotSayError where an alias goes before a column of its name upstream only: inside of expressions.

        There PostgreSQL knows no aliases at all: it takes them for columns of a query around.
        """
        if isinstance(column.parent, clause):
            return
        if self.dialect == "postgres":
            raise CannotSayError(f"more is done with {column.name!r}, which is no column, but an expression's name")
        sources = self._clauses_of(next(view_tree.scopes(column))).sources
        if any(self._schema(one) is None or self._column(one, column.name) is not None for one in sources):
            raise CannotSayError(f"more is done with {column.name!r}, which is an expression, and maybe a column too")

    def _typed(self, source: "exp.Expr", column: Column) -> "_Meant":
        known = self._known(self._place(source))
        kind = None if known is None else known.type_of(column.name)
        if kind is None:
            return _Meant(column, "", "")
        moment = kind.base if kind.base == "date" else f"{kind.base}({kind.number(0, 0)})"
        family = "number" if kind.base in _NUMBERS else "text" if kind.base in TEXTS else kind.base
        if kind.base == "float":
            family = "float"  # SQLite keeps the nearest DOUBLE of its digits, and PostgreSQL computes with 32 bits
        if kind.base in DATES:
            here = "day" if kind.base == "date" else "moment"
            family = moment if self.dialect == "sqlite" else here  # else they are no texts here
        return _Meant(column, f"{kind.base} unsigned" if kind.unsigned else kind.base, family)

    def _known(self, place: TableName) -> Known | None:
        if place not in self._types:
            self._types[place] = self.definitions.get(place)
        return self._types[place]

    def _place(self, source: "exp.Expr") -> TableName:
        given = TableName(getattr(source, "db", "") or self.database, source.name)
        if given not in self._places:
            self._places[given] = self.catalog.spelled(given)
        return self._places[given]

    def _schema(self, source: "exp.Expr") -> object:
        from sqlglot import exp  # noqa: PLC0415

        return self.catalog.get(self._place(source)) if isinstance(source, exp.Table) else None

    def _column(self, source: "exp.Expr", name: str) -> Column | None:
        schema = self._schema(source)
        columns = getattr(schema, "columns", ())
        return next((one for one in columns if one.name.lower() == name.lower()), None)

    def _clauses_of(self, select: "exp.Select") -> "_Clauses":
        if id(select) not in self._clauses:
            self._clauses[id(select)] = _read(select)
        return self._clauses[id(select)]

    def _alias_meant(self, column: "exp.Column") -> "exp.Alias | None":
        """What a name in ORDER BY or HAVING means that an alias has, maybe a column too: there the alias goes first."""
        from sqlglot import exp  # noqa: PLC0415

        clause = column.find_ancestor(exp.Order, exp.Having, exp.AggFunc, exp.Select)
        if column.table or not isinstance(clause, exp.Order | exp.Having) or not isinstance(clause.parent, exp.Select):
            return None
        found = self._clauses_of(clause.parent).aliases.get(column.name.lower())
        is_same = (
            found is not None and isinstance(found.this, exp.Column) and found.this.name.lower() == column.name.lower()
        )
        return None if is_same else found

    def _alias_grouped_by(self, column: "exp.Column", select: "exp.Select") -> "exp.Alias | None":
        """What a name in GROUP BY means that no column of its own query has: not one of a query around."""
        from sqlglot import exp  # noqa: PLC0415

        clause = column.find_ancestor(exp.Group, exp.Select)
        if column.table or not isinstance(clause, exp.Group) or clause.parent is not select:
            return None
        return self._clauses_of(select).aliases.get(column.name.lower())

    def _is_used(self, column: "exp.Column") -> bool:
        """Whether more is done with a column than showing it, counting it and asking for NULL."""
        from sqlglot import exp  # noqa: PLC0415

        node = view_tree.around(column, exp.Paren, exp.Alias)
        around = node.parent
        if isinstance(around, exp.Select) and node.arg_key == "expressions":
            return self._clauses_of(around).compares
        return not isinstance(around, exp.Is | exp.Count)

    def _check(self, column: "exp.Column", meant: "_Meant", with_number: dict[int, bool]) -> None:
        """Raise CannotSayError for a column that is used. `with_number`: expressions with a literal that is one."""
        from sqlglot import exp  # noqa: PLC0415

        node = view_tree.around(column, exp.Paren)
        where = node.parent
        if id(where) not in with_number:
            parts = [] if where is None or isinstance(where, exp.Select) else list(where.iter_expressions())
            bare = map(view_tree.bare, parts)
            with_number[id(where)] = any(isinstance(one, exp.Literal) and not one.is_string for one in bare)
        if meant.family == UNKNOWN:
            raise CannotSayError(f"more is done with column {column.name!r} than showing it, and its type is not known")
        if meant.type in self.other and not _is_member(meant, node):
            fact = f"more is done with column {column.name!r} than showing it, and it is kept in another form"
            raise CannotSayError(fact)
        is_computed = isinstance(where, exp.Add | exp.Sub | exp.Mul | exp.Neg | exp.Sum)
        if meant.is_no_number and (is_computed or with_number[id(where)]):
            raise CannotSayError(f"column {column.name!r} is used as a number")


class _Meant(NamedTuple):
    """A column of the target; `type`: upstream's, "" where it is not known; `family`: what it can be compared with."""

    column: Column | None
    type: str
    family: str

    @property
    def is_no_number(self) -> bool:
        return self.family not in {"", "number", "year", "float"}


class _Clauses(NamedTuple):
    """What is asked of a query again and again: its aliases in lower case, and whether its rows are compared.

    `sources`: what it reads; `named`: the same by their names in lower case.
    """

    aliases: "dict[str, exp.Alias]"
    compares: bool
    sources: "list[exp.Expr]"
    named: "dict[str, list[exp.Expr]]"


class _Found(NamedTuple):
    """The sources that may be meant; columns of theirs that have a name; what queries and views show under it."""

    named: "list[exp.Expr]"
    there: "list[tuple[exp.Expr, Column]]"
    within: "list[tuple[exp.Expr, list[exp.Expr]]]"


def _read(select: "exp.Select") -> _Clauses:
    from sqlglot import exp  # noqa: PLC0415

    aliases = [one for one in reversed(select.expressions) if isinstance(one, exp.Alias)]
    is_distinct = select.args.get("distinct") is not None
    compares = is_distinct or view_tree.is_in_comparing_union(select) or view_tree.has_places(select)
    sources, named = list(view_tree.sources(select)), dict[str, list[exp.Expr]]()
    for one in sources:
        named.setdefault(one.alias_or_name.lower(), []).append(one)
    return _Clauses({one.alias.lower(): one for one in aliases}, compares, sources, named)


def _is_member(meant: _Meant, node: "exp.Expr") -> bool:
    """Whether a member of an ENUM is asked for by its name; not by the name of one in a list of several."""
    from sqlglot import exp  # noqa: PLC0415

    where = node.parent
    is_asked = isinstance(where, exp.EQ | exp.NEQ) or (isinstance(where, exp.In) and node.arg_key == "this")
    if meant.type != "enum" or where is None or not is_asked:
        return False
    beside = (one for one in where.iter_expressions() if one is not node)
    return all(isinstance(one, exp.Literal) and one.is_string for one in beside)

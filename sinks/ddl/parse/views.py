"""Views, for targets that are not of the MySQL family: the statement's parts, and its query in another dialect.

A view changes no row, so one that can't be said in the target's SQL with the same meaning is left out, with the reason
in the DDL log. What is taken over is what means the same everywhere: columns, comparisons, arithmetic without
division, joins, groups. sqlglot writes it in the target's dialect.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from ordering.events import TableName
from sinks.ddl.parse.statement import TableReference
from sinks.ddl.parse.words import Words

if TYPE_CHECKING:  # it takes long to load, every command loads this file, and few meet a view
    from sqlglot import exp

LONGEST = 128 << 10
"""Characters of a query: sqlglot takes about a second for as many, and its tree 60 MiB."""
_STEPS_BACK = 100
"""So many times each word is read again at most; three times are usual."""
_DEEP = "its query is nested too deeply"


class CannotSayError(Exception):
    """A view that the target's SQL can't express; the text says why."""


class NoColumnError(CannotSayError):
    """A view over a column that the target has not (any more)."""


class TooLongError(CannotSayError):
    """A query that sqlglot would go back in again and again."""


@dataclass(frozen=True, slots=True)
class View:
    """A CREATE VIEW: what it is called, its columns ("" where the query names them), its query's source."""

    name: TableReference
    columns: tuple[str, ...]
    query: str

    def tables(self) -> "Iterator[exp.Table]":
        """The tables and views in the query. Raises CannotSayError."""
        from sqlglot import exp  # noqa: PLC0415

        yield from self.parsed().find_all(exp.Table)

    def unqualified(self) -> frozenset[str]:
        """The tables that are named without a database. Raises CannotSayError."""
        return frozenset(table.name for table in self.tables() if not table.db)

    def parsed(self) -> "exp.Expr":
        """The query. Raises CannotSayError."""
        from sqlglot.errors import SqlglotError  # noqa: PLC0415

        if len(self.query) > LONGEST:
            message = f"its query has {len(self.query)} characters, more than the {LONGEST} that are read"
            raise CannotSayError(message)
        try:
            found = parsed(self.query, "mysql")
            _drop_introducers(found)
        except SqlglotError as error:
            message = f"its query can't be read: {error}"
            raise CannotSayError(message) from error
        except RecursionError as error:
            raise CannotSayError(_DEEP) from error
        return found


def parsed(sql: str, dialect: str) -> "exp.Expr":
    """The tree of a statement. Raises TooLongError, and what sqlglot raises."""
    from sqlglot import Dialect  # noqa: PLC0415
    from sqlglot.errors import ParseError  # noqa: PLC0415

    own = Dialect.get_or_raise(dialect)
    tokens = own.tokenize(sql)
    parser = _patient(dialect)(dialect=own)
    parser.left = _STEPS_BACK * (len(tokens) + 100)
    found: exp.Expr | None = next(iter(parser.parse(tokens, sql)), None)
    if found is None:
        message = "there is no statement"
        raise ParseError(message)
    return found


def is_written_here(text: str, dialect: str) -> bool:
    """Whether the text of a view is spelled as this program does; one by another hand hardly is."""
    try:
        return text.endswith(parsed(text, dialect).expression.sql(dialect=dialect, identify=True))
    except RecursionError:
        return True


@cache
def _patient(dialect: str) -> "type[Any]":
    """A parser that gives up: sqlglot reads twenty joins without a condition 2^20 times."""
    from sqlglot import Dialect  # noqa: PLC0415

    class Patient(Dialect.get_or_raise(dialect).parser_class):  # type: ignore[misc]
        left = 0

        def _retreat(self, index: int) -> None:
            self.left -= self._index - index
            if self.left < 0:
                message = "its query takes too long to read"
                raise TooLongError(message)
            super()._retreat(index)

    return Patient


def _drop_introducers(query: "exp.Expr") -> None:
    """TiDB spells a text with its character set in front; what a text says of itself is part of it."""
    from sqlglot import exp  # noqa: PLC0415

    for one in list(query.find_all(exp.Introducer)):
        if str(one.args["this"]).upper() == "_UTF8MB4":
            one.replace(one.expression.copy())


def read_view(sql: str) -> View:
    """The parts of a CREATE VIEW. Raises InputError."""
    words = Words(sql)
    words.skip_to("VIEW")
    first = words.name()
    name = TableReference(first, words.name()) if words.skip(".") else TableReference(None, first)
    columns: tuple[str, ...] = ()
    if words.peek() == "(":
        inner = Words(words.in_brackets())
        columns = tuple(word.text for word in inner.words if word.text != ",")
    words.expect("AS")
    return View(name, columns, words.sql[words.words[words.at].start :])


@cache
def _same() -> "tuple[type[exp.Expr], ...]":
    """What means the same in every dialect."""
    from sqlglot import exp  # noqa: PLC0415

    return (
        exp.Select, exp.From, exp.Join, exp.Table, exp.TableAlias, exp.Column, exp.Identifier, exp.Alias, exp.Star,
        exp.Where, exp.Group, exp.Having, exp.Order, exp.Ordered, exp.Limit, exp.Offset, exp.Distinct, exp.Union,
        exp.Subquery, exp.Paren, exp.Literal, exp.Null, exp.And, exp.Or, exp.Not, exp.EQ, exp.NEQ, exp.GT, exp.GTE,
        exp.LT, exp.LTE, exp.Is, exp.In, exp.Exists, exp.Between, exp.Add, exp.Sub, exp.Mul, exp.Neg, exp.Coalesce,
        exp.Case, exp.If, exp.Count, exp.Sum, exp.Min, exp.Max,
    )  # fmt: skip


def translated(
    view: View, database: str, dialect: str, *, qualified: bool, settle: "Callable[[exp.Expr], object]" = bool
) -> str:
    """The query for a target; `database` is that of unqualified names. Raises CannotSayError.

    `settle`: looks at its columns, and changes how they are named.
    """
    from sqlglot import exp  # noqa: PLC0415
    from sqlglot.errors import SqlglotError  # noqa: PLC0415

    try:
        tree = _settled(view, dialect, settle)
        for table in tree.find_all(exp.Table):
            place = exp.to_identifier(table.db or database, quoted=True)
            table.set("db", place if qualified else None)
        return tree.sql(dialect=dialect, identify=True)
    except SqlglotError as error:
        message = f"its query can't be written: {error}"
        raise CannotSayError(message) from error
    except RecursionError as error:
        raise CannotSayError(_DEEP) from error


def _settled(view: View, dialect: str, settle: "Callable[[exp.Expr], object]") -> "exp.Expr":
    """The query's tree for a dialect. Raises as `translated`."""
    from sqlglot import exp  # noqa: PLC0415

    tree = view.parsed()
    _check_signs(view.query)
    _check_brackets(tree)
    _compare_numbers(tree)
    strange = next((node for node in tree.walk() if not isinstance(node, _same())), None)
    if strange is not None:
        message = f"{strange.sql(dialect='mysql')[:100]!r} may mean something else here"
        raise CannotSayError(message)
    for select in tree.find_all(exp.Select):
        _leave_dual_out(select)
        _join_in_a_row(select, dialect)
        if view.columns and any(one.is_star for one in select.expressions):
            message = "its columns are named by their places, and upstream's * may have another order"
            raise CannotSayError(message)
    settle(tree)
    if dialect == "postgres":
        _show_truth_as_numbers(tree)
    return tree


def _compare_numbers(query: "exp.Expr") -> None:
    """Say by comparisons what upstream says by numbers: TRUE is 1 there, and a condition holds where it is not 0."""
    from sqlglot import exp  # noqa: PLC0415

    for truth in list(query.find_all(exp.Boolean)):
        if isinstance(truth.parent, exp.EQ | exp.NEQ):
            truth.replace(exp.Literal.number(int(truth.this)))
    for column in list(query.find_all(exp.Column)):
        if _is_condition(column):
            column.replace(exp.NEQ(this=column.copy(), expression=exp.Literal.number(0)))


@cache
def _comparing() -> "tuple[type[exp.Expr], ...]":
    from sqlglot import exp  # noqa: PLC0415

    return exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Is, exp.In, exp.Between


def _check_brackets(query: "exp.Expr") -> None:
    """Raise CannotSayError for comparisons within one another without brackets: servers go through them otherwise.

    `a = b > 0` is `(a = b) > 0` upstream, and `a = (b > 0)` in SQLite and to sqlglot. In `a NOT IN (1) = b` sqlglot
    reads a NOT, which comes last.
    """
    from sqlglot import exp  # noqa: PLC0415

    for node in query.find_all(*_comparing()):
        if any(isinstance(one, (exp.Not, *_comparing())) for one in node.iter_expressions()):
            message = f"{node.sql(dialect='mysql')[:100]!r} compares what a comparison gives, without brackets"
            raise CannotSayError(message)


def _check_signs(query: str) -> None:
    """Raise CannotSayError for `!`, which goes before all else upstream: sqlglot reads it as NOT, which comes last."""
    from sqlglot import Dialect  # noqa: PLC0415

    tokens = Dialect.get_or_raise("mysql").tokenize(query) if "!" in query else []
    if any(token.text == "!" and token.token_type.name == "NOT" for token in tokens):
        message = "'!' is read as NOT here, which means something else beside other signs"
        raise CannotSayError(message)


def _show_truth_as_numbers(query: "exp.Expr") -> None:
    """Show 1 and 0 for what holds and what does not, as upstream; PostgreSQL has a type of its own for that."""
    from sqlglot import exp  # noqa: PLC0415

    for select in list(query.find_all(exp.Select)):
        for shown in select.expressions:
            value = shown.this if isinstance(shown, exp.Alias) else shown
            if _is_truth(value):
                value.replace(exp.cast(value.copy(), "INT"))
    computed: tuple[type[exp.Expr], ...] = (
        exp.Sum,
        exp.Min,
        exp.Max,
        exp.Add,
        exp.Sub,
        exp.Mul,
        exp.Neg,
        *_comparing(),
    )
    for node in reversed(list(query.find_all(*_comparing(), exp.Exists, exp.And, exp.Or, exp.Not))):
        around = node
        while isinstance(around.parent, exp.Paren):
            around = around.parent
        if isinstance(around.parent, computed) and not isinstance(around.parent, exp.Is):
            around.replace(exp.cast(around.copy(), "INT"))


def _is_truth(value: "exp.Expr") -> bool:
    """Whether a value is of PostgreSQL's own type for what holds; also one that is chosen from some of that type."""
    from sqlglot import exp  # noqa: PLC0415

    value = value.unnest()
    if (parts := chosen_from(value)) is not None:
        return any(map(_is_truth, parts))
    return isinstance(value, (*_comparing(), exp.Exists, exp.And, exp.Or, exp.Not))


def chosen_from(node: "exp.Expr") -> "list[exp.Expr] | None":
    """The values of which an expression is one; None for what does not choose."""
    from sqlglot import exp  # noqa: PLC0415

    if isinstance(node, exp.Coalesce):
        return [node.this, *node.expressions]
    if isinstance(node, exp.Case | exp.If):
        ifs = node.args["ifs"] if isinstance(node, exp.Case) else [node]
        otherwise = node.args.get("default" if isinstance(node, exp.Case) else "false")
        return [*(one.args["true"] for one in ifs), *([] if otherwise is None else [otherwise])]
    return None


def _is_condition(node: "exp.Expr") -> bool:
    from sqlglot import exp  # noqa: PLC0415

    parent, place = node.parent, node.arg_key
    if isinstance(parent, exp.Paren):
        return _is_condition(parent)
    if isinstance(parent, exp.If) and place == "this":
        return not (isinstance(parent.parent, exp.Case) and parent.parent.this is not None)
    is_joined = isinstance(parent, exp.Join) and place == "on"
    return is_joined or isinstance(parent, exp.Where | exp.Having | exp.And | exp.Or | exp.Not)


def from_clause(select: "exp.Select") -> "exp.From | None":
    """A query's FROM, which releases of sqlglot keep under two names."""
    found: exp.From | None = select.args.get("from_") or select.args.get("from")
    return found


def _leave_dual_out(select: "exp.Select") -> None:
    """Read from nothing where upstream reads from DUAL, which is no table."""
    from sqlglot import exp  # noqa: PLC0415

    begin = from_clause(select)
    source = None if begin is None else begin.this
    is_bare = isinstance(source, exp.Table) and not (source.db or source.this.quoted or source.alias)
    if begin is not None and is_bare and source is not None and source.name.upper() == "DUAL":
        begin.pop()


def _join_in_a_row(select: "exp.Select", dialect: str) -> None:
    """Take joins out of the brackets in which TiDB spells the first ones of several: joins go from left to right.

    PostgreSQL has no brackets around a table alone, and no join without a condition but CROSS JOIN; that one tells
    SQLite in which order to go.
    """
    from sqlglot import exp  # noqa: PLC0415

    begin = from_clause(select)
    if begin is None:
        return
    first, joins = begin.this, list(select.args.get("joins") or ())
    while True:
        joins = [*(first.args.get("joins") or ()), *joins]
        first.set("joins", None)
        is_bracket = isinstance(first, exp.Subquery) and isinstance(first.this, exp.Table | exp.Subquery)
        if not is_bracket or first.alias:
            break
        first = first.this
    begin.set("this", first)
    select.set("joins", joins)
    for join in joins:
        if not any(join.args.get(part) for part in ("on", "using", "side", "kind", "method")):
            join.set("kind", "CROSS" if dialect == "postgres" else "INNER")
            if dialect == "sqlite":  # sqlglot reads it again, and takes long for joins without a condition
                join.set("on", exp.EQ(this=exp.Literal.number(1), expression=exp.Literal.number(1)))


def concerned(views: Mapping[TableName, str], touched: Iterable[TableName]) -> list[TableName]:
    """The views that name one of these in their texts, or one another that does."""
    found: dict[TableName, None] = {}
    names = {spelled for name in touched for spelled in _spellings(name)}
    left = {name: text.lower() for name, text in views.items()}
    while names:
        more = [name for name, text in left.items() if any(one in text for one in names)]
        found |= dict.fromkeys(more)
        names = {spelled for name in more for spelled in _spellings(name)}
        left = {name: text for name, text in left.items() if name not in found}
    return list(found)


def _spellings(name: TableName) -> set[str]:
    return {name.table.lower(), name.table.lower().replace('"', '""')}


def tables_of(view: View, database: str) -> frozenset[TableName]:
    """The tables and views that a view reads. Raises CannotSayError."""
    return frozenset(TableName(table.db or database, table.name) for table in view.tables())

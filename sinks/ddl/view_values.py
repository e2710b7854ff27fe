"""What the query of a view compares: both sides have to be of one kind, for servers convert others each in its own way.

Upstream takes a text for a number, a moment or a year where it is compared with one; SQLite compares what they are
stored as, bytes and texts too, and PostgreSQL reads texts by its own rules. So a comparison is taken over only where no
side is converted, or where its text is spelled as all of them read it.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple, Protocol

from sinks.ddl import view_sqlite
from sinks.ddl.parse.views import CannotSayError, chosen_from
from sinks.ddl.rows.default_values import BYTES, DATES
from sinks.rows.plain_values import are_moments, is_number

if TYPE_CHECKING:  # see `sinks.ddl.parse.views`
    from sqlglot import exp

UNKNOWN = "?"
"""The family of a column whose table is not known here."""
_CLOCK = r"(?:[01]?[0-9]|2[0-3]):[0-5]?[0-9](?::[0-5]?[0-9](?:\.[0-9]{1,6})?)?"
_MOMENT = re.compile(rf"[0-9]{{4}}-[0-9]{{1,2}}-[0-9]{{1,2}}(?: {_CLOCK})?")
_DAY = re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?: 0?0:0?0(?::0?0(?:\.0{1,6})?)?)?")
_SPAN = re.compile(r"-?[0-7]?[0-9]{1,2}:[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,6})?")
_YEAR = re.compile(r"[0-9]{4}")
_MOMENTS = frozenset({"day", "moment"})
_ALIKE = {_MOMENTS: "day", frozenset({"float", "number"}): "number"}
"""What PostgreSQL compares as upstream does, and the family that literals beside it have to fit."""
_SHOWN_ALIKE = {_MOMENTS, frozenset({"number", "year"})}
"""What is shown in one place as upstream shows it."""


class Meaning(Protocol):
    """A column: upstream's type, "" where it is not known, and what it can be compared with."""

    @property
    def column(self) -> object:
        """The target's column; None for an expression."""

    @property
    def type(self) -> str:
        """Its type, with `unsigned`."""

    @property
    def family(self) -> str:
        """Its family."""


class Columns(Protocol):
    """What is known of columns."""

    @property
    def other(self) -> frozenset[str]:
        """Types that the target keeps in another form."""

    @property
    def dialect(self) -> str:
        """Of the target."""

    def meant(self, column: "exp.Column") -> Sequence[Meaning]:
        """The columns behind one of the query."""

    def joined_by(self, join: "exp.Join", name: str) -> Sequence[Meaning]:
        """The columns that USING compares."""


class Value(NamedTuple):
    """An expression: the families of what it may be, its literals, and whether it is a column or literal itself."""

    families: frozenset[str]
    literals: tuple["exp.Literal", ...] = ()
    is_plain: bool = False


_NUMBERS = frozenset({"", "number", "year"})
_NUMBER = Value(frozenset({"number"}))
_OPEN = Value(frozenset({UNKNOWN}))


class Comparisons:
    """Judges what a query compares."""

    def __init__(self, columns: Columns) -> None:
        self._columns, self._is_sqlite = columns, columns.dialect == "sqlite"

    def check(self, query: "exp.Expr") -> None:
        """Raise CannotSayError where a target may convert what is compared in another way than upstream."""
        from sqlglot import exp  # noqa: PLC0415

        for node in query.walk():
            if isinstance(node, exp.Case) and node.this is not None:
                self._alike([node.this, *(one.this for one in node.args["ifs"])])
            elif isinstance(node, exp.Union):
                self._united(node)
            elif isinstance(node, exp.Join):
                self._joined(node)
            elif isinstance(node, exp.Add | exp.Sub | exp.Mul | exp.Neg | exp.Sum):
                self._computed(node)
            elif isinstance(node, exp.Literal) and not node.is_string and "E" in node.this.upper():
                raise CannotSayError(f"{node.this[:50]} is a DOUBLE upstream")  # and a NUMERIC in PostgreSQL
            else:
                self._alike(compared(node), one_type=isinstance(node, exp.In))
            if self._is_sqlite:
                view_sqlite.check_node(node, self, self._columns)
            if (parts := chosen_from(node)) is not None and not isinstance(node.parent, exp.Case):
                self._shown_as_one(parts)

    def _united(self, union: "exp.Union") -> None:
        """What the queries of a UNION show in one place has to be of one kind, and of one form where it is compared."""
        from sqlglot import exp  # noqa: PLC0415

        if union.args.get("distinct"):
            for pair in zip(*(_shown(side) for side in (union.left, union.right)), strict=False):
                self._alike(pair, inner=True, one_type=True)
        if not isinstance(union.parent, exp.Union):
            for shown in zip(*map(_shown, united(union)), strict=False):
                self._shown_as_one(shown)

    def _shown_as_one(self, parts: "Sequence[exp.Expr]") -> None:
        """Values that are shown in one place: upstream makes them of one type."""
        if self._is_sqlite:
            view_sqlite.check_beside(parts, self._columns)
        values = [self.value(part) for part in parts]
        kinds = {"text" if literal.is_string else "number" for value in values for literal in value.literals}
        families = frozenset(kinds).union(*(value.families for value in values)) - {""}
        if len(families) > 1 and families not in _SHOWN_ALIKE:
            message = f"what is shown in one place is of different types: {', '.join(sorted(families))}"
            raise CannotSayError(message)

    def _computed(self, node: "exp.Expr") -> None:
        """FLOAT is computed with as a DOUBLE upstream; PostgreSQL has less digits, SQLite others.

        PostgreSQL counts days where upstream computes with a date's digits, and SQLite takes its year alone.
        """
        from sqlglot import exp  # noqa: PLC0415

        for one in node.iter_expressions():
            found = self.value(one.expressions[0] if isinstance(one, exp.Distinct) else one)
            if "float" in found.families:
                message = "it computes with a FLOAT"
                raise CannotSayError(message)
            if found.families - _NUMBERS or any(literal.is_string for literal in found.literals):
                raise CannotSayError(f"{one.sql(dialect='mysql')[:50]} is used as a number")

    def _joined(self, join: "exp.Join") -> None:
        if join.args.get("method"):
            message = f"a {join.args['method']} join may compare columns of different types"
            raise CannotSayError(message)
        for name in (one.name for one in join.args.get("using") or ()):
            found = self._columns.joined_by(join, name)
            families = {one.family for one in found}
            if len(families) != 1 or UNKNOWN in families or any(one.type in self._columns.other for one in found):
                message = f"USING compares columns {name!r}, which may be of different types or forms"
                raise CannotSayError(message)

    def _alike(self, operands: "Sequence[exp.Expr]", *, inner: bool = False, one_type: bool = False) -> None:
        """`one_type`: the target makes all of one type before it compares them."""
        if self._is_sqlite:
            view_sqlite.check_beside(operands, self._columns)
        found = self._together(operands, inner=inner)
        if one_type and "float" in found.families and (len(found.families) > 1 or found.literals):
            message = "FLOAT is compared with other numbers"
            raise CannotSayError(message)
        if not self._is_sqlite and found.families in _ALIKE:
            found = found._replace(families=frozenset({_ALIKE[found.families]}))
        family = next(iter(found.families), "")
        for literal in found.literals:
            if not self._fits(literal, family, is_plain=found.is_plain):
                message = f"{literal.sql(dialect='mysql')[:50]} is compared with what is of another type, or is"
                raise CannotSayError(f"{message} spelled in another way here")
        if len({literal.is_string for literal in found.literals}) > 1 and family != "number":
            message = "texts are compared with numbers"
            raise CannotSayError(message)

    def _together(self, parts: "Iterable[exp.Expr]", *, inner: bool) -> Value:
        """Values that are to be of one family."""
        values = [self.value(part, inner=inner) for part in parts]
        families = frozenset[str]().union(*(value.families for value in values)) - {""}
        if UNKNOWN in families:
            message = "a column is compared whose table is not known here"
            raise CannotSayError(message)
        if len(families) > 1 and (self._is_sqlite or families not in _ALIKE):
            message = f"what is compared is of different types: {', '.join(sorted(families))}"
            raise CannotSayError(message)
        literals = tuple(literal for value in values for literal in value.literals)
        return Value(families, literals, all(value.is_plain for value in values))

    def value(self, node: "exp.Expr", *, inner: bool = False) -> Value:
        """What an expression is. `inner`: a column is shown by a query within, and so was not judged there."""
        from sqlglot import exp  # noqa: PLC0415

        is_negative = isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal)
        is_spelled = isinstance(node, exp.Cast) and isinstance(node.this, exp.Literal)  # for PostgreSQL
        if isinstance(node, exp.Paren | exp.Alias | exp.Collate) or is_negative or is_spelled:
            return self.value(node.this, inner=inner)
        if isinstance(node, exp.Literal | exp.Null):
            return Value(frozenset(), (node,) if isinstance(node, exp.Literal) else (), is_plain=True)
        if isinstance(node, exp.Column):
            return _OPEN if isinstance(node.this, exp.Star) else self._column(node, inner=inner)
        return self._composed(node, inner=inner)

    def _composed(self, node: "exp.Expr", *, inner: bool) -> Value:
        """What an expression of others is: a number, where it is none of theirs."""
        from sqlglot import exp  # noqa: PLC0415

        if isinstance(node, exp.Min | exp.Max):
            return self.value(node.this, inner=inner)._replace(is_plain=False)
        if (parts := chosen_from(node)) is not None:
            return self._chosen(parts, inner=inner)
        if isinstance(node, exp.Subquery | exp.Select | exp.Union):
            first = next(_shown(node), None)
            return _OPEN if first is None else self.value(first, inner=True)
        return _OPEN if isinstance(node, exp.Star) else _NUMBER

    def _column(self, column: "exp.Column", *, inner: bool) -> Value:
        found = self._columns.meant(column)
        if inner and any(one.type in self._columns.other for one in found):
            message = f"more is done with column {column.name!r} than showing it, and it is kept in another form"
            raise CannotSayError(message)
        is_plain = not self._is_sqlite or all(one.column is not None for one in found)
        return Value(frozenset(one.family for one in found), is_plain=is_plain and bool(found))

    def _chosen(self, parts: "Sequence[exp.Expr]", *, inner: bool) -> Value:
        """One of several: its literals are of the family of the others, or else converted."""
        found = self._together(parts, inner=inner)
        kinds = {"text" if literal.is_string else "number" for literal in found.literals}
        if len(kinds | found.families) > 1 and kinds | found.families not in _SHOWN_ALIKE:
            message = "a value is chosen from some of different types"
            raise CannotSayError(message)
        return Value(found.families | kinds)

    def _fits(self, literal: "exp.Literal", family: str, *, is_plain: bool) -> bool:
        """Whether a literal is compared with a family as upstream compares it."""
        text = literal.this
        if family == "year":
            return is_plain and _YEAR.fullmatch(text) is not None
        if not literal.is_string:
            return family in {"", "number"} or (family == "float" and not self._is_sqlite)
        if family == "number":
            return is_plain and is_number(text)
        if family.partition("(")[0] in DATES:
            return _is_spelled(text, family)
        if family in BYTES:
            return not self._is_sqlite and "\\" not in text
        patterns = {"moment": _MOMENT, "day": _DAY, "time": _SPAN}
        return family in {"", "text", "enum"} or (family in patterns and patterns[family].fullmatch(text) is not None)


def _is_spelled(text: str, family: str) -> bool:
    """Whether a text is spelled as a column's moments, where these are texts."""
    _, _, digits = family.rstrip(")").partition("(")
    longest = len("2026-01-02 03:04:05") + bool(int(digits or 0)) + int(digits or 0) if digits else len("2026-01-02")
    return are_moments([text]) and len(text) == longest and _is_real(text)


def _is_real(text: str) -> bool:
    """Whether there is such a moment: upstream nothing is equal to, before or after what is none."""
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def compared(node: "exp.Expr") -> "list[exp.Expr]":
    """What a comparison compares; nothing of any other expression."""
    from sqlglot import exp  # noqa: PLC0415

    if isinstance(node, exp.EQ | exp.NEQ | exp.GT | exp.GTE | exp.LT | exp.LTE):
        return [node.this, node.expression]
    if isinstance(node, exp.Between):
        return [node.this, node.args["low"], node.args["high"]]
    if isinstance(node, exp.In):
        query = node.args.get("query")
        return [node.this, *node.expressions, *([] if query is None else [query])]
    return []


def _shown(query: "exp.Expr") -> "Iterator[exp.Expr]":
    """What a query shows, by place; of a UNION what its first one does."""
    from sqlglot import exp  # noqa: PLC0415

    while isinstance(query, exp.Subquery | exp.Paren | exp.Union):
        query = query.left if isinstance(query, exp.Union) else query.this
    yield from query.expressions


def united(query: "exp.Expr | None") -> "Iterator[exp.Select]":
    """The queries of a UNION, or the one that there is."""
    from sqlglot import exp  # noqa: PLC0415

    waiting = [query]
    while waiting:
        node = waiting.pop()
        if isinstance(node, exp.Union):
            waiting += [node.right, node.left]
        elif isinstance(node, exp.Subquery | exp.Paren):
            waiting.append(node.this)
        elif isinstance(node, exp.Select):
            yield node

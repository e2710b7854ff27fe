"""What SQLite does otherwise than upstream with the numbers of a view's query, and what it does not have.

Its whole numbers have 64 bits, beyond which arithmetic goes on with floats; it compares a BIGINT with a DOUBLE as they
are, where upstream makes a DOUBLE of it.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from sinks.ddl import view_tree
from sinks.ddl.parse.views import CannotSayError

if TYPE_CHECKING:  # see `sinks.ddl.parse.views`
    from sqlglot import exp

_DIGITS = 15
"""So many digits of a number are kept by floats of 64 bits."""
_BITS = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "year": 12}
_MOST_BITS = 63
_COUNTED_BITS = 32
"""By which sums are taken to be longer than what is added up."""


class TypesBehind(Protocol):
    """What is known of columns."""

    def meant(self, column: "exp.Column") -> Sequence[Any]:
        """The columns behind one of the query, each with its `type`."""


class Judged(Protocol):
    """What is known of expressions."""

    def value(self, node: "exp.Expr") -> Any:
        """Its `families` and `literals`."""


def check_node(node: "exp.Expr", values: Judged, columns: TypesBehind) -> None:
    """Raise CannotSayError for what SQLite has otherwise, or not at all."""
    from sqlglot import exp  # noqa: PLC0415

    if isinstance(node, exp.Mul):
        _check_product(node, columns)
    elif isinstance(node, exp.In):
        _check_sought(node, values)
    elif isinstance(node, exp.Literal) and not node.is_string:
        _check_number(node)
    elif isinstance(node, exp.Having) and node.parent is not None and not node.parent.args.get("group"):
        message = "it has HAVING without GROUP BY"
        raise CannotSayError(message)
    elif isinstance(node, exp.Count) and isinstance(node.this, exp.Distinct) and len(node.this.expressions) > 1:
        message = "it counts several columns together"
        raise CannotSayError(message)


def check_beside(parts: "Sequence[exp.Expr]", columns: TypesBehind) -> None:
    """Raise CannotSayError where a DOUBLE is compared with, or shown in one place with, a number of more digits."""
    from sqlglot import exp  # noqa: PLC0415

    types = set(_types([column for part in parts for column in view_tree.columns(part)], columns))
    literals = (one for part in parts for one in part.find_all(exp.Literal) if not one.is_string)
    if "double" in types and ("bigint" in types or any(len(one.this) > _DIGITS for one in literals)):
        message = "a DOUBLE is beside a BIGINT, or beside a number of as many digits"
        raise CannotSayError(message)


def _check_product(node: "exp.Mul", columns: TypesBehind) -> None:
    """Sums are DECIMALs upstream and pass 64 bits; products without a sign pass those that SQLite has."""
    from sqlglot import exp  # noqa: PLC0415

    found = view_tree.columns(node)
    is_unsigned = any(one.type.endswith("unsigned") for column in found for one in columns.meant(column))
    if (is_unsigned or node.find(exp.Sum) is not None) and _bits(node, columns) > _MOST_BITS:
        message = "a product may have more than 64 bits"
        raise CannotSayError(message)


def _bits(node: "exp.Expr", columns: TypesBehind) -> int:
    """How many bits a number may have."""
    from sqlglot import exp  # noqa: PLC0415

    if isinstance(node, exp.Literal):
        return int(node.this).bit_length() if node.this.isascii() and node.this.isdigit() else 0
    if isinstance(node, exp.Column):
        return max((_BITS.get(kind, _MOST_BITS) for kind in _types([node], columns)), default=_MOST_BITS)
    within = [_bits(one, columns) for one in node.iter_expressions()]
    if isinstance(node, exp.Mul):
        return sum(within)
    return max(within, default=0) + (_COUNTED_BITS if isinstance(node, exp.Sum | exp.Count) else 0)


def _types(found: "Sequence[exp.Column]", columns: TypesBehind) -> Iterator[str]:
    """The types behind columns, without their signs."""
    return (one.type.partition(" ")[0] for column in found for one in columns.meant(column))


def _check_sought(node: "exp.In", values: Judged) -> None:
    """What is in a list becomes of the type of what is sought there: beside a text alone no number does."""
    is_text = any(literal.is_string for literal in values.value(node.this).literals)
    if is_text and any("number" in values.value(one).families for one in node.expressions):
        message = "a text is sought among numbers"
        raise CannotSayError(message)


def _check_number(literal: "exp.Literal") -> None:
    """Raise CannotSayError for a number of many digits, or with a fraction: it is not computed with exactly."""
    from sqlglot import exp  # noqa: PLC0415

    text, node = literal.this, view_tree.around(literal, exp.Paren, exp.Neg).parent
    if text.isascii() and text.isdigit():
        is_kept = int(text) < 1 << 63
    else:
        compared = exp.EQ | exp.NEQ | exp.GT | exp.GTE | exp.LT | exp.LTE | exp.In | exp.Between
        is_kept = len(text) <= _DIGITS and isinstance(node, compared)
    if not is_kept:
        message = f"SQLite does not compute with {text[:50]} as upstream does"
        raise CannotSayError(message)

"""What a condition computes with, told from its columns' types: what TiDB decides before it sees a value.

TiDB takes both sides of a comparison, and the results of CASE, IF and COALESCE, for one type, which depends on the
types of all of them. The mixtures whose rule is known here, by asking TiDB (`tests.differential.conditions`), are
computed; others are refused. Pure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from enum import Enum

from consumer.filters.condition_tree import Call, ColumnName, Condition, Constant, Node
from consumer.filters.mysql_values import Bits, EvaluationError, base_of


class Family(Enum):
    """Types that compare in the same way."""

    NULL = "NULL"
    INTEGER = "an integer"
    DECIMAL = "a DECIMAL"
    REAL = "a DOUBLE"
    TEXT = "a text"
    BYTES = "bytes"
    BITS = "a hexadecimal or bit literal"
    DATE = "a DATE"
    MOMENT = "a DATETIME"
    TIME = "a TIME"
    YEAR = "a YEAR"
    BIT = "a BIT"
    MEMBER = "an ENUM or SET"
    OTHER = "a value of another type"


_F = Family
_OF_TYPES = {
    **dict.fromkeys(("tinyint", "smallint", "mediumint", "int", "integer", "bigint", "bool", "boolean"), _F.INTEGER),
    **dict.fromkeys(("decimal", "numeric"), _F.DECIMAL), **dict.fromkeys(("double", "real", "float"), _F.REAL),
    **dict.fromkeys(("char", "varchar", "tinytext", "text", "mediumtext", "longtext"), _F.TEXT),
    **dict.fromkeys(("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"), _F.BYTES),
    "date": _F.DATE, "datetime": _F.MOMENT, "timestamp": _F.MOMENT, "time": _F.TIME, "year": _F.YEAR, "bit": _F.BIT,
    "enum": _F.MEMBER, "set": _F.MEMBER,
}  # fmt: skip
_OF_CONSTANTS = {
    type(None): _F.NULL, int: _F.INTEGER, Decimal: _F.DECIMAL, float: _F.REAL, str: _F.TEXT, Bits: _F.BITS,
}  # fmt: skip
_COMPARISONS = {"=", "<>", "<", "<=", ">", ">=", "<=>"}
_CASTS = {
    "cast to binary": _F.BYTES, "cast to char": _F.TEXT, "cast to signed": _F.INTEGER, "cast to unsigned": _F.INTEGER,
    "cast to date": _F.DATE, "cast to datetime": _F.MOMENT, "cast to time": _F.TIME,
}  # fmt: skip
_TRUTHS = {
    *_COMPARISONS, *("and", "or", "xor", "not", "in", "between", "is null", "is true", "is false", "like", "regexp"),
    *("length", "char_length", "div"),
}  # fmt: skip
_TEXTS = {"lower", "upper", "left", "right", "substring", "trim", "ltrim", "rtrim", "concat"}
_CALCULATIONS = {"+", "-", "*", "/", "div", "mod", "negative", "abs", "floor", "ceil"}
_AS_TEXT = _TEXTS | {"like", "regexp", "length", "char_length", "cast to char", "cast to binary"}
_ONE_OF = {"coalesce": slice(None), "case": slice(1, None, 2)}
_DATES, _NUMBERS = {_F.DATE, _F.MOMENT}, {_F.INTEGER, _F.DECIMAL, _F.REAL}
_TEMPORAL, _READ_BESIDE = _DATES | {_F.TIME}, {_F.TIME, _F.YEAR}
_READ_WITH = {"=", "<", "<=", ">", ">="}
"""With these TiDB reads two digits in a text as a YEAR."""
_CAST_TO_DATES = _DATES | {_F.NULL, _F.INTEGER, _F.TEXT}
_TAKEN = {_F.REAL: "as real", _F.DECIMAL: "as decimal"}
_ALIEN = {
    **{date: {_F.TIME, _F.BITS, _F.YEAR, _F.MEMBER, _F.BYTES} for date in _DATES},
    _F.TIME: {_F.BITS, _F.MEMBER, _F.BYTES},
    _F.YEAR: {_F.BITS},
    _F.MEMBER: {_F.BYTES},
}
"""What is not compared with each other: rules of TiDB that are not known here."""


def typed(asked: Condition, types: Mapping[str, str]) -> Condition:
    """The condition for columns of these types (`mysqlType`). Raises EvaluationError for a mixture without a rule."""
    return replace(asked, node=_Typing({name.lower(): base_of(kind) for name, kind in types.items()}).node(asked.node))


class _Typing:
    def __init__(self, types: Mapping[str, str]) -> None:
        self._types = types

    def family(self, node: Node) -> Family:
        """What kind of value it gives, of a tree that `node` has seen."""
        if isinstance(node, Constant):
            return _OF_CONSTANTS.get(type(node.value), _F.OTHER)
        if isinstance(node, ColumnName):
            return _OF_TYPES.get(self._types.get(node.name.lower(), ""), _F.OTHER)
        if node.function in _TRUTHS:
            return _F.INTEGER
        if node.function in _CASTS:
            return _CASTS[node.function]
        if node.function in _ONE_OF:
            return _common(self._families(_results(node)))
        return self._of_calculation(node.function, self._families(node.arguments))

    def _families(self, nodes: Sequence[Node]) -> list[Family]:
        return [self.family(node) for node in nodes]

    def _of_calculation(self, function: str, found: Sequence[Family]) -> Family:
        if function == "beside":
            return found[1]
        if function == "nullif" or function.startswith("as "):
            return found[0]
        if function in _TEXTS:
            return _F.BYTES if {_F.BYTES, _F.BITS, _F.BIT} & set(found) else _F.TEXT
        if {_F.REAL, _F.TEXT, _F.BYTES, _F.MEMBER} & set(found):
            return _F.REAL
        return _F.DECIMAL if function == "/" or {_F.DECIMAL, _F.MOMENT, _F.TIME} & set(found) else _F.INTEGER

    def node(self, node: Node) -> Node:
        """The tree, with the results of CASE and COALESCE as what they are taken for."""
        if not isinstance(node, Call):
            return node
        found = Call(node.function, tuple(self.node(argument) for argument in node.arguments))
        self._check(found)
        taken = _TAKEN.get(self.family(found)) if found.function in _ONE_OF else None
        if taken is None:
            return found
        results = _results(found)
        arguments = (Call(taken, (a,)) if any(a is r for r in results) else a for a in found.arguments)
        return Call(found.function, tuple(arguments))

    def _check(self, call: Call) -> None:
        families = self._families(call.arguments)
        _check_argument(call.function, families)
        if call.function in _COMPARISONS or call.function == "nullif":
            _check_pair(call.function, *zip(call.arguments, families, strict=True))
        elif call.function in {"in", "between"}:
            first, *others = zip(call.arguments, families, strict=True)
            for other in others:
                _check_pair(call.function, first, other)
            _check_several(call.function, families)
        elif call.function in _AS_TEXT:
            for argument, family in zip(call.arguments, families, strict=True):
                self._check_text(argument, family)
        elif call.function in _ONE_OF:
            _common(self._families(_results(call)))

    def _check_text(self, node: Node, family: Family) -> None:
        """What is computed, and a FLOAT, has another text on TiDB."""
        is_single = isinstance(node, ColumnName) and self._types.get(node.name.lower()) == "float"
        if is_single or (isinstance(node, Call) and family in {_F.REAL, _F.DECIMAL}):
            raise EvaluationError("a FLOAT, or a number that is computed, can't be taken for a text here")


def _check_argument(function: str, families: Sequence[Family]) -> None:
    """What a function takes, whatever is beside it."""
    dates, first = set(families) & _TEMPORAL, families[0]
    if function in _CALCULATIONS and dates:
        raise EvaluationError(f"nothing is calculated here with {_listed(dates)}: CAST it")
    is_cast = function.startswith("cast to ") and first is _F.BITS
    is_to_date = function in {"cast to date", "cast to datetime"} and first not in _CAST_TO_DATES
    is_folded = function in {"lower", "upper"} and first in {_F.BYTES, _F.BITS, _F.BIT}
    if is_cast or is_to_date or is_folded:
        raise EvaluationError(f"{function.upper()} of {first.value} has no rule here")


def _results(call: Call) -> tuple[Node, ...]:
    """What CASE or COALESCE may give."""
    if call.function == "case":
        return (*call.arguments[1:-1:2], call.arguments[-1])
    return call.arguments


def _common(families: Sequence[Family]) -> Family:
    """What several results are taken for. Raises EvaluationError."""
    some = set(families) - {_F.NULL}
    if some <= _NUMBERS:
        return next((one for one in (_F.REAL, _F.DECIMAL, _F.INTEGER) if one in some), _F.NULL)
    if len(some) == 1 and not some & {_F.MEMBER, _F.BIT, _F.BITS, _F.YEAR, _F.OTHER}:
        return some.pop()
    raise EvaluationError(f"results that are {_listed(some)} have no rule here: CAST them to one type")


_Side = tuple[Node, Family]


def _check_pair(function: str, left: _Side, right: _Side) -> None:
    for (node, family), (other_node, other) in ((left, right), (right, left)):
        is_alien = other in _ALIEN.get(family, ()) or (function == "<=>" and family in _TEMPORAL and other is _F.TEXT)
        is_odd = family is _F.YEAR and other in {_F.TEXT, _F.REAL} and function not in _READ_WITH
        is_odd |= function == "nullif" and family in {_F.YEAR, _F.BITS, _F.MEMBER}
        if is_alien or is_odd or (family in _READ_BESIDE and not _is_read(family, node, other_node, other)):
            raise EvaluationError(f"{family.value} can't be compared with {other.value} here: CAST one of them")


def _is_read(family: Family, node: Node, other_node: Node, other: Family) -> bool:
    """Whether it is known how TiDB reads what is beside a TIME or YEAR: constants beside a column."""
    if other is _F.TEXT or (family is _F.YEAR and isinstance(other_node, Call)):
        return isinstance(node, ColumnName) and isinstance(_constant(other_node), Constant)
    return True


def _constant(node: Node) -> Node:
    return node.arguments[1] if isinstance(node, Call) and node.function == "beside" else node


def _check_several(function: str, families: Sequence[Family]) -> None:
    """IN and BETWEEN: what the value is compared with has to be of one kind."""
    value, *others = families
    kinds = {_kind(other) for other in others} - {_F.NULL}
    texts = {_F.TEXT, _F.BYTES, _F.MEMBER}
    is_text_between = function == "between" and value in texts and kinds & {_F.DATE, _F.TIME, _F.INTEGER}
    if len(kinds) > 1 or is_text_between:
        raise EvaluationError(f"{function.upper()} with {_listed({value, *others})} has no rule here: CAST them")


def _kind(one: Family) -> Family:
    return _F.INTEGER if one in _NUMBERS else _F.DATE if one in _DATES else one


def _listed(families: set[Family]) -> str:
    return " and ".join(sorted(one.value for one in families))

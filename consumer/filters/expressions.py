"""Conditions over a row's columns: `ignore-insert-value-expr` and its kin.

sqlglot parses the SQL once, where the config is read; what is sent to the tasks is a small tree of our own
(`condition_tree`) that knows only what `functions` can compute. Anything else in a condition is a ConfigError, as it is
a SQL error in TiCDC.
"""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from consumer.filters.condition_tree import Call, ColumnName, Condition, Constant, Node
from consumer.filters.mysql_values import Bits
from consumer.runtime import trial
from ordering.errors import ConfigError, InputError
from sinks.ddl.parse import branching
from sinks.ddl.parse.words import Words

LONGEST = 16 << 10
"""Characters of an expression."""
DEEPEST = 8
"""Brackets within each other."""
_KNOWN = (
    "comparisons, <=>, BETWEEN, IN, LIKE, REGEXP, IS, AND, OR, XOR, NOT, + - * / DIV %, CASE, IF, IFNULL, COALESCE,"
    " NULLIF, ABS, FLOOR, CEIL, MOD, LOWER, UPPER, LENGTH, CHAR_LENGTH, CONCAT, LEFT, RIGHT, SUBSTRING, TRIM,"
    " CAST AS BINARY, CHAR, SIGNED, UNSIGNED, DATE, DATETIME, TIME"
)
_BINARY = {
    exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=", exp.NullSafeEQ: "<=>",
    exp.And: "and", exp.Or: "or", exp.Xor: "xor", exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/",
    exp.IntDiv: "div", exp.Mod: "mod", exp.Like: "like", exp.RegexpLike: "regexp", exp.Nullif: "nullif",
    exp.Left: "left", exp.Right: "right",
}  # fmt: skip
_COMPARISONS = {exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ}
_UNARY = {
    exp.Not: "not", exp.Neg: "negative", exp.Abs: "abs", exp.Floor: "floor", exp.Ceil: "ceil", exp.Lower: "lower",
    exp.Upper: "upper",
}  # fmt: skip
_CASTS = {
    "BINARY": "binary", "CHAR": "char", "VARCHAR": "char", "NCHAR": "char", "TEXT": "char", "BIGINT": "signed",
    "UBIGINT": "unsigned", "DATE": "date", "DATETIME": "datetime", "TIMESTAMP": "datetime", "TIME": "time",
}  # fmt: skip
_SIDES = {"": "trim", "BOTH": "trim", "LEADING": "ltrim", "TRAILING": "rtrim"}


def condition(text: str, key: str) -> Condition:
    """Read a condition. `key` names it in the ConfigError for what can't be read or computed."""
    _check_nesting(text, key)
    _check_time(text, key)
    return read_condition(text, key)


def read_condition(text: str, key: str) -> Condition:
    """As `condition`, of a text that no stranger wrote: how long it takes to read is not checked."""
    _check_nesting(text, key)
    try:
        return _condition(text, key)
    except RecursionError as error:
        raise ConfigError(f"{key}: an expression of {len(text)} characters is nested too deeply") from error


def _condition(text: str, key: str) -> Condition:
    try:
        tree = parsed(text)
    except SqlglotError as error:
        raise ConfigError(f"{key}: {text!r} is no SQL condition, or not a whole one") from error
    where = tree.args.get("where")
    more = [
        name for name, value in tree.args.items() if value and name not in {"expressions", "from_", "from", "where"}
    ]
    if not isinstance(tree, exp.Select) or where is None or more:
        raise ConfigError(f"{key}: {text!r} is not one SQL expression")
    return Condition(text, _Reading(text, key).node(where.this))


def _check_nesting(text: str, key: str) -> None:
    """Raise ConfigError for more brackets within each other than sqlglot reads in a short time.

    It may take twice as long with each: `CHAR(CHAR(...` would hold the process.
    """
    if len(text) > LONGEST:
        raise ConfigError(f"{key}: an expression has {len(text)} characters, more than {LONGEST}")
    deep = deepest = 0
    for char in text:
        deep += (char == "(") - (char == ")")
        deepest = max(deep, deepest)
    if deepest > DEEPEST:
        fact = f"{key}: {text[:200]!r} holds {deepest} brackets within each other, more than {DEEPEST}"
        raise ConfigError(fact, hint="use fewer brackets, or several event filters")


def _check_time(text: str, key: str) -> None:
    """Raise ConfigError for what sqlglot takes too long to read: `t JOIN t JOIN ...` twice as long with each."""
    try:
        is_slow = branching.may_be_slow(Words(text).words)
    except InputError as error:
        raise ConfigError(f"{key}: {text[:200]!r} is no SQL condition, or not a whole one") from error
    if is_slow and not trial.is_read_in_time("consumer.filters.trial_condition", text):
        fact = f"{key}: {text[:200]!r} can't be read within {trial.LIMIT_S:.0f} s"
        raise ConfigError(fact, hint="use several event filters with shorter expressions")


def parsed(text: str) -> exp.Expr:
    """The tree of a query with this condition: so nothing but one condition can stand there, as TiCDC completes it.

    Raises SqlglotError.
    """
    return sqlglot.parse_one(f"SELECT * FROM t WHERE {text}", read="mysql")  # noqa: S608 parsed, never executed


def _compared(left: Node, right: Node) -> tuple[Node, Node]:
    return _beside(right, left), _beside(left, right)


def _beside(other: Node, node: Node) -> Node:
    """A constant as TiDB compares it with a column, whose type is known once there is a row."""
    if isinstance(other, ColumnName) and isinstance(node, Constant):
        return Call("beside", (other, node))
    return node


class _Reading:
    """From sqlglot's tree to ours."""

    def __init__(self, text: str, key: str) -> None:
        self.text, self.key = text, key

    def node(self, tree: Any) -> Node:
        kind = type(tree)
        if kind in _BINARY:
            sides = (self.node(tree.this), self.node(tree.expression))
            found = Call(_BINARY[kind], _compared(*sides) if kind in _COMPARISONS else sides)
            return Call("not", (found,)) if tree.args.get("negate") else found
        if kind in _UNARY:
            return Call(_UNARY[kind], (self.node(tree.this),))
        rule = _RULES.get(kind)
        if rule is None:
            raise self._unknown(tree)
        return rule(self, tree)

    def nodes(self, trees: list[Any]) -> tuple[Node, ...]:
        return tuple(self.node(tree) for tree in trees)

    def _unknown(self, tree: Any) -> ConfigError:
        fact = f"{self.key}: {tree.sql(dialect='mysql')!r} in {self.text!r} can't be computed here"
        return ConfigError(fact, hint=f"what can be: {_KNOWN}")

    def literal(self, tree: exp.Literal) -> Node:
        text = str(tree.this)
        if tree.is_string:
            return Constant(text)
        if "e" in text.lower():
            return Constant(float(text))
        return Constant(Decimal(text) if "." in text else int(text))

    def bits(self, tree: Any) -> Node:
        """`0x41`, `x'41'` or `b'101'`."""
        digits = str(tree.this)
        if isinstance(tree, exp.HexString):
            return Constant(Bits(bytes.fromhex(digits.zfill(len(digits) + len(digits) % 2))))
        return Constant(Bits(int(digits or "0", 2).to_bytes((len(digits) + 7) // 8)))

    def introduced(self, tree: exp.Introducer) -> Node:
        return self.node(tree.expression)

    def inner(self, tree: exp.Paren) -> Node:
        return self.node(tree.this)

    def collated(self, tree: exp.Collate) -> Node:
        """Under a binary collation nothing changes; another one would need its tables of weights."""
        name = tree.expression.name.lower()
        if name != "binary" and not name.endswith("_bin"):
            raise self._unknown(tree)
        return self.node(tree.this)

    def compared_with(self, tree: exp.Is) -> Node:
        value = tree.expression
        word = "null" if isinstance(value, exp.Null) else str(value.this).lower()
        return Call(f"is {word}", (self.node(tree.this),))

    def listed(self, tree: exp.In) -> Node:
        if tree.args.get("query") or not tree.expressions:
            raise self._unknown(tree)
        value, others = self.node(tree.this), self.nodes(tree.expressions)
        return Call("=", _compared(value, *others)) if len(others) == 1 else Call("in", (value, *others))

    def between(self, tree: exp.Between) -> Node:
        value, low, high = self.nodes([tree.this, tree.args["low"], tree.args["high"]])
        return Call("between", (value, _beside(value, low), _beside(value, high)))

    def escaped(self, tree: exp.Escape) -> Node:
        found = self.node(tree.this)
        if not isinstance(found, Call):
            raise self._unknown(tree)
        if found.function == "not" and isinstance(found.arguments[0], Call):
            inner = found.arguments[0]
            return Call("not", (Call(inner.function, (*inner.arguments, self.node(tree.expression))),))
        return Call(found.function, (*found.arguments, self.node(tree.expression)))

    def cases(self, tree: exp.Case) -> Node:
        parts: list[Node] = []
        subject = None if tree.this is None else self.node(tree.this)
        for branch in tree.args["ifs"]:
            test = self.node(branch.this)
            parts += [test if subject is None else Call("=", _compared(subject, test)), self.node(branch.args["true"])]
        default = tree.args.get("default")
        return Call("case", (*parts, Constant(None) if default is None else self.node(default)))

    def choice(self, tree: exp.If) -> Node:
        otherwise = tree.args.get("false")
        last = Constant(None) if otherwise is None else self.node(otherwise)
        return Call("case", (*self.nodes([tree.this, tree.args["true"]]), last))

    def coalesce(self, tree: exp.Coalesce) -> Node:
        return Call("coalesce", self.nodes([tree.this, *tree.expressions]))

    def concatenated(self, tree: exp.Concat) -> Node:
        return Call("concat", self.nodes(tree.expressions))

    def length(self, tree: exp.Length) -> Node:
        return Call("length" if tree.args.get("binary") else "char_length", (self.node(tree.this),))

    def substring(self, tree: exp.Substring) -> Node:
        parts = (tree.this, tree.args.get("start"), tree.args.get("length"))
        return Call("substring", self.nodes([part for part in parts if part is not None]))

    def trimmed(self, tree: exp.Trim) -> Node:
        if tree.expression:
            raise self._unknown(tree)
        return Call(_SIDES[str(tree.args.get("position") or "").upper()], (self.node(tree.this),))

    def cast(self, tree: exp.Cast) -> Node:
        name = _CASTS.get(tree.args["to"].this.name)
        if name is None or tree.args["to"].expressions:
            raise self._unknown(tree)
        return Call(f"cast to {name}", (self.node(tree.this),))


_RULES: dict[type[Any], Callable[[_Reading, Any], Node]] = {
    exp.Column: lambda _, tree: ColumnName(tree.name),
    exp.Literal: _Reading.literal,
    exp.Null: lambda _, __: Constant(None),
    exp.Boolean: lambda _, tree: Constant(int(tree.this)),
    exp.HexString: _Reading.bits,
    exp.BitString: _Reading.bits,
    exp.Introducer: _Reading.introduced,
    exp.Paren: _Reading.inner,
    exp.Collate: _Reading.collated,
    exp.Is: _Reading.compared_with,
    exp.In: _Reading.listed,
    exp.Between: _Reading.between,
    exp.Escape: _Reading.escaped,
    exp.Case: _Reading.cases,
    exp.If: _Reading.choice,
    exp.Coalesce: _Reading.coalesce,
    exp.Concat: _Reading.concatenated,
    exp.Length: _Reading.length,
    exp.Substring: _Reading.substring,
    exp.Trim: _Reading.trimmed,
    exp.Cast: _Reading.cast,
}

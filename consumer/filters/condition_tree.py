"""A condition over a row's columns as a small tree, and what it computes; `expressions` makes it from SQL."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from consumer.filters.functions import FUNCTIONS
from consumer.filters.mysql_values import Value

Row = Callable[[str], Value]
"""Gives the value of a column. Raises EvaluationError."""

_LAZY = {"and": 0, "or": 1}
"""What decides an operator whatever the other side is."""


@dataclass(frozen=True, slots=True)
class Constant:
    """A value that the condition spells out."""

    value: Value


@dataclass(frozen=True, slots=True)
class ColumnName:
    """A column; upper and lower case mean the same in MySQL."""

    name: str


@dataclass(frozen=True, slots=True)
class Call:
    """One of `FUNCTIONS` with its arguments."""

    function: str
    arguments: tuple["Node", ...]


Node = Constant | ColumnName | Call


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition: its text, and what it computes."""

    text: str
    node: Node

    def holds(self, row: Row) -> bool:
        """Whether it gives the integer 1, which is what TiCDC asks for. Raises EvaluationError."""
        found = _evaluated(self.node, row)
        return isinstance(found, int) and found == 1

    def columns(self) -> set[str]:
        """The columns that it names, as it spells them."""
        return set(_columns(self.node))


def _evaluated(node: Node, row: Row) -> Value:
    if isinstance(node, Constant):
        return node.value
    if isinstance(node, ColumnName):
        return row(node.name)
    decided = _LAZY.get(node.function)
    first = _evaluated(node.arguments[0], row)
    if decided is not None and FUNCTIONS["is true" if decided else "is false"](first):
        return decided
    return FUNCTIONS[node.function](first, *(_evaluated(argument, row) for argument in node.arguments[1:]))


def _columns(node: Node) -> Iterator[str]:
    if isinstance(node, ColumnName):
        yield node.name
    if isinstance(node, Call):
        for argument in node.arguments:
            yield from _columns(argument)

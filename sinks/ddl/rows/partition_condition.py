"""Which rows belong to a partition, as a condition in a target's SQL.

RANGE and LIST compare as upstream does: NULL is the lowest, texts by their bytes (other collations are refused). HASH
takes the number's remainder without its sign, NULL is 0. KEY is CRC-32 over the texts of the columns, one behind the
other, without the spaces that a collation pads with, and a zero byte for NULL (pingcap/tidb,
`table/tables/partition.go` and `types/datum.go`; held to by recordings).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence

from ordering.errors import InputError, TargetError
from sinks.ddl.collations import is_by_bytes, is_padded, of_charset
from sinks.ddl.kept_definitions import Known
from sinks.ddl.model import TypeDef
from sinks.ddl.parse.defaults import read_default
from sinks.ddl.parse.partitions import DEFAULT, MAXVALUE, Partitioning
from sinks.ddl.parse.words import WordKind, Words
from sinks.ddl.rows.default_values import DATES, INTEGERS, spelled
from sinks.ddl.rows.temporal import date_and_time
from sinks.rows.chained import chained
from sinks.rows.plain_values import is_unsigned

STRINGS = {"char", "varchar"}
KEYED = INTEGERS | STRINGS | {"year", "decimal", "date", "datetime", "enum", "varbinary"}
"""Types whose KEY partitions are known here."""
_BOUND = INTEGERS | STRINGS | {"date", "datetime", "year", "binary", "varbinary"}
_OF_NUMBERS = {"FLOOR", "ABS", "MOD"}
"""Functions whose arguments are no dates."""
_MICROSECONDS = 6
Function = Callable[..., str]


class Speller(ABC):
    """How a target's SQL spells what conditions are made of, for one table; `columns`: those that the target's has."""

    functions: Mapping[str, Function]
    """MySQL's functions by name, in upper case."""
    operators: Mapping[str, Function]
    """MySQL's operators, each between two numbers."""

    def __init__(self, known: Known, columns: Iterable[str]) -> None:
        self.known = known
        self._spelled = {column.lower(): column for column in columns}

    def spelled(self, column: str) -> str:
        """A column as the target's table spells it. Raises TargetError for one that it does not have."""
        found = self._spelled.get(column.lower())
        if found is None:
            raise TargetError(
                f"the partitions go by column {column!r}, which the target's table does not have",
                hint="make the change in the target by hand, and leave this DDL out with a filter; virtual columns are"
                " never sent",
            )
        return found

    def number(self, digits: str) -> str:
        """A whole number. Raises TargetError for one that the target's SQL can't hold exactly."""
        return digits

    def kind(self, column: str) -> TypeDef:
        """A column's type upstream. Raises TargetError."""
        found = self.known.type_of(column)
        if found is None:
            raise TargetError(f"the partitions go by column {column!r}, which is not known")
        return found

    def is_padded(self, column: str) -> bool:
        """Whether the column's collation pads with spaces. Raises TargetError for one that compares otherwise."""
        kind = self.kind(column)
        collation = kind.collation or of_charset(kind.charset) or self.known.collation
        if kind.base in STRINGS and not collation:
            raise TargetError(
                f"partitions by column {column!r} compare its texts by its database's collation, which is not known",
                hint="make the change in the target by hand. Tables that are made later are known after an ALTER"
                " DATABASE upstream that names the collation, or if they name it themselves",
            )
        if kind.base in STRINGS and not is_by_bytes(collation):
            raise TargetError(
                f"partitions by column {column!r} compare its texts by {collation}, which only upstream can do",
                hint="make the change in the target by hand, and leave this DDL out with a filter",
            )
        return kind.base in STRINGS and is_padded(collation)

    @abstractmethod
    def name(self, column: str) -> str:
        """A column in an expression."""

    @abstractmethod
    def compared(self, column: str) -> str:
        """A column in a comparison with a bound."""

    @abstractmethod
    def bound(self, column: str, text: str) -> str:
        """A bound, from its text as messages spell values."""

    @abstractmethod
    def moment(self, text: str) -> str:
        """A date and time, `YYYY-MM-DD HH:MM:SS`, that is a function's argument: as it is on a wall."""

    @abstractmethod
    def instant(self, text: str) -> str:
        """As `moment`, for UNIX_TIMESTAMP: in the source's zone. Raises ValueError for a time that is none there."""

    @abstractmethod
    def bucket(self, number: str, count: int) -> str:
        """HASH: the remainder without sign; of NULL, 0."""

    @abstractmethod
    def keyed(self, columns: Sequence[str], count: int) -> str:
        """KEY: the remainder of the columns' CRC-32."""


def rows_of(partitions: Partitioning, name: str, speller: Speller) -> str:
    """The condition for the rows of a partition. Raises TargetError for one that can't be spelled."""
    at = partitions.place(name)
    if partitions.method == "KEY" and not partitions.columns:
        raise TargetError(
            "by which columns KEY () divides a table is not known where the table has no primary key, or where an ALTER"
            " TABLE divided it",
            hint="make the change in the target by hand, then `reconciler ddl done`; or name the columns upstream",
        )
    if partitions.method == "KEY":
        unknown = [c for c in partitions.columns if speller.kind(c).base not in KEYED]
        if unknown or any(speller.kind(c).charset not in {"", "utf8mb4", "utf8", "ascii"} for c in partitions.columns):
            raise TargetError(f"which KEY partition a row is in can't be computed for {', '.join(partitions.columns)}")
        return f"{speller.keyed(partitions.columns, len(partitions.parts))} = {at}"
    if partitions.method == "HASH":
        number = (
            _column(partitions.columns[0], speller)
            if partitions.columns
            else spelled_in(partitions.expression, speller)
        )
        return f"{speller.bucket(number, len(partitions.parts))} = {at}"
    return (_in_range if partitions.method == "RANGE" else _in_list)(partitions, at, speller)


def moments_of(known: Known) -> list[str]:
    """The columns of dates and times by which a table is partitioned."""
    if known.partitions is None:
        return []
    words = Words(known.partitions.expression).words
    names = known.partitions.columns or [word.text for word in words if word.kind is WordKind.NAME]
    kinds = {name: known.type_of(name) for name in names}
    return [name for name, kind in kinds.items() if kind is not None and kind.base in DATES]


def _sides(partitions: Partitioning, row: Sequence[str], speller: Speller) -> list[tuple[str, str]]:
    """What is compared: columns or the expression, each with its bound (`MAXVALUE`, or NULL as "")."""
    if not partitions.columns:
        return [(f"({spelled_in(partitions.expression, speller)})", _bound(None, row[0], speller))]
    pairs = zip(partitions.columns, row, strict=True)
    return [(speller.compared(column), _bound(column, text, speller)) for column, text in pairs]


def _bound(column: str | None, text: str, speller: Speller) -> str:
    if text == MAXVALUE:
        return text
    words = Words(text)
    default = read_default(words)
    if default.expression or not words.ended:
        return f"({spelled_in(text, speller)})"
    if default.value is None:
        return ""
    if column is None:
        whole = int.from_bytes(default.value) if isinstance(default.value, bytes) else int(default.value)
        return speller.number(str(whole))
    kind = speller.kind(column)
    if kind.base not in _BOUND:
        raise TargetError(f"which partition a row is in can't be computed here for column {column!r} of type {kind}")
    return speller.bound(column, spelled(kind, default.value))


def _in_range(partitions: Partitioning, at: int, speller: Speller) -> str:
    below = _below(_sides(partitions, partitions.parts[at].rows[0], speller))
    if not at:
        return f"({below})"
    return f"({below}) AND NOT ({_below(_sides(partitions, partitions.parts[at - 1].rows[0], speller))})"


def _below(sides: Sequence[tuple[str, str]]) -> str:
    """Whether a row is less than a bound, column by column; never NULL."""
    if not sides:
        return "1 = 0"
    (side, bound), rest = sides[0], sides[1:]
    if bound == MAXVALUE:
        return "1 = 1"
    less = f"{side} IS NULL OR {side} < {bound}"
    return f"{less} OR ({side} = {bound} AND ({_below(rest)}))" if rest else less


def _in_list(partitions: Partitioning, at: int, speller: Speller) -> str:
    rows = partitions.parts[at].rows
    named = chained(" OR ", [_same(partitions, row, speller) for row in rows if row != (DEFAULT,)])
    if (DEFAULT,) not in rows:
        return f"({named})"
    others = [part for i, part in enumerate(partitions.parts) if i != at]
    taken = chained(" OR ", [_same(partitions, row, speller) for part in others for row in part.rows]) or "1 = 0"
    return f"({named} OR NOT ({taken}))" if named else f"NOT ({taken})"


def _same(partitions: Partitioning, row: Sequence[str], speller: Speller) -> str:
    tests = [
        f"{side} IS NULL" if not bound else f"({side} IS NOT NULL AND {side} = {bound})"
        for side, bound in _sides(partitions, row, speller)
    ]
    return f"({' AND '.join(tests)})"


def spelled_in(source: str, speller: Speller) -> str:
    """An expression of MySQL's in a target's SQL. Raises TargetError for one that is not known here."""
    words = Words(source)
    try:
        found = _sum(words, speller)
    except InputError as error:
        raise _unknown(source) from error
    if not words.ended:
        raise _unknown(source)
    return found


def _unknown(source: str) -> TargetError:
    return TargetError(
        f"the expression {source[:200]!r} by which a table is partitioned is not known here",
        hint="make the change in the target by hand, and leave this DDL out with a filter",
    )


def _sum(words: Words, speller: Speller) -> str:
    found = _product(words, speller)
    while sign := words.skip_any("+", "-"):
        found = speller.operators[sign](found, _product(words, speller))
    return found


def _product(words: Words, speller: Speller) -> str:
    found = _factor(words, speller)
    while sign := words.skip_any("*", "DIV", "MOD", "%"):
        found = speller.operators[sign](found, _factor(words, speller))
    return found


def _factor(words: Words, speller: Speller) -> str:
    if words.skip("-"):
        return speller.operators["-"]("0", _factor(words, speller))
    if words.peek() == "(":
        return spelled_in(words.in_brackets(), speller)
    if words.peek(1) == "(" and words.peek():
        return _call(words, speller)
    word = words.take()
    if word.kind is WordKind.NAME:
        return _column(word.text, speller)
    if word.kind is WordKind.PLAIN and is_unsigned(word.text):
        return speller.number(word.text)
    raise words.unexpected("expected a column or a number")


def _column(name: str, speller: Speller) -> str:
    """A column of a known type: of another one nothing tells that it holds what upstream's does."""
    speller.kind(name)
    return speller.name(name)


def _call(words: Words, speller: Speller) -> str:
    name = words.take().text.upper()
    rule = speller.functions.get(name)
    if rule is None:
        raise words.unexpected(f"function {name} is not known")
    inner = Words(words.in_brackets())
    if name not in _OF_NUMBERS and (text := _literal(inner)):
        return rule(_moment(name, text, speller))
    arguments = [_sum(inner, speller)]
    while inner.skip(","):
        arguments.append(_sum(inner, speller))
    if not inner.ended:
        raise inner.unexpected("expected the end of the arguments")
    return rule(*arguments)


def _literal(words: Words) -> str:
    """The text of an argument that is a text or a number alone; "" for any other."""
    default = read_default(words)
    if not words.ended or default.expression or not isinstance(default.value, str):
        words.at = 0
        return ""
    return default.value


def _moment(function: str, text: str, speller: Speller) -> str:
    """A literal date or time in any form that upstream reads, as an argument of this function."""
    try:
        found = date_and_time(text, _MICROSECONDS).removesuffix(f".{0:0{_MICROSECONDS}}")
        return speller.instant(found) if function == "UNIX_TIMESTAMP" else speller.moment(found)
    except ValueError as error:
        raise _unknown(f"{function}({text!r})") from error

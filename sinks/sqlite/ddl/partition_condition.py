"""How SQLite's SQL spells the conditions for a partition's rows. Dates are texts, TIMESTAMPs those of UTC."""

from collections.abc import Iterable, Mapping, Sequence

from ordering.errors import TargetError
from sinks.ddl.kept_definitions import Known
from sinks.ddl.model import ColumnDef
from sinks.ddl.rows.partition_condition import Function, Speller
from sinks.rows.values import utc_of
from sinks.sqlite.ddl.schema_text import literal, quoted
from sinks.sqlite.encoder import SqliteEncoder
from sinks.sqlite.sql_functions import COMPUTED, HASHED, KEYED
from sinks.sqlite.types import value_of

_LARGEST = 2**63 - 1


def _part(start: int, length: int) -> Function:
    return lambda x: f"CAST(substr({x}, {start}, {length}) AS INTEGER)"


def _of_time(x: str, found: str) -> str:
    """A part of a TIME or of a date's; of a date alone it is 0."""
    return f"CASE WHEN {x} IS NULL THEN NULL WHEN instr({x}, ':') THEN {found} ELSE 0 END"


def _days(x: str) -> str:
    return f"CAST(julianday(substr({x}, 1, 10)) - 1721059.5 AS INTEGER)"


def _clock(x: str) -> str:
    return " + ".join(f"{unit} * CAST(substr({x}, {at}, 2) AS INTEGER)" for at, unit in ((12, 3600), (15, 60), (18, 1)))


def _computed(operation: str) -> Function:
    """Not SQLite's own arithmetic: numbers from 2^63 on are texts here, which it takes for the largest integer."""
    return lambda *numbers: f"{COMPUTED}('{operation}', {', '.join(numbers)})"


_FUNCTIONS: Mapping[str, Function] = {
    "YEAR": _part(1, 4),
    "MONTH": _part(6, 2),
    "DAY": _part(9, 2),
    "DAYOFMONTH": _part(9, 2),
    "HOUR": lambda x: _of_time(x, f"abs(CAST(substr({x}, instr({x}, ' ') + 1) AS INTEGER))"),
    "MINUTE": lambda x: _of_time(x, f"CAST(substr({x}, instr({x}, ':') + 1, 2) AS INTEGER)"),
    "SECOND": lambda x: _of_time(x, f"CAST(substr({x}, instr({x}, ':') + 4, 2) AS INTEGER)"),
    "QUARTER": lambda x: f"((CAST(substr({x}, 6, 2) AS INTEGER) + 2) / 3)",
    "DAYOFYEAR": lambda x: f"CAST(strftime('%j', substr({x}, 1, 10)) AS INTEGER)",
    "DAYOFWEEK": lambda x: f"(CAST(strftime('%w', substr({x}, 1, 10)) AS INTEGER) + 1)",
    "WEEKDAY": lambda x: f"((CAST(strftime('%w', substr({x}, 1, 10)) AS INTEGER) + 6) % 7)",
    "TO_DAYS": _days,
    "TO_SECONDS": lambda x: f"({_days(x)} * 86400 + {_clock(x)})",
    "UNIX_TIMESTAMP": lambda x: f"CAST(strftime('%s', {x}) AS INTEGER)",
    "FLOOR": _computed("FLOOR"),
    "ABS": _computed("ABS"),
    "MOD": _computed("MOD"),
}
_OPERATORS: Mapping[str, Function] = {
    "+": _computed("+"),
    "-": _computed("-"),
    "*": _computed("*"),
    "DIV": _computed("DIV"),
    "MOD": _computed("MOD"),
    "%": _computed("MOD"),
}


class SqliteSpeller(Speller):
    """For one table."""

    functions = _FUNCTIONS
    operators = _OPERATORS

    def __init__(self, known: Known, table: str, columns: Iterable[str], encoder: SqliteEncoder, zone: str) -> None:
        super().__init__(known, columns)
        self._table, self._encoder, self._zone = table, encoder, zone

    def name(self, column: str) -> str:
        """See `Speller.name`. With its table: SQLite takes a quoted name alone that is no column's for a text."""
        return f"{quoted(self._table)}.{quoted(self.spelled(column))}"

    def compared(self, column: str) -> str:
        """See `Speller.compared`."""
        return f"rtrim({self.name(column)}, ' ')" if self.is_padded(column) else self.name(column)

    def number(self, digits: str) -> str:
        """See `Speller.number`: SQLite takes longer ones for floats."""
        if not -_LARGEST <= int(digits) <= _LARGEST:
            raise TargetError(f"SQLite can't compare numbers with {digits}")
        return digits

    def bound(self, column: str, text: str) -> str:
        """See `Speller.bound`."""
        if self.is_padded(column):
            text = text.rstrip(" ")
        value = value_of(ColumnDef(column, self.kind(column)), text, self._encoder)
        if isinstance(value, str) and self.kind(column).base == "bigint" and int(value) > _LARGEST:
            raise TargetError(f"SQLite can't compare column {column!r} with {value}")
        return literal(value)

    def moment(self, text: str) -> str:
        """See `Speller.moment`."""
        return literal(text)

    def instant(self, text: str) -> str:
        """See `Speller.instant`: TIMESTAMP lands in UTC."""
        return literal(utc_of(self._zone)(text))

    def bucket(self, number: str, count: int) -> str:
        """See `Speller.bucket`."""
        return f"{HASHED}({number}, {count})"

    def keyed(self, columns: Sequence[str], count: int) -> str:
        """See `Speller.keyed`."""
        return f"{KEYED}({count}, {', '.join(map(self.compared, columns))})"

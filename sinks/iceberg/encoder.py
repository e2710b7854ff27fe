"""Rows for Iceberg: msgpack of numbers, texts and bytes. What its types can't hold is refused here, in the task."""

from collections.abc import Callable
from datetime import date, datetime
from decimal import Context, Decimal
from functools import partial

from sinks.rows import plain_values
from sinks.rows.schema import Column, Shape
from sinks.rows.values import UnstorableError, ValueRules, utc_of
from sinks.sqlite.encoder import SqliteEncoder, Value

_EXACT = Context(prec=100)
"""Python's own context keeps 28 digits."""
_HINT = 'set target.invalid-dates = "null" to write NULL for such dates, or correct the value upstream'


class IcebergEncoder(SqliteEncoder):
    """As SQLite's, but that dates are dates and decimals have a scale."""

    def __init__(self, rules: ValueRules) -> None:
        super().__init__(rules)
        self._instant, self._null = utc_of(rules.time_zone), rules.invalid_dates == "null"

    def _converter(self, column: Column) -> Callable[[str], Value]:
        if column.shape is Shape.DATE:
            return partial(self._date, date.fromisoformat)
        if column.shape is Shape.DATETIME:
            return partial(self._date, datetime.fromisoformat)
        if column.shape is Shape.TIMESTAMP:
            return lambda text: self._date(datetime.fromisoformat, self._instant(text))
        if column.type.startswith("decimal"):
            return partial(_decimal, int(column.type.rstrip(")").rpartition(",")[2]))
        return super()._converter(column)

    def _date(self, read: Callable[[str], date], text: str) -> str | None:
        try:
            read(text)
        except ValueError:
            if self._null:
                return None
            raise UnstorableError(f"Iceberg has no date {text[:50]!r}", _HINT) from None
        return text


def _decimal(scale: int, text: str) -> str:
    value = Decimal(plain_values.exact(text))
    if value != value.quantize(Decimal(1).scaleb(-scale), context=_EXACT):
        message = f"{text[:50]!r} has more than {scale} digits behind the point"
        raise ValueError(message)
    return text

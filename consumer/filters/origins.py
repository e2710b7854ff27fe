"""Columns that tell whose a row of a merged table is: DM's `extract-table`, `extract-schema`, `extract-source`.

What such a column holds comes from the table's name upstream, in lower case: TiDB's names fold case, and messages spell
one table in several ways. Of an expression the groups count, one after the other (pingcap/tidb, `util/table-router`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from consumer.filters.tables import TableFilter
from consumer.go_regex import compiled
from ordering.errors import InputError
from ordering.events import TableName, folded
from sinks.rows.routed import Origin

LONGEST = 64
"""Characters that such a column holds at most."""


@lru_cache(64)
def _expression(text: str) -> Any:
    return compiled(text, whose="sink.dispatchers", case_sensitive=False)


class OriginColumn(NamedTuple):
    """A column. `kind`: what it is read from, `table`, `schema` or `source`; `text`: by what, or what it holds."""

    column: str
    kind: str
    text: str

    def of(self, name: TableName) -> str:
        """What it holds for a table's rows. Raises InputError where the expression finds nothing in the name."""
        if self.kind == "source":
            return self.text
        told = folded(name.table if self.kind == "table" else name.database)
        found = _expression(self.text).search(told)
        value = "" if found is None else "".join(filter(None, found.groups()))
        if not value or len(value) > LONGEST or value != value.strip():
            raise InputError(
                f"sink.dispatchers: extract-{self.kind} finds no text of 1 to {LONGEST} characters, without blanks"
                f" around it, in the name of {name}: its rows can't be told from those of other tables",
                hint="let the expression match each table that the matcher takes in",
            )
        return value


@dataclass(frozen=True, slots=True)
class Origins:
    """The dispatchers with a place for tables, in order, each with its columns; none where it does not merge."""

    rules: tuple[tuple[TableFilter, tuple[OriginColumn, ...]], ...] = ()

    def __bool__(self) -> bool:
        """Whether any table is merged."""
        return any(columns for _, columns in self.rules)

    def merges(self, name: TableName) -> bool:
        """Whether other tables may lie where this one does."""
        return bool(self._columns(name))

    def of(self, name: TableName) -> Origin:
        """What tells a table's rows from those of others; () where it is not merged. Raises InputError."""
        return tuple((one.column, one.of(name)) for one in self._columns(name))

    def _columns(self, name: TableName) -> Sequence[OriginColumn]:
        return next((columns for matcher, columns in self.rules if matcher(*name)), ())

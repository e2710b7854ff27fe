"""Primary keys that a target has and upstream has not: rows that are equal in one would replace each other.

A message names the columns of a primary key alone; that of a table without one names none, and its handle key is found
in the target. There a primary key was made by hand, for TiDB's CREATE TABLE and what we make of it has none. Whether
upstream's rows differ in its columns is known where a valid index lies within them, or by the operator's word
(`filter.promoted-keys`). Pure.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from consumer.filters.tables import TableFilter, table_filter
from ordering.errors import TableMismatchError
from ordering.events import folded
from sinks.rows.schema import TableSchema


@dataclass(frozen=True, slots=True)
class PromotedKeys:
    """The tables of which the operator says so."""

    tables: TableFilter

    @classmethod
    def of(cls, rules: Iterable[str]) -> "PromotedKeys":
        """By the rules of a config. Raises ConfigError."""
        return cls(table_filter(rules, key="filter.promoted-keys"))

    def check(self, table: TableSchema, where: str) -> None:
        """Raise TableMismatchError for a table without a primary key upstream, if rows may be equal in that of here."""
        primary = {folded(column) for column in table.primary_key()}
        if not primary or _within(table, primary) or self.tables(*table.name):
            return
        raise TableMismatchError(
            f"table {table.name} has no primary key upstream, and the target's has been made by hand over"
            f" {', '.join(table.primary_key())}: rows that are equal there would replace each other",
            where=where,
            hint="drop it in the target; or, if these columns are a NOT NULL unique key upstream, make that index here"
            " too (CREATE UNIQUE INDEX), or list the table in filter.promoted-keys (`reconciler help keyless-tables`)",
        )


def _within(table: TableSchema, primary: set[str]) -> bool:
    """Whether another valid index tells rows apart by some of these columns. What a merged table adds is no column."""
    own = {folded(column) for column, _ in table.origin}
    valid = (table.columns_of(name) for name in table.valid_indexes if folded(name) != "primary")
    return any(key and {folded(column) for column in key} - own <= primary for key in valid)

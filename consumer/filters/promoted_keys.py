"""Keys that a target has and upstream has not: rows that are equal in one would replace each other.

A message names the columns of a primary key alone; that of a table without one names none, and its handle key is found
in the target. There a primary key was made by hand, for TiDB's CREATE TABLE and what we make of it has none. Whether
upstream's rows differ in its columns is known where a valid index lies within them, or by the operator's word
(`filter.promoted-keys`).

Or it is one that upstream has dropped and the target has kept (`ordering.kept_keys`). As long as upstream has no other,
TiCDC sends no rows. So a row tells that upstream has another one: a filter or an operator left out the DDL that dropped
this one, or that made the other; or that is over a part of the rows, which TiCDC takes for a whole one. Pure.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from consumer.filters.tables import TableFilter, table_filter
from ordering.errors import TableMismatchError
from ordering.events import folded
from ordering.kept_keys import KeptKey
from sinks.rows.schema import TableSchema

NONE_KEPT: Mapping[str, KeptKey] = {}


@dataclass(frozen=True, slots=True)
class PromotedKeys:
    """The tables of which the operator says so."""

    tables: TableFilter

    @classmethod
    def of(cls, rules: Iterable[str]) -> "PromotedKeys":
        """By the rules of a config. Raises ConfigError."""
        return cls(table_filter(rules, key="filter.promoted-keys"))

    def check(self, table: TableSchema, where: str, kept: Mapping[str, KeptKey] = NONE_KEPT) -> None:
        """Raise TableMismatchError for a table without a primary key upstream, if rows may be equal in that of here.

        `kept`: what the table has kept of keys that upstream had no more when it sent the row.
        """
        own = _own(table)
        lost = {key.columns - own for key in kept.values()}
        primary, told = _columns(table.primary_key()), _columns(table.handle_key) - own
        if (told not in lost and (not primary or _within(table, primary, lost))) or self.tables(*table.name):
            return
        columns = ", ".join(table.handle_key)
        if told in lost:
            raise TableMismatchError(
                f"upstream has dropped the key of table {table.name} over {columns}, which the target has kept: rows"
                " that are equal here would replace each other",
                where=where,
                hint="make the key that upstream has as a NOT NULL unique key here, and drop this one; or, if rows are"
                " never equal in these columns, list the table in filter.promoted-keys. If upstream's key has a WHERE,"
                " it is none: make another one upstream, and leave the table out until then",
            )
        raise TableMismatchError(
            f"table {table.name} has no primary key upstream, and the target's has been made by hand over"
            f" {columns}: rows that are equal there would replace each other",
            where=where,
            hint="drop it in the target; or, if these columns are a NOT NULL unique key upstream, make that index here"
            " too (CREATE UNIQUE INDEX), or list the table in filter.promoted-keys (`reconciler help keyless-tables`)",
        )

    def check_made(self, table: TableSchema, keys: Collection[frozenset[str]], where: str) -> None:
        """Raise TableMismatchError where the target tells rows apart by what upstream's CREATE TABLE makes no key of.

        `keys`: those that it makes, folded.
        """
        told = _columns(table.handle_key) - _own(table)
        if not told or any(key <= told for key in keys) or self.tables(*table.name):
            return
        raise TableMismatchError(
            f"the target tells rows of {table.name} apart by {', '.join(table.handle_key)}, which is no key upstream:"
            " rows that are equal there would replace each other",
            where=where,
            hint="make the unique keys of this table as they are upstream; or, if these columns are a NOT NULL unique"
            " key there by now, list the table in filter.promoted-keys (`reconciler help keyless-tables`)",
        )


def _columns(key: Iterable[str]) -> frozenset[str]:
    return frozenset(map(folded, key))


def _within(table: TableSchema, primary: frozenset[str], lost: set[frozenset[str]]) -> bool:
    """Whether another valid index tells rows apart by some of these columns. What a merged table adds is no column."""
    own = _own(table)
    valid = (table.columns_of(name) for name in table.valid_indexes if folded(name) != "primary")
    return any(key and _columns(key) - own <= primary and _columns(key) - own not in lost for key in valid)


def _own(table: TableSchema) -> frozenset[str]:
    """The columns that tell its rows from those of tables merged with it."""
    return _columns(column for column, _ in table.origin)

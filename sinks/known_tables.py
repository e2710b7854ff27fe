"""What a session knows of its target's tables between DDLs: many in a row do not read all tables again for each.

After a DDL the tables that it is about are read again, and before it, as somebody else may have changed them. Those
that it is not about stay known as they are for a while: a second, or ten times as long as reading all of them took.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import ClassVar

from ordering.events import TableName
from sinks.ddl.parse.statement import changed_tables
from sinks.rows.schema import Catalog, TableSchema

ReadTable = Callable[[TableName], Mapping[TableName, TableSchema]]
"""Reads the table of a name, as the target spells it; nothing where there is none."""


class KnownTables:
    """The catalog, read when it is asked for; again as far as it was forgotten."""

    _fresh_s: ClassVar[float] = 1.0
    _fresh_readings: ClassVar[int] = 10

    def __init__(self, read: Callable[[], Catalog]) -> None:
        self._read = read
        self._catalog: Catalog | None = None
        self._outdated: dict[TableName, ReadTable] = {}
        self._known_at = self._reading_took = 0.0

    def catalog(self) -> Catalog:
        """All tables."""
        known = self._catalog
        if known is None:
            self._known_at = time.monotonic()
            known = self._read()
            self._reading_took = time.monotonic() - self._known_at
        elif self._outdated:
            tables = {name: table for name, table in known.tables.items() if name not in self._outdated}
            for name, read in self._outdated.items():
                tables.update(read(name))
            known = replace(known, tables=tables)
        self._catalog, self._outdated = known, {}
        return known

    def assume(self, catalog: Catalog) -> None:
        """Take this catalog for the target's."""
        self._catalog, self._outdated = catalog, {}

    def forget(self) -> None:
        """Forget all."""
        self._catalog = None

    def forget_some(self, sql: str, database: str, read: ReadTable) -> None:
        """Forget what a DDL is about: all, where it may change other tables or somebody else may have since long ago.

        Raises InputError for what can't be read.
        """
        tables, known = changed_tables(sql, database), self._catalog
        age = time.monotonic() - self._known_at
        if tables is None or known is None or age > max(self._fresh_s, self._fresh_readings * self._reading_took):
            self.forget()
        else:
            self._outdated |= {name: read for table in tables for name in (table, known.spelled(table))}

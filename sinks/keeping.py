"""Taking along what the target keeps of tables' definitions (`sinks.ddl.known`), beside an exported progress."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

Definition = tuple[str, str, str]
"""Database, table, what is kept of it."""
Wanted = Callable[[str, str], bool]


class DefinitionTable(ABC):
    """The kept definitions as rows; empty where the target's own schema tells all."""

    _definition_table = ""

    @abstractmethod
    def _log_run(self, sql: str, parameters: Sequence[Any]) -> int:
        """Execute a statement with `?` for bound values."""

    @abstractmethod
    def _log_query(self, sql: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
        """Execute a query with `?` for bound values."""

    def definitions(self, wanted: Wanted) -> list[Definition]:
        """Those of the tables that are wanted."""
        if not self._definition_table:
            return []
        rows = self._log_query(f"SELECT database, name, definition FROM {self._definition_table} ORDER BY 1, 2", ())  # noqa: S608 a constant
        return [(database, name, text) for database, name, text in rows if wanted(database, name)]

    def _replace_definitions(self, wanted: Wanted, rows: Sequence[Definition]) -> None:
        """Put these in the place of those of the tables that are wanted, in the transaction that has begun."""
        for database, name, _ in self.definitions(wanted):
            self._log_run(f"DELETE FROM {self._definition_table} WHERE database = ? AND name = ?", (database, name))  # noqa: S608 a constant
        for row in rows if self._definition_table else ():
            self._log_run(f"INSERT INTO {self._definition_table} (database, name, definition) VALUES (?, ?, ?)", row)  # noqa: S608 a constant

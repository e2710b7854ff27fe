"""Exports and imports what the target keeps of definitions (`sinks.ddl.kept_definitions`), beside the progress."""

from collections.abc import Callable, Sequence

from sinks.bookkeeping.tables import Book

Definition = tuple[str, str, str]
"""Database, table, what is kept of it."""
Wanted = Callable[[str, str], bool]


class DefinitionTable:
    """The kept definitions as rows; empty where the target's own schema tells all."""

    def __init__(self, book: Book) -> None:
        self._book = book

    @property
    def _table(self) -> str:
        return self._book.place("definition")

    def of(self, wanted: Wanted) -> list[Definition]:
        """Those of the tables that are wanted."""
        if not self._book.types.keeps_definitions:
            return []
        rows = self._book.query(f'SELECT "database", name, definition FROM {self._table} ORDER BY 1, 2')  # noqa: S608 a constant
        return [(database, name, text) for database, name, text in rows if wanted(database, name)]

    def replace(self, wanted: Wanted, rows: Sequence[Definition]) -> None:
        """Put these in the place of those of the tables that are wanted, in the transaction that has begun."""
        for database, name, _ in self.of(wanted):
            self._book.run(f'DELETE FROM {self._table} WHERE "database" = ? AND name = ?', (database, name))  # noqa: S608 a constant
        for row in rows if self._book.types.keeps_definitions else ():
            self._book.run(f'INSERT INTO {self._table} ("database", name, definition) VALUES (?, ?, ?)', row)  # noqa: S608 a constant

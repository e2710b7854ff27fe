"""The table `ticdc_reconciler.upstream_schema`: what messages told of upstream's tables, in SQL that all targets speak.

Formats whose rows only name their schema need it to go on after a restart. It is written in the transaction that moves
the progress past the messages that told it, and only what is new or outdated. Made where such a format is used.
"""

from ordering.quarantine import Changes
from sinks.bookkeeping.tables import Book

_ENTRY = 'WHERE "changefeed" = ? AND "identity" = ?'


class UpstreamSchemaTable:
    """What a target keeps of upstream's schemas."""

    def __init__(self, book: Book) -> None:
        self._book = book

    @property
    def _table(self) -> str:
        return self._book.place("upstream_schema")

    def make(self) -> None:
        """Make the table if it is missing; not inside a transaction."""
        types = self._book.types
        columns = (
            f'"changefeed" {types.short} NOT NULL, "identity" {types.short} NOT NULL,'
            f' "definition" {types.text} NOT NULL, PRIMARY KEY ("changefeed", "identity")'
        )
        self._book.run(f"CREATE TABLE IF NOT EXISTS {self._table} ({columns}){types.tail}")

    def all(self, changefeed: str) -> list[str]:
        """The definitions that are kept; the table has to be there."""
        select = f'SELECT "definition" FROM {self._table} WHERE "changefeed" = ?'  # noqa: S608 constants
        return [text for (text,) in self._book.query(select, (changefeed,))]

    def change(self, changefeed: str, changes: Changes) -> None:
        """Add and drop definitions, in the transaction that has begun."""
        for identity in (*changes.outdated, *(identity for identity, _ in changes.schemas)):
            self._book.run(f"DELETE FROM {self._table} {_ENTRY}", (changefeed, identity))  # noqa: S608
        insert = f'INSERT INTO {self._table} ("changefeed", "identity", "definition") VALUES (?, ?, ?)'  # noqa: S608
        for identity, text in changes.schemas:
            self._book.run(insert, (changefeed, identity, text))

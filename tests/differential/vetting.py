"""Whether a TiDB takes a piece of a statement, asked by temporary tables: half a millisecond, where a DDL takes forty.

A script's statements are written of pieces that were taken, so that the recorder, which ends at the first statement
that is refused, hardly ever meets one. What is answered once is known for the rest of the run.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import pymysql

_RESET = ("SET sql_mode = DEFAULT", "SET NAMES utf8mb4", "SET time_zone = '+00:00'")


@dataclass(slots=True)
class Vetting:
    """`cursor`: of a TiDB in which nobody else works. `settings`: what the script's session has set."""

    cursor: pymysql.cursors.Cursor
    settings: tuple[str, ...] = ()
    _known: dict[tuple[object, ...], bool] = field(default_factory=dict)
    _now: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        self.cursor.execute("CREATE DATABASE IF NOT EXISTS vetting")
        self.cursor.execute("USE vetting")

    def column(self, definition: str) -> bool:
        """Whether a table may have this column."""
        return self._all((f"CREATE TEMPORARY TABLE a (id INT PRIMARY KEY, {definition})",))

    def value(self, kind: str, literal: str) -> bool:
        """Whether a column of a type takes a literal."""
        return self._all((*_holding("a", kind, [literal]),))

    def converts(self, old: str, literals: Sequence[str], new: str) -> bool:
        """Whether these values of one type can become ones of another type."""
        return all(self._all((*_holding("a", old, [one]), *_copied("a", new))) for one in literals)

    def _all(self, statements: tuple[str, ...]) -> bool:
        """Whether TiDB takes all of these."""
        asked = (self.settings, statements)
        if asked not in self._known:
            self._known[asked] = self._tried(statements)
        return self._known[asked]

    def _tried(self, statements: Iterable[str]) -> bool:
        if self._now != self.settings:
            self._execute((*_RESET, *self.settings))
            self._now = self.settings
        self._execute(("DROP TEMPORARY TABLE IF EXISTS a", "DROP TEMPORARY TABLE IF EXISTS b"))
        try:
            self._execute(statements)
        except pymysql.MySQLError:
            return False
        return True

    def _execute(self, statements: Iterable[str]) -> None:
        for statement in statements:
            self.cursor.execute(statement)


def _holding(table: str, kind: str, literals: Iterable[str]) -> Iterable[str]:
    yield f"CREATE TEMPORARY TABLE {table} (id INT AUTO_INCREMENT PRIMARY KEY, c {kind})"
    yield from (f"INSERT INTO {table} (c) VALUES ({literal})" for literal in literals)


def _copied(table: str, kind: str) -> Iterable[str]:
    yield f"CREATE TEMPORARY TABLE b (id INT PRIMARY KEY, c {kind})"
    yield f"INSERT INTO b SELECT id, c FROM {table}"

"""Whether a TiDB takes a piece of a statement, asked by temporary tables: half a millisecond, where a DDL takes forty.

A script's statements are written of pieces that were taken, so that the recorder, which ends at the first statement
that is refused, hardly ever meets one. What is answered once is known for the rest of the run.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import pymysql

_RESET = ("SET sql_mode = DEFAULT", "SET NAMES utf8mb4", "SET time_zone = '+00:00'")


class Column(NamedTuple):
    """One of a table's columns, as TiDB shows it."""

    name: str
    kind: str
    generated: bool


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

    def begin(self, database: str) -> None:
        """Run a script's own statements from now on, in a new database."""
        self._set()
        self._execute((f"CREATE DATABASE {database}", f"USE {database}"))

    def end(self, *databases: str) -> None:
        """Forget the script."""
        self._execute((*(f"DROP DATABASE IF EXISTS {name}" for name in databases), "USE vetting"))
        self._now = None

    def runs(self, statement: str) -> bool:
        """Whether TiDB takes a statement of the script that has begun; it is run."""
        try:
            self.cursor.execute(statement)
        except pymysql.MySQLError:
            return False
        if statement.startswith("SET "):
            self._now = self.settings = (*self.settings, statement)
        return True

    def columns(self, table: str) -> list[Column]:
        """The columns of a table of the script that has begun."""
        self.cursor.execute(f"SHOW COLUMNS FROM {table}")
        return [Column(name, kind, "GENERATED" in more) for name, kind, _, _, _, more in self.cursor.fetchall()]

    def has_key(self, table: str) -> bool:
        """Whether a table of the script that has begun has an index that finds each row."""
        self.cursor.execute(f"SHOW INDEX FROM {table}")
        parts = [(row[2], row[1], row[9]) for row in self.cursor.fetchall()]
        bad = {name for name, repeats, null in parts if repeats or null}
        return any(name not in bad for name, *_ in parts)

    def becomes(self, table: str, column: str, kind: str) -> bool:
        """Whether all values of a column of the script that has begun can become ones of another type."""
        make = f"CREATE TEMPORARY TABLE vetting.b (c {kind})"
        self.runs("DROP TEMPORARY TABLE IF EXISTS vetting.b")
        return self.runs(make) and self.runs(f"INSERT INTO vetting.b SELECT {column} FROM {table}")

    def _all(self, statements: tuple[str, ...]) -> bool:
        """Whether TiDB takes all of these."""
        asked = (self.settings, statements)
        if asked not in self._known:
            self._known[asked] = self._tried(statements)
        return self._known[asked]

    def _tried(self, statements: Iterable[str]) -> bool:
        self._set()
        self._execute(("DROP TEMPORARY TABLE IF EXISTS a", "DROP TEMPORARY TABLE IF EXISTS b"))
        try:
            self._execute(statements)
        except pymysql.MySQLError:
            return False
        return True

    def _set(self) -> None:
        if self._now != self.settings:
            self._execute((*_RESET, *self.settings))
            self._now = self.settings

    def _execute(self, statements: Iterable[str]) -> None:
        for statement in statements:
            self.cursor.execute(statement)


def _holding(table: str, kind: str, literals: Iterable[str]) -> Iterable[str]:
    yield f"CREATE TEMPORARY TABLE {table} (id INT AUTO_INCREMENT PRIMARY KEY, c {kind})"
    yield from (f"INSERT INTO {table} (c) VALUES ({literal})" for literal in literals)


def _copied(table: str, kind: str) -> Iterable[str]:
    yield f"CREATE TEMPORARY TABLE b (id INT PRIMARY KEY, c {kind})"
    yield f"INSERT INTO b SELECT id, c FROM {table}"

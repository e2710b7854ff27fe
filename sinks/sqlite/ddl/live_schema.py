"""What a DDL finds in the target while it is executed: definitions as they are at that moment, not as cached."""

import re
import sqlite3
from collections.abc import Callable, Iterable
from typing import Any

from ordering.errors import TargetBusyError, TargetError, TargetUnreachableError
from ordering.events import TableName, folded
from sinks.ddl.kept_definitions import Definitions, Known
from sinks.rows.schema import TableSchema
from sinks.rows.values import ValueRules
from sinks.sqlite.catalog import index_name, place_of, quoted_database, read_table, texts_of
from sinks.sqlite.ddl.schema_text import quoted
from sinks.sqlite.encoder import SqliteEncoder

_VIEW = re.compile(
    r"""CREATE\s+VIEW\s+(?:"(?:[^"]|"")*"|`(?:[^`]|``)*`|'(?:[^']|'')*'|\[[^\]]*\]|\w+)\s*(.*)""",
    re.DOTALL | re.IGNORECASE,
)
_MISSING = "no such table"
Run = Callable[..., sqlite3.Cursor]


class Site:
    """The target's tables while a DDL is executed."""

    def __init__(
        self, db: sqlite3.Connection, run: Run, definitions: Definitions, encoder: SqliteEncoder, rules: ValueRules
    ) -> None:
        self._db, self.run = db, run
        self.definitions, self.encoder, self.rules = definitions, encoder, rules

    def texts(self, table: TableName) -> dict[str, str]:
        """The SQL text of a table (under "") and its indexes."""
        return texts_of(self._db, table)

    def has_index(self, table: TableName, index: str) -> bool:
        """Whether a table has upstream's index."""
        own = folded(index_name(table, index))
        return any(folded(name) == own for name in self.texts(table))

    def triggers(self, table: TableName) -> list[str]:
        """The SQL texts of a table's triggers."""
        look = (
            f"SELECT sql FROM {quoted_database(table.database)}.sqlite_master WHERE type = 'trigger' AND tbl_name = ?"  # noqa: S608 quoted
        )
        return [sql for (sql,) in self.run(look, (table.table,))]

    def views(self, databases: Iterable[str]) -> list[TableName]:
        """The views of these databases."""
        look = "SELECT name FROM {}.sqlite_master WHERE type = 'view'"
        return [TableName(d, name) for d in databases for (name,) in self.run(look.format(quoted_database(d)))]

    def view_texts(self, databases: Iterable[str]) -> list[tuple[TableName, str]]:
        """The views of these databases, with what stands behind their names."""
        look = "SELECT name, sql FROM {}.sqlite_master WHERE type = 'view'"
        found = [(TableName(d, n), sql) for d in databases for n, sql in self.run(look.format(quoted_database(d)))]
        return [(name, match[1]) for name, sql in found if (match := _VIEW.match(sql))]

    def view_text(self, view: TableName) -> str:
        """The SQL text of a view; "" where there is none."""
        look = f"SELECT sql FROM {quoted_database(view.database)}.sqlite_master WHERE type = 'view' AND name = ?"  # noqa: S608 quoted
        return next((sql for (sql,) in self.run(f"{look} COLLATE NOCASE", (view.table,))), "")

    def why_not(self, sql: str) -> str:
        """Why SQLite can't compile a statement; "" where it can, and where only a table is missing that may come."""
        try:
            self.run(f"EXPLAIN {sql}").fetchall()
        except (TargetBusyError, TargetUnreachableError):
            raise
        except TargetError as error:
            return "" if _MISSING in error.fact else error.fact
        return ""

    def schema(self, table: TableName) -> TableSchema:
        """A table's columns and keys. Raises TargetError if it is not there."""
        if not self.texts(table):
            raise TargetError(f"table {table} is missing in the target")
        return read_table(self._db, table)

    def known(self, table: TableName) -> Known | None:
        """What is kept of the definition upstream."""
        return self.definitions.get(table)

    def has_rows(self, table: TableName) -> bool:
        """Whether a table holds any row."""
        found: Any = self.run(f"SELECT EXISTS (SELECT 1 FROM {place_of(table)})").fetchone()[0]  # noqa: S608 quoted
        return bool(found)

    def has_null(self, table: TableName, column: str) -> bool:
        """Whether a column holds NULL in any row."""
        look = f"SELECT EXISTS (SELECT 1 FROM {place_of(table)} WHERE {quoted(column)} IS NULL)"  # noqa: S608 quoted
        return bool(self.run(look).fetchone()[0])

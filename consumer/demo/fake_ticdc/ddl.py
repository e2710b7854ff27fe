"""DDL statements: what they do to tables and rows, and how TiDB prints them.

`apply` works on any `DatabaseState`: the database's (rows under handles), the oracle's (rows under keys), or the
changefeed's (no rows at all).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from consumer.demo.fake_ticdc.database import DdlStatement

if TYPE_CHECKING:
    from consumer.demo.fake_ticdc.database import Column, DatabaseState, Table


def quoted(name: str) -> str:
    """Put a name in backticks."""
    return "`" + name.replace("`", "``") + "`"


def _split(full_name: str) -> tuple[str, str]:
    database, _, table = full_name.partition(".")
    return database, table


def _qualified(full_name: str) -> str:
    return ".".join(quoted(part) for part in _split(full_name))


def _list(names: tuple[str, ...]) -> str:
    return ", ".join(quoted(name) for name in names)


@dataclass(frozen=True)
class CreateDatabase(DdlStatement):
    """CREATE DATABASE."""

    name: str
    type: ClassVar[str] = "QUERY"

    @property
    def sql(self) -> str:
        """The statement as TiDB prints it."""
        return f"CREATE DATABASE {quoted(self.name)}"

    @property
    def subject(self) -> tuple[str, str]:
        """The database; no table."""
        return self.name, ""

    def apply(self, state: DatabaseState) -> None:
        """Change nothing: an empty database holds no table."""


@dataclass(frozen=True)
class DropDatabase(DdlStatement):
    """DROP DATABASE: no message for its tables."""

    name: str
    type: ClassVar[str] = "QUERY"

    @property
    def sql(self) -> str:
        """The statement as TiDB prints it."""
        return f"DROP DATABASE {quoted(self.name)}"

    @property
    def subject(self) -> tuple[str, str]:
        """The database; no table."""
        return self.name, ""

    def apply(self, state: DatabaseState) -> None:
        """Remove the database's tables."""
        for full_name in [name for name, table in state.tables.items() if table.database == self.name]:
            del state.tables[full_name], state.rows[full_name]


@dataclass(frozen=True)
class CreateTable(DdlStatement):
    """CREATE TABLE."""

    table: Table
    type: ClassVar[str] = "CREATE"

    @property
    def sql(self) -> str:
        """The statement as TiDB prints it, unqualified."""
        parts = [_definition(self.table, column) for column in self.table.columns]
        if self.table.primary_key:
            kind = self.table.key_kind.upper()
            parts.append(f"PRIMARY KEY({_list(self.table.primary_key)}) /*T![clustered_index] {kind} */")
        parts += [f"UNIQUE {quoted(name)}({_list(columns)})" for name, columns in self.table.unique_keys]
        return f"CREATE TABLE {quoted(self.table.name)} ({','.join(parts)})"

    @property
    def subject(self) -> tuple[str, str]:
        """The new table."""
        return self.table.database, self.table.name

    def apply(self, state: DatabaseState) -> None:
        """Add the empty table."""
        state.tables[self.table.full_name] = self.table
        state.rows[self.table.full_name] = {}


@dataclass(frozen=True)
class _OneTable(DdlStatement):
    """A statement about one table, given as `database.table`."""

    full_name: str

    @property
    def subject(self) -> tuple[str, str]:
        """The table."""
        return _split(self.full_name)


@dataclass(frozen=True)
class DropTable(_OneTable):
    """DROP TABLE."""

    type: ClassVar[str] = "ERASE"

    @property
    def sql(self) -> str:
        """The statement as TiDB prints it, qualified."""
        return f"DROP TABLE {_qualified(self.full_name)}"

    def apply(self, state: DatabaseState) -> None:
        """Remove the table."""
        del state.tables[self.full_name], state.rows[self.full_name]


@dataclass(frozen=True)
class TruncateTable(_OneTable):
    """TRUNCATE TABLE."""

    type: ClassVar[str] = "TRUNCATE"

    @property
    def sql(self) -> str:
        """The statement as TiDB prints it, unqualified."""
        return f"TRUNCATE TABLE {quoted(self.subject[1])}"

    def apply(self, state: DatabaseState) -> None:
        """Remove the rows; no message tells of them."""
        state.rows[self.full_name] = {}


@dataclass(frozen=True)
class RenameTable(_OneTable):
    """RENAME TABLE to `new_name` (`database.table`); goes to the old name's topic, names the new one."""

    new_name: str
    type: ClassVar[str] = "RENAME"

    @property
    def sql(self) -> str:
        """The statement as TiDB prints it, both names qualified."""
        return f"RENAME TABLE {_qualified(self.full_name)} TO {_qualified(self.new_name)}"

    @property
    def subject(self) -> tuple[str, str]:
        """The table under its new name."""
        return _split(self.new_name)

    @property
    def route(self) -> tuple[str, str]:
        """The table under its old name."""
        return _split(self.full_name)

    def apply(self, state: DatabaseState) -> None:
        """Move the table."""
        database, name = self.subject
        state.tables[self.new_name] = replace(state.tables.pop(self.full_name), database=database, name=name)
        state.rows[self.new_name] = state.rows.pop(self.full_name)


@dataclass(frozen=True)
class AddColumnDdl(_OneTable):
    """ALTER TABLE ADD COLUMN at the end; existing rows get the default without any message."""

    column: Column
    default: str | None = None
    type: ClassVar[str] = "ALTER"

    @property
    def sql(self) -> str:
        """The statement as TiDB prints it, unqualified."""
        name, kind, nullable = self.column
        required = "" if nullable else " NOT NULL"
        default = "" if self.default is None else f" DEFAULT {_literal(kind, self.default)}"
        return f"ALTER TABLE {quoted(self.subject[1])} ADD COLUMN {quoted(name)} {kind.upper()}{required}{default}"

    def apply(self, state: DatabaseState) -> None:
        """Add the column to the definition and to every row."""
        table = state.tables[self.full_name]
        state.tables[self.full_name] = replace(table, columns=(*table.columns, self.column))
        added = {self.column[0]: self.default}
        state.rows[self.full_name] = {key: row | added for key, row in state.rows[self.full_name].items()}


@dataclass(frozen=True)
class DropColumnDdl(_OneTable):
    """ALTER TABLE DROP COLUMN of a column that is in no key."""

    column: str
    type: ClassVar[str] = "ALTER"

    @property
    def sql(self) -> str:
        """The statement as TiDB prints it, unqualified."""
        return f"ALTER TABLE {quoted(self.subject[1])} DROP COLUMN {quoted(self.column)}"

    def apply(self, state: DatabaseState) -> None:
        """Take the column out of the definition and of every row."""
        table = state.tables[self.full_name]
        left = tuple(column for column in table.columns if column[0] != self.column)
        state.tables[self.full_name] = replace(table, columns=left)
        rows = state.rows[self.full_name]
        state.rows[self.full_name] = {
            key: {name: value for name, value in row.items() if name != self.column} for key, row in rows.items()
        }


def _definition(table: Table, column: Column) -> str:
    name, kind, nullable = column
    required = "" if nullable or name in table.primary_key else " NOT NULL"
    return f"{quoted(name)} {kind.upper()}{required}"


def _literal(kind: str, text: str) -> str:
    if kind.startswith(("varchar", "char", "text")):
        return "_UTF8MB4'" + text.replace("'", "''") + "'"
    return text

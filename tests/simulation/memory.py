"""What lies in memory in place of a database: tables as dicts, and DDL as the simulated upstream prints it."""

import re
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, field

import msgspec

from ordering.errors import TargetError
from ordering.events import Position, TableName
from ordering.progress import Progress
from ordering.quarantine import Quarantined
from sinks.bookkeeping.progress_rows import Row, Start, restored
from sinks.ddl.parse.statement import DdlKind, Statement, named
from sinks.rows.chunk import Texts
from sinks.rows.schema import Column, Shape, TableSchema, choose_handle_key

UNFIT = "unfit"
"""A text that no column takes."""
Values = tuple[str | None, ...]
_decode = msgspec.msgpack.Decoder(list[list[str | None]]).decode
_NAMES = re.compile(r"`((?:[^`]|``)*)`")


@dataclass
class MemoryTable:
    """A table: rows under their handle key."""

    columns: dict[str, bool]
    """name -> nullable."""
    primary: tuple[str, ...]
    uniques: dict[str, tuple[str, ...]]
    rows: dict[Values, dict[str, str | None]] = field(default_factory=dict)

    def handle_key(self) -> tuple[str, ...]:
        """The columns that identify a row."""
        columns = {name: Column(name, "", Shape.TEXT, nullable) for name, nullable in self.columns.items()}
        return choose_handle_key(self.primary, self.uniques, columns)

    def unique_keys(self) -> tuple[tuple[str, ...], ...]:
        """All unique keys."""
        return tuple({*self.uniques.values(), *([self.primary] if self.primary else [])})

    def schema(self, name: TableName) -> TableSchema:
        """What writing needs."""
        columns = tuple(Column(column, "TEXT", Shape.TEXT, nullable) for column, nullable in self.columns.items())
        return TableSchema(name, columns, self.handle_key(), self.unique_keys())

    def copied(self) -> "MemoryTable":
        """A copy whose rows may be changed; a row's dict never is."""
        twin = copy(self)
        twin.rows, twin.columns = dict(self.rows), dict(self.columns)
        return twin


@dataclass
class Disk:
    """What survives a crash."""

    tables: dict[TableName, MemoryTable] = field(default_factory=dict)
    progress: dict[str, Row] = field(default_factory=dict)
    starts: dict[str, Start] = field(default_factory=dict)
    epochs: dict[str, int] = field(default_factory=dict)
    moments: dict[str, str] = field(default_factory=dict)
    permits: dict[tuple[str, int], tuple[str, int]] = field(default_factory=dict)
    quarantine: dict[Position, Quarantined] = field(default_factory=dict)
    schemas: dict[str, str] = field(default_factory=dict)
    refuses: Callable[[TableName, dict[str, str | None]], bool] | None = None
    """Which rows the target does not take."""

    def copied(self) -> "Disk":
        """The working copy of a transaction."""
        return Disk(
            {n: t.copied() for n, t in self.tables.items()},
            dict(self.progress),
            dict(self.starts),
            dict(self.epochs),
            dict(self.moments),
            dict(self.permits),
            dict(self.quarantine),
            dict(self.schemas),
            self.refuses,
        )

    def restored(self, changefeed: str) -> Progress:
        """The progress, out of its JSON."""
        return restored(self.progress[changefeed], self.starts.get(changefeed), "memory")


class TextEncoder:
    """Rows as they were sent."""

    def encode(self, columns: Sequence[Column], rows: Sequence[Texts]) -> bytes:
        """As `Encoder.encode`."""
        assert all(len(row) == len(columns) for row in rows)
        if any(UNFIT in row for row in rows):
            message = "no column holds this"
            raise ValueError(message)
        return msgspec.msgpack.encode([list(row) for row in rows])

    def split(self, payload: bytes) -> list[bytes]:
        """As `Encoder.split`."""
        return [msgspec.msgpack.encode([row]) for row in msgspec.msgpack.decode(payload)]

    def joined(self, rows: Sequence[bytes]) -> bytes:
        """As `Encoder.joined`."""
        return msgspec.msgpack.encode([row for some in rows for row in msgspec.msgpack.decode(some)])


def execute(disk: Disk, statement: Statement, database: str) -> None:
    """Do what a statement of the simulated upstream says. Raises TargetError where a database would."""
    if statement.kind in {DdlKind.CREATE_VIEW, DdlKind.DROP_VIEW}:
        return  # it holds no rows
    statement = statement.placed(database, lambda _: database)
    tables = disk.tables
    for name in statement.adds():
        if name in tables:
            raise TargetError(f"table {name} exists")
    taken = [_taken(tables, name) for name in statement.removes()]
    match statement.kind:
        case DdlKind.CREATE_TABLE:
            tables[statement.adds()[0]] = _created(statement.sql)
        case DdlKind.RENAME_TABLE:
            tables.update(zip(statement.adds(), taken, strict=True))
        case DdlKind.DROP_DATABASE:
            disk.tables = {name: t for name, t in tables.items() if name.database != statement.database}
        case DdlKind.TRUNCATE_TABLE:
            _there(tables, named(statement.tables[0])).rows = {}
        case DdlKind.ALTER_TABLE:
            _alter(_there(tables, named(statement.tables[0])), statement.sql)


def _taken(tables: dict[TableName, MemoryTable], name: TableName) -> MemoryTable:
    _there(tables, name)
    return tables.pop(name)


def _there(tables: dict[TableName, MemoryTable], name: TableName) -> MemoryTable:
    if name not in tables:
        raise TargetError(f"no table {name}")
    return tables[name]


def _created(sql: str) -> MemoryTable:
    """The table of a CREATE TABLE as the simulator prints it."""
    table = MemoryTable({}, (), {})
    body = sql[sql.index("(") + 1 : sql.rindex(")")]
    for part in re.split(r",(?![^(]*\))", body):
        names = _NAMES.findall(part)
        if part.startswith("PRIMARY KEY"):
            table.primary = tuple(names)
        elif part.startswith("UNIQUE"):
            table.uniques[names[0]] = tuple(names[1:])
        else:
            table.columns[names[0]] = not part.endswith("NOT NULL")
    for name in table.primary:
        table.columns[name] = False
    return table


def _alter(table: MemoryTable, sql: str) -> None:
    """ADD COLUMN and DROP COLUMN as the simulator prints them."""
    column, default = _NAMES.findall(sql)[1], _default(sql)
    if " DROP COLUMN " in sql:
        if column not in table.columns:
            raise TargetError(f"no column {column}")
        del table.columns[column]
        table.rows = {k: {n: v for n, v in row.items() if n != column} for k, row in table.rows.items()}
        return
    if column in table.columns:
        raise TargetError(f"column {column} exists")
    table.columns[column] = " NOT NULL" not in sql
    table.rows = {k: {**row, column: default} for k, row in table.rows.items()}


def _default(sql: str) -> str | None:
    if " DEFAULT " not in sql:
        return None
    text = sql.partition(" DEFAULT ")[2].removeprefix("_UTF8MB4")
    return text[1:-1].replace("''", "'") if text.startswith("'") else text

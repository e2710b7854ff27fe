"""A target in memory: tables as dicts, transactions as copies, a crash wherever the faults want one."""

import re
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import msgspec

from ordering.drift import Met
from ordering.errors import TargetError, TargetUnreachableError
from ordering.events import DdlEvent, Position, TableName
from ordering.progress import Progress
from ordering.quarantine import Changes, Quarantined
from sinks.chunk import Texts
from sinks.ddl.statement import DdlKind, Statement, named, read_statement
from sinks.instances import Instance, Instances
from sinks.reading import Reader
from sinks.saving import Row, Start, restored
from sinks.schema import Catalog, Column, Shape, TableSchema, choose_handle_key
from sinks.spool import Group
from sinks.target import Lease, Observer, Step, Stored, Target
from tests.simulation.faults import Faults

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
    permits: dict[tuple[str, int], tuple[str, int]] = field(default_factory=dict)
    quarantine: dict[Position, Quarantined] = field(default_factory=dict)
    refuses: Callable[[TableName, dict[str, str | None]], bool] | None = None
    """Which rows the target does not take."""

    def copied(self) -> "Disk":
        """The working copy of a transaction."""
        return Disk(
            {n: t.copied() for n, t in self.tables.items()},
            dict(self.progress),
            dict(self.starts),
            dict(self.epochs),
            dict(self.permits),
            dict(self.quarantine),
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


class MemoryTarget(Target):
    """One connection to a `Disk`. `committed` is called after every commit, even if its answer gets lost."""

    _least_bytes = 0

    def __init__(self, disk: Disk, faults: Faults, committed: Callable[[Disk], None] = lambda _: None) -> None:
        self.name, self.encoder = "memory", TextEncoder()
        self.disk, self.faults, self._committed = disk, faults, committed
        self._work: Disk | None = None
        self._point: Disk | None = None
        self._ddl_table = "ddl"

    def reader(self) -> Reader:
        """Nobody compares what is in memory by SQL."""
        raise AssertionError

    def connect(self) -> None:
        """As `Target.connect`."""

    def close(self) -> None:
        """As `Target.close`."""
        self._work = None

    def check(self) -> list[str]:
        """As `Target.check`."""
        return []

    def catalog(self) -> Catalog:
        """As `Target.catalog`."""
        return Catalog({name: table.schema(name) for name, table in (self._work or self.disk).tables.items()})

    def forget_catalog(self) -> None:
        """As `Target.forget_catalog`: nothing is cached."""

    def stored(self, changefeed: str) -> Stored | None:
        """As `Target.stored`."""
        if changefeed not in self.disk.progress:
            return None
        return Stored(self.disk.restored(changefeed), self.disk.epochs[changefeed], datetime.now(UTC))

    def opener(self) -> Callable[[], Target]:
        """As `Target.opener`; for tasks in this process."""
        return lambda: MemoryTarget(self.disk, self.faults, self._committed)

    def _fence(self, holder: str) -> None:
        """As `Target._fence`: a connection that is gone left nothing behind."""

    def _release(self, holder: str) -> None:
        """As `Target._release`."""

    def _set_permits(self, changefeed: str, name: str, parts: int) -> None:
        kept = {at: permit for at, permit in self._open.permits.items() if at[0] != changefeed}
        self._open.permits = kept | {(changefeed, part): (name, 0) for part in range(parts)}

    def _permits(self, changefeed: str) -> list[int]:
        return [part for name, part in self.disk.permits if name == changefeed]

    def _locked_permit(self, changefeed: str, part: int) -> tuple[str, int] | None:
        return self._open.permits.get((changefeed, part))

    def _take_permit(self, changefeed: str, part: int, attempt: int) -> None:
        name, _ = self._open.permits[changefeed, part]
        self._open.permits[changefeed, part] = (name, attempt)

    def _add_row(self, changefeed: str) -> None:
        self._open.epochs[changefeed] = 0

    def _raise_epoch(self, changefeed: str) -> None:
        self._open.epochs[changefeed] += 1

    def is_led(self, changefeed: str) -> bool:  # noqa: ARG002 the interface's
        """As `Target.is_led`."""
        return False

    def _log_run(self, sql: str, parameters: Sequence[object]) -> int:  # noqa: ARG002 the interface's
        """Nobody asks for the log here."""
        return 0

    def _log_query(self, sql: str, parameters: Sequence[object]) -> list[tuple[Any, ...]]:  # noqa: ARG002 the interface's
        return [(0,)] if "LIMIT 1" in sql and "OFFSET" not in sql else []

    def quarantined(self, changefeed: str) -> list[Quarantined]:
        """As `QuarantineTable.quarantined`."""
        assert changefeed
        return [self.disk.quarantine[position] for position in sorted(self.disk.quarantine)]

    def quarantined_message(self, changefeed: str, position: Position) -> Quarantined | None:
        """As `QuarantineTable.quarantined_message`."""
        assert changefeed
        return self.disk.quarantine.get(position)

    def _change_quarantine(self, changefeed: str, changes: Changes) -> None:
        assert changefeed
        for one in changes.held:
            self._open.quarantine[one.position] = one
        for position, state, note in changes.decided:
            self._open.quarantine[position] = replace(self._open.quarantine[position], state=state, note=note)

    def try_lead(self, changefeed: str) -> bool:  # noqa: ARG002 the interface's
        """As `Target.try_lead`: a world's instances take over whenever they want."""
        return True

    def instances(self, changefeed: str) -> Instances:
        """As `Target.instances`: nobody asks for them here."""
        raise AssertionError(f"who runs {changefeed}?")

    def running(self, changefeed: str) -> list[Instance]:  # noqa: ARG002 the interface's
        """As `Target.running`."""
        return []

    @property
    def _open(self) -> Disk:
        assert self._work is not None, "no transaction is open"
        return self._work

    def _begin(self) -> None:
        assert self._work is None, "a transaction is open already"
        self._work = self.disk.copied()

    def _locked_epoch(self, changefeed: str) -> int | None:
        return self._open.epochs.get(changefeed)

    def _delete(self, group: Group) -> Met:
        table, deleted = self._open.tables[group.first.table], 0
        for row in self._rows(group):
            gone = dict(zip(group.first.columns, row, strict=True))
            for key in [k for k, r in table.rows.items() if all(r[c] == v for c, v in gone.items())]:
                del table.rows[key]
                deleted += 1
        return Met(deleted, deleted)

    def _write(self, group: Group) -> Met:
        table, plain = self._open.tables[group.first.table], group.first.plain_insert
        handle, met = table.handle_key(), 0
        for row in self._rows(group):
            new = dict(zip(group.first.columns, row, strict=True))
            if set(new) != set(table.columns):
                raise TargetError(f"{group.first.table}: columns {sorted(new)} are not {sorted(table.columns)}")
            if self._open.refuses is not None and self._open.refuses(group.first.table, new):
                raise TargetError(f"{group.first.table} does not take {new}")
            if not plain:
                met += table.rows.pop(tuple(new[c] for c in handle), None) is not None
            for unique in table.unique_keys():
                key = tuple(new[c] for c in unique)
                if None not in key and any(tuple(r[c] for c in unique) == key for r in table.rows.values()):
                    raise TargetError(f"{group.first.table}: duplicate entry {key} for {unique}")
            table.rows[tuple(new[c] for c in handle)] = new
        return Met(met, met)

    def _rows(self, group: Group) -> list[list[str | None]]:
        found = []
        for payload in group.payloads():
            for row in _decode(payload):
                self.faults.crash("crash at a row", f"a row of {group.first.table}")
                found.append(row)
        return found

    def _put(self, row: Row, changefeed: str) -> None:
        self._open.progress[changefeed] = row

    def _put_start(self, start: Start, changefeed: str) -> None:
        self._open.starts[changefeed] = start

    def _save_point(self) -> None:
        """As `Target._save_point`: of no use where nothing is refused."""
        if self._open.refuses is not None:
            self._point = self._open.copied()

    def _back_to_point(self) -> None:
        """As `Target._back_to_point`."""
        if self._point is not None:
            self._work = self._point.copied()

    def _commit(self) -> None:
        work, self._work = self._open, None
        self.disk.tables, self.disk.progress, self.disk.epochs = work.tables, work.progress, work.epochs
        self.disk.permits, self.disk.quarantine, self.disk.starts = work.permits, work.quarantine, work.starts
        self._committed(self.disk)
        if self.faults.happens("answer of a commit lost"):
            raise TargetUnreachableError("simulated: the connection broke during COMMIT")

    def _rollback(self) -> None:
        self._work = None

    def execute_ddl(self, ddl: DdlEvent, progress: Progress, lease: Lease, observe: Observer) -> None:
        """As `Target.execute_ddl`: one transaction with the progress."""
        with self._transaction():
            self.check_epoch(lease)
            observe(Step.DDL_RECORDED)
            execute(self._open, read_statement(ddl.sql), ddl.database)
            observe(Step.DDL_EXECUTED)
            self._save(progress, lease)
        observe(Step.DDL_DONE)


def execute(disk: Disk, statement: Statement, database: str) -> None:
    """Do what a statement of the simulated upstream says. Raises TargetError where a database would."""
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
    table = _there(tables, name)
    del tables[name]
    return table


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
    column = _NAMES.findall(sql)[1]
    if " DROP COLUMN " in sql:
        if column not in table.columns:
            raise TargetError(f"no column {column}")
        del table.columns[column]
        table.rows = {k: {n: v for n, v in row.items() if n != column} for k, row in table.rows.items()}
        return
    if column in table.columns:
        raise TargetError(f"column {column} exists")
    table.columns[column] = " NOT NULL" not in sql
    default = _default(sql)
    table.rows = {k: {**row, column: default} for k, row in table.rows.items()}


def _default(sql: str) -> str | None:
    if " DEFAULT " not in sql:
        return None
    text = sql.partition(" DEFAULT ")[2].removeprefix("_UTF8MB4")
    return text[1:-1].replace("''", "'") if text.startswith("'") else text

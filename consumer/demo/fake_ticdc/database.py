"""Tables, and a database that runs transactions on them and reports what each changed.

Rows live under TiKV's row handle, as in TiDB: the primary key where it is clustered, else a hidden number that stays
with the row while its key changes. A commit's row changes are the difference between before and after per *handle*.
So a changed clustered key is a DELETE and an INSERT, a changed nonclustered key is one UPDATE, and a row that was
deleted and inserted again is one UPDATE if clustered, else a DELETE and an INSERT.

Values are text or None, as messages hold them. A row is a dict that nobody changes once it is stored.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Mapping


Row: TypeAlias = dict[str, str | None]
Key: TypeAlias = tuple[str | None, ...]
Column: TypeAlias = tuple[str, str, bool]  # name, MySQL type, nullable
KeyKind: TypeAlias = Literal["clustered", "nonclustered", "unique_only"]

LOGICAL_BITS = 18
LOGICAL_CYCLE = 5


class ConstraintError(Exception):
    """The statement would break a constraint; it changed nothing."""


class DuplicateKeyError(ConstraintError):
    """Another row holds this value of a unique key."""


class RowNotFoundError(LookupError):
    """No row has this handle key."""


@dataclass(frozen=True, eq=False)
class Table:
    """One version of a table's definition; `unique_keys` are (name, columns), without the primary key."""

    database: str
    name: str
    columns: tuple[Column, ...]
    handle_key: tuple[str, ...]
    key_kind: KeyKind = "clustered"
    unique_keys: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def __post_init__(self) -> None:
        names = [name for name, _, _ in self.columns]
        used = {column for key in (self.handle_key, *(key for _, key in self.unique_keys)) for column in key}
        if not self.handle_key or not used <= set(names):
            raise ValueError(f"{self.full_name}: the keys name columns that are not there: {sorted(used - set(names))}")
        if self.key_kind == "unique_only" and self.handle_key not in [key for _, key in self.unique_keys]:
            raise ValueError(f"{self.full_name}: without a primary key the handle key has to be one of the unique keys")

    @cached_property
    def full_name(self) -> str:
        """The name as snapshots spell it: `database.table`."""
        return f"{self.database}.{self.name}"

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The columns' names, in order."""
        return tuple(name for name, _, _ in self.columns)

    @cached_property
    def required(self) -> frozenset[str]:
        """The columns that hold no NULL."""
        return frozenset(name for name, _, nullable in self.columns if not nullable) | frozenset(self.primary_key)

    @cached_property
    def primary_key(self) -> tuple[str, ...]:
        """The columns of the primary key, none if the table has only unique keys."""
        return () if self.key_kind == "unique_only" else self.handle_key

    @cached_property
    def indexes(self) -> tuple[tuple[str, ...], ...]:
        """The columns of every unique index, the handle key's first."""
        others = (key for _, key in self.unique_keys if key != self.handle_key)
        return (self.handle_key, *others)

    @cached_property
    def key_columns(self) -> tuple[str, ...]:
        """Columns whose change makes TiCDC split an UPDATE."""
        return tuple(dict.fromkeys(column for index in self.indexes for column in index))

    def key(self, row: Row) -> Key:
        """Tell the row's handle key."""
        return tuple([row[column] for column in self.handle_key])

    def row(self, values: Mapping[str, str | None]) -> Row:
        """Complete a row: columns in table order, missing ones NULL."""
        row = {name: values.get(name) for name in self.names}
        if len(values) > len(row) or not values.keys() <= row.keys():
            raise ConstraintError(f"{self.full_name} has no column {sorted(values.keys() - row.keys())}")
        for name in self.required:
            if row[name] is None:
                raise ConstraintError(f"{self.full_name}.{name} cannot be NULL")
        return row


class ChangedRow(NamedTuple):
    """One row's change in one commit: `old` is None for an INSERT, `new` for a DELETE."""

    table: Table
    old: Row | None
    new: Row | None

    @property
    def image(self) -> Row:
        """The new image; a DELETE's old one."""
        return self.new or self.old or {}


@dataclass(frozen=True)
class Commit:
    """What one transaction changed."""

    commit_ts: int
    changes: tuple[ChangedRow, ...]


class DdlStatement(ABC):
    """A DDL statement; `type` is the message's."""

    type: ClassVar[str]

    @property
    @abstractmethod
    def sql(self) -> str:
        """The statement as TiDB prints it."""

    @property
    @abstractmethod
    def subject(self) -> tuple[str, str]:
        """Database and table that the message names: those after the DDL."""

    @property
    def route(self) -> tuple[str, str]:
        """Database and table whose topic gets the message."""
        return self.subject

    @abstractmethod
    def apply(self, state: DatabaseState) -> None:
        """Change tables and rows."""


@dataclass(frozen=True)
class Executed:
    """A DDL, run."""

    commit_ts: int
    ddl: DdlStatement


Entry: TypeAlias = Commit | Executed


@dataclass
class DatabaseState:
    """Tables and their rows, under whatever the owner identifies rows by."""

    tables: dict[str, Table] = field(default_factory=dict)
    rows: dict[str, dict[Hashable, Row]] = field(default_factory=dict)


@dataclass
class Clock:
    """TSOs on a grid: `base_ms` + n x `step_ms`, with a small logical part, so that they are not all alike."""

    base_ms: int = 1_767_225_600_000
    step_ms: int = 7
    ticks: int = 0

    def next(self) -> int:
        """Give out the next TSO."""
        tso = (self.base_ms + self.ticks * self.step_ms << LOGICAL_BITS) | self.ticks % LOGICAL_CYCLE + 1
        self.ticks += 1
        return tso


class _Index:
    """The rows of one table by each of its unique indexes."""

    def __init__(self, table: Table, rows: Mapping[Hashable, Row]) -> None:
        self._columns = table.indexes
        self._taken: list[dict[Key, Hashable]] = [{} for _ in self._columns]
        for handle, row in rows.items():
            self.add(handle, row)

    def _keys(self, row: Row) -> Iterator[tuple[dict[Key, Hashable], Key]]:
        for taken, columns in zip(self._taken, self._columns, strict=True):
            key = tuple([row[column] for column in columns])
            if None not in key:
                yield taken, key

    def find(self, key: Key) -> Hashable:
        """Tell the handle of the row with this handle key."""
        try:
            return self._taken[0][key]
        except KeyError:
            raise RowNotFoundError(f"no row {key}") from None

    def check(self, handle: Hashable, row: Row) -> None:
        """Raise if the row, put under the handle, takes a key that another handle holds."""
        for taken, key in self._keys(row):
            if taken.get(key, handle) != handle:
                raise DuplicateKeyError(f"Duplicate entry {key}")

    def add(self, handle: Hashable, row: Row) -> None:
        """Take the row's keys."""
        for taken, key in self._keys(row):
            taken[key] = handle

    def drop(self, row: Row) -> None:
        """Free the row's keys."""
        for taken, key in self._keys(row):
            del taken[key]


class Transaction:
    """Statements on a `Database`, one row each; a failing one changes nothing and the transaction may go on."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._before: dict[tuple[str, Hashable], Row | None] = {}

    @property
    def touched(self) -> bool:
        """Whether any statement has changed anything."""
        return bool(self._before)

    def get(self, table: str, key: Key) -> Row:
        """Read a row by its handle key."""
        return self._database.get(table, key)

    def keys(self, table: str) -> list[Key]:
        """List the table's handle keys, as the transaction sees them."""
        return self._database.keys(table)

    def insert(self, table: str, values: Mapping[str, str | None]) -> None:
        """INSERT one row; columns left out are NULL."""
        definition = self._database.state.tables[table]
        row = definition.row(values)
        handle = self._database.new_handle(definition, row)
        if handle in self._database.state.rows[table]:
            raise DuplicateKeyError(f"Duplicate entry {handle}")
        self._database.index[table].check(handle, row)
        self._put(table, handle, row)

    def update(self, table: str, key: Key, values: Mapping[str, str | None]) -> None:
        """UPDATE the row with this handle key; one that would change nothing does nothing, as in TiDB."""
        database = self._database
        definition, index = database.state.tables[table], database.index[table]
        handle = index.find(key)
        old = database.state.rows[table][handle]
        row = definition.row({**old, **values})
        if row == old:
            return
        moved = definition.key(row) if definition.key_kind == "clustered" else handle
        if moved != handle and moved in database.state.rows[table]:
            raise DuplicateKeyError(f"Duplicate entry {moved}")
        index.drop(old)
        try:
            index.check(moved, row)
        finally:
            index.add(handle, old)
        self._take(table, handle)
        self._put(table, moved, row)

    def delete(self, table: str, key: Key) -> None:
        """DELETE the row with this handle key."""
        self._take(table, self._database.index[table].find(key))

    def changes(self) -> Iterator[ChangedRow]:
        """Yield the difference between before and now, per row handle; a row changed there and back is an UPDATE."""
        for (table, handle), old in self._before.items():
            new = self._database.state.rows[table].get(handle)
            if old is not None or new is not None:
                yield ChangedRow(self._database.state.tables[table], old, new)

    def roll_back(self) -> None:
        """Put everything back as it was."""
        for table, handle in self._before:
            if handle in self._database.state.rows[table]:
                self._take(table, handle)
        for (table, handle), old in self._before.items():
            if old is not None:
                self._put(table, handle, old)

    def _take(self, table: str, handle: Hashable) -> None:
        row = self._database.state.rows[table].pop(handle)
        self._before.setdefault((table, handle), row)
        self._database.index[table].drop(row)

    def _put(self, table: str, handle: Hashable, row: Row) -> None:
        self._before.setdefault((table, handle), None)
        self._database.state.rows[table][handle] = row
        self._database.index[table].add(handle, row)


class Database:
    """Tables with rows, their unique indexes, and the log of all that was committed."""

    def __init__(self, clock: Clock | None = None) -> None:
        self.clock = clock or Clock()
        self.state = DatabaseState()
        self.index: dict[str, _Index] = {}
        self.log: list[Entry] = []
        self._hidden = 0

    def execute(self, ddl: DdlStatement) -> Executed:
        """Run a DDL."""
        ddl.apply(self.state)
        self.index = {name: _Index(self.state.tables[name], rows) for name, rows in self.state.rows.items()}
        entry = Executed(self.clock.next(), ddl)
        self.log.append(entry)
        return entry

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """Run a transaction: commits at the end, rolls back if the block raises."""
        transaction = Transaction(self)
        try:
            yield transaction
        except BaseException:
            transaction.roll_back()
            raise
        if transaction.touched:
            self._commit(tuple(transaction.changes()))

    def _commit(self, changes: tuple[ChangedRow, ...]) -> None:
        """Log the commit; one that came to nothing (INSERT, DELETE) takes a commitTs all the same."""
        commit_ts = self.clock.next()
        if changes:
            self.log.append(Commit(commit_ts, changes))

    def get(self, table: str, key: Key) -> Row:
        """Read a row by its handle key."""
        return self.state.rows[table][self.index[table].find(key)]

    def keys(self, table: str) -> list[Key]:
        """List the table's handle keys."""
        definition = self.state.tables[table]
        return [definition.key(row) for row in self.state.rows[table].values()]

    def new_handle(self, table: Table, row: Row) -> Hashable:
        """Choose the row handle of a new row."""
        if table.key_kind == "clustered":
            return table.key(row)
        self._hidden += 1
        return self._hidden

    def snapshot(self) -> dict[str, dict[Key, Row]]:
        """Tell what every table holds: {"database.table": {handle key: row}}."""
        return {name: _by_key(self.state.tables[name], rows.values()) for name, rows in self.state.rows.items()}


def _by_key(table: Table, rows: Iterable[Row]) -> dict[Key, Row]:
    return {table.key(row): row for row in rows}

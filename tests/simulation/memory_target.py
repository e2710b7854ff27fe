"""A target over a `Disk`: transactions as copies, a crash wherever the faults want one."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from ordering.drift import Met
from ordering.errors import TargetError, TargetUnreachableError
from ordering.events import DdlEvent, Position, TableName
from ordering.progress import Progress
from ordering.quarantine import Changes, Quarantined
from sinks.bookkeeping.books import Books
from sinks.bookkeeping.ddl_log import DdlRecord
from sinks.bookkeeping.progress_rows import Lease, ProgressTable, Row, Saving, Start, Stored
from sinks.bookkeeping.quarantine import QuarantineTable
from sinks.bookkeeping.tables import Book, BookTypes, as_moment
from sinks.bookkeeping.upstream_schemas import UpstreamSchemaTable
from sinks.bookkeeping.write_permits import Attempt, PermitTable, Phase
from sinks.compare.digests import TableReader
from sinks.ddl.kept_definitions import PlacedDdl
from sinks.ddl.parse.statement import read_statement
from sinks.leadership import EpochsAlone
from sinks.rows.schema import Catalog, TableSchema
from sinks.rows.spool import Group
from sinks.steps import Observer, Step
from sinks.target import Target
from sinks.target_session import TargetSession
from tests.simulation.faults import Faults
from tests.simulation.memory import Disk, TextEncoder, execute


class MemorySession:
    """One connection to a `Disk`: what a transaction changes is a copy, until it commits."""

    def __init__(self, disk: Disk, faults: Faults, committed: Callable[[Disk], None]) -> None:
        self.disk, self.faults, self._committed = disk, faults, committed
        self._work: Disk | None = None
        self._point: Disk | None = None

    @property
    def shown(self) -> Disk:
        """What this connection reads."""
        return self._work or self.disk

    @property
    def open(self) -> Disk:
        """What the transaction changes."""
        assert self._work is not None, "no transaction is open"
        return self._work

    def run(self, sql: str, parameters: Sequence[object] | None = None) -> int:  # noqa: ARG002 the interface's
        """Nobody asks for the DDL log here."""
        return 0

    def query(self, sql: str, parameters: Sequence[object] | None = None) -> list[tuple[Any, ...]]:  # noqa: ARG002 the interface's
        """As `run`; the id of a line that was added is asked for."""
        return [(0,)] if "LIMIT 1" in sql and "OFFSET" not in sql else []

    def value(self, sql: str, parameters: Sequence[object] | None = None) -> Any:
        """Nobody asks for one value here."""
        raise AssertionError(sql, parameters)

    def has_table(self, name: str) -> bool:
        """All but the list of instances."""
        return name != "instance"

    def begin(self) -> None:
        """As `DatabaseSession.begin`."""
        assert self._work is None, "a transaction is open already"
        self._work = self.disk.copied()

    def commit(self) -> None:
        """As `DatabaseSession.commit`."""
        work, self._work = self.open, None
        self.disk.tables, self.disk.progress, self.disk.epochs = work.tables, work.progress, work.epochs
        self.disk.moments = work.moments
        self.disk.permits, self.disk.quarantine, self.disk.starts = work.permits, work.quarantine, work.starts
        self.disk.schemas = work.schemas
        self._committed(self.disk)
        if self.faults.happens("answer of a commit lost"):
            raise TargetUnreachableError("simulated: the connection broke during COMMIT")

    def rollback(self) -> None:
        """As `DatabaseSession.rollback`."""
        self._work = None

    def save_point(self) -> None:
        """As `DatabaseSession.save_point`: of no use where nothing is refused."""
        if self.open.refuses is not None:
            self._point = self.open.copied()

    def back_to_point(self) -> None:
        """As `DatabaseSession.back_to_point`."""
        if self._point is not None:
            self._work = self._point.copied()

    def close(self) -> None:
        """As `DatabaseSession.close`."""
        self._work = None


def _at(book: Book) -> MemorySession:
    session = book.opener.db
    assert isinstance(session, MemorySession)
    return session


class MemoryProgress(ProgressTable):
    """The progress on a `Disk`."""

    def __init__(self, book: Book) -> None:
        super().__init__(book, least_bytes=0)

    def stored(self, changefeed: str) -> Stored | None:
        """As `ProgressTable.stored`."""
        disk = _at(self._book).disk
        if changefeed not in disk.progress:
            return None
        return Stored(disk.restored(changefeed), disk.epochs[changefeed], as_moment(disk.moments[changefeed]))

    def applied(self, changefeed: str) -> int | None:
        """As `ProgressTable.applied`."""
        found = self.stored(changefeed)
        return None if found is None else found.progress.checkpoint_ts

    def locked(self, changefeed: str) -> tuple[int, Saving] | None:
        """As `ProgressTable.locked`."""
        work = _at(self._book).open
        if changefeed not in work.epochs:
            return None
        row = work.progress[changefeed]
        return work.epochs[changefeed], Saving(row.checkpoint_ts, as_moment(work.moments[changefeed]))

    def add(self, changefeed: str) -> None:
        """As `ProgressTable.add`."""
        _at(self._book).open.epochs[changefeed] = 0

    def raise_epoch(self, changefeed: str) -> None:
        """As `ProgressTable.raise_epoch`."""
        _at(self._book).open.epochs[changefeed] += 1

    def put(self, row: Row, changefeed: str, moment: str) -> None:
        """As `ProgressTable.put`."""
        _at(self._book).open.progress[changefeed] = row
        _at(self._book).open.moments[changefeed] = moment

    def put_start(self, start: Start, changefeed: str) -> None:
        """As `ProgressTable.put_start`."""
        _at(self._book).open.starts[changefeed] = start


class MemoryPermits(PermitTable):
    """The permits on a `Disk`."""

    def set(self, changefeed: str, phase: Phase | None = None) -> None:
        """As `PermitTable.set`."""
        disk = _at(self._book).open
        kept = {at: permit for at, permit in disk.permits.items() if at[0] != changefeed}
        made = {} if phase is None else {(changefeed, part): (phase.name, 0) for part in range(phase.parts)}
        disk.permits = kept | made

    def parts(self, changefeed: str) -> list[int]:
        """As `PermitTable.parts`."""
        return [part for name, part in _at(self._book).disk.permits if name == changefeed]

    def locked(self, changefeed: str, part: int) -> tuple[str, int]:
        """As `PermitTable.locked`."""
        return _at(self._book).open.permits.get((changefeed, part), ("", 0))

    def take(self, attempt: Attempt) -> None:
        """As `PermitTable.take`."""
        disk, at = _at(self._book).open, (attempt.phase.changefeed, attempt.part)
        disk.permits[at] = (disk.permits[at][0], attempt.number)


class MemoryQuarantine(QuarantineTable):
    """The quarantine on a `Disk`."""

    def all(self, changefeed: str) -> list[Quarantined]:
        """As `QuarantineTable.all`."""
        assert changefeed
        found = _at(self._book).disk.quarantine
        return [found[position] for position in sorted(found)]

    def message(self, changefeed: str, position: Position) -> Quarantined | None:
        """As `QuarantineTable.message`."""
        assert changefeed
        return _at(self._book).disk.quarantine.get(position)

    def change(self, changefeed: str, changes: Changes) -> None:
        """As `QuarantineTable.change`."""
        assert changefeed
        kept = _at(self._book).open.quarantine
        for one in changes.held:
            kept[one.position] = one
        for position, state, note in changes.decided:
            kept[position] = replace(kept[position], state=state, note=note)


class MemorySchemas(UpstreamSchemaTable):
    """Upstream's schemas on a `Disk`."""

    def make(self) -> None:
        """As `UpstreamSchemaTable.make`."""

    def all(self, changefeed: str) -> list[str]:
        """As `UpstreamSchemaTable.all`."""
        assert changefeed
        return list(_at(self._book).disk.schemas.values())

    def change(self, changefeed: str, changes: Changes) -> None:
        """As `UpstreamSchemaTable.change`."""
        assert changefeed
        kept = _at(self._book).open.schemas
        for name in changes.outdated:
            del kept[name]
        kept |= dict(changes.schemas)


def memory_books(book: Book) -> Books:
    """The bookkeeping of a target in memory."""
    books = Books.over(book)
    return replace(
        books,
        progress=MemoryProgress(book),
        permits=MemoryPermits(book),
        quarantine=MemoryQuarantine(book),
        schemas=MemorySchemas(book),
    )


class MemoryDialect:
    """As `Dialect`. `committed` is called after every commit, even if its answer gets lost."""

    name = "memory"
    books = BookTypes("", "", "", "", "", "", "")
    has_savepoints = True

    def __init__(self, disk: Disk, faults: Faults, committed: Callable[[Disk], None]) -> None:
        self.encoder = TextEncoder()
        self._disk, self._faults, self._committed = disk, faults, committed

    def connect(self) -> MemorySession:
        """As `Connector.connect`."""
        return MemorySession(self._disk, self._faults, self._committed)

    def connect_beside(self) -> MemorySession:
        """Nobody asks for the list of instances here."""
        raise AssertionError

    def prepare(self, at: TargetSession[MemorySession]) -> None:
        """As `Dialect.prepare`."""

    def check(self, at: TargetSession[MemorySession]) -> list[str]:
        """As `Dialect.check`."""
        return [at.name]

    def leadership(self, at: TargetSession[MemorySession]) -> EpochsAlone:  # noqa: ARG002 the interface's
        """As `Dialect.leadership`: a world's instances take over whenever they want."""
        return EpochsAlone()

    def ddl(self, at: TargetSession[MemorySession]) -> "MemoryDdl":
        """As `Dialect.ddl`."""
        return MemoryDdl(at)

    def catalog(self, session: MemorySession) -> Catalog:
        """As `Connector.catalog`."""
        return Catalog({name: table.schema(name) for name, table in session.shown.tables.items()})

    def delete(self, session: MemorySession, group: Group, schema: TableSchema) -> Met:
        """As `Dialect.delete`."""
        table, deleted = session.open.tables[schema.name], 0
        for row in _rows(session, group):
            gone = dict(zip(group.first.columns, row, strict=True))
            for key in [k for k, r in table.rows.items() if all(r[c] == v for c, v in gone.items())]:
                del table.rows[key]
                deleted += 1
        return Met(deleted, deleted)

    def write(self, session: MemorySession, group: Group, schema: TableSchema) -> Met:
        """As `Dialect.write`."""
        table, plain = session.open.tables[schema.name], group.first.plain_insert
        handle, met = table.handle_key(), 0
        for row in _rows(session, group):
            new = dict(zip(group.first.columns, row, strict=True))
            if set(new) != set(table.columns):
                raise TargetError(f"{group.first.table}: columns {sorted(new)} are not {sorted(table.columns)}")
            if session.open.refuses is not None and session.open.refuses(group.first.table, new):
                raise TargetError(f"{group.first.table} does not take {new}")
            if not plain:
                met += table.rows.pop(tuple(new[c] for c in handle), None) is not None
            for unique in table.unique_keys():
                key = tuple(new[c] for c in unique)
                if None not in key and any(tuple(r[c] for c in unique) == key for r in table.rows.values()):
                    raise TargetError(f"{group.first.table}: duplicate entry {key} for {unique}")
            table.rows[tuple(new[c] for c in handle)] = new
        return Met(met, met)

    def finish_rows(self, session: MemorySession, progress: Progress, confirm: Callable[[], None]) -> None:
        """As `Connector.finish_rows`."""

    def is_empty(self, session: MemorySession, table: TableName) -> bool:
        """As `Dialect.is_empty`."""
        return not session.disk.tables[table].rows

    def reader(self, at: TargetSession[MemorySession]) -> TableReader:
        """Nobody compares what is in memory by SQL."""
        raise AssertionError(at)


def _rows(session: MemorySession, group: Group) -> list[list[str | None]]:
    found = []
    for payload in group.payloads():
        for row in msgspec.msgpack.decode(payload, type=list[list[str | None]]):
            session.faults.crash("crash at a row", f"a row of {group.first.table}")
            found.append(row)
    return found


class MemoryDdl:
    """As `DdlExecution`: one transaction with the progress."""

    def __init__(self, at: TargetSession[MemorySession]) -> None:
        self._at = at

    def execute(self, ddl: DdlEvent, progress: Progress, lease: Lease, observe: Observer) -> None:
        """As `DdlExecution.execute`."""
        try:
            with self._at.led_transaction(lease):
                observe(Step.DDL_RECORDED)
                execute(self._at.db.open, read_statement(ddl.sql), ddl.database)
                observe(Step.DDL_EXECUTED)
                self._at.save(progress, lease)
        finally:
            self._at.forget_catalog()
        observe(Step.DDL_DONE)

    def may_have_run(self, line: DdlRecord) -> bool:
        """As `DdlExecution.may_have_run`."""
        del line
        return False

    def follow(self, made: PlacedDdl, lease: Lease) -> None:
        """As `DdlExecution.follow`."""

    def pass_over(self, left_out: PlacedDdl, lease: Lease) -> None:
        """As `DdlExecution.pass_over`."""

    def define(self, there: PlacedDdl, lease: Lease) -> None:
        """As `DdlExecution.define`."""

    def resume(self, lease: Lease) -> None:
        """As `DdlExecution.resume`."""


def memory_target(disk: Disk, faults: Faults, committed: Callable[[Disk], None] = lambda _: None) -> Target:
    """A target over one connection to a `Disk`; `opener` serves tasks in this process."""
    return Target(MemoryDialect(disk, faults, committed), memory_books)

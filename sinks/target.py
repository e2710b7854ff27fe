"""What a target is, and the one way in which a unit reaches it.

    begin -> epoch locked and checked -> all deletes -> all writes -> progress -> commit

Rows and progress commit together (R1); the epoch row is locked in the same transaction, so a leader that was stopped
and goes on later cannot write (fencing). A unit is a window's net effect, or one upstream transaction.

In `row` consistency tasks write a window over connections of their own, in transactions of a chunk each. They need a
permit, a row of `ticdc_reconciler.writer` for each part of a phase's rows, which every such transaction locks:

    permits + window recorded -> tasks delete -> new permits -> tasks write -> no permits + progress

A permit that was replaced or withdrawn, and one that a later attempt has taken over, allows nothing any more: so a lost
attempt that goes on writes nothing behind its retry, nor anything behind the end of its phase.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from ordering.errors import (
    LeadershipLostError,
    TargetBusyError,
    TargetError,
    TargetUnreachableError,
    TransactionLimitError,
)
from ordering.events import DdlEvent, Half
from ordering.progress import Progress
from sinks.chunk import Chunk, Encoder
from sinks.refusal import Trial
from sinks.schema import Catalog
from sinks.spool import Group, Spool

PROGRESS_DATABASE = "ticdc_reconciler"
_TRIES = 10
"""How often a task's transaction is tried that lost a deadlock or waited too long for a lock."""


class Step(Enum):
    """Where a round is; each is announced when it has been done. Crash tests kill between any two."""

    PROBED = "probed"
    PLANNED = "planned"
    READ = "read"
    WINDOW_RECORDED = "window-recorded"
    DELETES_DONE = "deletes-done"
    WRITES_DONE = "writes-done"
    REDUCED = "reduced"
    APPLY_BEGUN = "apply-begun"
    ROWS_WRITTEN = "rows-written"
    PROGRESS_WRITTEN = "progress-written"
    COMMITTED = "committed"
    DDL_RECORDED = "ddl-recorded"
    DDL_EXECUTED = "ddl-executed"
    DDL_DONE = "ddl-done"
    PUBLISHED = "published"


Observer = Callable[[Step], None]


@dataclass(frozen=True, slots=True)
class Stored:
    """A changefeed's row of the progress table."""

    progress: Progress
    epoch: int
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to write for a changefeed: valid while the target's epoch is this one."""

    changefeed: str
    epoch: int


@dataclass(frozen=True, slots=True)
class Phase:
    """The right of a phase's tasks to write: `parts` permits under one name that no other phase has."""

    changefeed: str
    name: str
    parts: int


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try of a task at a part of a phase; of two tries the one with the higher number wins."""

    phase: Phase
    part: int
    number: int


@dataclass(frozen=True, slots=True)
class DdlRecord:
    """A line of the DDL log: what came, what was executed in the target (or why nothing was), when it was done."""

    commit_ts: int
    database: str
    table: str
    sql: str
    executed: str
    state: str
    updated_at: str


class Target(ABC):
    """A relational database that mirrors the upstream. Raises TargetError, TargetUnreachableError, LeadershipLostError.

    Not for use by several threads at once. After an error the caller closes it and connects anew.
    """

    name: str
    """For people: kind, host and port or path; never a password."""
    encoder: Encoder
    _catalog: Catalog | None = None

    @abstractmethod
    def opener(self) -> "Callable[[], Target]":
        """What makes another such target in a task; can be pickled, and shows no password."""

    def assume(self, catalog: Catalog) -> None:
        """Take this catalog for the target's until `forget_catalog`: tasks get the driver's."""
        self._catalog = catalog

    @abstractmethod
    def connect(self) -> None:
        """Open the connection and make the progress table if it is missing."""

    @abstractmethod
    def close(self) -> None:
        """Close the connection; what was not committed is rolled back."""

    @abstractmethod
    def check(self) -> list[str]:
        """Look for rights and settings that writing needs, changing nothing; return what was found fine."""

    @abstractmethod
    def catalog(self) -> Catalog:
        """The tables, cached until `forget_catalog`."""

    @abstractmethod
    def forget_catalog(self) -> None:
        """Read the catalog again at its next use."""

    @abstractmethod
    def stored(self, changefeed: str) -> Stored | None:
        """The changefeed's progress, or None for a new one; also where no progress table is there yet."""

    @abstractmethod
    def execute_ddl(self, ddl: DdlEvent, progress: Progress, lease: Lease, observe: Observer) -> None:
        """Execute a DDL exactly once and save `progress`, whatever crashes in between."""

    @abstractmethod
    def _record(self, ddl: DdlEvent, executed: str, state: str, lease: Lease) -> None:
        """Add a line to the DDL log, in the transaction that has begun."""

    @abstractmethod
    def ddl_log(self, changefeed: str, limit: int) -> list[DdlRecord]:
        """The latest DDLs, newest first."""

    @abstractmethod
    def _fence(self, holder: str) -> None:
        """End the connection that holds this name, if there is one: what it runs must not go on. Then hold it here.

        The leader holds the changefeed's name; a task that writes holds its part's.
        """

    @abstractmethod
    def _release(self, holder: str) -> None:
        """Hold this name no more."""

    @abstractmethod
    def _add_row(self, changefeed: str) -> None:
        """Add the changefeed's row to the progress table, with epoch 0."""

    @abstractmethod
    def _raise_epoch(self, changefeed: str) -> None:
        """Raise the epoch by one."""

    @abstractmethod
    def _begin(self) -> None: ...

    @abstractmethod
    def _locked_epoch(self, changefeed: str) -> int | None: ...

    @abstractmethod
    def _set_permits(self, changefeed: str, name: str, parts: int) -> None:
        """Replace the changefeed's permits by parts 0 to `parts` - 1 under this name, not taken by any attempt yet."""

    @abstractmethod
    def _permits(self, changefeed: str) -> list[int]:
        """The parts for which there are permits."""

    @abstractmethod
    def _locked_permit(self, changefeed: str, part: int) -> tuple[str, int] | None:
        """Lock a permit; its name and the attempt that has it (0: none)."""

    @abstractmethod
    def _take_permit(self, changefeed: str, part: int, attempt: int) -> None: ...

    @abstractmethod
    def _delete(self, group: Group) -> None: ...

    @abstractmethod
    def _write(self, group: Group) -> None: ...

    @abstractmethod
    def _save(self, progress: Progress, lease: Lease) -> None: ...

    @abstractmethod
    def _save_point(self) -> None:
        """Set the savepoint; there is one, and it moves."""

    @abstractmethod
    def _back_to_point(self) -> None:
        """Undo what was written since the savepoint."""

    @abstractmethod
    def _commit(self) -> None: ...

    @abstractmethod
    def _rollback(self) -> None: ...

    def claim(self, changefeed: str, initial: Progress, held: Lease | None = None) -> Stored:
        """Become the leader: raise the epoch by one, for a new changefeed from 0, and return the row.

        `held`: the lease that this process had before it lost its connection. Raises LeadershipLostError if another
        instance has become the leader since.
        """
        known = self.stored(changefeed)
        if held is not None:
            self._compare(None if known is None else known.epoch, held)
        self._fence(changefeed)
        self._end_writers(changefeed)
        self._begin()
        try:
            epoch = self._locked_epoch(changefeed)
            if held is not None:
                self._compare(epoch, held)
            if epoch is None:
                self._add_row(changefeed)
                self._save(initial, Lease(changefeed, 0))
            self._raise_epoch(changefeed)
            self._set_permits(changefeed, "", 0)
            self._commit()
        except BaseException:
            self._rollback()
            raise
        found = self.stored(changefeed)
        if found is None:
            raise TargetError(f"the progress of changefeed {changefeed!r} is gone", where=self.name)
        return found

    def _end_writers(self, changefeed: str) -> None:
        """End what tasks of the last leader still write: they hold locks for which everyone else would wait."""
        for part in self._permits(changefeed):
            self._fence(_writer(changefeed, part))
            self._release(_writer(changefeed, part))

    def save(self, progress: Progress, lease: Lease, phase: Phase | None = None, rows: Spool | None = None) -> None:
        """Save the progress, with rows that no task may write, and permit this phase's tasks alone to write."""
        self._begin()
        try:
            self.check_epoch(lease)
            self._set_permits(lease.changefeed, *((phase.name, phase.parts) if phase else ("", 0)))
            self._write_groups(rows or Spool())
            self._save(progress, lease)
            self._commit()
        except BaseException:
            self._rollback()
            raise

    def take_over(self, attempt: Attempt) -> bool:
        """Become the one who writes a part; whether another attempt of this phase was before.

        Raises LeadershipLostError if the phase is over, or a later attempt has the part.
        """
        self._fence(_writer(attempt.phase.changefeed, attempt.part))
        self._begin()
        try:
            before = self._check_permit(attempt, attempt.number)
            self._take_permit(attempt.phase.changefeed, attempt.part, attempt.number)
            self._commit()
        except BaseException:
            self._rollback()
            raise
        return before > 0

    def write_part(self, attempt: Attempt, chunks: Iterable[Chunk]) -> int:
        """Write a part's chunks that was taken over, each in a transaction of its own; returns how many rows.

        Raises LeadershipLostError once the phase is over, or another attempt has taken the part over.
        """
        rows = 0
        for chunk in chunks:
            with Spool() as spool:
                spool.add(chunk)
                self._write_chunk(attempt, spool)
                rows += spool.rows
        return rows

    def _write_chunk(self, attempt: Attempt, spool: Spool) -> None:
        for left in reversed(range(_TRIES)):
            self._begin()
            try:
                self._check_permit(attempt)
                self._write_groups(spool)
                self._commit()
            except TargetBusyError:
                self._rollback()
                if not left:
                    raise
            except BaseException:
                self._rollback()
                raise
            else:
                return

    def _check_permit(self, attempt: Attempt, highest: int | None = None) -> int:
        """Lock the permit; it has to be this attempt's, or (`highest`) of one that is not above. Whose it is."""
        found = self._locked_permit(attempt.phase.changefeed, attempt.part)
        name, holder = found or ("", 0)
        if name != attempt.phase.name or (holder > highest if highest is not None else holder != attempt.number):
            raise LeadershipLostError(
                f"attempt {attempt.number} of part {attempt.part} may not write any more: another one does, or its"
                " phase is over",
                where=self.name,
            )
        return holder

    def apply(self, spool: Spool, progress: Progress, lease: Lease, observe: Observer) -> None:
        """Apply one unit and its progress in one transaction, or nothing of it."""
        self._begin()
        try:
            self.check_epoch(lease)
            observe(Step.APPLY_BEGUN)
            self._write_groups(spool)
            observe(Step.ROWS_WRITTEN)
            self._save(progress, lease)
            observe(Step.PROGRESS_WRITTEN)
            self._commit()
        except BaseException:
            self._rollback()
            raise
        observe(Step.COMMITTED)

    def _write_groups(self, spool: Spool) -> None:
        """All deletes before all writes (R5)."""
        for group in (*spool.groups(Half.DELETE), *spool.groups(Half.WRITE)):
            self._put_group(group)

    def _put_group(self, group: Group) -> None:
        """Delete or write a group's rows. Raises RowRefusedError where it is one row that the target refuses."""
        put = self._delete if group.first.half is Half.DELETE else self._write
        self._save_point()
        try:
            put(group)
        except TargetError as error:
            if isinstance(error, TargetUnreachableError | TransactionLimitError):
                raise
            self._back_to_point()
            raise Trial(self.encoder, put, self._save_point, self._back_to_point).refused(group, error) from error

    def ignore_ddl(self, ddl: DdlEvent, why: str, progress: Progress, lease: Lease, observe: Observer) -> None:
        """Pass over a DDL: log why, and save `progress`."""
        self._begin()
        try:
            self.check_epoch(lease)
            self._record(ddl, why, "ignored", lease)
            observe(Step.DDL_RECORDED)
            self._save(progress, lease)
            self._commit()
        except BaseException:
            self._rollback()
            raise
        observe(Step.DDL_DONE)

    def check_epoch(self, lease: Lease) -> None:
        """Lock the epoch row and raise LeadershipLostError if it is no longer ours."""
        self._compare(self._locked_epoch(lease.changefeed), lease)

    def _compare(self, epoch: int | None, lease: Lease) -> None:
        if epoch != lease.epoch:
            raise LeadershipLostError(
                f"changefeed {lease.changefeed!r} has a new leader: epoch {epoch}, ours was {lease.epoch}",
                where=self.name,
                hint="another instance took over; this one may be started again as a stand-by",
            )


def _writer(changefeed: str, part: int) -> str:
    """The name that a task's connection holds."""
    return f"{changefeed}/{part}"

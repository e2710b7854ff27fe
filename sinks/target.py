"""What a target is, and the one way in which a unit reaches it.

    begin -> epoch locked and checked -> all deletes -> all writes -> progress -> commit

Rows and progress commit together (R1); the epoch row is locked in the same transaction, so a leader that was stopped
and goes on later cannot write (fencing). A unit is a window's net effect, or one upstream transaction.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from ordering.errors import LeadershipLostError, TargetError
from ordering.events import DdlEvent, Half
from ordering.progress import Progress
from sinks.chunk import Encoder
from sinks.schema import Catalog
from sinks.spool import Group, Spool

PROGRESS_DATABASE = "ticdc_reconciler"


class Step(Enum):
    """Where a round is; each is announced when it has been done. Crash tests kill between any two."""

    PROBED = "probed"
    PLANNED = "planned"
    READ = "read"
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
class DdlRecord:
    """A line of the DDL log: what came, what was executed in the target, when it was done."""

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
    def ddl_log(self, changefeed: str, limit: int) -> list[DdlRecord]:
        """The latest DDLs, newest first."""

    @abstractmethod
    def _fence(self, changefeed: str) -> None:
        """End the connection of the changefeed's last leader, if it is still there: what it runs must not go on."""

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
    def _delete(self, group: Group) -> None: ...

    @abstractmethod
    def _write(self, group: Group) -> None: ...

    @abstractmethod
    def _save(self, progress: Progress, lease: Lease) -> None: ...

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
        self._begin()
        try:
            epoch = self._locked_epoch(changefeed)
            if held is not None:
                self._compare(epoch, held)
            if epoch is None:
                self._add_row(changefeed)
                self._save(initial, Lease(changefeed, 0))
            self._raise_epoch(changefeed)
            self._commit()
        except BaseException:
            self._rollback()
            raise
        found = self.stored(changefeed)
        if found is None:
            raise TargetError(f"the progress of changefeed {changefeed!r} is gone", where=self.name)
        return found

    def apply(self, spool: Spool, progress: Progress, lease: Lease, observe: Observer) -> None:
        """Apply one unit and its progress in one transaction, or nothing of it."""
        self._begin()
        try:
            self.check_epoch(lease)
            observe(Step.APPLY_BEGUN)
            for group in spool.groups(Half.DELETE):
                self._delete(group)
            for group in spool.groups(Half.WRITE):
                self._write(group)
            observe(Step.ROWS_WRITTEN)
            self._save(progress, lease)
            observe(Step.PROGRESS_WRITTEN)
            self._commit()
        except BaseException:
            self._rollback()
            raise
        observe(Step.COMMITTED)

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

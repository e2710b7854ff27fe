"""What a target is, and the one way in which a unit reaches it.

    begin -> epoch locked and checked -> all deletes -> all writes -> progress -> commit

Rows and progress commit together (R1); the epoch row is locked in the same transaction, so a leader that was stopped
and goes on later cannot write (fencing). A unit is a window's net effect, or one upstream transaction.
How tasks write in `row` consistency stands in `sinks.parts`.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from ordering.drift import Drift, Drifts, Met, drift_of, summed
from ordering.errors import (
    NO_ROW_AT_FAULT,
    LeadershipLostError,
    TargetError,
)
from ordering.events import DdlEvent, Half
from ordering.progress import Progress
from ordering.quarantine import NO_CHANGES, Changes
from sinks.chunk import Encoder
from sinks.ddl_log import DECIDED, DdlLog, DdlRecord, DdlState
from sinks.instances import Instance, Instances
from sinks.keeping import Definition, DefinitionTable, Wanted
from sinks.loads import LoadTable
from sinks.parts import PartWriting, Phase
from sinks.quarantine import QuarantineTable
from sinks.reading import Reader
from sinks.refusal import Trial
from sinks.schema import Catalog
from sinks.spool import Group, Spool

PROGRESS_DATABASE = "ticdc_reconciler"


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
Judge = Callable[[Progress, Drifts], Progress]


def _as_it_is(progress: Progress, _drifts: Drifts) -> Progress:
    return progress


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


class Target(PartWriting, DdlLog, QuarantineTable, DefinitionTable, LoadTable):
    """A relational database that mirrors the upstream. Raises TargetError, TargetUnreachableError, LeadershipLostError.

    Not for use by several threads at once. After an error the caller closes it and connects anew.
    """

    encoder: Encoder
    _catalog: Catalog | None = None

    @abstractmethod
    def opener(self) -> "Callable[[], Target]":
        """What makes another such target in a task; can be pickled, and shows no password."""

    def assume(self, catalog: Catalog) -> None:
        """Take this catalog for the target's until `forget_catalog`: tasks get the driver's."""
        self._catalog = catalog

    @abstractmethod
    def reader(self) -> Reader:
        """Reads the tables for comparison, over this target's own connection; needs no `connect`."""

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
    def try_lead(self, changefeed: str) -> bool:
        """Hold what a leader holds, unless an instance that lives does; whether it is held now. `claim` comes next.

        It is let go of by `close`, and by the target itself once the process or its connection has ended.
        """

    @abstractmethod
    def instances(self, changefeed: str) -> Instances:
        """The list of the changefeed's instances, over a connection of its own that the caller closes."""

    @abstractmethod
    def running(self, changefeed: str) -> list[Instance]:
        """The instances that are on the list, the leader first; none where there is no list yet. Changes nothing."""

    @abstractmethod
    def execute_ddl(self, ddl: DdlEvent, progress: Progress, lease: Lease, observe: Observer) -> None:
        """Execute a DDL exactly once and save `progress`, whatever crashes in between."""

    @abstractmethod
    def is_led(self, changefeed: str) -> bool:
        """Whether another connection leads the changefeed now, as far as the target can tell."""

    @abstractmethod
    def _add_row(self, changefeed: str) -> None:
        """Add the changefeed's row to the progress table, with epoch 0."""

    @abstractmethod
    def _raise_epoch(self, changefeed: str) -> None:
        """Raise the epoch by one."""

    @abstractmethod
    def _locked_epoch(self, changefeed: str) -> int | None: ...

    @abstractmethod
    def _delete(self, group: Group) -> Met: ...

    @abstractmethod
    def _write(self, group: Group) -> Met: ...

    @abstractmethod
    def _save_point(self) -> None:
        """Set the savepoint; there is one, and it moves."""

    @abstractmethod
    def _back_to_point(self) -> None:
        """Undo what was written since the savepoint."""

    def claim(self, changefeed: str, initial: Progress, held: Lease | None = None) -> Stored:
        """Become the leader: raise the epoch by one, for a new changefeed from 0, and return the row.

        `held`: the lease that this process had before it lost its connection. Raises LeadershipLostError if another
        instance has become the leader since.
        """
        known = self.stored(changefeed)
        if held is not None:
            self._compare(None if known is None else known.epoch, held)
        self._fence_leader(changefeed)
        self._end_writers(changefeed)
        with self._transaction():
            epoch = self._locked_epoch(changefeed)
            if held is not None:
                self._compare(epoch, held)
            if epoch is None:
                self._add_row(changefeed)
                self._save(initial, Lease(changefeed, 0))
            self._raise_epoch(changefeed)
            self._set_permits(changefeed, "", 0)
        found = self.stored(changefeed)
        if found is None:
            raise TargetError(f"the progress of changefeed {changefeed!r} is gone", where=self.name)
        return found

    def replace_progress(
        self,
        changefeed: str,
        progress: Progress,
        known: Progress | None,
        aside: Changes = NO_CHANGES,
        definitions: tuple[Wanted, Sequence[Definition]] | None = None,
    ) -> None:
        """Put an operator's progress in the place of the known one; whoever leads no longer does.

        `definitions`: of which tables the kept ones are replaced, and by which.

        Raises LeadershipLostError if the progress is not the known one any more: an instance has run meanwhile.
        """
        claimed = self.claim(changefeed, progress if known is None else known)
        if known is not None and claimed.progress != known:
            hint = "stop it (and whatever would start another one), then run this command again"
            raise LeadershipLostError(f"an instance of {changefeed!r} ran meanwhile", where=self.name, hint=hint)
        lease = Lease(changefeed, claimed.epoch)
        with self._transaction():
            self.check_epoch(lease)
            self._forget_intents(changefeed)
            if definitions is not None:
                self._replace_definitions(*definitions)
            self._change_quarantine(changefeed, aside)
            self._save(progress, lease)

    def begin_load(self, files: Sequence[str], progress: Progress, lease: Lease) -> None:
        """Note the files of a dump that is going to be loaded, none of them begun, and the progress that says so."""
        with self._transaction():
            self.check_epoch(lease)
            self._enter_loads(lease.changefeed, lease.epoch, progress.ledger, files)
            self._save(progress, lease)

    def go_on_loading(self, lease: Lease) -> None:
        """Take the files of a load over: whoever wrote them under an earlier epoch writes no more."""
        with self._transaction():
            self.check_epoch(lease)
            self._take_loads(lease.changefeed, lease.epoch)

    def _fence_leader(self, changefeed: str) -> None:
        """End the former leader's connection, if it still has one, and hold what a leader holds."""
        self._fence(changefeed)

    def save(
        self,
        progress: Progress,
        lease: Lease,
        phase: Phase | None = None,
        rows: Spool | None = None,
        aside: Changes = NO_CHANGES,
    ) -> None:
        """Save the progress, with rows that no task may write, and permit this phase's tasks alone to write."""
        with self._transaction():
            self.check_epoch(lease)
            self._set_permits(lease.changefeed, *((phase.name, phase.parts) if phase else ("", 0)))
            self._write_groups(rows or Spool())
            self._change_quarantine(lease.changefeed, aside)
            self._save(progress, lease)

    def apply(
        self,
        spool: Spool,
        progress: Progress,
        lease: Lease,
        observe: Observer,
        aside: Changes = NO_CHANGES,
        judge: Judge = _as_it_is,
    ) -> Progress:
        """Apply one unit, its progress and what it sets aside in one transaction, or nothing of it.

        `judge` gets the drift that the rows have shown; it raises, or returns the progress to save, which is returned.
        """
        with self._transaction():
            self.check_epoch(lease)
            observe(Step.APPLY_BEGUN)
            progress = judge(progress, self._write_groups(spool))
            observe(Step.ROWS_WRITTEN)
            self._change_quarantine(lease.changefeed, aside)
            self._save(progress, lease)
            observe(Step.PROGRESS_WRITTEN)
        observe(Step.COMMITTED)
        return progress

    def _write_groups(self, spool: Spool) -> Drifts:
        """All deletes before all writes (R5)."""
        groups = (*spool.groups(Half.DELETE), *spool.groups(Half.WRITE))
        return summed((group.first.table, self._put_group(group)) for group in groups)

    def _put_group(self, group: Group) -> Drift:
        """Delete or write a group's rows. Raises RowRefusedError where it is one row that the target refuses."""
        put = self._delete if group.first.half is Half.DELETE else self._write
        self._save_point()
        try:
            met = put(group)
        except NO_ROW_AT_FAULT:
            raise
        except TargetError as error:
            self._back_to_point()
            raise Trial(self.encoder, put, self._save_point, self._back_to_point).refused(group, error) from error
        return Drift(0, 0) if group.met is None else drift_of(group.met, met)

    def ignore_ddl(self, ddl: DdlEvent, why: str, progress: Progress, lease: Lease, observe: Observer) -> None:
        """Pass over a DDL: log why, and save `progress`."""
        with self._transaction():
            self.check_epoch(lease)
            self._add(ddl, why, DdlState.IGNORED, lease.changefeed)
            observe(Step.DDL_RECORDED)
            self._save(progress, lease)
        observe(Step.DDL_DONE)

    def fail_ddl(self, ddl: DdlEvent, why: str, lease: Lease) -> None:
        """Note that a DDL can't be executed, and why."""
        with self._transaction():
            self.check_epoch(lease)
            line = self._open_line(ddl, lease.changefeed)
            found = self._add(ddl, "", DdlState.FAILED, lease.changefeed) if line is None else line.id
            self._judge_line(found, DdlState.FAILED, why)

    def decide_ddl(self, line: DdlRecord, decision: DdlState, reason: str, lease: Lease) -> None:
        """Note what an operator decides about a DDL that is not done."""
        with self._transaction():
            self.check_epoch(lease)
            self._judge_line(line.id, decision, reason)

    def settle_ddl(self, line: DdlRecord, progress: Progress, lease: Lease, observe: Observer) -> None:
        """Pass over a DDL as an operator decided, and save `progress`."""
        with self._transaction():
            self.check_epoch(lease)
            if DdlState(line.state) is DdlState.TAKE:
                self._follow(line)
            self._close_line(line.id, DECIDED[DdlState(line.state)])
            observe(Step.DDL_RECORDED)
            self._save(progress, lease)
        self.forget_catalog()
        observe(Step.DDL_DONE)

    def _follow(self, line: DdlRecord) -> None:
        """Keep what is to be known of a change that was made by hand, where anything is kept (`sinks.ddl.known`)."""

    def _save(self, progress: Progress, lease: Lease) -> None:
        self._save_progress(progress, lease.changefeed, lease.epoch)

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

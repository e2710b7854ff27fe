"""A target, and the one way in which a unit reaches it.

    begin -> epoch locked and checked -> all deletes -> all writes -> progress -> commit

A unit is a window's net effect, or one upstream transaction. A target is made of parts: a session with the bookkeeping
over it (`sinks.target_session`), leadership, rows, DDL and comparison, all of which a `sinks.dialect.Dialect` brings.
How tasks write in `row` consistency stands in `sinks.bookkeeping.write_permits`.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from functools import partial
from typing import Any

from ordering.drift import Drifts
from ordering.errors import NO_ROW_AT_FAULT, LeadershipLostError, TargetBusyError, TargetError
from ordering.events import DdlEvent, TableName
from ordering.progress import Progress
from ordering.quarantine import NO_CHANGES, Changes
from sinks.bookkeeping.books import Books
from sinks.bookkeeping.ddl_log import DECIDED, DdlRecord, DdlState
from sinks.bookkeeping.definitions import Definition, Wanted
from sinks.bookkeeping.instances import Instance, Instances
from sinks.bookkeeping.load_files import Loaded, Mark
from sinks.bookkeeping.progress_rows import Lease, Stored
from sinks.bookkeeping.tables import Book
from sinks.bookkeeping.write_permits import NOTHING_DONE, Attempt, PartDone, Phase, all_done
from sinks.compare.digests import TableReader
from sinks.ddl.kept_definitions import PlacedDdl
from sinks.dialect import Dialect
from sinks.merged_rows import MergedRows
from sinks.rows.chunk import Chunk
from sinks.rows.routed import NameMap
from sinks.rows.schema import NO_TABLES, Catalog
from sinks.rows.spool import Spool
from sinks.steps import Observer, Step
from sinks.target_session import TargetSession
from sinks.unit_rows import UnitRows

_TRIES = 10
"""How often a task's transaction is tried that lost a deadlock or waited too long for a lock."""
Judge = Callable[[Progress, Drifts], Progress]


def _as_it_is(progress: Progress, _drifts: Drifts) -> Progress:
    return progress


class Target:
    """A relational database that mirrors the upstream. Raises TargetError, TargetUnreachableError, LeadershipLostError.

    Not for use by several threads at once. After an error the caller closes it and connects again.
    """

    def __init__(
        self, dialect: Dialect[Any], books: Callable[[Book], Books] = Books.over, names: NameMap | None = None
    ) -> None:
        self.name, self.encoder = dialect.name, dialect.encoder
        self._dialect, self._made_books, self.names = dialect, books, names
        self._routed: tuple[Catalog, NameMap, Catalog] | None = None
        self._shards = NO_TABLES
        self.session: TargetSession[Any] = TargetSession(dialect, books)
        kept = self.session.books
        self._progress, self._permits, self.audit = kept.progress, kept.permits, kept.audit
        self.ddl_log, self.quarantine, self.definitions = kept.ddl_log, kept.quarantine, kept.definitions
        self.schemas, self.loads, self.proofs, self.stops = kept.schemas, kept.loads, kept.proofs, kept.stops
        self._leadership, self._ddl = dialect.leadership(self.session), dialect.ddl(self.session)
        self._rows = UnitRows(self.session, dialect, self.catalog)
        self.merged = MergedRows(self.session, dialect)

    def opener(self) -> "Callable[[], Target]":
        """What makes another such target in a task; can be pickled, and shows no password."""
        return partial(Target, self._dialect, self._made_books, self.names)

    def connect(self) -> None:
        """Open the connection and make what is missing of our own tables."""
        self._dialect.prepare(self.session)
        self.forget_catalog()

    def close(self) -> None:
        """Close the connection; what was not committed is rolled back."""
        self.session.close()
        self._leadership.close()

    def check(self) -> list[str]:
        """Look for rights and settings that writing needs, changing nothing; return what was found fine."""
        return list(self._dialect.check(self.session))

    def catalog(self) -> Catalog:
        """The tables by upstream's names, cached until `forget_catalog`."""
        return self.by_upstream(self.session.catalog())

    def by_upstream(self, here: Catalog) -> Catalog:
        """The target's tables by upstream's names."""
        if self.names is None:
            return here
        if self._routed is None or self._routed[0] is not here or self._routed[1] is not self.names:
            self._routed = here, self.names, here.routed(self.names, self._shards)
        return self._routed[2]

    def know(self, progress: Progress) -> None:
        """Learn which upstream tables have which names here, where routes are configured."""
        if self.names and (self.names.sources is not progress.sources or self._shards is not progress.merged):
            self.names, self._shards = self.names.knowing(progress.sources), progress.merged

    def assume(self, catalog: Catalog) -> None:
        """Take this catalog for the target's until `forget_catalog`: tasks get the driver's, by upstream's names."""
        self.names = None
        self.session.assume(catalog)

    def forget_catalog(self) -> None:
        """Read the catalog again at its next use."""
        self.session.forget_catalog()

    def reader(self) -> TableReader:
        """Reads the tables for comparison, over this target's own connection; needs no `connect`."""
        return self._dialect.reader(self.session)

    def stored(self, changefeed: str) -> Stored | None:
        """The changefeed's progress, or None for a new one; also where no progress table is there yet."""
        found = self._progress.stored(changefeed)
        if found is not None:
            self.know(found.progress)
        return found

    def applied(self, changefeed: str) -> int | None:
        """The TSO up to which everything is here, None if nothing is known. Cheap, without `connect`: for who waits."""
        return self._progress.applied(changefeed)

    def try_lead(self, changefeed: str) -> bool:
        """Hold what a leader holds until `close`, unless an instance that lives does; whether it is held now."""
        return self._leadership.try_lead(changefeed)

    def is_led(self, changefeed: str) -> bool:
        """Whether another connection leads the changefeed now, as far as the target can tell."""
        return self._leadership.is_led(changefeed)

    def instances(self, changefeed: str) -> Instances:
        """The list of the changefeed's instances, over a connection of its own that the caller closes."""
        return Instances(self._dialect.connect_beside, self._dialect.books.instances(), changefeed)

    def running(self, changefeed: str) -> list[Instance]:
        """The instances that are on the list, the leader first; none where there is no list yet. Changes nothing."""
        if not self.session.book.has("instance"):
            return []
        with closing(self.instances(changefeed)) as found:
            return found.all()

    def claim(self, changefeed: str, initial: Progress, held: Lease | None = None) -> Stored:
        """Become the leader: raise the epoch by one, for a new changefeed from 0, and return the row.

        `held`: the lease that this process had before it lost its connection. Raises LeadershipLostError if another
        instance has become the leader since.
        """
        known = self.stored(changefeed)
        if held is not None:
            self.session.compare(None if known is None else known.epoch, held)
        self._leadership.take(changefeed)
        self._end_writers(changefeed)
        with self.session.transaction():
            locked = self._progress.locked(changefeed)
            epoch = None if locked is None else locked[0]
            if held is not None:
                self.session.compare(epoch, held)
            if epoch is None:
                self._progress.add(changefeed)
                self._progress.save(initial, Lease(changefeed, 0))
            self._progress.raise_epoch(changefeed)
            self._permits.set(changefeed)
        found = self.stored(changefeed)
        if found is None:
            raise TargetError(f"the progress of changefeed {changefeed!r} is gone", where=self.name)
        self.session.compare(found.epoch, Lease(changefeed, (epoch or 0) + 1))  # nobody took over since
        self._progress.knows(changefeed, found.saving)
        self._ddl.resume(Lease(changefeed, found.epoch))
        return found

    def _end_writers(self, changefeed: str) -> None:
        """End what tasks of the last leader still write: they hold locks for which everyone else would wait."""
        for part in self._permits.parts(changefeed):
            self._leadership.fence(_writer(changefeed, part))
            self._leadership.release(_writer(changefeed, part))

    def note_stop(self, changefeed: str, exit_code: int, error: str, lease: Lease | None) -> None:
        """Keep with which error a run ended that has led (`lease`) or not; nothing if another one goes on.

        Raises LeadershipLostError if another one has become the leader since. One that is about to waits for the lock
        of the epoch, and forgets what was kept once it leads.
        """
        if lease is None and self.is_led(changefeed):
            return
        with self.session.transaction():
            self.session.hold(changefeed, lease)
            if lease is not None or not self.is_led(changefeed):
                self.stops.note(changefeed, exit_code, error)

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
        with self.session.led_transaction(lease):
            is_moved = known is None or progress.checkpoint_ts != known.checkpoint_ts  # else its tables are the same
            self.ddl_log.forget_open(changefeed, begun=is_moved)
            if definitions is not None:
                self.definitions.replace(*definitions)
            self.quarantine.change(changefeed, aside)
            self.session.save(progress, lease)

    def save(
        self,
        progress: Progress,
        lease: Lease,
        phase: Phase | None = None,
        rows: Spool | None = None,
        aside: Changes = NO_CHANGES,
    ) -> None:
        """Save the progress, with rows that no task may write, and permit this phase's tasks alone to write."""
        with self.session.led_transaction(lease):
            self._permits.set(lease.changefeed, phase)
            self.write_groups(rows or Spool())
            self._note(aside, lease)
            self.session.save(progress, lease)
        self.know(progress)

    def apply(
        self,
        spool: Spool,
        progress: Progress,
        lease: Lease,
        observe: Observer,
        aside: Changes = NO_CHANGES,
        judge: Judge = _as_it_is,
    ) -> Progress:
        """Apply one unit, its progress and what it quarantines in one transaction, or nothing of it.

        `judge` gets the drift that the rows have shown; it raises, or returns the progress to save, which is returned.
        A small unit gets no savepoints, which take as long as its rows: it is written once more where a row is refused.
        """
        apply = partial(self._applied, spool, progress, lease, observe, aside, judge)
        if not spool.is_small:
            return apply(self.write_groups)
        try:
            return apply(self._rows.write_at_once)
        except NO_ROW_AT_FAULT:
            raise
        except TargetError:
            return apply(self.write_groups)

    def _applied(
        self,
        spool: Spool,
        progress: Progress,
        lease: Lease,
        observe: Observer,
        aside: Changes,
        judge: Judge,
        write: Callable[[Spool], Drifts],
    ) -> Progress:
        with self.session.led_transaction(lease):
            observe(Step.APPLY_BEGUN)
            progress = judge(progress, write(spool))
            observe(Step.ROWS_WRITTEN)
            self._note(aside, lease)
            self.session.save(progress, lease)
            observe(Step.PROGRESS_WRITTEN)
        self.know(progress)
        observe(Step.COMMITTED)
        return progress

    def _note(self, aside: Changes, lease: Lease) -> None:
        """What of messages is kept beside the rows, in the transaction that has begun."""
        self.quarantine.change(lease.changefeed, aside)
        self.schemas.change(lease.changefeed, aside)
        self.audit.add(lease, aside.applied)

    def write_groups(self, spool: Spool) -> Drifts:
        """Write a unit's rows, in the transaction that has begun; see `sinks.unit_rows`."""
        return self._rows.write(spool)

    def take_over(self, attempt: Attempt) -> bool:
        """Become the one who writes a part; whether an attempt of this phase was before. Raises as `write_part`."""
        self._leadership.fence(_writer(attempt.phase.changefeed, attempt.part))
        with self.session.transaction():
            before = self._permits.check(attempt, attempt.number)
            self._permits.take(attempt)
        return before > 0

    def write_part(self, attempt: Attempt, chunks: Iterable[Chunk]) -> PartDone:
        """Write a part's chunks that was taken over, each in a transaction of its own.

        Raises LeadershipLostError once the phase is over, or another attempt has taken the part over.
        """
        done = NOTHING_DONE
        for chunk in chunks:
            with Spool() as spool:
                spool.add(chunk)
                done = all_done([done, PartDone(spool.by_table, self._write_chunk(attempt, spool))])
        return done

    def _write_chunk(self, attempt: Attempt, spool: Spool) -> Drifts:
        for left in reversed(range(_TRIES)):
            try:
                with self.session.transaction():
                    self._permits.check(attempt)
                    found = self.write_groups(spool)
            except TargetBusyError:
                if not left:
                    raise
            else:
                return found
        raise AssertionError

    def begin_load(self, files: Sequence[str], progress: Progress, lease: Lease) -> None:
        """Note the files of a dump that is going to be loaded, none of them begun, and the progress that says so."""
        with self.session.led_transaction(lease):
            self.loads.enter(lease, progress.ledger, files)
            self.session.save(progress, lease)

    def go_on_loading(self, lease: Lease) -> None:
        """Take the files of a load over: whoever wrote them under an earlier epoch writes no more."""
        with self.session.led_transaction(lease):
            self.loads.take(lease)

    def write_loaded(self, mark: Mark, before: Loaded, after: Loaded, rows: Spool) -> None:
        """Write some of a file's rows and move its line on, in one transaction. Raises as `LoadTable.move`."""
        with self.session.transaction():
            self.loads.move(mark, before, after)
            self.write_groups(rows)

    def is_empty(self, table: TableName) -> bool:
        """Whether a table of upstream's that is there holds no row."""
        schema = self.catalog().get(table)
        return self._dialect.is_empty(self.session.db, table if schema is None else schema.here)

    def execute_ddl(self, ddl: DdlEvent, progress: Progress, lease: Lease, observe: Observer) -> None:
        """Execute a DDL exactly once and save `progress`, whatever crashes in between."""
        self._ddl.execute(ddl, progress, lease, observe)
        self.know(progress)

    def define(self, there: PlacedDdl, lease: Lease) -> None:
        """Keep the definition of a table that is there and gets the rows of a dump."""
        with self.session.led_transaction(lease):
            self._ddl.define(there, lease)

    def ignore_ddl(
        self, ddl: DdlEvent, why: str, here: PlacedDdl, progress: Progress, lease: Lease, observe: Observer
    ) -> None:
        """Pass over a DDL: log why, and save `progress`. `here`: as the target would execute it."""
        with self.session.led_transaction(lease):
            self._ddl.pass_over(here, lease)
            self.ddl_log.add(ddl, why, DdlState.IGNORED, lease.changefeed)
            observe(Step.DDL_RECORDED)
            self.session.save(progress, lease)
        self.know(progress)
        observe(Step.DDL_DONE)

    def fail_ddl(self, ddl: DdlEvent, why: str, lease: Lease) -> None:
        """Note that a DDL can't be executed, and why. What may have run stays begun: it is not to run once more."""
        with self.session.led_transaction(lease):
            line = self.ddl_log.open_line(ddl, lease.changefeed)
            is_open = line is not None and line.state == DdlState.INTENT.value and self._ddl.may_have_run(line)
            found = self.ddl_log.add(ddl, "", DdlState.FAILED, lease.changefeed) if line is None else line.id
            self.ddl_log.judge(found, DdlState.INTENT if is_open else DdlState.FAILED, why)

    def decide_ddl(self, line: DdlRecord, decision: DdlState, reason: str, lease: Lease) -> None:
        """Note what an operator decides about a DDL that is not done."""
        with self.session.led_transaction(lease):
            self.ddl_log.judge(line.id, decision, reason)

    def settle_ddl(self, line: DdlRecord, progress: Progress, lease: Lease, observe: Observer) -> None:
        """Pass over a DDL as an operator decided, and save `progress`."""
        with self.session.led_transaction(lease):
            keep = self._ddl.follow if DdlState(line.state) is DdlState.TAKE else self._ddl.pass_over
            keep(PlacedDdl(line.sql, line.database, line.table), lease)
            self.ddl_log.close(line.id, DECIDED[DdlState(line.state)])
            observe(Step.DDL_RECORDED)
            self.session.save(progress, lease)
        self.know(progress)
        self.forget_catalog()
        observe(Step.DDL_DONE)


def _writer(changefeed: str, part: int) -> str:
    """The name that a task's connection holds."""
    return f"{changefeed}/{part}"

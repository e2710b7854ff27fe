"""A round of the pipeline, top to bottom: probe, plan, read, reduce, order, apply, publish.

What is decided here is decided by `ordering`; what is done is done by `source`, `job`, the target and the ledger. After
any failure a new pipeline goes on from the progress in the target.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from heapq import merge
from itertools import chain, groupby
from uuid import uuid4

from consumer.acting import ActingTables
from consumer.altered import Altered
from consumer.bodies.configured import bodies_of
from consumer.config import Config
from consumer.continuity import check_uncompacted
from consumer.ddl import understood
from consumer.doubts import refused_rows
from consumer.drifting import Drifting
from consumer.evidence import check_contents, duplicates_in, judged, merged_fingerprints, suspicious
from consumer.executing import Execution
from consumer.filters.changefeed import read_filter
from consumer.job import Job, Jobs, Outcome, Ready, Waiting, reported_apart, reported_first, succeeded
from consumer.keyless import net_chunks
from consumer.ledger import Ledger
from consumer.loading.unfinished import refuse_unfinished_load
from consumer.placing import Refusal, refusal_of, sought_of
from consumer.progressing import (
    advanced,
    carried,
    carried_after,
    copies_in,
    counted,
    kept_reports,
    read_on,
    refused_tables,
)
from consumer.quarantine import Quarantining, SetAside
from consumer.report import Report
from consumer.retired import check_retired
from consumer.scan import ReadSpec
from consumer.source import Probe, Source, added
from consumer.spreading import Spreading
from consumer.tasks import OrderTask, Part, RowError
from consumer.writing import ParallelWriting, deletes_any
from ordering.barrier import executable, first_barrier, next_of, pending
from ordering.copies import Copies, by_commit
from ordering.drift import NO_DRIFT
from ordering.events import DdlEvent, Partition
from ordering.progress import Progress
from ordering.quarantine import Changes
from ordering.spread import Spread
from ordering.timestamps import MAX_TSO, CheckpointTs, ResolvedTs
from ordering.topics import end_of
from ordering.window import Cuts, Scanned, Window, check_whole, cuts
from sinks.chunk import Chunk
from sinks.ddl_log import DdlRecord
from sinks.parts import PartDone
from sinks.refusal import RowRefusedError
from sinks.spool import Spool
from sinks.target import Lease, Observer, Step, Target


class Pipeline:
    """One changefeed's rounds, for as long as the lease is ours and nothing fails."""

    def __init__(  # its parts are made and closed by the runner
        self,
        config: Config,
        source: Source,
        target: Target,
        jobs: Jobs,
        observe: Observer,
        held: Lease | None = None,
    ) -> None:
        self.config, self.source, self.target, self.jobs, self.observe = config, source, target, jobs, observe
        self.filter, self._consistency = read_filter(config.filter), config.target.consistency
        self._bodies = bodies_of(config)
        first = Progress.first(CheckpointTs(config.source.start_ts), self.filter.digest, uuid4().hex)
        stored = target.claim(config.changefeed, first, held)
        self.progress, self.lease = stored.progress, Lease(config.changefeed, stored.epoch)
        refuse_unfinished_load(self.progress, target.name)
        self.filter.check_change(self.progress.filter_digest, config.changefeed, torn=self.progress.window is not None)
        self.progress = replace(self.progress, filter_digest=self.filter.digest)
        self.ledger = Ledger(config.redis.uri, config.changefeed, self.progress.ledger)
        self.quarantine = Quarantining(config, target, source)
        self._drifting, self._judged = Drifting(config, target.name), False
        self._execution = Execution(target, self.filter, self.lease, observe)
        self._ddls: dict[str, DdlEvent] = {}
        self._cuts, self._scanned, self._acting = Cuts(), Scanned(), ActingTables()
        self._looked: dict[Partition, int] = {}
        self._reports: list[Report] = []
        self._unsettled: list[DdlRecord] = []
        self.probe: Probe | None = None

    def round(self, caps: Mapping[Partition, int] | None = None, *, to_end: bool = False) -> bool:
        """Do one window. False if there is none to do.

        `to_end`: where nothing more is resolved, look through what was not read yet, for repetitions and DDLs. A row
        that is set aside ends an attempt: the next one goes on from what was applied, without it.
        """
        while True:
            try:
                return self._round(caps, to_end=to_end)
            except SetAside:
                continue

    def _round(self, caps: Mapping[Partition, int] | None, *, to_end: bool) -> bool:
        ready = self.prepared(caps, to_end=to_end)
        if not isinstance(ready, Ready):
            return ready
        with self._placing(ready.window):
            if isinstance(ready.rows, Waiting):
                self._apply_rows(ready.window, ready.reports, ready.rows, ready.progress)
            elif self._nets():
                self._apply_snapshot(ready.reports, ready.rows, ready.progress)
            else:
                self._apply_transactions(ready.reports, ready.rows, ready.progress)
        for ddl in self.ddls(ready):
            self.settle(ddl)
        self.publish(ready)
        return True

    def prepared(self, caps: Mapping[Partition, int] | None = None, *, to_end: bool = False) -> Ready | bool:
        """Read and judge the next window, see `round`. False: there is none; True: it held nothing to apply."""
        self._find_dead_topics()
        self.probe = probe = self.source.probe(self.progress, caps)
        self.progress = replace(self.progress, topics=probe.topics)
        self.observe(Step.PROBED)
        window = self.progress.window or self._planned(probe) or (self._rest(probe) if to_end else None)
        if window is None:
            return False
        self.observe(Step.PLANNED)
        window, reports, rows = self._read(window)
        self.observe(Step.READ)
        if window.to_end and self._is_torn():
            # only DDLs and watermarks were looked for: what a crash left of its window is counted with it
            self.progress = replace(self.progress, topics=carried(self.progress, reports))
            return True
        return Ready(window, reports, rows, self._checked(window, reports))

    def _planned(self, probe: Probe) -> Window | None:
        """The window up to the global resolvedTs, or to the first barrier or cut that is known to lie before it."""
        resolved, checkpoint = probe.resolved.ts, self.progress.checkpoint_ts
        if resolved is None or resolved < checkpoint or (resolved <= checkpoint and not self._is_torn()):
            return None
        window = Window(self.progress.checkpoint_ts, self.progress.base_ts, resolved, resolved, probe.ranges)
        return replace(window, high=self._end(window))

    def _end(self, window: Window) -> ResolvedTs:
        end = first_barrier(self._pending(), window.resolved) or window.resolved
        cut = self._cuts.within(window.low, ResolvedTs(end)) if self._cuts.upto >= end else None
        return ResolvedTs(end if cut is None else cut)

    def _is_torn(self) -> bool:
        """Whether a crash cut a window of `transaction` consistency in two: the rest of it comes before all else."""
        return self.progress.base_ts < self.progress.checkpoint_ts

    def _rest(self, probe: Probe) -> Window | None:
        """A window that applies nothing: what lies behind the watermarks and has not been looked through."""
        # what was looked through is not read again, however long a watermark is stuck: it stays held as it is
        unseen = (replace(r, start=max(r.start, self._looked.get(r.partition, 0))) for r in probe.ranges)
        ranges = tuple(r for r in unseen if r.start < r.stop)
        checkpoint = self.progress.checkpoint_ts
        if probe.resolved.ts is None and checkpoint == self.progress.start_ts:
            ranges = tuple(r for r in ranges if probe.may_have_ended(r.partition.topic))
        high = ResolvedTs(checkpoint)
        return Window(checkpoint, self.progress.base_ts, high, high, ranges, to_end=True) if ranges else None

    def _pending(self) -> list[DdlEvent]:
        progress = self.progress
        return pending(self._ddls.values(), progress.start_ts, progress.checkpoint_ts, progress.executed)

    def _read(self, window: Window) -> tuple[Window, list[Report], Iterator[Outcome] | Waiting]:
        """Run the window's job; once more with a nearer end if it met a DDL or more rows than the limit.

        Returns what becomes of its rows: they come to the driver, or tasks are to write them.
        """
        recorded = window == self.progress.window
        self._judged = self._drifting.judges(window, self.progress, self.quarantine.marks)
        spread = self._spread(window)
        while True:
            spec = self._spec(window, spread)
            job = self.jobs.job(window.ranges, spec)
            reports, rows = self._reported(job, spec)
            check_whole(window.ranges, [report.range for report in reports])
            reports = counted(kept_reports(reports), self.progress)
            self._remember(window, reports)
            # one that was begun is ended as it was recorded, whatever the limits are now
            if recorded or window.to_end or (end := self._end(window)) >= window.high:
                better = spread and self._spreading().better(spread, [report.histogram for report in reports])
                if better is None:
                    return window, reports, rows
                spread = better
            else:
                window = replace(window, high=end)
                spread = self._spread(window)

    def _spreading(self) -> Spreading:
        sizes = self.source.average_bytes.values()
        return Spreading(self.jobs.cores, sum(sizes) / len(sizes) if sizes else 1.0)

    def _spread(self, window: Window) -> Spread | None:
        """How whole transactions are spread over buckets; None where only net effects count."""
        if self._nets():
            return None
        known = self._scanned.histograms if self._scanned.resolved == window.resolved else ()
        return self._spreading().by_commit(window, self._scanned.expected(window), known)

    def _nets(self) -> bool:
        """Whether only net effects count: also in a window that was begun so, or that is applied once more."""
        return self.progress.window is not None or self._consistency != "transaction"

    def _spec(self, window: Window, spread: Spread | None = None) -> ReadSpec:
        buckets = spread.buckets if spread else self._spreading().buckets(self._scanned.expected(window))
        return ReadSpec(
            window=window,
            handle_keys={name: table.handle_key for name, table in self.target.catalog().tables.items()},
            accepts=self.filter.tables,
            ignored=self.filter.for_rows(self.target.catalog()),
            # the rows of a window that tasks have begun to write are written by tasks
            buckets=max(2, buckets) if self._begun_by_tasks() else buckets,
            message_bytes=self.config.limits.message_bytes,
            spread=spread,
            force_replicate=self.config.filter.force_replicate,
            marks=self.quarantine.marks,
        )

    def _begun_by_tasks(self) -> bool:
        """Whether the next window is one that tasks have begun, or may have begun, to write."""
        window = self.progress.window
        return window is not None and (self._consistency == "row" or not window.rewound)

    def _order(self, *, whole_transactions: bool = False) -> OrderTask:
        target = self.target
        return OrderTask(target.catalog().tables, target.encoder, self._bodies, whole_transactions, judged=self._judged)

    def _reported(self, job: Job, spec: ReadSpec) -> tuple[list[Report], Iterator[Outcome] | Waiting]:
        doubtful = None if spec.window.to_end or spec.window == self.progress.window else spec.window
        order = replace(self._order(whole_transactions=spec.whole_transactions), doubtful=doubtful)
        if spec.buckets == 1:
            return reported_first(job, order)
        return reported_apart(job, order, by_tasks=self._consistency == "row" or self._begun_by_tasks())

    def _remember(self, window: Window, reports: list[Report]) -> None:
        """Keep what the reports tell beyond this window: DDLs, watermarks, sizes, where to cut."""
        for report in reports:
            partition = report.range.partition
            self.source.saw(partition, report.watermark, report.stop)
            self._looked[partition] = report.stop
            if report.messages:
                self.source.average_bytes[partition] = report.size / report.messages
            tables = self.progress.topics[partition.topic].tables
            for raw in report.ddls:
                ddl = understood(raw, self.target.catalog(), tables)
                self._ddls.setdefault(ddl.identity, ddl)
        if window.high == window.resolved:
            self._scanned = Scanned(window.resolved, [report.histogram for report in reports])
        limit = self.config.limits.window_rows
        if sum(report.released for report in reports) > limit and self._cuts.upto < window.high:
            self._cuts = Cuts(window.high, cuts([report.histogram for report in reports], limit))

    def _find_dead_topics(self) -> None:
        waiting = self._pending()
        for name, topic in self.progress.topics.items():
            if (ended := end_of(topic, name, waiting)) is not None:
                self.source.dead_at[name] = ended

    def _checked(self, window: Window, reports: list[Report]) -> Progress:
        """Judge repetitions, refuse what must not be applied, and return the progress after the window."""
        self.quarantine.met(reports)
        check_uncompacted(reports, self.source.control.cleanup_policies)
        check_retired(reports, self.progress, self.ledger)
        refused_rows(reports)
        refused_tables(reports, self.target.catalog(), self.progress)
        self._acting.warn(reports, self.target.catalog())
        verdict = judged(reports, self.ledger, lambda: Altered.in_target(self.target, self.config.changefeed))
        if suspects := suspicious(reports):
            check_contents(self.jobs.contents(window.ranges, self._spec(window), suspects), suspects)
        # what is applied once more was counted before
        proven = verdict.proven + (0 if window.rewound else duplicates_in(reports))
        waiting = {ddl.identity for ddl in self._pending()}
        found = added(self.progress, self.probe)
        return advanced(found, window, reports, waiting, proven=proven, unproven=verdict.unproven)

    def _keyless(self, found: Iterable[Copies]) -> Iterator[Chunk]:
        return net_chunks(found, self.target.catalog(), self.target.encoder)

    def _apply_snapshot(self, reports: list[Report], outcomes: Iterator[Outcome], progress: Progress) -> None:
        with Spool() as spool:
            for chunk in self._keyless(copies_in(reports)):
                spool.add(chunk)
            for outcome in succeeded(outcomes):
                for chunk in self._order().encoded(outcome):
                    spool.add(chunk)
            self.observe(Step.REDUCED)
            self._apply(spool, replace(progress, counts=progress.counts.plus(rows_written=spool.rows)))

    def _apply_transactions(self, reports: list[Report], outcomes: Iterator[Outcome], progress: Progress) -> None:
        self.observe(Step.REDUCED)
        parts = (outcome for outcome in succeeded(outcomes) if isinstance(outcome, Part))
        keyless = (Part(ts, tuple(self._keyless(some))) for ts, some in by_commit(copies_in(reports)).items())
        in_order = merge(parts, keyless, key=lambda part: part.commit_ts)
        for commit_ts, some in groupby(in_order, key=lambda part: part.commit_ts):
            with Spool() as spool:
                for part in some:
                    for chunk in chain.from_iterable(map(self._order().encoded, part.chunks)):
                        spool.add(chunk)
                counts = self.progress.counts.plus(rows_written=spool.rows)
                self._apply(spool, self.progress.at(CheckpointTs(commit_ts), counts=counts))
        counts = replace(progress.counts, rows_written=self.progress.counts.rows_written)
        with Spool() as nothing:
            self._apply(nothing, replace(progress, counts=counts, drift=self.progress.drift))

    def _apply_rows(self, window: Window, reports: list[Report], waiting: Waiting, progress: Progress) -> None:
        """Let tasks write the window (`row`). It is recorded before: after a crash exactly it is done again."""
        done = PartDone(0, NO_DRIFT)
        if any(report.released for report in reports):
            self.progress = replace(self.progress, window=window)
            writing = ParallelWriting(self.target, self.lease, self.observe, self.config.limits.writers)
            deletes = deletes_any(reports, self.target.catalog())
            order = replace(self._order(), accounts=waiting.accounts)
            done = writing.write(waiting.job, order, self.progress, deletes=deletes)
        with Spool() as spool:
            for chunk in self._keyless(copies_in(reports)):
                spool.add(chunk)
            progress = replace(progress, counts=progress.counts.plus(rows_written=done.rows + spool.rows))
            progress = self._drifting.counted(progress, done.drifts)
            with self._setting_aside(progress) as (after, aside):
                self.target.save(after, self.lease, rows=spool, aside=aside)
        self._drifting.tell(self.progress, after)
        self.progress = after
        self.observe(Step.COMMITTED)

    @contextmanager
    def _placing(self, window: Window) -> Iterator[None]:
        """Name the message of a row that can't be encoded or that the target refuses."""
        try:
            yield
        except (RowError, RowRefusedError) as error:
            refusal = self._refusal(error, window)
            if self.quarantine.takes(refusal):
                raise SetAside from error
            raise refusal.placed from error

    def _refusal(self, error: RowError | RowRefusedError, window: Window) -> Refusal:
        sought = sought_of(error, self.target, self._bodies)
        places = self.jobs.places(window.ranges, self._spec(window), sought)
        return refusal_of(error, places, self.progress.checkpoint_ts, net_effect=self._nets())

    def _apply(self, spool: Spool, progress: Progress) -> None:
        with self._setting_aside(progress) as (after, aside):
            applied = self.target.apply(spool, after, self.lease, self.observe, aside, self._drifting.judged)
        self._drifting.tell(self.progress, applied)
        self.progress = applied

    @contextmanager
    def _setting_aside(self, progress: Progress) -> Iterator[tuple[Progress, Changes]]:
        """What the quarantine has to save together with a progress, which counts it."""
        aside = self.quarantine.due(progress.checkpoint_ts)
        counts = replace(progress.counts, quarantined=self.quarantine.total(aside))
        yield replace(progress, counts=counts), aside
        self.quarantine.committed(aside)

    def ddls(self, ready: Ready) -> Iterator[DdlEvent]:
        """The DDLs that nothing lies before any more, each to be settled before the next is asked for."""
        window, reports = ready.window, ready.reports
        next_row = min((r.next_row_ts for r in reports if r.next_row_ts is not None), default=None)
        # behind the watermark that ended a range may lie rows that nobody saw
        seen = ResolvedTs(min(window.resolved, *(r.watermark or 0 for r in reports if r.ended_early), MAX_TSO))
        found = executable(self._pending(), seen, next_row)
        self._unsettled, self._reports = self._execution.unsettled() if found else [], reports
        while found and (ddl := next_of(found, self.target.catalog(), seen)):
            found.remove(ddl)
            yield ddl
        self._forget_done()

    def settle(self, ddl: DdlEvent) -> None:
        """Do with a DDL what is to be done. Raises InputError and TargetError."""
        together = self._pending()
        self._looked.pop(Partition(ddl.position.topic, ddl.position.partition), None)  # what waited for it goes on
        waiting = {other.identity for other in together} - {ddl.identity}
        progress = self.progress.after_ddl(CheckpointTs(ddl.commit_ts), ddl.identity)
        progress = read_on(progress, self._reports, waiting)
        progress = replace(progress, topics=carried_after(ddl, progress, self._reports))
        self._execution.settle(ddl, together, self._unsettled, progress)
        self.progress = progress

    def _forget_done(self) -> None:
        self._ddls = {ddl.identity: ddl for ddl in self._pending()}
        self.source.dead_at = {t: ts for t, ts in self.source.dead_at.items() if ts >= self.progress.checkpoint_ts}

    def publish(self, ready: Ready) -> None:
        """Tell Redis and Kafka's lag tools; the target knows already, so losing this loses nothing (R9)."""
        if self.progress.checkpoint_ts > ready.window.base:
            self.ledger.record(ready.window.base, self.progress.checkpoint_ts, merged_fingerprints(ready.reports))
        self.observe(Step.PUBLISHED)

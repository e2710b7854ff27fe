"""A changefeed while this process leads it: its parts, and the progress that each commit moves."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from uuid import uuid4

from consumer.config.changefeed_filter import read_filter
from consumer.config.model import Config
from consumer.config.routes import read_routes
from consumer.config.zone import in_zone
from consumer.filters.promoted_keys import PromotedKeys
from consumer.large_messages.fetch import Bodies
from consumer.pipeline.acting_tables import ActingTables
from consumer.pipeline.apply_mode import ApplyMode, mode_of
from consumer.pipeline.drift import DriftJudge
from consumer.quarantine.collector import Quarantine
from consumer.redis.ledger import Ledger
from consumer.redis.seal import new_key, new_term
from consumer.redis.terms import begun
from consumer.source.awaited_schemas import AwaitedSchemas
from consumer.source.offer import Probe
from consumer.source.port import ChangeSource
from consumer.source.window_ahead import WindowAhead
from consumer.tasks.jobs import Jobs, SegmentReading
from consumer.tuning import MEASURED, Tuning
from consumer.wiring import bodies_of, format_of, schemas_of
from ordering.planner import Planner
from ordering.progress import Progress, refuse_other_start, refuse_unfinished_load
from ordering.quarantine import Changes
from ordering.timestamps import CheckpointTs
from ordering.window import Window
from sinks.bookkeeping.audit import WindowAudit
from sinks.bookkeeping.progress_rows import Lease
from sinks.bookkeeping.write_permits import PartDone
from sinks.rows.spool import RowCounts, Spool
from sinks.steps import Observer, Step
from sinks.target import Target

Written = Callable[[RowCounts, int], None]
"""Is told the rows that a commit wrote, and the checkpoint after it."""


class Session:
    """What the steps of a round share. After any failure a new one goes on from the progress in the target.

    `mode` decides how a window is applied, by the consistency and the window that was recorded, if there is one.
    """

    probe: Probe | None = None
    """What the last probe found."""
    probed_at: float | None = None
    """When that was, in monotonic seconds."""
    committed_at: float = 0.0
    """When the target's progress last moved, in monotonic seconds."""
    kept: SegmentReading | None = None
    """A window that was read, of which segments wait for their turn."""
    ahead: WindowAhead | None = None
    """The next window, begun to be read while this one is written."""
    told_of: str = ""
    """The identity of the DDL of which the log says that it waits."""

    def __init__(  # its parts are made and closed by the runner
        self,
        config: Config,
        source: ChangeSource,
        target: Target,
        jobs: Jobs,
        observe: Observer = lambda _: None,
        held: Lease | None = None,
        mode: Callable[[str, Window | None], ApplyMode] = mode_of,
        tuning: Tuning = MEASURED,
        written: Written = lambda _rows, _checkpoint_ts: None,
    ) -> None:
        self.config, self.source, self.target, self.jobs, self.observe = config, source, target, jobs, observe
        self.tuning, self._written = tuning, written
        self.filter, self._bodies, self._mode = read_filter(config.filter), bodies_of(config), mode
        self.routes, self.promoted = read_routes(config.sink), PromotedKeys.of(config.filter.promoted_keys)
        start = CheckpointTs(config.source.start_ts)
        first = Progress.first(start, self.filter.digest, uuid4().hex, self.routes.digest)
        stored = target.claim(config.changefeed, first, held)
        self.progress, self.lease = stored.progress, Lease(config.changefeed, stored.epoch)
        refuse_unfinished_load(self.progress, target.name)
        refuse_other_start(self.progress, start, config.changefeed)
        self.filter.check_change(self.progress.filter_digest, config.changefeed, torn=self.progress.window is not None)
        self.routes.check_change(self.progress.routes, config.changefeed)
        target.know(self.progress)
        # key and term are saved with the first commit, and nothing is sealed with them before
        key = self.progress.ledger_key or new_key()
        terms = begun(self.progress.ledger_terms, self.progress.checkpoint_ts, new_term())
        zoned = in_zone(self.progress, config.source.time_zone, config.changefeed)
        self.progress = replace(zoned, filter_digest=self.filter.digest, ledger_key=key, ledger_terms=terms)
        self.ledger = Ledger(config.redis.uri, config.changefeed, self.progress.ledger, key, terms, sizes=tuning.ledger)
        if format_of(config).keeps_schemas:
            target.schemas.make()
        self.schemas, self.awaited = schemas_of(config, target), AwaitedSchemas(source)
        self.quarantine = Quarantine(config, target, source, self.schemas.format)
        self.drifting, self.acting = DriftJudge(config, target.name), ActingTables()
        kept = timedelta(days=config.target.audit_days) if config.target.audit else None
        self.audit = WindowAudit(target.audit, config.changefeed, self.progress, kept)
        self.planner = Planner(config.limits.window_rows, tuning.most_segments)

    @property
    def mode(self) -> ApplyMode:
        """How the next window is applied."""
        return self._mode(self.config.target.consistency, self.progress.window)

    @property
    def bodies(self) -> Bodies:
        """Where rows are that are not in their message."""
        return self._bodies.reading(self.schemas.format)

    def drop_ahead(self) -> None:
        """End what is read ahead, if anything is; the next round reads it by itself."""
        if self.ahead is not None:
            self.ahead.end()
            self.ahead = None

    def end(self) -> None:
        """Close what is the session's own, and leave nothing running."""
        self.drop_ahead()
        self.ledger.close()

    def commit(self, spool: Spool, progress: Progress) -> None:
        """Apply rows and save the progress in one transaction."""
        with self.setting_aside(progress) as (after, changes):
            aside = self.audit.with_lines(changes, (spool.by_table,), after, ends=self.mode.net or not spool.rows)
            applied = self.target.apply(spool, after, self.lease, self.observe, aside, self.drifting.judged)
        self.audit.committed(aside, applied)
        self.committed(applied)
        self._written(spool.by_table, applied.checkpoint_ts)

    def save(self, spool: Spool, progress: Progress, done: PartDone) -> None:
        """Save the progress, beside rows of tables without a key, once tasks have written the others (`done`)."""
        with self.setting_aside(progress) as (after, changes):
            aside = self.audit.with_lines(changes, (done.by_table, spool.by_table), after, ends=True)
            self.target.save(after, self.lease, rows=spool, aside=aside)
        self.audit.committed(aside, after)
        self.committed(after)
        for rows in (done.by_table, spool.by_table):
            self._written(rows, after.checkpoint_ts)
        self.observe(Step.COMMITTED)

    def committed(self, progress: Progress) -> None:
        """The target holds this progress now. Raises DriftError, see `DriftJudge.tell`."""
        before, self.progress, self.committed_at = self.progress, progress, time.monotonic()
        self.awaited.applied()
        self.drifting.tell(before, progress)

    @contextmanager
    def setting_aside(self, progress: Progress) -> Iterator[tuple[Progress, Changes]]:
        """What has to be saved together with a progress: the quarantine, which it counts, and schemas."""
        aside = self.quarantine.due(progress.checkpoint_ts)
        counts = replace(progress.counts, quarantined=self.quarantine.total(aside))
        schemas, outdated = self.schemas.due(progress.base_ts)
        yield replace(progress, counts=counts), replace(aside, schemas=schemas, outdated=outdated)
        self.quarantine.committed(aside)
        self.schemas.saved(progress.base_ts)

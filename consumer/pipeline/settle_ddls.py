"""The DDLs of a round: which are due once its rows are applied, and what becomes of each."""

from collections.abc import Iterator
from dataclasses import replace

import structlog

from consumer.ddl.ask_upstream import Asking
from consumer.ddl.settling.decision import Deciding
from consumer.ddl.settling.execution import Execution
from consumer.ddl.settling.failures import Failures
from consumer.ddl.settling.own_names import OwnNames
from consumer.pipeline.advance import carried_after, read_on, rows_after
from consumer.pipeline.read import WindowRead
from consumer.pipeline.session import Session
from ordering.ddl_barrier import next_of
from ordering.events import DdlEvent
from ordering.timestamps import CheckpointTs, ResolvedTs, utc_text
from sinks.bookkeeping.ddl_log import DdlRecord

log = structlog.get_logger()


class DueDdls:
    """The DDLs behind one window."""

    def __init__(self, session: Session, read: WindowRead) -> None:
        self._session, self._read = session, read
        self._unsettled: list[DdlRecord] = []
        self._read_to = ResolvedTs(0)
        target, lease, routes = session.target, session.lease, session.routes
        self._execution = Execution(
            target,
            lease,
            session.observe,
            Asking(session.bodies.upstream),
            Deciding(target, session.filter, routes, lease.changefeed),
            OwnNames(routes, target),
            Failures(target, lease),
        )

    def __iter__(self) -> Iterator[DdlEvent]:
        """Each is to be settled before the next is asked for, with its names resolved."""
        session, reports = self._session, self._read.reports
        next_row = min((r.next_row_ts for r in reports if r.next_row_ts is not None), default=None)
        stopped_at = [r.watermark or 0 for r in reports if r.ended_early]
        found, read_to = session.planner.due(session.progress, self._read.window, next_row, stopped_at)
        self._read_to = read_to
        self._unsettled = self._execution.unsettled() if found else []
        while found and (ddl := next_of(found, session.target.catalog(), read_to)):
            found.remove(ddl)
            yield self._placed(ddl)
        if found:
            self._say_waiting(found[0])
        session.planner.forget_done(session.progress)
        dead, checkpoint = session.source.dead_at, session.progress.checkpoint_ts
        session.source.dead_at = {topic: ts for topic, ts in dead.items() if ts >= checkpoint}

    def _say_waiting(self, ddl: DdlEvent) -> None:
        """Say once that a DDL waits, and with it all that follows: a run that ends now leaves it undone."""
        if self._session.told_of != ddl.identity:
            self._session.told_of = ddl.identity
            because = "the tables that it renames are not there, or its new names are taken"
            hint = "another DDL of its commitTs may come until the next watermark; then it runs, or the run stops at it"
            at = {"at": utc_text(ddl.commit_ts), "where": str(ddl.position)}
            log.warning("a DDL waits for the next watermark", **at, statement=ddl.sql[:200], because=because, hint=hint)

    def _placed(self, ddl: DdlEvent) -> DdlEvent:
        """With the databases of names that it leaves without one, as far as they are known by now."""
        together = self._session.planner.pending(self._session.progress)
        return self._execution.placed(ddl, rows_after(ddl, together, self._read.reports, self._read_to))

    def settle(self, ddl: DdlEvent) -> None:
        """Do with a DDL what is to be done. Raises InputError and TargetError."""
        session, reports = self._session, self._read.reports
        together = session.planner.pending(session.progress)
        session.planner.settled(ddl)
        others = [other for other in together if other.identity != ddl.identity]
        waiting, at = {other.identity for other in others}, CheckpointTs(ddl.commit_ts)
        more = any(other.commit_ts == ddl.commit_ts for other in others)
        progress = session.progress.after_ddl(at, ddl.identity, more=more)
        progress = read_on(progress, reports, waiting)
        progress = replace(progress, topics=carried_after(ddl, progress, reports))
        session.progress = self._execution.settle(ddl, together, self._unsettled, session.progress, progress)

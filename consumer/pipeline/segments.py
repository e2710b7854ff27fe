"""Reads a window in segments, and keeps those whose turn comes later: nothing is read twice because of a DDL.

Each round takes one segment: its rows are judged and applied like a window's, then the DDLs behind it are settled. What
waits is only in this process and in Spark's shuffle: a new session reads on from the progress, as ever. A segment that
may have been read with another schema than that of its rows is dropped with all behind it, and read as a window.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import replace

import structlog

from consumer.pipeline.advance import counted, kept_reports
from consumer.pipeline.read import (
    WindowRead,
    order_task,
    read_spec,
    read_whole,
    seen_in,
    spreading,
    tell_ddls,
    tell_source,
)
from consumer.pipeline.session import Session
from consumer.tasks.jobs import SegmentReading, Waiting, released
from consumer.tasks.report import Report, accounts_of, is_in_doubt
from ordering.rows.segments import Segment, is_next, stands, window_of
from ordering.timestamps import ResolvedTs, utc_text
from ordering.window import Histogram, Window, check_whole
from sinks.rows.routed import by_table
from sinks.rows.schema import handle_key_of

log = structlog.get_logger()

_LONG = 50_000
"""Messages that may take so long that somebody looks what is going on."""


def read_window(session: Session, window: Window) -> WindowRead:
    """Read a window; of one that holds barriers or cuts only the first segment is to be applied, the others are kept.

    What may be known only once a DDL is met, or is quarantined message by message, is read window by window.
    """
    messages = sum(part.stop - part.start for part in window.ranges)
    if messages > _LONG:
        log.info("reading", messages=messages, to=utc_text(window.high))
    may = may_have_segments(session, window)
    if may and session.planner.expects_ddls:
        _look_ahead(session, window)
    while True:
        ends = session.planner.ends(window, session.progress) if may else (window.high,)
        if len(ends) > 1:
            session.kept = _read_segments(session, window, ends)
            if session.kept is not None:
                return _taken(session, session.kept)
        elif (read := read_whole(session, replace(window, high=ends[0]), once=may)) is not None:
            return read


def next_segment(session: Session) -> WindowRead | None:
    """The segment whose turn it is, of a window that was read before; None where none waits, or it is in doubt."""
    reading, progress = session.kept, session.progress
    if reading is None:
        return None
    waiting = reading.waiting
    while waiting and waiting[0][0].high <= progress.checkpoint_ts:  # nothing lies in it, and its DDLs are executed
        waiting.popleft()
    if waiting and (because := _doubt(session, reading)):
        log.info("what is left of a window is read again", because=because, segments=len(waiting))
        waiting.clear()
    if not waiting:
        session.kept = None
        return None
    return _taken(session, reading)


def _look_ahead(session: Session, window: Window) -> None:
    """Learn the DDLs of a large window before it is read, where TiCDC sends them: in the first partition of a topic."""
    first = tuple(r for r in window.ranges if r.partition.holds_ddls)
    spec, messages = read_spec(session, window), sum(r.messages for r in first)
    small = window.messages < session.tuning.looked_through or 2 * messages > window.messages
    if not small:
        found = session.jobs.ddls(first, spec)
        tell_ddls(session, (ddl for ddl in found if ddl.commit_ts <= spec.latest))  # who reads later ones refuses them


def may_have_segments(session: Session, window: Window) -> bool:
    """Whether a window is read by what is known of DDLs alone: it may be read in one go, and apart from its turn."""
    if session.schemas.format.keeps_schemas:  # a row may wait for a schema that lies elsewhere
        return False
    if not window.ranges:  # files of DDLs alone: no task would answer for a segment
        return False
    begun = window.to_end or window.rewound or window == session.progress.window or session.mode.begun
    by_schema = session.config.filter.force_replicate or session.filter.for_rows(session.target.catalog()) is not None
    return not (begun or by_schema or session.quarantine.marks.tolerant)


def _read_segments(session: Session, window: Window, ends: Sequence[ResolvedTs]) -> SegmentReading | None:
    """Read up to the last end, until each segment's rows fit its tasks, as far as it is known how they lie.

    None where it needs other ends.
    """
    planner, plan = session.planner, spreading(session)
    whole = replace(window, high=ends[-1])
    events = int(window.messages * session.source.events_a_message)

    def planned(known: Sequence[Histogram]) -> tuple[Segment, ...]:
        return plan.by_segment(whole, ends, known, events, net=session.mode.net)

    segments = planned(planner.histograms(whole))
    while True:
        buckets = segments[-1].first + segments[-1].buckets
        spec = replace(read_spec(session, whole), buckets=buckets, segments=segments)
        job = session.jobs.job(window.ranges, spec)
        reports = job.reports()
        found = [_reports_of(session, whole, reports, number) for number in range(len(segments))]
        for some in found:
            tell_source(session, some)
        tell_ddls(session, (ddl for report in found[0] for ddl in report.ddls))  # those of all segments
        if not planner.saw_segments(whole, ends, [seen_in(some) for some in found], session.progress):
            return None
        lying = [[report.histogram for report in some] for some in found]
        better = planned([histogram for some in lying for histogram in some])
        # what can't be told apart stays together: to read it again would change nothing
        if better == segments or not plan.too_full(segments, lying):
            waiting = deque(zip(segments, found, strict=True))
            return SegmentReading(whole, spec.handle_keys, job, accounts_of(reports), waiting)
        segments = better


def _reports_of(session: Session, window: Window, reports: Sequence[Report], number: int) -> list[Report]:
    own = [report for report in reports if report.segment == number]
    check_whole(window.ranges, [report.range for report in own])
    return counted(kept_reports(own), session.progress)


def _doubt(session: Session, reading: SegmentReading) -> str:
    """Why the segment whose turn it is can't be applied as it was read; "" if it can."""
    segment, reports = reading.waiting[0]
    if not is_next(segment, session.progress, session.planner.pending(session.progress)):
        return "a DDL before it waits"
    keyless = any(report.keyless for report in reports)
    if keyless or is_in_doubt(reports, Window(segment.low, segment.low, segment.high, segment.high)):
        return "the schema before its DDLs does not fit its rows"
    tables = {table for report in reports for table in report.tables}
    now = by_table(session.target.catalog().tables, handle_key_of)
    return "" if stands(tables, reading.handle_keys, now) else "a DDL changed the key or the name of a table"


def _taken(session: Session, reading: SegmentReading) -> WindowRead:
    """The first segment that waits, as a window of its own."""
    segment, reports = reading.waiting.popleft()
    window = window_of(segment, session.progress, reading.window)
    judged = session.drifting.judges(window, session.progress, session.quarantine.marks)
    order = replace(
        order_task(session, judged=judged), whole_transactions=not session.mode.net, accounts=reading.accounts
    )
    job = reading.job.of(segment)
    if session.mode.by_tasks:
        return WindowRead(window, reports, Waiting(job, reading.accounts), order)
    return WindowRead(window, reports, released(job, order, reports), order)

"""Begins to read the next window while the target writes this one, and takes it where it is the one that is asked for.

Only in `snapshot` consistency, and only where more waits than a window may hold: a changefeed that keeps up has nothing
to read ahead. Not where the next round may have something else to do first: DDLs, segments, cuts, a window of a crash.
"""

import time

import structlog

from consumer.pipeline.read import WindowRead, read_spec
from consumer.pipeline.segments import may_have_segments
from consumer.pipeline.session import Session
from consumer.source.clock import check_kept_marks
from consumer.source.listed_marks import check_listed
from consumer.source.offer import Probe, offered
from consumer.source.window_ahead import Caps, ReadJob, WindowAhead
from consumer.tasks.read_spec import ReadSpec
from ordering.errors import ReconcilerError
from ordering.progress import Progress

log = structlog.get_logger()


def begin_next(session: Session, read: WindowRead, progress: Progress, caps: Caps) -> None:
    """Begin to read what follows on a window, whose rows are about to be written with this progress.

    What Kafka or Spark refuse now is met by the next round, and raised there.
    """
    if not _may_begin(session, read, progress):
        return
    try:
        probe, probed_at = session.source.probe(progress, caps), time.monotonic()
        spec = _next_spec(session, progress, probe)
        if spec is not None:
            job = session.jobs.job(spec.window.ranges, spec)
            session.ahead = WindowAhead(progress, caps, probe, probed_at, spec, ReadJob(job, job.begun()))
    except ReconcilerError as error:
        log.debug("nothing is read ahead", why=error.fact)


def probed(session: Session, caps: Caps) -> Probe:
    """What the source offers: as it told ahead of what was written meanwhile, or as it tells now."""
    progress, ahead, is_first = session.progress, session.ahead, session.probe is None
    check_kept_marks(progress, session.config.limits)
    session.source.dead_at.update(session.planner.dead_topics(progress))
    if ahead is not None and ahead.follows(progress, caps):
        probe, session.probed_at = ahead.probe, ahead.probed_at
    else:
        session.drop_ahead()
        probe, session.probed_at = session.source.probe(progress, caps), time.monotonic()
    if is_first:  # what is listed is believed by none of the next ones
        check_listed(session.source, progress, probe)
    session.probe, session.progress = probe, offered(progress, probe)
    return probe


def _may_begin(session: Session, read: WindowRead, progress: Progress) -> bool:
    window, planner, probe = read.window, session.planner, session.probe
    wanted = session.tuning.reads_ahead and session.config.target.consistency == "snapshot"
    alone = window.high == window.resolved and (session.kept is None or not session.kept.waiting)
    more = probe is not None and any(found.bound < found.end for found in probe.partitions.values())
    quiet = not planner.expects_ddls and not planner.pending(progress)
    return wanted and alone and more and quiet and may_have_segments(session, window)


def _next_spec(session: Session, progress: Progress, probe: Probe) -> ReadSpec | None:
    """What the next round is going to ask, as far as it is known now; None where that is little or nothing."""
    planner, progress = session.planner, offered(progress, probe)
    window = planner.next_window(progress, probe.resolved.ts, probe.ranges)
    if window is None or not may_have_segments(session, window) or len(planner.ends(window, progress)) > 1:
        return None
    spec = read_spec(session, window)
    return spec if spec.buckets > 1 else None

"""A round: probe, plan, read, judge, apply, DDL, publish. After any failure a new session goes on from the target."""

import time
from dataclasses import dataclass, replace

from consumer.pipeline.advance import carried
from consumer.pipeline.apply import apply_window
from consumer.pipeline.duplicates import merged_fingerprints
from consumer.pipeline.judge import judged_progress
from consumer.pipeline.read import WindowRead, tell_ddls
from consumer.pipeline.read_ahead import probed
from consumer.pipeline.segments import next_segment, read_window
from consumer.pipeline.session import Session
from consumer.pipeline.settle_ddls import DueDdls
from consumer.quarantine.collector import RowQuarantined
from consumer.source.awaited_schemas import SchemaAwaited
from consumer.source.window_ahead import Caps
from ordering.progress import Progress
from ordering.window import Window
from sinks.steps import Step


@dataclass(frozen=True, slots=True)
class Round:
    """Rounds of one changefeed, for as long as the lease is ours and nothing fails."""

    session: Session

    def run(self, caps: Caps = None, *, to_end: bool = False, unhurried: bool = False) -> bool:
        """Do one window. False if there is none to do.

        `to_end`: where nothing more is resolved, look through what was not read yet, for repetitions and DDLs.
        `unhurried`: watermarks alone move the checkpoint at most once in `Tuning.rests_s`; rows never wait.
        """
        if unhurried and self.rests():
            return False
        while True:
            try:
                return self._run(caps, to_end=to_end, unhurried=unhurried)
            except RowQuarantined:  # a row of it: the window is read again, without it
                self.session.kept = None
            except SchemaAwaited:
                return self.session.awaited.look_further(self.session.probe)

    def _run(self, caps: Caps, *, to_end: bool, unhurried: bool) -> bool:
        # what is read may end before the planned window, at a DDL: `read.window` counts from there on. Its rows are put
        # in order and encoded as `apply_window` asks for them, which also begins to read what comes next
        read = self.segment()
        if read is None:
            window = self.plan(caps, to_end=to_end)
            if window is None or (unhurried and self.may_wait(window)):
                return False
            read = self.read(window)
        if read is None:
            return True
        apply_window(self.session, read, self.judge(read), caps)
        ddls = DueDdls(self.session, read)
        for ddl in ddls:
            ddls.settle(ddl)
        self.publish(read)
        return True

    def rests(self) -> bool:
        """Whether the checkpoint moved a moment ago, and nothing but watermarks came since."""
        session, probe = self.session, self.session.probe
        if probe is None or session.kept or session.ahead or not self._may_rest():
            return False
        read_to = {p: at.start for p, at in session.progress.partitions.items()}
        behind = any(read_to.get(p) != found.end for p, found in probe.partitions.items())
        return not behind and session.source.rests(probe.partitions.keys())

    def may_wait(self, window: Window) -> bool:
        """Whether a window only moves the checkpoint, which it did a moment ago."""
        session = self.session
        alone = window.high == window.resolved and not window.to_end and window != session.progress.window
        return alone and self._may_rest() and session.source.holds_only_watermarks(window.ranges)

    def _may_rest(self) -> bool:
        session = self.session
        moved = time.monotonic() - session.committed_at < session.tuning.rests_s
        return moved and not session.planner.pending(session.progress)

    def segment(self) -> WindowRead | None:
        """The next segment of a window that was read before; None where there is none."""
        read = next_segment(self.session)
        if read is not None:
            self.session.observe(Step.SEGMENT_TAKEN)
        return read

    def plan(self, caps: Caps = None, *, to_end: bool = False) -> Window | None:
        """Ask Kafka how far its watermarks are, and choose the next window; None: there is nothing to do."""
        session, planner = self.session, self.session.planner
        probe = probed(session, caps)
        tell_ddls(session, probe.ddls)
        session.observe(Step.PROBED)
        resolved = probe.resolved.ts
        window = planner.next_window(session.progress, resolved, probe.ranges)
        if window is None and to_end:
            window = planner.look_through(session.progress, resolved, probe.ranges, probe.before_first_watermark)
        if window is not None:
            session.observe(Step.PLANNED)
        return window

    def read(self, window: Window) -> WindowRead | None:
        """Read the window; None where there is nothing to apply, for only DDLs and watermarks were looked for."""
        session = self.session
        read = read_window(session, window)
        session.observe(Step.READ)
        if read.window.to_end and session.progress.is_torn:
            # what a crash left of its window is counted with it
            session.progress = replace(session.progress, topics=carried(session.progress, read.reports))
            return None
        return read

    def judge(self, read: WindowRead) -> Progress:
        """The progress after the window. Raises ReconcilerError for what is refused."""
        return judged_progress(self.session, read)

    def publish(self, read: WindowRead) -> None:
        """Record the window's fingerprints in the ledger. The target has all already: losing it loses nothing (R9)."""
        session, base = self.session, read.window.base
        if session.progress.checkpoint_ts > base:
            session.ledger.record(base, session.progress.checkpoint_ts, merged_fingerprints(read.reports))
        session.observe(Step.PUBLISHED)

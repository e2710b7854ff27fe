"""Says of a step that takes long what it is, again and again: a target that hangs, or a lock, is no silence.

While windows come, or none is due, steps follow each other within seconds, and nothing is said.
"""

import threading
import time
from collections.abc import Callable
from contextvars import copy_context

import structlog

from sinks.steps import Step

EVERY_S = 30.0
"""A step that takes as long is told of, and again after as long."""
_LOOK_S = 5.0
_SOURCE, _ORDER = "asking the source what it holds", "putting rows in order"
_SAVING = "saving the progress in the target"
NEXT: dict[Step, str] = {
    Step.PROBED: _SOURCE,
    Step.PLANNED: "reading a window",
    Step.READ: _ORDER,
    Step.SEGMENT_TAKEN: _ORDER,
    Step.WINDOW_RECORDED: "deleting rows in the target",
    Step.DELETES_DONE: "writing rows to the target",
    Step.WRITES_DONE: _SAVING,
    Step.REDUCED: "waiting for the target to begin a transaction",
    Step.APPLY_BEGUN: "writing rows to the target",
    Step.ROWS_WRITTEN: _SAVING,
    Step.PROGRESS_WRITTEN: "waiting for the target to commit",
    Step.COMMITTED: "going on to what comes behind a commit",
    Step.DDL_RECORDED: "waiting for the target to execute a DDL",
    Step.DDL_EXECUTED: _SAVING,
    Step.DDL_DONE: "going on to what comes behind a DDL",
    Step.PUBLISHED: _SOURCE,
}
"""What a round does once a step is done."""
log = structlog.get_logger()


class LongSteps:
    """The watch over one run's steps; any thread may tell it of them."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._last: tuple[Step, float] | None = None
        self._told_at = 0.0
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to watch, in a thread of its own."""
        if self._thread is None:
            ours = copy_context()  # its lines name the changefeed as ours do
            self._thread = threading.Thread(target=ours.run, args=(self._run,), name="long-steps", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """End."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()

    def done(self, step: Step) -> None:
        """Take a step that has just been done."""
        self._last = step, self._now()

    def rest(self) -> None:
        """Nothing is under way: what went wrong is told of elsewhere."""
        self._last = None

    def look(self) -> None:
        """Say what has been going on for long, if anything has."""
        now, last = self._now(), self._last
        if last is None or now - max(last[1], self._told_at) < EVERY_S:
            return
        self._told_at = now
        log.info("still at work", doing=NEXT[last[0]], seconds=round(now - last[1]))

    def _run(self) -> None:
        while not self._stopping.wait(_LOOK_S):
            self.look()

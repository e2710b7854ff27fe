"""Which windows are judged for drift, and what becomes of what they show (`ordering.drift`).

A window is judged where all is known that decides which rows are there when it begins: the target is the upstream at
the window's begin, by what was applied, and every event of the window is in it.
"""

from collections.abc import Iterator
from dataclasses import replace

import structlog

from consumer.config.model import Config
from ordering.drift import Drift, Drifts, summed, text_of
from ordering.errors import DriftError
from ordering.events import TableName
from ordering.progress import Progress
from ordering.quarantine import Marks
from ordering.window import Window

log = structlog.get_logger()
_HINT = (
    "something else writes to these tables, or rows were lost there: `reconciler verify CONFIG` names them and"
    ' `--fix-sql` repairs; `target.on-drift = "warn"` goes on'
)


class DriftJudge:
    """Judges windows of one changefeed."""

    def __init__(self, config: Config, where: str) -> None:
        self._stops, self._where = config.target.on_drift == "stop", where
        self._filtered = bool(config.filter.event_filters)

    def judges(self, window: Window, progress: Progress, marks: Marks) -> bool:
        """Whether the rows of a window tell how many the target has to hold.

        Not those of the first window, before which others filled the tables, nor of one that was begun before or is
        applied once more; not where event filters leave events out; not where messages are, or ever were, quarantined.
        """
        begun = window.rewound or window == progress.window
        first = window.low <= progress.start_ts
        return not (begun or first or self._filtered or marks.tolerant or progress.counts.quarantined)

    def judged(self, progress: Progress, found: Drifts) -> Progress:
        """As `counted`, before a commit. Raises DriftError where that is to stop the changefeed."""
        self._may_stop(found)
        return self.counted(progress, found)

    @staticmethod
    def counted(progress: Progress, found: Drifts) -> Progress:
        """The progress that counts what was found."""
        return replace(progress, drift=summed([*progress.drift.items(), *found.items()])) if found else progress

    def _may_stop(self, found: Drifts) -> None:
        if found and self._stops:
            raise DriftError(f"the target drifted from upstream: {text_of(found)}", where=self._where, hint=_HINT)

    def tell(self, before: Progress, after: Progress) -> None:
        """Log what a commit has counted. Raises DriftError where rows were committed before they could be judged."""
        new = dict(_new(before.drift, after.drift))
        for table, found in new.items():
            log.warning(
                "the target drifted from upstream",
                table=str(table),
                missing=found.missing,
                unexpected=found.unexpected,
                checkpoint_ts=after.checkpoint_ts,
                hint=_HINT,
            )
        self._may_stop(new)


def _new(before: Drifts, after: Drifts) -> Iterator[tuple[TableName, Drift]]:
    for table, (missing, unexpected) in sorted(after.items()):
        known = before.get(table, Drift(0, 0))
        if (found := Drift(missing - known.missing, unexpected - known.unexpected)) != (0, 0):
            yield table, found

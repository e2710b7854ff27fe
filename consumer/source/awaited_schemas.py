"""Rows that wait for the schema of their table: what that means for the window that holds them."""

from collections.abc import Collection, Mapping, Sequence

import structlog

from consumer.formats.sent_schema import SchemaIdentity
from consumer.source.offer import Probe
from consumer.source.port import ChangeSource
from consumer.tasks.report import AwaitedRow, Report
from ordering.events import Partition
from ordering.progress import Progress
from ordering.timestamps import ResolvedTs, utc_text
from ordering.window import Window

log = structlog.get_logger()
_FURTHEST = 64
"""Times the limits of a window."""


class SchemaAwaited(Exception):  # noqa: N818 no error: the window is tried again once more messages have come
    """The first row above the checkpoint waits for the schema of its table."""


class ReadAgain(Exception):  # noqa: N818 no error: what tasks met, others of them had to know
    """A schema that rows waited for is known now."""


class AwaitedSchemas:
    """The schemas that a changefeed's rows wait for."""

    def __init__(self, source: ChangeSource) -> None:
        self._source = source
        self._told: SchemaIdentity | None = None
        self._looked_in: Mapping[Partition, int] | None = None

    def end_before(
        self, window: Window, progress: Progress, reports: Sequence[Report], new: Collection[SchemaIdentity]
    ) -> ResolvedTs | None:
        """Where the window has to end so that no row of it waits; None if none does. `new`: what is known now.

        Raises ReadAgain where another part of the window told the schema, SchemaAwaited where nothing can be applied,
        and InputError for a window that was recorded, which ends where it ends.
        """
        awaited = sorted(one for report in reports for one in report.awaited)
        if any(one.row.identity in new for one in awaited):
            raise ReadAgain
        if not awaited:
            return None
        first = awaited[0]
        if window == progress.window:
            raise first.row.refused(str(first.position))
        if first.commit_ts - 1 <= window.low:
            self._tell(first)
            raise SchemaAwaited
        return ResolvedTs(first.commit_ts - 1)

    def look_further(self, probe: Probe | None) -> bool:
        """Let the next window read further, as the schema may lie behind this one; whether there is more to read."""
        bounds = {p: found.bound for p, found in probe.partitions.items()} if probe else {}
        if bounds == self._looked_in:
            return False
        self._looked_in = bounds
        self._source.stretch = min(2 * self._source.stretch, _FURTHEST)
        return True

    def applied(self) -> None:
        """The progress has moved: windows are as large as their limits say."""
        self._source.stretch, self._looked_in = 1, None

    def _tell(self, first: AwaitedRow) -> None:
        if self._told != first.row.identity:
            self._told = first.row.identity
            error = first.row.refused(str(first.position))
            told = {"why": error.fact, "at": error.where, "since": utc_text(first.commit_ts), "hint": error.hint}
            log.warning("rows wait for the schema of their table", **told)

"""The next window, read while the target writes the one before it: when it counts, and what it was planned from.

A window is planned and judged at its turn, as ever; read ahead are only the answers of two questions, and each counts
only if the same is asked then: what the source offers (of the progress that was expected), and what the ranges of a
window hold (of one spec, which names all that tasks work by). So nothing that is decided depends on it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import structlog

from consumer.source.offer import Probe
from consumer.tasks.jobs import Coming, Job, Outcome
from consumer.tasks.order import Answered, Failure, OrderTask
from consumer.tasks.read_spec import ReadSpec
from consumer.tasks.report import Report
from consumer.tasks.write import WriteTask, Written
from ordering.events import Partition
from ordering.progress import Progress
from ordering.rows.segments import Segment

log = structlog.get_logger()
Caps = Mapping[Partition, int] | None
"""Offsets behind which nothing is read: where the topics ended when `--once` began."""


@dataclass(frozen=True, slots=True)
class ReadJob:
    """A job whose reports are there already, or coming."""

    job: Job
    coming: Coming

    @property
    def parts(self) -> int:
        """See `Job.parts`."""
        return self.job.parts

    def of(self, segment: Segment) -> Job:
        """See `Job.of`."""
        return self.job.of(segment)

    def outcomes(self, order: OrderTask) -> Iterator[Outcome | Answered]:
        """See `Job.outcomes`."""
        return self.job.outcomes(order)

    def reports(self) -> list[Report]:
        """See `Job.reports`."""
        return self.coming.result()

    def begun(self) -> Coming:
        """See `Job.begun`."""
        return self.coming

    def written(self, task: WriteTask, writers: int) -> Iterator[Written | Failure]:
        """See `Job.written`."""
        return self.job.written(task, writers)


@dataclass(frozen=True, slots=True)
class WindowAhead:
    """A window that was begun to be read. `probed_at`: monotonic seconds."""

    progress: Progress
    """Expected once the window before is written."""
    caps: Caps
    probe: Probe
    probed_at: float
    spec: ReadSpec
    job: ReadJob

    def follows(self, progress: Progress, caps: Caps) -> bool:
        """Whether it is planned from this progress: counts and drift, which only the commit knows, plan nothing."""
        expected = replace(self.progress, counts=progress.counts, drift=progress.drift)
        return caps == self.caps and progress == expected

    def end(self) -> None:
        """Break it off."""
        log.debug("what was read ahead is dropped", low=self.spec.window.low, high=self.spec.window.high)
        self.job.coming.end()

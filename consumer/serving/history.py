"""The last hour of a changefeed, in samples: a ring, so that memory is bounded."""

from collections import deque

from consumer.serving.moments import now
from consumer.serving.shapes import Sample, Status

EVERY_S = 2.0
"""Between two samples."""
_KEPT = 1800
"""An hour of them."""


class Ring:
    """Samples of one changefeed. One thread adds, any may read."""

    def __init__(self) -> None:
        self._samples: deque[Sample] = deque(maxlen=_KEPT)

    def add(self, status: Status) -> None:
        """Keep how it is now."""
        self._samples.append(sample_of(status, now()))

    def since(self, at: float) -> list[Sample]:
        """The samples after a moment, oldest first."""
        found = []
        for sample in reversed(list(self._samples)):
            if sample.at <= at:
                break
            found.append(sample)
        return found[::-1]


def sample_of(status: Status, at: float) -> Sample:
    """A status, cut down to what charts show."""
    return Sample(
        at=at,
        events=status.events,
        rows=status.rows_written,
        duplicates=status.duplicates,
        late=status.late,
        filtered=status.filtered,
        quarantined=status.quarantined,
        lag_watermark_seconds=status.source.lag_seconds,
        lag_now_seconds=status.lag_now_seconds,
        checkpoint_ts=status.checkpoint_ts,
        resolved_ts=status.source.resolved_ts,
    )

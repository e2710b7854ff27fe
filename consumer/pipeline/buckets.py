"""Over how many buckets a window's rows are spread, so that each fits a task's memory, in rows and in bytes."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from consumer.tuning import MEASURED, Tuning
from ordering.rows.bucketing import Spread, evenly, largest, spread_of
from ordering.rows.segments import Segment, segments_of
from ordering.window import Histogram, Window, total, within

_BYTES = 128 << 20
_MOST_BUCKETS = 512
_MOST_RUN_DIGITS = 3


@dataclass(frozen=True, slots=True)
class BucketPlan:
    """How to spread messages of an average size over tasks, of which `cores` run at once."""

    cores: int
    average_bytes: float = 1.0
    tuning: Tuning = MEASURED

    @property
    def rows(self) -> int:
        """Rows a bucket."""
        return max(1, min(self.tuning.bucket_rows, int(_BYTES / max(1.0, self.average_bytes))))

    @property
    def run_digits(self) -> int:
        """Rows of so many last digits of their keys stay together: a tenth of a bucket at most, and a thousand."""
        return min(_MOST_RUN_DIGITS, len(str(self.rows // 10)) - 1)

    def buckets(self, messages: int) -> int:
        """Buckets for so many messages; 1: no shuffle."""
        if messages <= min(self.tuning.small_window, self.rows):
            return 1
        return max(self.cores, min(_MOST_BUCKETS, -(-messages // self.rows)))

    def by_commit(self, window: Window, messages: int, known: Iterable[Histogram]) -> Spread:
        """Buckets in the order of commits, by what is known of the rows; each as wide as the others if nothing is."""
        histograms = [part for part in (within(h, window.low, window.high) for h in known) if part]
        if histograms:
            return spread_of(histograms, self.rows)
        return evenly(window.low, window.high, self.buckets(messages))

    def by_segment(
        self, window: Window, ends: Sequence[int], known: Sequence[Histogram], events: int, *, net: bool
    ) -> tuple[Segment, ...]:
        """The segments of a window that end there, with their buckets.

        If nothing is known, each has as many as the others, but the last as if it held all: most DDLs of a topic stand
        at its beginning. `events`: about how many the window holds. `net`: only net effects count; else whole
        transactions are spread.
        """
        sizes: list[int | Spread] = []
        for low, high in pairwise([int(window.low), *ends]):
            own = [part for part in (within(histogram, low, high) for histogram in known) if part]
            even = events if high == ends[-1] else -(-events // len(ends))
            if net:
                rows = total(own) if known else even
                sizes.append(max(self.buckets(rows), 2 if len(ends) == 1 else 1))
            elif own:
                sizes.append(spread_of(own, self.rows))
            else:
                sizes.append(evenly(low, high, 1 if known else self.buckets(even)))
        return segments_of(window.low, ends, sizes)

    def too_full(self, segments: Iterable[Segment], rows: Iterable[Sequence[Histogram]]) -> bool:
        """Whether the rows of some segment turned out to be too many for the memory of its tasks."""
        return any(
            (largest(segment.spread, some) if segment.spread else total(some) // segment.buckets) > 2 * self.rows
            for segment, some in zip(segments, rows, strict=True)
        )

    def better(self, spread: Spread, histograms: list[Histogram]) -> Spread | None:
        """A spread for rows that turned out to lie too uneven for a task's memory, or None if they don't."""
        fullest = largest(spread, histograms)
        if fullest <= 2 * self.rows:
            return None
        found = spread_of(histograms, self.rows)
        return found if 2 * largest(found, histograms) <= fullest else None

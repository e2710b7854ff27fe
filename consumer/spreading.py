"""Over how many buckets a window's rows are spread, so that each fits a task's memory, in rows and in bytes."""

from collections.abc import Iterable
from dataclasses import dataclass

from ordering.spread import Spread, evenly, largest, spread_of
from ordering.window import Histogram, Window, within

SMALL_WINDOW = 20_000
"""Messages up to which one task without a shuffle is faster than several with one."""

_ROWS = 125_000
_BYTES = 128 << 20
_MOST_BUCKETS = 512


@dataclass(frozen=True, slots=True)
class Spreading:
    """How to spread messages of an average size over tasks, of which `cores` run at once."""

    cores: int
    average_bytes: float = 1.0

    @property
    def rows(self) -> int:
        """Rows a bucket."""
        return max(1, min(_ROWS, int(_BYTES / max(1.0, self.average_bytes))))

    def buckets(self, messages: int) -> int:
        """Buckets for so many messages; 1: no shuffle."""
        if messages <= min(SMALL_WINDOW, self.rows):
            return 1
        return max(self.cores, min(_MOST_BUCKETS, -(-messages // self.rows)))

    def by_commit(self, window: Window, messages: int, known: Iterable[Histogram]) -> Spread:
        """Buckets in the order of commits, by what is known of the rows; each as wide as the others if nothing is."""
        histograms = [part for part in (within(h, window.low, window.high) for h in known) if part]
        if histograms:
            return spread_of(histograms, self.rows)
        return evenly(window.low, window.high, self.buckets(messages))

    def better(self, spread: Spread, histograms: list[Histogram]) -> Spread | None:
        """A spread for rows that turned out to lie too uneven for a task's memory, or None if they don't."""
        fullest = largest(spread, histograms)
        if fullest <= 2 * self.rows:
            return None
        found = spread_of(histograms, self.rows)
        return found if 2 * largest(found, histograms) <= fullest else None

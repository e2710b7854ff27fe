"""How large a round's pieces of work are: measured, no setting. It is passed in, so that tests can take small ones."""

from dataclasses import dataclass

from ordering.planner import MOST_SEGMENTS


@dataclass(frozen=True, slots=True)
class Tuning:
    """Sizes of a round's work.

    `small_window`: messages up to which one task without a shuffle is faster than several with one; `bucket_rows`:
    rows that one task orders; `looked_through`: messages from which on a window that may hold DDLs is looked through
    before it is read; `most_segments`: segments that a window is read in, each of which has buckets of its own;
    `reads_ahead`: whether the next window is read while one is written.
    """

    small_window: int = 20_000
    bucket_rows: int = 125_000
    looked_through: int = 100_000
    most_segments: int = MOST_SEGMENTS
    reads_ahead: bool = True


MEASURED = Tuning()
"""What a run takes."""

"""How large a round's pieces of work are: measured, no setting. It is passed in, so that tests can take small ones."""

from dataclasses import dataclass

from consumer.redis.ledger_sizes import MEASURED as MEASURED_LEDGER
from consumer.redis.ledger_sizes import LedgerSizes
from ordering.planner import MOST_SEGMENTS


@dataclass(frozen=True, slots=True)
class Tuning:
    """Sizes of a round's work."""

    small_window: int = 20_000
    """Messages up to which one task without a shuffle is faster than several with one."""
    bucket_rows: int = 125_000
    """Rows that one task orders."""
    looked_through: int = 100_000
    """Messages from which on a window that may hold DDLs is looked through before it is read."""
    most_segments: int = MOST_SEGMENTS
    """Segments that a window is read in, each of which has buckets of its own."""
    reads_ahead: bool = True
    """Whether the next window is read while one is written."""
    flush_rows: int = 100_000
    """Rows that a reading task holds before it passes them on to the shuffle."""
    large_transaction: int = 10_000
    """Rows in one range from which on a transaction has a step of its own in the histogram of commits."""
    chunk_rows: int = 20_000
    """Rows that are encoded and written together."""
    first_chunk: int = 64
    """Messages that the driver reads first, at the end of a partition, to find its last watermark."""
    chunk_growth: int = 8
    """How many times as many it reads each time it has not found one."""
    few_messages: int = 2_000
    """Messages of a partition that are read twice as quickly as their DDLs are looked for before."""
    first_look: int = 500
    """Messages of all topics together that are looked through at first for the DDLs with which topics begin."""
    small_topic: int = 2_000
    """Messages of a partition up to which its topic may have ended before any watermark was due."""
    rests_s: float = 1.0
    """Seconds after a commit in which watermarks alone bring no other."""
    looks_back_s: float = 10.0
    """Seconds after which a run that reads an archive looks again whether the topics hold all that follows."""
    ledger: LedgerSizes = MEASURED_LEDGER
    """How Redis's record of what was applied is cut into values."""


MEASURED = Tuning()
"""What a run takes."""

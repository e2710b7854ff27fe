"""The steps of a round, as they are announced: a target announces those that it takes itself."""

from collections.abc import Callable
from enum import Enum


class Step(Enum):
    """Where a round is; each is announced when it has been done. Crash tests kill between any two."""

    PROBED = "probed"
    PLANNED = "planned"
    READ = "read"
    SEGMENT_TAKEN = "segment-taken"
    WINDOW_RECORDED = "window-recorded"
    DELETES_DONE = "deletes-done"
    WRITES_DONE = "writes-done"
    REDUCED = "reduced"
    APPLY_BEGUN = "apply-begun"
    ROWS_WRITTEN = "rows-written"
    PROGRESS_WRITTEN = "progress-written"
    COMMITTED = "committed"
    DDL_RECORDED = "ddl-recorded"
    DDL_EXECUTED = "ddl-executed"
    DDL_DONE = "ddl-done"
    PUBLISHED = "published"


Observer = Callable[[Step], None]

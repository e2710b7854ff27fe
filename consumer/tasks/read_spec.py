"""What all reading tasks of a window share; travels to them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from consumer.formats.canal_json import CANAL_JSON
from consumer.formats.message_format import MessageFormat
from consumer.native import Wanted
from consumer.tuning import MEASURED, Tuning
from ordering.events import Position, TableName
from ordering.quarantine import Marks
from ordering.rows.bucketing import Spread
from ordering.rows.segments import Segment
from ordering.timestamps import MAX_TSO
from ordering.window import Window

if TYPE_CHECKING:  # it brings an SQL parser, which tasks load only where there are event filters
    from consumer.filters.events import EventFilters


@dataclass(frozen=True, slots=True)
class ReadSpec:
    """What all reading tasks of a window share."""

    window: Window
    handle_keys: Mapping[TableName, tuple[str, ...]]
    accepts: Callable[[str, str], bool]
    buckets: int
    message_bytes: int
    run_digits: int = 3
    """Rows whose numbers differ in so many last digits alone share a bucket: see `BucketPlan.run_digits`."""
    spread: Spread | None = None
    """Of whole transactions, in the order of commits; None: of net effects, by key."""
    force_replicate: bool = False
    marks: Marks = field(default_factory=Marks)
    ignored: "EventFilters | None" = None
    """Event filters, where there are any about rows."""
    native: Wanted = "auto"
    """Whether the compiled core reads what it can."""
    format: MessageFormat = CANAL_JSON
    """How messages are brought into the form that is read here."""

    tuning: Tuning = MEASURED
    """How large pieces are."""
    smallest_range: int = 50_000
    """Messages that a task reads at least, where a range is divided."""
    segments: tuple[Segment, ...] = ()
    """Where the window is read in segments, up to its `high`; they say then over which buckets rows are spread."""
    ignored_marks: frozenset[Position] = frozenset()
    """Where watermarks lie that do not count."""
    latest: int = field(default=MAX_TSO, compare=False)
    """An event of a later commitTs is refused: it would hold its partition's offset until its time has come."""

    @property
    def whole_transactions(self) -> bool:
        """Whether all halves of a row are kept, not only the last."""
        return self.spread is not None or any(segment.spread is not None for segment in self.segments)

    def of(self, segment: Segment) -> "ReadSpec":
        """The spec of one segment alone. Of the first one, events at or below its beginning are the window's."""
        first = segment is self.segments[0]
        window = replace(self.window, high=segment.high, resolved=segment.high)
        if not first:
            window = replace(window, low=segment.low, base=segment.low)
        return replace(self, window=window, buckets=segment.buckets, spread=segment.spread, segments=())

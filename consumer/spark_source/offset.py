"""What Spark keeps of a query in its checkpoint: the progress, and what the batch that led there holds.

A batch holds the rows of (low, commitTs], and the DDLs that come behind them: none of its rows lies above one. The
ranges and the DDLs are in the offset, so a driver that starts again reads the same batch, whatever has arrived since.
So are the leaders that wrote it: of a log that was replaced meanwhile nothing is given.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from consumer.kafka.account import Epochs
from consumer.tasks.report import RawDdl
from ordering.errors import ConfigError
from ordering.events import Partition, Position
from ordering.progress import Progress
from ordering.timestamps import CheckpointTs, ResolvedTs
from ordering.window import Range, Window

_FORMAT = 1


@dataclass(frozen=True, slots=True)
class FeedOffset:
    """Where a query is, and the batch that ends there."""

    progress: Progress
    low: int
    ranges: tuple[Range, ...] = ()
    """What holds the batch's rows."""
    rows: int = 0
    """Row changes in it, each counted once."""
    ddls: tuple[RawDdl, ...] = ()
    epochs: tuple[Epochs, ...] | None = None
    """Of each range the leaders that wrote it (`epochs_upto`); None: an earlier version planned it."""

    @property
    def commit_ts(self) -> int:
        """All rows up to it were read."""
        return self.progress.checkpoint_ts

    @property
    def window(self) -> Window:
        """The batch as reading tasks take it."""
        low, high = CheckpointTs(self.low), ResolvedTs(self.commit_ts)
        return Window(low, low, high, high, self.ranges)

    def stored(self) -> dict[str, Any]:
        """As Spark stores it: JSON."""
        return {
            "format": _FORMAT,
            "commitTs": self.commit_ts,
            "low": self.low,
            "rows": self.rows,
            "ranges": [[*r.partition, r.start, r.stop] for r in self.ranges],
            "epochs": self.epochs,
            "ddls": [[*d.position, d.commit_ts, d.type, d.database, d.table, d.sql] for d in self.ddls],
            "offsets": self.progress.offsets(),
            "state": self.progress.state(),
        }


def restored(value: Mapping[str, Any]) -> FeedOffset:
    """The value that `FeedOffset.stored` came from. Raises ConfigError for a later version's."""
    if value.get("format") != _FORMAT:
        fact = f"the query's checkpoint is of format {value.get('format')!r}, this version knows {_FORMAT}"
        raise ConfigError(fact, hint="run the version that wrote it, or begin a new query with source.start-ts")
    return FeedOffset(
        Progress.restored(value["commitTs"], value["offsets"], value["state"]),
        value["low"],
        tuple(Range(Partition(topic, number), start, stop, 0) for topic, number, start, stop in value["ranges"]),
        value["rows"],
        tuple(_ddl(one) for one in value["ddls"]),
        _epochs(value.get("epochs")),
    )


def _epochs(value: Sequence[Sequence[tuple[int | None, int]]] | None) -> tuple[Epochs, ...] | None:
    return None if value is None else tuple(tuple((epoch, end) for epoch, end in one) for one in value)


def _ddl(value: Sequence[Any]) -> RawDdl:
    topic, partition, offset, *rest = value
    return RawDdl(Position(topic, partition, offset), *rest)

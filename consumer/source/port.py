"""The port behind which a source lies: Kafka's topics (`probe`), or files (`file_source`).

Whatever it is, it offers partitions with offsets, and a commitTs up to which every row lies below their ends.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Protocol

from consumer.config.model import Config
from consumer.source.file_source import FileSource
from consumer.source.offer import Kept, Probe
from consumer.source.probe import Source
from consumer.tasks.read_spec import ReadSpec
from consumer.tasks.report import Report
from consumer.tuning import MEASURED, Tuning
from consumer.wiring import storage_of
from ordering.events import Partition, Position
from ordering.progress import Progress, TopicProgress
from ordering.timestamps import ResolvedTs
from ordering.window import Range


class ChangeSource(Protocol):
    """What a changefeed reads, as the driver sees it. All of it raises SourceError and InputError."""

    average_bytes: dict[Partition, float]
    """Of an event."""
    stretch: int
    dead_at: dict[str, ResolvedTs]

    @property
    def config(self) -> Config:
        """Of the changefeed."""
        ...

    @property
    def events_a_message(self) -> float:
        """How many events an offset stands for, about."""
        ...

    @property
    def vouches(self) -> bool:
        """Whether what appears later holds only repetitions at or below the checkpoint."""
        ...

    def probe(self, progress: Progress, caps: Mapping[Partition, int] | None = None) -> Probe:
        """What there is to read now. `caps`: no further than `ends` said."""
        ...

    def holds_only_watermarks(self, ranges: Iterable[Range]) -> bool:
        """Whether it is known that these ranges hold nothing else."""
        ...

    def rests(self, partitions: Collection[Partition]) -> bool:
        """Whether nothing but watermarks came to these partitions since they were probed; asked cheaply."""
        ...

    def reports(self, spec: ReadSpec) -> list[Report] | None:
        """The reports of a window that holds only watermarks; None where tasks have to read it."""
        ...

    def reach(self) -> None:
        """Look whether it answers."""
        ...

    def ends(self) -> Mapping[Partition, int]:
        """Where what is there now ends (`--once`)."""
        ...

    def identity(self) -> str:
        """Which cluster or store it is: offsets mean nothing in another."""
        ...

    def message(self, position: Position) -> Kept:
        """One message."""
        ...

    def check_same_log(
        self, reports: Sequence[Report], topics: Mapping[str, TopicProgress], *, ask: bool = False
    ) -> None:
        """Raise InputError where what was read is not what was offered, for the log was replaced meanwhile.

        `ask`: whether it was looked at once more since.
        """
        ...

    def check_uncompacted(self, reports: Sequence[Report]) -> None:
        """Raise InputError where something was taken out of what was read."""
        ...

    def check_sent_once(self, reports: Sequence[Report]) -> None:
        """Raise InputError for rows without a key that may be one row sent twice."""
        ...

    def saw(self, report: Report) -> None:
        """Take the highest watermark that a task saw. Raises InputError for one of the future."""
        ...

    def commit_lazily(self, offsets: Mapping[Partition, int]) -> None:
        """Tell lag tools."""
        ...

    def close(self) -> None:
        """Close every connection; the next call connects again."""
        ...


def source_of(config: Config, tuning: Tuning = MEASURED) -> ChangeSource:
    """What a config names, not yet connected."""
    return FileSource(config, storage_of(config)) if config.source.storage else Source.of(config, tuning)

"""The watermarks that the driver reads, and stretches of partitions in which it has met nothing else.

A changefeed at rest gets watermarks several times a second. The driver reads each of them to know how far it may go, so
a window over them needs no task: its reports are made here, by the code that tasks run, of the messages that were read.
"""

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from consumer.config.model import Config
from consumer.kafka.account import Epochs, EpochTrail, Reached
from consumer.kafka.admin import End
from consumer.kafka.reader import Messages
from consumer.source.clock import check_mark, ignored_marks
from consumer.tasks.order import ReadTask
from consumer.tasks.read_spec import ReadSpec
from consumer.tasks.report import Report
from consumer.tasks.shuffle_blocks import REPORTS
from consumer.wiring import format_of
from ordering.events import Partition, Position
from ordering.timestamps import ResolvedTs
from ordering.window import Range

Ends = Callable[[Iterable[Partition]], Mapping[Partition, End]]
Span = tuple[Partition, int, int]
"""The offsets [low, high) of a partition."""
_MOST = 32
"""Messages that are kept of a partition; a stretch begins behind those that are not."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """The offsets [low, high) of a partition, and all messages there, each with its leader's epoch."""

    low: int
    high: int
    messages: tuple[tuple[Any, int | None], ...] = ()

    @classmethod
    def of(cls, low: int, high: int, messages: Iterable[Any], epochs: Epochs) -> Self:
        """What was read between two offsets. `epochs`: see `EpochTrail`."""
        begins = [begin for _, begin in epochs]
        told = ((one, epochs[bisect_right(begins, one.offset()) - 1][0]) for one in messages)
        return cls(low, high, tuple(told))

    def joined(self, later: "Stretch") -> "Stretch":
        """Both, if one follows on the other, else the later one; of many messages the last."""
        follows = later.low == self.high
        low, messages = (self.low if follows else later.low), (self.messages if follows else ()) + later.messages
        if len(messages) > _MOST:
            messages = messages[-_MOST:]
            low = messages[0][0].offset()
        return Stretch(low, later.high, messages)

    def above(self, offset: int) -> "Stretch":
        """What of it lies at an offset or behind it."""
        if offset <= self.low:
            return self
        kept = tuple(one for one in self.messages if one[0].offset() >= offset)
        return Stretch(offset, max(offset, self.high), kept)

    def holds(self, part: Range) -> bool:
        """Whether it holds all of a range."""
        return self.low <= part.start and part.stop <= self.high


class Watermarks:
    """Reads the watermarks of partitions, and keeps the last stretch of each that holds nothing else."""

    def __init__(
        self, config: Callable[[], Config], reader: Callable[[], Messages], sizes: dict[Partition, float]
    ) -> None:
        self._config, self._reader, self._sizes = config, reader, sizes
        self._alone: dict[Partition, Stretch] = {}

    def forget(self, topic: str | None = None) -> None:
        """Keep nothing of a topic, as another one has its name now; or nothing at all."""
        self._alone = {p: kept for p, kept in self._alone.items() if topic is not None and p.topic != topic}

    def read(self, spans: Sequence[Span]) -> dict[Partition, ResolvedTs]:
        """The highest watermark of each span that holds any. Raises InputError for one of the future, SourceError."""
        found: dict[Partition, ResolvedTs] = {}
        met: dict[Partition, list[Any]] = {}
        config, others = self._config(), set[Partition]()
        ignored, told = ignored_marks(config), format_of(config)
        for partition, run in self._reader().read(spans):
            self._sizes.setdefault(partition, float(len(run[0].value() or b" ")))
            met.setdefault(partition, []).extend(() if partition in others else run)
            for message in run:
                content = told.content(message.key(), message.value())
                ts = told.watermark_in(content, config.limits.message_bytes)
                if ts is None:
                    others.add(partition)
                elif Position(*partition, message.offset()) not in ignored:
                    check_mark(ts, config.limits, partition, message)
                    found[partition] = max(ts, found.get(partition, ts))
        for partition, low, high in spans:
            if partition in others or told.sends_batches:  # of a batch, one message may be a watermark and hold rows
                self._alone.pop(partition, None)
            elif low < high:
                epochs = self._reader().reached(partition).epochs
                self._keep(partition, Stretch.of(low, high, met.get(partition, ()), epochs))
        return found

    def _keep(self, partition: Partition, new: Stretch) -> None:
        self._alone[partition] = self._alone.get(partition, Stretch(new.low, new.low)).joined(new)

    def forget_below(self, starts: Mapping[Partition, int]) -> None:
        """Keep nothing that no window will hold any more: of thousands of partitions that is much."""
        self._alone = {p: kept.above(starts[p]) for p, kept in self._alone.items() if p in starts}

    def rest(
        self,
        partitions: Collection[Partition],
        ends: Callable[[Iterable[Partition]], Mapping[Partition, End]],
        most: int,
    ) -> bool:
        """Whether nothing else came to these partitions behind what is kept, of at most so many offsets each."""
        tops = {p: kept.high for p, kept in self._alone.items() if p in partitions}
        if not partitions or len(tops) < len(partitions):
            return False
        found = {p: end.offset for p, end in ends(tops).items()}
        if any(not top <= found[p] <= top + most for p, top in tops.items()):
            return False
        self.read([(p, top, found[p]) for p, top in tops.items() if top < found[p]])
        return self.are_all_in(Range(p, top, found[p], top) for p, top in tops.items())

    def are_all_in(self, ranges: Iterable[Range]) -> bool:
        """Whether these ranges hold nothing else."""
        kept = ((self._alone.get(part.partition), part) for part in ranges)
        return all(stretch is not None and stretch.holds(part) for stretch, part in kept)

    def reports(self, spec: ReadSpec) -> list[Report] | None:
        """The reports of a window, as a task makes them; None where a task has to, or knows better what is wrong."""
        ranges = spec.window.ranges
        if spec.buckets > 1 or spec.segments or not self.are_all_in(ranges):
            return None
        records = ReadTask(spec, _KeptMessages(self._alone))([(0, ranges)])
        found = [payload for bucket, payload in records if bucket == REPORTS]
        reports = [payload for payload in found if isinstance(payload, Report)]
        return None if len(reports) < len(found) or any(map(_holds_more, reports)) else reports


def _holds_more(report: Report) -> bool:
    return bool(report.messages or report.events or report.released or report.ddls or report.unreadable)


class _KeptMessages:
    """Gives out kept messages, as `Messages` and `Readers` say."""

    def __init__(self, stretches: dict[Partition, Stretch]) -> None:
        self._stretches = stretches
        self._reached: dict[Partition, Reached] = {}

    def get(self) -> "_KeptMessages":
        """See `Readers.get`."""
        return self

    def forget(self) -> None:
        """See `Readers.forget`: nothing is connected."""

    def read(self, spans: Sequence[Span]) -> Iterator[tuple[Partition, Sequence[Any]]]:
        """See `Messages.read`."""
        for partition, start, stop in spans:
            run, trail = [], EpochTrail()
            for message, epoch in self._stretches[partition].messages:
                if start <= message.offset() < stop:
                    run.append(message)
                    trail.note(partition, epoch, message.offset())
            self._reached[partition] = Reached(max(start, stop), len(run), trail.of(partition))
            if run:
                yield partition, run

    def done(self, partition: Partition) -> None:
        """See `Messages.done`: what is kept of a partition is one run."""

    def reached(self, partition: Partition) -> Reached:
        """See `Messages.reached`."""
        return self._reached[partition]

"""What a source offers at a moment, and the progress with it; no I/O."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from consumer.config.model import LimitsSection
from consumer.kafka.admin import End
from consumer.source.clock import is_ahead
from consumer.tasks.report import RawDdl, Report
from consumer.tuning import MEASURED
from ordering.events import Partition
from ordering.progress import PartitionProgress, Progress, TopicProgress
from ordering.timestamps import ResolvedTs, physical_ms
from ordering.watermark import Resolved, raised
from ordering.window import Range


@dataclass(slots=True)
class Memory:
    """What was seen of a partition by this process: its best watermark, and up to where it was looked for."""

    looked_to: int = 0
    watermark: ResolvedTs | None = None
    epoch: int | None = None
    judged: tuple[int, int] = (0, 0)
    """Between these offsets each watermark was held against Kafka's time."""

    def judge(self, low: int, high: int) -> None:
        """Note between which offsets all watermarks were held against Kafka's time."""
        first, last = self.judged
        joins = low <= last and first <= high
        self.judged = (min(low, first), max(high, last)) if joins else (low, high)

    def doubted(self, report: Report, limits: LimitsSection) -> list[int]:
        """Offsets of the watermarks by which a task went, of which nothing tells that Kafka took them in their time.

        They are the highest, and the one that ended the range: what lies behind it waits for another window. The rows
        before that tell the time as well: Kafka took none before it was committed.
        """
        at, end, ts = report.marked_at, report.stop - 1, report.watermark or 0
        if at is None:
            return []
        last = report.histogram[-1][0] if report.histogram and report.ended_early and at == end else 0
        if not is_ahead(ts, physical_ms(last), limits):
            return []
        counts = {end} if report.ended_early else set[int]()
        counts |= {at} if ts > (self.watermark or 0) else set()
        return sorted(offset for offset in counts if not self.judged[0] <= offset < self.judged[1])

    def reached(self, at: PartitionProgress) -> End:
        """Up to where the partition was read or looked through, and under which leader."""
        return End(at.read_to, at.epoch) if at.read_to > self.looked_to else End(self.looked_to, self.epoch)

    def take(self, watermark: int | None, upto: int) -> None:
        """Take the highest watermark before an offset."""
        self.looked_to = max(self.looked_to, upto)
        self.watermark = raised(self.watermark, None if watermark is None else ResolvedTs(watermark))


@dataclass(frozen=True, slots=True)
class PartitionProbe:
    """What can be read of a partition: from `progress.start` up to `bound`; `begin` and `end` are the partition's.

    Of a topic that may have ended, `end` lies behind what open transactions have written.
    """

    progress: PartitionProgress
    bound: int
    end: int
    watermark: ResolvedTs | None
    begin: int = 0
    epoch: int | None = None


@dataclass(frozen=True, slots=True)
class Probe:
    """What the source offers at a moment."""

    topics: Mapping[str, TopicProgress]
    partitions: Mapping[Partition, PartitionProbe]
    resolved: Resolved
    ddls: tuple[RawDdl, ...] = ()
    """Those that are known before anything is read."""
    small_topic: int = MEASURED.small_topic

    @property
    def ranges(self) -> tuple[Range, ...]:
        """What there is to read of each partition."""
        return tuple(
            Range(partition, at.start, found.bound, at.counted_to, at.passed, found.epoch)
            for partition, found in sorted(self.partitions.items())
            if (at := found.progress).start < found.bound
        )

    def before_first_watermark(self, left: tuple[Range, ...]) -> tuple[Range, ...]:
        """What of `left` may tell, while a topic holds back the first window, that this topic has ended.

        First topics so small that they may have ended before any watermark was due. Where these tell nothing: each
        topic that never got a watermark, and of the others partition 0, where DDLs lie: the DDL that took a topic's
        tables may be in another topic, as DROP DATABASE is.
        """
        small = self._small_topics()
        if found := tuple(r for r in left if r.partition.topic in small):
            return found
        heard = {p.topic for p, found in self.partitions.items() if found.watermark is not None}
        if not heard:
            return ()
        return tuple(r for r in left if r.partition.topic not in heard or r.partition.holds_ddls)

    def _small_topics(self) -> set[str]:
        """Those of the topics that hold back the first window that are that small."""
        large = {p.topic for p, at in self.partitions.items() if at.end - at.progress.start > self.small_topic}
        return {p.topic for p in self.resolved.held_back_by} - large


class Holding(NamedTuple):
    """What the topics hold of what follows a commitTs: `lacking`: where some of it may be missing, `topics`: now."""

    lacking: list[Partition]
    topics: Mapping[str, TopicProgress]


def topics_now(known: Mapping[str, TopicProgress], ids: Mapping[str, str]) -> tuple[dict[str, TopicProgress], set[str]]:
    """The topics by their ids of now, and those of them that have to prove nothing: the same ones, and retired ones."""
    same = {name: known[name] for name, found in ids.items() if name in known and known[name].id == found}
    retired = {name for name, topic in known.items() if topic.retired}
    new = {name: TopicProgress(found, retired=name in retired) for name, found in ids.items()}
    return {**known, **new, **same}, same.keys() | retired


@dataclass(frozen=True, slots=True)
class Kept:
    """A message's bytes, and Kafka's timestamp in milliseconds since 1970."""

    key: bytes | None
    value: bytes | None
    timestamp: int | None


def offered(progress: Progress, probe: Probe) -> Progress:
    """The progress with the topics as they are, and without partitions of topics that are forgotten."""
    kept = {p: at for p, at in progress.partitions.items() if p.topic in probe.topics}
    return replace(progress, topics=probe.topics, partitions=kept)


def added(progress: Progress, probe: Probe | None) -> Progress:
    """The progress with all partitions that were found, also empty ones: later their beginning may be gone."""
    found = probe.partitions if probe else {}
    return replace(progress, partitions={p: at.progress for p, at in found.items()} | dict(progress.partitions))


def has_a_say(known: Progress, partition: Partition, found: PartitionProbe) -> bool:
    """Whether a partition counts for the global resolvedTs: not if its topic ended and nothing in it is unread."""
    return not known.topics[partition.topic].ended or found.progress.start < found.end


def retired_end(known: Progress, partition: Partition, start: int, end: int) -> int:
    """Up to where a partition may be read: what came before its topic was retired is read apart from what came then."""
    topic = known.topics[partition.topic]
    until = topic.retired_to.get(partition.partition, 0) if topic.retired else 0
    return min(end, until) if start < until else end

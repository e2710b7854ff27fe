"""Probing: which topics there are, how far their watermarks reach, what could be read next. No row is decoded here.

The driver looks backwards from the end of what a window may read, in growing chunks, for the last watermark of each
partition. What it has looked through once it does not look through again.
"""

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import structlog

from consumer.config.model import Config
from consumer.kafka.admin import End, KafkaAdmin, Topic, require, retired_ends
from consumer.kafka.bounded_reader import BoundedReader
from consumer.kafka.reader import Messages
from consumer.source.clock import check_clock, latest_believed
from consumer.source.continuity import (
    NONE_KNOWN,
    check_beginnings,
    check_gone,
    check_kept,
    check_retention,
    check_same_log,
    check_uncompacted,
    created_again,
    first_times,
)
from consumer.source.equal_rows import check_sent_once
from consumer.source.first_messages import check_protocol, first_ddls
from consumer.source.offer import Holding, Kept, Memory, PartitionProbe, Probe, has_a_say, retired_end, topics_now
from consumer.source.outside_watermark import OutsideWatermark, outside_of
from consumer.source.watermarks import Watermarks
from consumer.tasks.read_spec import ReadSpec
from consumer.tasks.report import RawDdl, Report
from consumer.tuning import MEASURED, Tuning
from consumer.wiring import format_of
from ordering.errors import SourceError
from ordering.events import Partition, Position
from ordering.progress import PartitionProgress, Progress, TopicProgress
from ordering.sources.retention import lacking
from ordering.timestamps import ResolvedTs
from ordering.watermark import global_resolved, raised
from ordering.window import Range, budget, shares

_LARGEST_CHUNK = 8_192
_LOOK_BACK = 32_768
"""Messages that the driver looks through at most; where no watermark is among them, Spark's tasks will find it."""

_COMMIT_EVERY_S, _REST_S = 5.0, 60.0

log = structlog.get_logger()


@dataclass(slots=True)
class Source:
    """The topics of a changefeed."""

    config: Config
    control: KafkaAdmin
    average_bytes: dict[Partition, float] = field(default_factory=dict)
    stretch: int = 1  # by how much further a window reads than its limits say: what it waits for may lie behind
    dead_at: dict[str, ResolvedTs] = field(default_factory=dict)
    """Topics that a pending DDL ends, with its commitTs (R6)."""
    tuning: Tuning = MEASURED
    marks: Messages | None = None
    """The driver's own reader, for watermarks only; made when it is first needed."""
    _memory: dict[Partition, Memory] = field(default_factory=dict)
    _begins: Mapping[Partition, int] = field(default_factory=dict)
    _starts: dict[Partition, int] = field(default_factory=dict)
    """Where partitions began when they were first seen, of which the progress knows nothing yet."""
    _first_ddls: tuple[RawDdl, ...] | None = None
    """Those with which the topics of a new changefeed begin; None until there are many messages and it matters."""
    _ids: dict[str, str] = field(default_factory=dict)
    """Of the topics of which anything is remembered."""
    _spoken: set[Partition] = field(default_factory=set)
    """Partitions without a watermark whose first message was looked at."""
    _committed: dict[Partition, int] = field(default_factory=dict)
    _committed_at: float = 0.0
    outside: OutsideWatermark = field(init=False)
    watermarks: Watermarks = field(init=False)

    def __post_init__(self) -> None:
        self.outside = outside_of(self.config)
        self.watermarks = Watermarks(lambda: self.config, self._reader, self.average_bytes)

    @classmethod
    def of(cls, config: Config, tuning: Tuning = MEASURED) -> Self:
        """The topics that a config names, on its brokers; connects when it is first asked."""
        return cls(config, KafkaAdmin(config.source.bootstrap_servers, config.source.kafka), tuning=tuning)

    def begin_anew(self) -> None:
        """Forget what was seen: another source is read meanwhile, and then the topics from where they begin."""
        self._memory, self._starts, self._spoken, self._first_ddls = {}, {}, set(), None
        self.watermarks.forget()

    def _reader(self) -> Messages:
        if self.marks is None:
            self.marks = BoundedReader(self.control, self.config.limits.message_bytes)
        return self.marks

    def close(self) -> None:
        """Close every connection; the next call connects again."""
        self.control.close()

    @property
    def events_a_message(self) -> float:
        """See `ChangeSource.events_a_message`."""
        return 1.0

    @property
    def vouches(self) -> bool:
        """See `ChangeSource.vouches`: a topic that appears may hold what was never applied."""
        return False

    def holds_only_watermarks(self, ranges: Iterable[Range]) -> bool:
        """See `ChangeSource.holds_only_watermarks`."""
        return self.watermarks.are_all_in(ranges)

    def rests(self, partitions: Collection[Partition]) -> bool:
        """See `ChangeSource.rests`: two requests, where a probe takes five."""
        return self.watermarks.rest(partitions, self.control.stable_ends, self.tuning.first_chunk)

    def reports(self, spec: ReadSpec) -> list[Report] | None:
        """See `ChangeSource.reports`."""
        return self.watermarks.reports(spec)

    def reach(self) -> None:
        """See `ChangeSource.reach`."""
        self.listed()

    def ends(self) -> Mapping[Partition, int]:
        """See `ChangeSource.ends`."""
        self.outside.ask(lambda: self.control.written_ends(self._everywhere()))
        return self.control.ends(self._everywhere())

    def _everywhere(self) -> list[Partition]:
        return [p for topic in self.control.topics(self.config.source.topics) for p in topic.partitions]

    def identity(self) -> str:
        """See `ChangeSource.identity`."""
        return self.control.cluster_id()

    def check_uncompacted(self, reports: Sequence[Report]) -> None:
        """See `ChangeSource.check_uncompacted`."""
        check_uncompacted(reports, self.control.cleanup_policies, self.control.first_gap)

    def check_same_log(
        self, reports: Sequence[Report], topics: Mapping[str, TopicProgress], *, ask: bool = False
    ) -> None:
        """See `ChangeSource.check_same_log`: mostly one request, for the topics' ids."""
        check_same_log(self.control, reports, topics, ask=ask)

    def check_sent_once(self, reports: Sequence[Report]) -> None:
        """See `ChangeSource.check_sent_once`."""
        if self.config.source.equal_rows == "error":
            check_sent_once(reports, self.control.batches)

    def commit_lazily(self, offsets: Mapping[Partition, int]) -> None:
        """Commit the group's offsets for lag tools, at most every few seconds and only what moved."""
        now = time.monotonic()
        if now - self._committed_at < _COMMIT_EVERY_S or offsets == self._committed:
            return
        self._committed_at, self._committed = now, dict(offsets)
        try:
            self.control.commit(self.config.changefeed, offsets)
        except SourceError as error:
            self._committed, self._committed_at = {}, time.monotonic() + _REST_S  # a broker that hangs would hold us up
            log.warning("the consumer group's offsets can't be committed; only lag tools miss them", error=error.fact)

    def marks_before(self, spans: Mapping[Partition, tuple[int, int]]) -> dict[Partition, ResolvedTs]:
        """The highest of the watermarks shortly before the end of each [low, high), where there are any."""
        return self.watermarks.read([(p, max(low, high - _LARGEST_CHUNK), high) for p, (low, high) in spans.items()])

    def message(self, position: Position) -> Kept:
        """One message. Raises SourceError if it is gone."""
        partition = Partition(position.topic, position.partition)
        for _, run in self._reader().read([(partition, position.offset, position.offset + 1)]):
            for found in run:
                kind, ms = found.timestamp()
                return Kept(found.key(), found.value(), ms if kind else None)
        raise SourceError("a message is gone from Kafka while it was read", where=str(position))

    def listed(self, known: Mapping[str, TopicProgress] = NONE_KNOWN) -> list[Topic]:
        """The topics as they are now. Raises InputError if a named one, or one that is known, is missing."""
        found = self.control.topics(self.config.source.topics)
        check_gone(found, known)
        require(self.config.source.topics, found, self.config.source.bootstrap_servers)
        return found

    def probe(self, progress: Progress, caps: Mapping[Partition, int] | None = None) -> Probe:
        """Probe until no topic or partition has appeared meanwhile (R6: listed again after the watermarks were read).

        `caps` bounds partitions to end offsets of an earlier moment (`--once`).
        """
        listed = self.listed(progress.topics)
        while True:
            known = self._registered(progress, listed)
            probes = self._probed(known, caps or {})
            again = self.listed(progress.topics)
            if [t.partitions for t in again] == [t.partitions for t in listed]:
                break
            listed = again
        alive = {p: found for p, found in probes.items() if not known.topics[p.topic].retired}
        counted = {p: found for p, found in alive.items() if has_a_say(known, p, found)}
        resolved = global_resolved({p: found.watermark for p, found in (counted or alive).items()})
        self._check_protocol({p: alive[p] for p in resolved.held_back_by if alive[p].watermark is None})
        topics = self.outside.by_brokers(known.topics)
        return Probe(topics, probes, resolved, self._beginning(known, probes), self.tuning.small_topic)

    def _check_protocol(self, unmarked: Mapping[Partition, PartitionProbe]) -> None:
        """Refuse what will never get a watermark: no task reads it, so nothing else tells that it is none of ours."""
        ends = {p: (at.progress.start, at.bound) for p, at in unmarked.items() if p not in self._spoken}
        spans = {p: (start, end) for p, (start, end) in ends.items() if start < end}
        if spans:
            check_protocol(self._reader(), format_of(self.config), spans, self.config.limits.message_bytes)
            self._spoken |= spans.keys()

    def _registered(self, progress: Progress, listed: list[Topic]) -> Progress:
        """The progress with what is new in the list; refuses what can't be the same topic any more."""
        topics, partitions = dict(progress.topics), dict(progress.partitions)
        everything = [p for topic in listed for p in topic.partitions]
        begins = self._begins = self.control.begins(everything)
        for topic in listed:
            self._check_identity(topic, topics)
            self._forget_another(topic)
        starts = self._new_starts(progress, {p: begin for p, begin in begins.items() if p not in partitions})
        partitions |= {p: PartitionProgress(start, start, is_new=True) for p, start in starts.items()}
        for topic in listed:
            if topic.name not in topics:
                complete = progress.began_ts == 0 and not any(starts[p] for p in topic.partitions)
                topics[topic.name] = TopicProgress(topic.id, complete=complete)
        topics |= self._retired(listed, topics)
        for p, begin in begins.items():
            check_retention(p, begin, partitions[p])
        present = {topic.name for topic in listed}
        kept = {p: value for p, value in partitions.items() if p.topic in present}
        return replace(progress, topics=topics, partitions=kept)

    def _retired(self, listed: Iterable[Topic], known: Mapping[str, TopicProgress]) -> dict[str, TopicProgress]:
        """Topics that versions before 0.2 retired, with the ends of their logs now: these versions noted none."""
        without = [t for t in listed if known[t.name].retired and not known[t.name].retired_to]
        return {t.name: replace(known[t.name], retired_to=retired_ends(self.control, t)) for t in without}

    def _check_identity(self, topic: Topic, known: Mapping[str, TopicProgress]) -> None:
        before = known.get(topic.name)
        if before is not None and before.id != topic.id:
            raise created_again(topic, before)

    def _forget_another(self, topic: Topic) -> None:
        """Forget what was seen of a topic that was deleted and made again while no progress held its id."""
        if self._ids.setdefault(topic.name, topic.id) == topic.id:
            return
        self._ids[topic.name], self._first_ddls = topic.id, None
        self.dead_at.pop(topic.name, None)
        self.outside.forget(topic.name)
        self.watermarks.forget(topic.name)
        for memory in (self._memory, self._starts):
            for p in [p for p in memory if p.topic == topic.name]:
                del memory[p]

    def _new_starts(self, progress: Progress, begins: Mapping[Partition, int]) -> dict[Partition, int]:
        """Where to begin in partitions that are new. Raises InputError where what they lack may be needed."""
        new = {p: begin for p, begin in begins.items() if p not in self._starts}
        if self.config.source.topics_may_lack or not (progress.began_ts or progress.partitions):
            for p in sorted(p for p, begin in new.items() if begin > 0):
                log.warning("retention deleted the beginning of a partition; what it held is not applied", at=str(p))
        else:
            check_beginnings(new, progress.began_ts, self._first_times)
        self._starts |= new
        return {p: self._starts[p] for p in begins}

    def holding(self, ts: int, known: Mapping[str, TopicProgress]) -> Holding:
        """What topics hold of what follows `ts`; `known`: as they were then. Raises SourceError and InputError."""
        listed = self.listed(known)
        begins = self.control.begins([p for topic in listed for p in topic.partitions])
        if not begins:
            raise SourceError("no topic is there", where=f"Kafka at {self.config.source.bootstrap_servers}")
        self.outside.ask(lambda: self.control.written_ends(begins))
        topics, proven = topics_now(known, {topic.name: topic.id for topic in listed})
        if self.outside.began_after(ts):
            return Holding(sorted(begins), topics)
        return Holding(lacking(begins, self._first_times(begins), ts, proven), topics)

    def _first_times(self, begins: Mapping[Partition, int]) -> dict[Partition, int]:
        ends = self.control.ends(begins)
        return first_times(self._reader(), {p: (begin, ends[p]) for p, begin in begins.items()})

    def _probed(self, known: Progress, caps: Mapping[Partition, int]) -> dict[Partition, PartitionProbe]:
        self.outside.ask(lambda: self.control.written_ends(known.partitions))
        self.outside.check_brokers(known.topics, accepted=self.config.source.unproven_beginning == "accept")
        self.outside.check_begun(known.checkpoint_ts, accepted=self.config.source.topics_may_lack)
        found = self.control.stable_ends(known.partitions)
        self._check_kept(known, found)
        ends = {p: end.offset for p, end in found.items()}
        starts = {p: at.start for p, at in known.partitions.items()}
        self.watermarks.forget_below(starts)
        tops = {p: min(end, caps.get(p, end), retired_end(known, p, starts[p], end)) for p, end in ends.items()}
        waiting = {p: max(0, tops[p] - max(at.start, at.read_to)) for p, at in known.partitions.items()}
        share = self._share(waiting)
        may = shares(share, waiting)
        bounds = {p: min(tops[p], self._bound(p, at, may[p])) for p, at in known.partitions.items()}
        self._look(known, bounds, tops, share)
        # whether nothing is left to come of a topic that may have ended is asked after the watermarks were read: all
        # that they vouch for is there by now. What open transactions hold counts, too
        may_have_ended = [p for p in known.partitions if p.topic in self.dead_at or known.topics[p.topic].ended]
        ends |= self.control.written_ends(may_have_ended)
        return {
            p: self._partition_probe(p, at, bounds[p], End(ends[p], found[p].epoch))
            for p, at in known.partitions.items()
        }

    def _check_kept(self, known: Progress, ends: Mapping[Partition, End]) -> None:
        memories = {p: self._memory.setdefault(p, Memory()) for p in known.partitions}
        check_kept(self.control, {p: memories[p].reached(at) for p, at in known.partitions.items()}, ends)
        for p, memory in memories.items():
            memory.epoch = ends[p].epoch

    def _bound(self, p: Partition, at: PartitionProgress, share: int) -> int:
        """Its share further than was read; never short of a remembered watermark, as it vouches for all before it."""
        memory = self._memory.get(p)
        return max(at.start + share, at.read_to + share, 0 if memory is None else memory.looked_to)

    def _partition_probe(self, p: Partition, at: PartitionProgress, bound: int, end: End) -> PartitionProbe:
        dead_at = self.dead_at.get(p.topic) if bound == end.offset else None
        if told := self.outside.upto(p, bound):
            self._memory[p].take(told, bound)
        watermark = raised(at.watermark, self._memory[p].watermark, dead_at)
        return PartitionProbe(at, bound, end.offset, watermark, self._begins.get(p, 0), end.epoch)

    def _share(self, waiting: Mapping[Partition, int]) -> int:
        limits = self.config.limits
        return budget(limits.window_rows, limits.window_bytes, self.average_bytes, len(waiting)) * self.stretch

    def _beginning(self, known: Progress, probes: Mapping[Partition, PartitionProbe]) -> tuple[RawDdl, ...]:
        """The DDLs with which the topics of a new changefeed begin."""
        if known.checkpoint_ts > known.began_ts:
            return ()
        spans = {p: (found.progress.start, found.bound) for p, found in probes.items()}
        if max((bound - start for start, bound in spans.values()), default=0) <= self.tuning.few_messages:
            return ()
        if self._first_ddls is None:
            first = {p: span for p, span in spans.items() if p.holds_ddls}
            limit = self.config.limits.message_bytes
            self._first_ddls = tuple(
                first_ddls(self._reader(), format_of(self.config), first, limit, self.tuning.first_look)
            )
        latest = latest_believed(self.config.limits)  # who reads later ones refuses them
        return tuple(ddl for ddl in self._first_ddls if ddl.commit_ts <= latest)

    def _look(self, known: Progress, bounds: dict[Partition, int], ends: Mapping[Partition, int], share: int) -> None:
        """Find a watermark above the checkpoint in each partition's budget; where there is none, widen the budget."""
        searched = list(bounds)
        while searched:
            self._look_back({p: (known.partitions[p].start, bounds[p]) for p in searched})
            searched = [
                p
                for p in searched
                if bounds[p] < ends[p] and (raised(self._best(known, p), ResolvedTs(0)) or 0) <= known.checkpoint_ts
            ]
            for p in searched:
                bounds[p] = min(ends[p], bounds[p] + share)
                share *= 2

    def _best(self, known: Progress, p: Partition) -> ResolvedTs | None:
        return raised(known.partitions[p].watermark, self._memory[p].watermark)

    def _look_back(self, spans: Mapping[Partition, tuple[int, int]]) -> None:
        """Look for the last watermark of each [low, high) that was not looked through yet, in growing chunks."""
        tops = {}
        for p, (low, high) in spans.items():
            memory = self._memory.setdefault(p, Memory())
            floor = max(low, memory.looked_to, high - _LOOK_BACK)
            if floor < high:
                tops[p] = (floor, high)
        size = self.tuning.first_chunk
        while tops:
            found = self.watermarks.read([(p, max(low, top - size), top) for p, (low, top) in tops.items()])
            for p, ts in found.items():
                self._memory[p].watermark = raised(self._memory[p].watermark, ts)
            for p, (low, top) in tops.items():
                self._memory[p].judge(max(low, top - size), top)
            left = {p: (low, top - size) for p, (low, top) in tops.items() if p not in found and low < top - size}
            for p in tops.keys() - left.keys():  # only now: a look that failed is done again
                self._memory[p].looked_to = max(self._memory[p].looked_to, spans[p][1])
            tops, size = left, min(size * self.tuning.chunk_growth, _LARGEST_CHUNK)

    def saw(self, report: Report) -> None:
        """See `ChangeSource.saw`."""
        partition, at = report.range.partition, report.marked_at
        check_clock(report.watermark or 0, self.config.limits, f"{partition} offset={at}")
        memory = self._memory.setdefault(partition, Memory())
        for offset in memory.doubted(report, self.config.limits):
            self.watermarks.read([(partition, offset, offset + 1)])
        memory.take(report.watermark, report.stop)

"""Probing: which topics there are, how far their watermarks reach, what could be read next. No row is decoded here.

The driver looks backwards from the end of what a window may read, in growing chunks, for the last watermark of each
partition. What it has looked through once it does not look through again.
"""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Self

import structlog

from consumer.config import Config
from consumer.continuity import check_beginnings, check_kept, first_times
from consumer.control import Control, End, Topic, require, retired_ends
from consumer.kafka_settings import reader_settings
from consumer.marks import plain_or_none, watermark_in
from consumer.reader import Messages, Reader
from ordering.errors import InputError, SourceError
from ordering.events import Partition, Position
from ordering.progress import PartitionProgress, Progress, TopicProgress
from ordering.timestamps import ResolvedTs
from ordering.watermark import Resolved, global_resolved, raised
from ordering.window import Range, budget, shares

_FIRST_CHUNK = 64
_GROWTH = 8
_LARGEST_CHUNK = 8_192
_LOOK_BACK = 32_768
"""Messages that the driver looks through at most; where no watermark is among them, Spark's tasks will find it."""

_SMALL_TOPIC = 2_000
"""Messages of a partition up to which its topic may have ended before any watermark was due."""

FIRST_WINDOW = 2_000
"""Messages of a partition that the first window of a new changefeed reads if its topics begin with DDLs: what lies
behind an unknown DDL is read twice."""

FIRST_LOOK = 2_000
"""Messages of all partitions that are looked through for these DDLs."""

_SMALL_FETCHES = {"fetch.message.max.bytes": 64 << 10, "queued.min.messages": 1}
"""A look backwards wants some dozens of messages. The reader fetches ahead for as long as it has less than this asks
for: with settings meant for reading all, looking cost more than twice what reading the topic does."""

_COMMIT_EVERY_S = 5.0
_DDL = b'"isDdl":true'


log = structlog.get_logger()


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

    @property
    def ranges(self) -> tuple[Range, ...]:
        """What there is to read of each partition."""
        return tuple(
            Range(partition, at.start, found.bound, at.counted_to, at.passed, found.epoch)
            for partition, found in sorted(self.partitions.items())
            if (at := found.progress).start < found.bound
        )

    def may_have_ended(self, topic: str) -> bool:
        """Whether a topic that holds back the first window is so small that it may have ended before any watermark."""
        found = [at for p, at in self.partitions.items() if p.topic == topic]
        small = all(at.end - at.progress.start <= _SMALL_TOPIC for at in found)
        return small and any(p.topic == topic for p in self.resolved.held_back_by)


@dataclass(frozen=True, slots=True)
class Kept:
    """A message's bytes, and Kafka's timestamp in milliseconds since 1970."""

    key: bytes | None
    value: bytes | None
    timestamp: int | None


@dataclass(slots=True)
class _Memory:
    """What was seen of a partition by this process: its best watermark, and up to where it was looked for."""

    looked_to: int = 0
    watermark: ResolvedTs | None = None
    epoch: int | None = None

    def reached(self, at: PartitionProgress) -> End:
        """Up to where the partition was read or looked through, and under which leader."""
        return End(at.read_to, at.epoch) if at.read_to > self.looked_to else End(self.looked_to, self.epoch)


@dataclass(slots=True)
class Source:
    """The topics of a changefeed."""

    config: Config
    control: Control
    average_bytes: dict[Partition, float] = field(default_factory=dict)
    dead_at: dict[str, ResolvedTs] = field(default_factory=dict)
    """Topics that a pending DDL ends, with its commitTs (R6)."""
    marks: Messages | None = None
    """The driver's own reader, for watermarks only; made when it is first needed."""
    _memory: dict[Partition, _Memory] = field(default_factory=dict)
    _begins: Mapping[Partition, int] = field(default_factory=dict)
    _starts: dict[Partition, int] = field(default_factory=dict)
    """Where partitions began when they were first seen, of which the progress knows nothing yet."""
    _begins_with_ddl: bool | None = None
    """Whether a DDL is among the first messages of a new changefeed; None until there are many and it matters."""
    _committed: dict[Partition, int] = field(default_factory=dict)
    _committed_at: float = 0.0

    @classmethod
    def of(cls, config: Config) -> Self:
        """The topics that a config names, on its brokers; connects when it is first asked."""
        return cls(config, Control(config.source.bootstrap_servers, config.source.kafka))

    def _reader(self) -> Messages:
        if self.marks is None:
            settings = reader_settings(self.config.source.bootstrap_servers, self.config.source.kafka)
            self.marks = Reader({**settings, **_SMALL_FETCHES})
        return self.marks

    def close(self) -> None:
        """Close every connection; the next call connects anew."""
        self.control.close()
        if isinstance(self.marks, Reader):
            self.marks.close()
            self.marks = None

    def commit_lazily(self, offsets: Mapping[Partition, int]) -> None:
        """Commit the group's offsets for lag tools, at most every few seconds and only what moved."""
        now = time.monotonic()
        if now - self._committed_at < _COMMIT_EVERY_S or offsets == self._committed:
            return
        self._committed_at, self._committed = now, dict(offsets)
        try:
            self.control.commit(self.config.changefeed, offsets)
        except SourceError as error:
            log.warning("the consumer group's offsets can't be committed; only lag tools miss them", error=error.fact)

    def marks_before(self, spans: Mapping[Partition, tuple[int, int]]) -> dict[Partition, ResolvedTs]:
        """The highest of the watermarks shortly before the end of each [low, high), where there are any."""
        return self._read_marks([(p, max(low, high - _LARGEST_CHUNK), high) for p, (low, high) in spans.items()])

    def message(self, position: Position) -> Kept:
        """One message. Raises SourceError if it is gone."""
        partition = Partition(position.topic, position.partition)
        for _, run in self._reader().read([(partition, position.offset, position.offset + 1)]):
            for found in run:
                kind, ms = found.timestamp()
                return Kept(found.key(), found.value(), ms if kind else None)
        raise SourceError("a message is gone from Kafka while it was read", where=str(position))

    def listed(self) -> list[Topic]:
        """The topics as they are now. Raises InputError if a named one is missing."""
        found = self.control.topics(self.config.source.topics)
        require(self.config.source.topics, found, self.config.source.bootstrap_servers)
        return found

    def probe(self, progress: Progress, caps: Mapping[Partition, int] | None = None) -> Probe:
        """Probe until no topic or partition has appeared meanwhile (R6: listed again after the watermarks were read).

        `caps` bounds partitions to end offsets of an earlier moment (`--once`).
        """
        listed = self.listed()
        while True:
            known = self._registered(progress, listed)
            probes = self._probed(known, caps or {})
            again = self.listed()
            if [t.partitions for t in again] == [t.partitions for t in listed] and not self._came_back(known, probes):
                break
            listed = again
        alive = {p: found for p, found in probes.items() if not known.topics[p.topic].retired}
        counted = {p: found for p, found in alive.items() if _counts(known, p, found)}
        resolved = global_resolved({p: found.watermark for p, found in (counted or alive).items()})
        return Probe(known.topics, probes, resolved)

    def _came_back(self, known: Progress, probes: Mapping[Partition, PartitionProbe]) -> bool:
        """Whether a partition that was left out has got a message since: whatever holds events <= R exists by now."""
        left_out = [p for p, found in probes.items() if not _counts(known, p, found)]
        return any(end > probes[p].end for p, end in self.control.written_ends(left_out).items())

    def _registered(self, progress: Progress, listed: list[Topic]) -> Progress:
        """The progress with what is new in the list; refuses what can't be the same topic any more."""
        topics, partitions = dict(progress.topics), dict(progress.partitions)
        everything = [p for topic in listed for p in topic.partitions]
        begins = self._begins = self.control.begins(everything)
        for topic in listed:
            self._check_identity(topic, topics)
        starts = self._new_starts(progress, {p: begin for p, begin in begins.items() if p not in partitions})
        partitions |= {p: PartitionProgress(start, start) for p, start in starts.items()}
        for topic in listed:
            if topic.name not in topics:
                complete = progress.start_ts == 0 and not any(starts[p] for p in topic.partitions)
                topics[topic.name] = TopicProgress(topic.id, complete=complete)
        self._check_gone(progress, listed)
        topics |= self._retired(listed, topics)
        for p, begin in begins.items():
            _check_retention(p, begin, partitions[p])
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
            raise InputError(
                f"topic {topic.name} was deleted and made anew (id {topic.id}, it was {before.id})",
                where=f"topic={topic.name}",
                hint="offsets of the old topic mean nothing in the new one: rebuild the target, or reset the progress",
            )

    def _check_gone(self, progress: Progress, listed: list[Topic]) -> None:
        present = {topic.name for topic in listed}
        for name, topic in progress.topics.items():
            if name not in present and not (topic.ended or topic.retired):
                hint = "if its tables are gone for good: `reconciler topic retire CONFIG TOPIC`"
                raise InputError("a topic of this changefeed is gone", where=f"topic={name}", hint=hint)

    def _new_starts(self, progress: Progress, begins: Mapping[Partition, int]) -> dict[Partition, int]:
        """Where to begin in partitions that are new. Raises InputError where what they lack may be needed."""
        new = {p: begin for p, begin in begins.items() if p not in self._starts}
        if self.config.source.unproven_beginning == "accept" or not (progress.start_ts or progress.partitions):
            for p, begin in sorted(new.items()):
                if begin > 0:
                    log.warning(
                        "retention deleted the beginning of a partition; what it held is not applied", at=str(p)
                    )
        else:
            check_beginnings(new, progress.start_ts, self._first_times)
        self._starts |= new
        return {p: self._starts[p] for p in begins}

    def _first_times(self, begins: Mapping[Partition, int]) -> dict[Partition, int]:
        ends = self.control.ends(begins)
        return first_times(self._reader(), {p: (begin, ends[p]) for p, begin in begins.items()})

    def _probed(self, known: Progress, caps: Mapping[Partition, int]) -> dict[Partition, PartitionProbe]:
        partitions = list(known.partitions)
        found = self.control.stable_ends(partitions)
        self._check_kept(known, found)
        ends = {p: end.offset for p, end in found.items()}
        tops = {p: min(end, caps.get(p, end), _retired_end(known, p, end)) for p, end in ends.items()}
        waiting = {p: max(0, tops[p] - max(at.start, at.read_to)) for p, at in known.partitions.items()}
        share = self._share(known, waiting)
        may = shares(share, waiting)
        bounds = {p: min(tops[p], self._bound(p, at, may[p])) for p, at in known.partitions.items()}
        self._look(known, bounds, tops, share)
        # whether nothing is left to come of a topic that may have ended is seen by what open transactions hold, too
        may_have_ended = [p for p in partitions if p.topic in self.dead_at or known.topics[p.topic].ended]
        ends |= self.control.written_ends(may_have_ended)
        return {
            p: self._partition_probe(p, at, bounds[p], End(ends[p], found[p].epoch))
            for p, at in known.partitions.items()
        }

    def _check_kept(self, known: Progress, ends: Mapping[Partition, End]) -> None:
        memories = {p: self._memory.setdefault(p, _Memory()) for p in known.partitions}
        check_kept(self.control, {p: memories[p].reached(at) for p, at in known.partitions.items()}, ends)
        for p, memory in memories.items():
            memory.epoch = ends[p].epoch

    def _bound(self, p: Partition, at: PartitionProgress, share: int) -> int:
        """Its share further than was read; never short of a remembered watermark, as it vouches for all before it."""
        memory = self._memory.get(p)
        return max(at.start + share, at.read_to + share, 0 if memory is None else memory.looked_to)

    def _partition_probe(self, p: Partition, at: PartitionProgress, bound: int, end: End) -> PartitionProbe:
        dead_at = self.dead_at.get(p.topic) if bound == end.offset else None
        watermark = raised(at.watermark, self._memory[p].watermark, dead_at)
        return PartitionProbe(at, bound, end.offset, watermark, self._begins.get(p, 0), end.epoch)

    def _share(self, known: Progress, waiting: Mapping[Partition, int]) -> int:
        limits = self.config.limits
        share = budget(limits.window_rows, limits.window_bytes, self.average_bytes, len(waiting))
        if known.checkpoint_ts > known.start_ts or max(waiting.values(), default=0) <= FIRST_WINDOW:
            return share
        if self._begins_with_ddl is None:
            starts = {p: at.start for p, at in known.partitions.items()}
            self._begins_with_ddl = self._is_ddl_among_first(starts, waiting)
        return min(share, FIRST_WINDOW) if self._begins_with_ddl else share

    def _is_ddl_among_first(self, starts: Mapping[Partition, int], waiting: Mapping[Partition, int]) -> bool:
        each, limit = max(1, FIRST_LOOK // len(starts)), self.config.limits.message_bytes
        runs = self._reader().read([(p, start, start + min(waiting[p], each)) for p, start in starts.items()])
        return any(_DDL in (plain_or_none(message.value(), limit) or b"") for _, run in runs for message in run)

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
            memory = self._memory.setdefault(p, _Memory())
            floor = max(low, memory.looked_to, high - _LOOK_BACK)
            if floor < high:
                tops[p] = (floor, high)
        size = _FIRST_CHUNK
        while tops:
            found = self._read_marks([(p, max(low, top - size), top) for p, (low, top) in tops.items()])
            for p, ts in found.items():
                self._memory[p].watermark = raised(self._memory[p].watermark, ts)
            left = {p: (low, top - size) for p, (low, top) in tops.items() if p not in found and low < top - size}
            for p in tops.keys() - left.keys():  # only now: a look that failed is done again
                self._memory[p].looked_to = max(self._memory[p].looked_to, spans[p][1])
            tops, size = left, min(size * _GROWTH, _LARGEST_CHUNK)

    def _read_marks(self, spans: Iterable[tuple[Partition, int, int]]) -> dict[Partition, ResolvedTs]:
        found: dict[Partition, ResolvedTs] = {}
        for partition, run in self._reader().read(list(spans)):
            self.average_bytes.setdefault(partition, float(len(run[0].value() or b" ")))
            for message in run:
                ts = self._watermark_ts(message.value())
                if ts is not None:
                    found[partition] = max(ts, found.get(partition, ts))
        return found

    def _watermark_ts(self, value: bytes | None) -> ResolvedTs | None:
        return watermark_in(value, self.config.limits.message_bytes)

    def saw(self, partition: Partition, watermark: int | None, upto: int) -> None:
        """Take the highest watermark that a task saw before the offset `upto`."""
        memory = self._memory.setdefault(partition, _Memory())
        memory.looked_to = max(memory.looked_to, upto)
        memory.watermark = raised(memory.watermark, None if watermark is None else ResolvedTs(watermark))


def added(progress: Progress, probe: Probe | None) -> Progress:
    """The progress with all partitions that were found, also empty ones: later their beginning may be gone."""
    found = probe.partitions if probe else {}
    return replace(progress, partitions={p: at.progress for p, at in found.items()} | dict(progress.partitions))


def _counts(known: Progress, partition: Partition, found: PartitionProbe) -> bool:
    """Whether a partition has a say in the global resolvedTs: not if its topic ended and nothing in it is unread."""
    return not known.topics[partition.topic].ended or found.progress.start < found.end


def _retired_end(known: Progress, partition: Partition, end: int) -> int:
    """Up to where a partition may be read: what came before its topic was retired is read apart from what came then."""
    topic = known.topics[partition.topic]
    until = topic.retired_to.get(partition.partition, 0) if topic.retired else 0
    return min(end, until) if known.partitions[partition].start < until else end


def _check_retention(partition: Partition, begin: int, at: PartitionProgress) -> None:
    if begin > at.start:
        raise InputError(
            f"retention deleted messages not applied yet: offset {at.start} is gone, the log begins at {begin}",
            where=f"{partition} offset={at.start}",
            hint="rebuild the target from a dump and set start-ts to its position; raise the topic's retention",
        )

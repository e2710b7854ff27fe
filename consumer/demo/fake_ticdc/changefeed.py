"""Turns a database's log into the Kafka messages that a TiCDC changefeed would send.

The log is cut into steps: rows, a watermark, a DDL. What lies between two watermarks is shuffled as TiCDC may do it:
each table's rows stay in order (by commitTs, then DELETE, UPDATE, INSERT), the tables interleave. Before a DDL all
rows below it are sent, then a watermark *equal* to its commitTs, then the DDL. A restart sends part of the next rows,
then goes back to an earlier watermark and sends that again and all that follows, at a later wall clock.

A pure function of the log and the options: the same seed gives the same bytes.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from consumer.demo.fake_ticdc.database import LOGICAL_BITS, ChangedRow, Commit, DatabaseState, Entry, Executed
from consumer.demo.fake_ticdc.dispatcher import Dispatcher, Router
from consumer.demo.fake_ticdc.encoder import RowEncoder, ddl_event, only, only_updated, watermark

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from consumer.demo.fake_ticdc.database import Row, Table

TopicPartition: TypeAlias = tuple[str, int]

_KINDS = (b"DELETE", b"UPDATE", b"INSERT")


class Message(NamedTuple):
    """One Kafka message; TiCDC sends keys in the Open Protocol alone."""

    topic: str
    partition: int
    value: bytes
    key: bytes | None = None


class SentEvent(NamedTuple):
    """One row event: a change after the split, with its place in the order (0 DELETE, 1 UPDATE, 2 INSERT)."""

    kind: int
    commit_ts: int
    change: ChangedRow


@dataclass(frozen=True)
class SentRows:
    """Commits between two watermarks."""

    commits: tuple[Commit, ...]


@dataclass(frozen=True)
class SentMark:
    """A watermark for every partition of these topics."""

    ts: int
    topics: tuple[str, ...]


@dataclass(frozen=True)
class Torn:
    """The first part of these rows: what had been sent when the changefeed stopped."""

    rows: SentRows


Step: TypeAlias = SentRows | Torn | SentMark | Executed


@dataclass(frozen=True, kw_only=True)
class Changefeed:
    """A changefeed's configuration, and the mishaps of its run.

    `topic` may hold {schema} and {table}. `raw` turns the splitting of key-changing UPDATEs off. `start_ts` leaves out
    what was committed up to it. Every `watermark_every` commits with rows a watermark follows (0: only before each DDL
    and at the end); without `watermark_before_ddl` a DDL can be its topic's last message.

    `restart_every` watermarks it restarts, `restart_back` watermarks back. `full_replays` sends all again at the end.
    `duplicates` is the chance that a producer sends a message twice. `lags` holds a partition's watermarks back by
    so many; `stuck` ends them after so many.
    """

    dispatcher: Dispatcher = "index-value"
    partitions: int = 3
    topic: str = "ticdc"
    default_topic: str = "ticdc"
    columns: tuple[str, ...] = ()
    raw: bool = False
    only_updated_columns: bool = False
    delete_only_handle_key: bool = False
    start_ts: int = 0
    seed: int = 0
    shuffle: bool = True
    watermark_every: int = 5
    watermark_before_ddl: bool = True
    restart_every: int = 0
    restart_back: int = 1
    full_replays: int = 0
    duplicates: float = 0.0
    lags: Mapping[TopicPartition, int] = field(default_factory=dict)
    stuck: Mapping[TopicPartition, int] = field(default_factory=dict)

    def messages(self, log: Iterable[Entry]) -> Iterator[Message]:
        """Yield the messages of a log, in the order in which they are sent."""
        router = Router(
            dispatcher=self.dispatcher,
            partitions=self.partitions,
            topic=self.topic,
            default_topic=self.default_topic,
            columns=self.columns,
        )
        sender = _Sender(self, router)
        for step in self._repeated(self._restarted(_steps(log, self, router))):
            yield from sender.send(step)

    def _restarted(self, steps: Iterable[Step]) -> Iterator[Step]:
        """Yield the steps with restarts: part of the next rows, then everything from an earlier watermark on."""
        since: list[list[Step]] = [[]]  # what was sent, cut before each watermark
        due = 0
        for step in steps:
            if due == self.restart_every > 0:
                due = 0
                yield from [Torn(step)] if isinstance(step, SentRows) else []
                yield from chain.from_iterable(since)
            if isinstance(step, SentMark):
                due += 1
                since.append([])
                del since[: -1 - self.restart_back]
            since[-1].append(step)
            yield step

    def _repeated(self, steps: Iterable[Step]) -> Iterator[Step]:
        """Yield the steps, then all of them again as often as asked for."""
        if not self.full_replays:
            yield from steps
            return
        sent = list(steps)
        for _ in range(1 + self.full_replays):
            yield from sent


def _steps(log: Iterable[Entry], feed: Changefeed, router: Router) -> Iterator[Step]:
    """Cut the log into rows, watermarks and DDLs; ends with a watermark one above the last commitTs."""
    state, last = DatabaseState(), feed.start_ts
    held: list[Commit] = []
    commits = 0
    for entry in log:
        if entry.commit_ts > feed.start_ts:
            last = entry.commit_ts
            if isinstance(entry, Commit):
                held.append(entry)
                commits += 1
                if feed.watermark_every and commits % feed.watermark_every == 0:
                    yield from _flushed(held, SentMark(last, _topics(state, router)))
            elif feed.watermark_before_ddl:
                yield from _flushed(held, SentMark(last, _topics(state, router)))
                yield entry
            else:
                yield from _flushed(held, entry)
        if isinstance(entry, Executed):
            entry.ddl.apply(state)
    yield from _flushed(held, SentMark(last + 1, _topics(state, router)))


def _flushed(held: list[Commit], then: SentMark | Executed) -> Iterator[Step]:
    if held:
        yield SentRows(tuple(held))
        held.clear()
    yield then


def _topics(state: DatabaseState, router: Router) -> tuple[str, ...]:
    """Topics that get watermarks: the default one and those of the tables that exist."""
    topics = (router.topic_of(table.database, table.name) for table in state.tables.values())
    return tuple(dict.fromkeys((router.default_topic, *topics)))


def split(change: ChangedRow) -> tuple[ChangedRow, ...]:
    """Make a DELETE and an INSERT of an UPDATE that changes a key."""
    table, old, new = change
    if old is None or new is None or all(old[name] == new[name] for name in table.key_columns):
        return (change,)
    return ChangedRow(table, old, None), ChangedRow(table, None, new)


def row_events(commit: Commit, *, raw: bool) -> dict[str, list[SentEvent]]:
    """Turn a commit into row events per table: DELETE, then UPDATE, then INSERT."""
    streams: dict[str, list[SentEvent]] = {}
    for whole in commit.changes:
        for change in (whole,) if raw else split(whole):
            kind = 0 if change.new is None else 2 if change.old is None else 1
            streams.setdefault(change.table.full_name, []).append(SentEvent(kind, commit.commit_ts, change))
    for stream in streams.values():
        stream.sort(key=_kind)
    return streams


def _kind(event: SentEvent) -> int:
    return event.kind


def interleaved(streams: Sequence[Sequence[SentEvent]], chance: random.Random) -> list[SentEvent]:
    """Merge the streams in a random order; each keeps its own."""
    turns = [stream for events in streams for stream in [iter(events)] * len(events)]
    chance.shuffle(turns)
    return [next(turn) for turn in turns]


class _Sender:
    """Encodes and addresses steps; knows the wall clock and how far each partition's watermarks have come."""

    def __init__(self, feed: Changefeed, router: Router) -> None:
        self._feed = feed
        self._router = router
        self._chance = random.Random(feed.seed)  # noqa: S311 -- a seeded history, not a secret
        self._wall_ms = 0
        self._encoders: dict[tuple[Table, bool], RowEncoder] = {}
        self._echoes: list[Message] = []
        self._marks: dict[TopicPartition, list[int]] = {}

    def send(self, step: Step) -> Iterator[Message]:
        """Yield the messages of a step, duplicates among them."""
        messages = self._plain(step)
        return self._echoed(messages) if self._feed.duplicates else messages

    def _plain(self, step: Step) -> Iterator[Message]:
        if isinstance(step, SentRows):
            yield from map(self._row, self._ordered(step.commits))
        elif isinstance(step, Torn):
            events = self._ordered(step.rows.commits)
            yield from map(self._row, events[: self._chance.randrange(len(events))])
        elif isinstance(step, SentMark):
            yield from self._watermarks(step)
        else:
            value = ddl_event(step.ddl, step.commit_ts, self._now(step.commit_ts))
            yield Message(self._router.topic_of(*step.ddl.route), 0, value)

    def _echoed(self, messages: Iterable[Message]) -> Iterator[Message]:
        """Repeat some messages: at once, or after the next message."""
        for message in messages:
            yield message
            yield from self._echoes
            self._echoes.clear()
            if self._chance.random() < self._feed.duplicates:
                if self._chance.random() < 0.5:  # noqa: PLR2004 -- a coin
                    yield message
                else:
                    self._echoes.append(message)

    def _ordered(self, commits: Sequence[Commit]) -> list[SentEvent]:
        """Order the events of the commits between two watermarks as TiCDC may send them."""
        streams: dict[str, list[SentEvent]] = {}
        for commit in commits:
            for table, events in row_events(commit, raw=self._feed.raw).items():
                streams.setdefault(table if self._feed.shuffle else "", []).extend(events)
        return interleaved(list(streams.values()), self._chance)

    def _now(self, ts: int) -> int:
        """Tell the wall clock: behind the commits, and never standing still."""
        self._wall_ms = max(self._wall_ms + 1, (ts >> LOGICAL_BITS) + 100)
        return self._wall_ms

    def _row(self, event: SentEvent) -> Message:
        change, ts = event.change, event.commit_ts
        table, data = change.table, change.image
        topic = self._router.topic_of(table.database, table.name)
        partition = self._router.partition_of(table, data, ts)
        reduced = change.new is None and self._feed.delete_only_handle_key
        encoder = self._encoder(table, reduced)
        if reduced:
            data = only(table.handle_key, data)
        value = encoder.encode(_KINDS[event.kind], ts, self._now(ts), old=self._old(change), data=data)
        return Message(topic, partition, value)

    def _old(self, change: ChangedRow) -> Row | None:
        """The `old` of an UPDATE."""
        if change.old is None or change.new is None:
            return None
        return only_updated(change.old, change.new) if self._feed.only_updated_columns else change.old

    def _encoder(self, table: Table, reduced: bool) -> RowEncoder:
        encoder = self._encoders.get((table, reduced))
        if encoder is None:
            columns = [column for column in table.columns if not reduced or column[0] in table.handle_key]
            encoder = self._encoders[table, reduced] = RowEncoder(table, columns)
        return encoder

    def _watermarks(self, mark: SentMark) -> Iterator[Message]:
        for topic in mark.topics:
            for partition in range(self._feed.partitions):
                ts = self._held_back((topic, partition), mark.ts)
                if ts is not None:
                    yield Message(topic, partition, watermark(ts, self._now(mark.ts)))

    def _held_back(self, where: TopicPartition, ts: int) -> int | None:
        """Tell the watermark that this partition gets now: the due one, an older one, or none."""
        lag = self._feed.lags.get(where, 0)
        stuck_after = self._feed.stuck.get(where)
        marks = self._marks.setdefault(where, [])
        marks.append(ts)
        if (stuck_after is not None and len(marks) > stuck_after) or len(marks) <= lag:
            return None
        return marks[-1 - lag]

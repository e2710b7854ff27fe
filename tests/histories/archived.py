"""Plays a recorded history through topics whose beginning expires and an archive of files, with kills.

The recording is TiCDC's; its commits are moved apart, so that ten minutes between the clocks matter, and its files are
those of `tests.storage_files`. Topics expire, the archive lags behind, drivers die, files are written again.
"""

import json
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

from consumer.demo.fake_ticdc.changefeed import Message
from consumer.pipeline.round import Round
from consumer.pipeline.session import Session
from consumer.run.sides import Sides
from consumer.source.file_source import FileSource
from consumer.source.probe import Source
from consumer.wiring import archive_of, readers_of, storage_of, target_of
from ordering.errors import TRANSIENT, BeginningLostError, InputError
from ordering.events import Partition
from ordering.progress import Counts, Progress
from ordering.timestamps import physical_ms
from sinks.steps import Step
from tests.service.local import Killed, LocalFeed
from tests.simple_protocol import Body, canal_body, encoded
from tests.simulation.jobs import LocalJobs
from tests.simulation.log import FakeLog, Keyed
from tests.storage_files import CsvOptions, Files, Storage, write_dated

TICK_MS, SLOW_MS = 7, 120_000
"""Between two commits: of recordings, and here."""
_LAYOUTS: tuple[dict[str, Any], ...] = (
    {}, {"ids": True}, {"digits": 6}, {"dispatcher": "6b9d1c8e"}, {"partitions": 3}, {"partitions": 2, "date": ""},
)  # fmt: skip


def slowed(messages: Iterable[Message]) -> list[Message]:
    """The history with its commits minutes apart."""
    bodies = [(message, canal_body(message.value)) for message in messages]
    base = min(physical_ms(ts) for _, body in bodies for ts in body["_tidb"].values() if _is_tso(ts))
    found = []
    for message, body in bodies:
        body["_tidb"] = {k: _slow(ts, base) if _is_tso(ts) else ts for k, ts in body["_tidb"].items()}
        found.append(message._replace(value=encoded(body)))
    return found


def _is_tso(value: Any) -> bool:
    return isinstance(value, int) and value > 1 << 50


def _slow(ts: int, base: int) -> int:
    return (base + (physical_ms(ts) - base) // TICK_MS * SLOW_MS << 18) | (ts & 0x3FFFF)


class Dated(Storage):
    """Files in directories of the day of their commits."""

    def _series(self, body: Body, files: Files) -> str:
        if self.date:
            self.date = f"{datetime.fromtimestamp((body['_tidb']['commitTs'] >> 18) / 1000, UTC):%Y-%m-%d}"
        return super()._series(body, files)


class TimedLog(FakeLog):
    """Knows when its messages were written: once all that they or earlier ones tell of had been committed."""

    def __init__(self, partitions: int) -> None:
        super().__init__(partitions=partitions)
        self._now_ms = 0
        self._due: deque[int] = deque()
        self.times: dict[Partition, list[int]] = {}

    def take(self, messages: Iterable[Message], sent: Callable[[Message], Iterable[Message]]) -> None:
        """Let what these are sent as come next."""
        for message in messages:
            stamps = [ts for ts in canal_body(message.value)["_tidb"].values() if _is_tso(ts)]
            self._now_ms = max(self._now_ms, *map(physical_ms, stamps))
            for one in sent(message):
                self.coming.append(one)
                self._due.append(self._now_ms)

    def arrive(self, count: int) -> None:
        """See `FakeLog.arrive`."""
        for _ in range(min(count, len(self.coming))):
            message = self.coming.popleft()
            self.add(message.topic, message.partition, Keyed.of(message))
            self.times.setdefault(Partition(message.topic, message.partition), []).append(self._due.popleft())

    def time_of(self, partition: Partition, offset: int) -> int:
        """See `FakeLog.time_of`."""
        return self.times[partition][offset]


@dataclass
class Play:
    """One history. `messages`: as Canal-JSON has them; `sent`: makes of each what the topics hold."""

    feed: LocalFeed
    messages: Sequence[Message]
    root: Path
    seed: int
    csv: CsvOptions | None = None
    sent: Callable[[Message], Iterable[Message]] = lambda message: [message]
    killed_at: float = 0.06
    archived_ms: int = 0
    """How far the archive is."""
    retired: bool = False
    """Whether a topic was retired: what comes to it again is refused from then on."""
    went: dict[str, int] = field(default_factory=lambda: {"archive": 0, "back": 0, "kills": 0})

    def __post_init__(self) -> None:
        self.chance = Random(f"archived {self.seed}")
        section = {"archive": f"file://{self.root}", "archive-protocol": "csv" if self.csv else "canal-json"}
        section |= {"archive-csv": self.csv.section()} if self.csv else {}
        if len({message.topic for message in self.messages}) > 1:
            section |= {"topics": ["~.+"]}  # they appear one after the other
        self.feed.with_(source=section)
        self.config = self.feed.config
        self.log = TimedLog(3)
        self.feed.log_of_messages = self.log
        self.here = self.feed.here(self.messages)
        layout = self.chance.choice(_LAYOUTS)
        rows = self.chance.choice([2, 7, 100])
        self._steps = Dated(self.messages, csv=self.csv, rows=rows, **layout).steps()
        self._sides: Sides | None = None
        self._more = self._has_begun = False

    def run(self) -> None:
        """Until all is applied. Raises ReconcilerError."""
        self.log.take(self.here, self.sent)
        portion = max(5, len(self.here) // self.chance.choice([4, 10, 25]))
        while self.log.coming:
            self.log.arrive(self.chance.randrange(1, portion))
            self.archive(self.chance.randrange(8))
            if self._has_begun and self.chance.random() < 0.4:
                self._expire()
            for _ in range(self.chance.randrange(1, 5)):
                self.one()
        self.archive(1_000_000)
        self.until_done()

    def again(self) -> None:
        """All of it is sent once more."""
        self.log.take(self.here, self.sent)
        self.log.arrive(1_000_000_000)
        self.until_done()

    def until_done(self) -> None:
        """Until three turns in a row have applied nothing; each has a session of its own, that looks behind the end."""
        idle, last = 0, None
        for _ in range(20_000):
            found = self.one(), self.went.copy(), self._applied()
            idle = idle + 1 if found == last or not found[0] else 0
            last = found
            if idle == 3:
                if not self._retire():
                    return
                idle = 0
        raise AssertionError("no end")

    def _retire(self) -> bool:
        """Retire topics that got no watermark with the last ones of others, as docs/storage.md says; whether there are.

        Their tables were dropped or renamed while the archive was read, so no message of theirs has told of it.
        """
        with closing(target_of(self.config)) as target:
            target.connect()
            with self._session(target) as session:
                progress = session.progress
                at = {} if progress.archived else progress.partitions
                latest = max((one.watermark or 0 for one in at.values()), default=0)
                ends = {p: len(self.log.held[p]) for p, one in at.items() if (one.watermark or 0) < latest}
                unread = {p.topic for p, one in at.items() if one.read_to < len(self.log.held[p])}
                retired = {name for name, topic in progress.topics.items() if topic.retired}
                dead = {p.topic for p in ends} - unread - retired
                topics = {
                    name: replace(progress.topics[name], retired=True, retired_to=_of_topic(ends, name))
                    for name in dead
                }
                if topics:
                    session.target.save(replace(progress, topics={**progress.topics, **topics}), session.lease)
        self._sides = None
        self.retired |= bool(topics)
        return bool(topics)

    def _applied(self) -> tuple[int, Counts]:
        with closing(target_of(self.config)) as target:
            target.connect()
            stored = target.stored(self.feed.name)
        return (0, Counts()) if stored is None else (stored.progress.checkpoint_ts, stored.progress.counts)

    def archive(self, steps: int) -> None:
        """Let the archive go on by so many writings of `metadata`."""
        for _ in range(steps):
            if (files := next(self._steps, None)) is not None:
                write_dated(files, self.root, self.archived_ms)
                self.archived_ms = physical_ms(json.loads((self.root / "metadata").read_text())["checkpoint-ts"])

    def _expire(self) -> None:
        for partition, held in self.log.held.items():
            if self.chance.random() < 0.6:
                low = self.log.first.get(partition, 0)
                self.log.delete_before(partition, self.chance.randrange(low, len(held) + 1))

    def observe(self, _: Step) -> None:
        """Kill the driver, now and then."""
        if self.chance.random() < self.killed_at:
            raise Killed

    def one(self) -> bool:
        """One turn of the runner; whether there was something to do."""
        try:
            return self._turn()
        except Killed:
            self.went["kills"] += 1
            self._sides = None
            return True
        except TRANSIENT as error:
            if "not yet" not in str(error):
                raise
            return False  # the archive lags
        except InputError as refused:
            if "the files may begin after it" not in refused.fact:
                raise
            self.config = self.feed.with_(source={"unproven-beginning": "accept"}).config
            self._sides = None
            return True

    def _turn(self) -> bool:
        if self._sides is None:
            other = archive_of(self.config)
            own = Source(self.config, self.log, marks=self.log.get())  # type: ignore[arg-type]
            self._sides = Sides(self.config, own, FileSource(other, storage_of(other)), every_s=0)
        with closing(target_of(self.config)) as target:
            target.connect()
            with self._session(target) as session:
                self._has_begun = session.progress.checkpoint_ts > 0
                if self._sides.goes_back(session):
                    self.went["back"] += 1
                    return True
                lost = self._rounds(session)
            if lost is None:
                return self._more
            with self._session(target) as session:
                self._sides.go_to_archive(session, lost)
                self.went["archive"] += 1
        return True

    def _rounds(self, session: Session) -> BeginningLostError | None:
        self._more = False
        try:
            for _ in range(self.chance.randrange(1, 6)):
                if not Round(session).run(to_end=True):
                    break
                self._more = True
        except BeginningLostError as lost:
            return lost
        return None

    def _session(self, target: Any) -> Any:
        assert self._sides is not None
        stored = target.stored(self.feed.name)
        known = Progress() if stored is None else stored.progress
        config, source = self._sides.read_at(known)
        log: Any = self.log
        if config is not self.config:
            log = FakeLog()
            log.get = readers_of(config).get
        jobs = LocalJobs(log, buckets=2, tasks=2)
        return _Closing(Session(config, source, target, jobs, self.observe, tuning=self.feed.tuning))


def _of_topic(ends: Mapping[Partition, int], topic: str) -> dict[int, int]:
    return {p.partition: end for p, end in ends.items() if p.topic == topic}


class _Closing(closing[Any]):
    """A session that is given and ended."""

    def __init__(self, session: Session) -> None:
        super().__init__(session.ledger)
        self._session = session

    def __enter__(self) -> Session:
        return self._session

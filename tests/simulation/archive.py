"""Histories that reach the target from topics and from an archive: retention deletes whenever it likes.

The archive is another changefeed's over the same tables, which lags behind. Time passes slowly between two commits, so
that `CLOCK_SLACK_MS` matters. `crash_at`: the number of the step at which the process dies, of all that it takes.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

from consumer.codec.canal_json import envelope
from consumer.config.model import Config, config_from
from consumer.demo.fake_ticdc.changefeed import Changefeed
from consumer.demo.fake_ticdc.database import Entry, Executed
from consumer.demo.fake_ticdc.ddl import RenameTable
from consumer.pipeline.round import Round
from consumer.pipeline.session import Session
from consumer.run.sides import Sides
from consumer.source.file_source import FileSource
from consumer.source.probe import Source
from consumer.wiring import archive_of, readers_of, storage_of
from ordering.errors import TRANSIENT, BeginningLostError, InputError
from ordering.events import Partition
from ordering.timestamps import physical_ms
from sinks.steps import Step
from tests.simulation.faults import Crash
from tests.simulation.jobs import LocalJobs
from tests.simulation.log import FakeLog
from tests.simulation.memory_target import memory_target
from tests.simulation.plan import Plan, planned
from tests.simulation.world import CHANGEFEED, SMALL, World
from tests.storage_files import Files, Storage, write_dated

TICK_MS, SLOW_MS = 7, 180_000
"""Between two commits: of the plans, and here."""


class SlowPlan(Plan):
    """A plan whose commits lie minutes apart; no statement renames a table twice, for files hold a RENAME a table."""

    def log(self) -> list[Entry]:
        """See `Plan.log`."""
        found = super().log()
        if _chains(found):
            return replace(self, ddl=0.0).log()
        base = physical_ms(found[0].commit_ts)
        return [replace(entry, commit_ts=_slow(entry.commit_ts, base)) for entry in found]


def _chains(log: list[Entry]) -> bool:
    renames = [(e.commit_ts, e.ddl) for e in log if isinstance(e, Executed) and isinstance(e.ddl, RenameTable)]
    pairs = combinations(renames, 2)
    return any(ts == then and first.new_name == last.full_name for (ts, first), (then, last) in pairs)


def _slow(ts: int, base: int) -> int:
    ticks = (physical_ms(ts) - base) // TICK_MS
    return (base + ticks * SLOW_MS << 18) | (ts & 0x3FFFF)


class TimedLog(FakeLog):
    """Knows when each message was written: once all that it or an earlier message tells of had been committed."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.times: dict[Partition, list[int]] = {}
        self.now_ms = 0

    def add(self, topic: str, partition: int, value: bytes | None) -> None:
        """See `FakeLog.add`."""
        super().add(topic, partition, value)
        told = envelope(value or b"{}").tidb
        if told is not None:
            self.now_ms = max(self.now_ms, physical_ms(max(told.commit_ts, told.watermark_ts)))
        self.times.setdefault(Partition(topic, partition), []).append(self.now_ms)

    def time_of(self, partition: Partition, offset: int) -> int:
        """See `FakeLog.time_of`."""
        return self.times[partition][offset]


class FileLog(FakeLog):
    """Stands for the readers of the archive."""

    def __init__(self, world: "ArchiveWorld", get: Callable[[], Any]) -> None:
        super().__init__(faults=world.faults)
        self.get = get  # type: ignore[method-assign]


class ArchiveWorld(World):
    """A world with an archive in a directory."""

    def __init__(self, seed: int, root: Path, *, crash_at: int = 0, **changed: Any) -> None:
        plan = planned(seed)
        feed = {**plan.feed, "topic": "ticdc", "stuck": {}, "lags": {}}
        told = {name: getattr(plan, name) for name in Plan.__slots__}
        told |= {"feed": feed, "in_doubt": 0.0, "restores": 0.0, "switches": False, "creeping": False}
        super().__init__(SlowPlan(**{**told, **changed}))
        self.root, self.crash_at, self.steps = root, crash_at, 0
        self.log = TimedLog(self.messages, self.plan.feed["partitions"], self.faults)
        self.jobs = LocalJobs(self.log, self.plan.buckets, self.plan.tasks, cores=self.plan.buckets)
        self.config = self._with_archive()
        self.files = self._archive_steps()
        self.sides: Sides | None = None
        self.went = {"to the archive": 0, "back": 0}
        self.turned_at: list[int] = []
        """The numbers of the steps with which a side was left."""

    def _with_archive(self, unproven_beginning: str = "error") -> Config:
        values: dict[str, Any] = self.config.model_dump(by_alias=True, exclude_unset=True)
        values["source"] |= {"archive": f"file://{self.root}", "unproven-beginning": unproven_beginning}
        return config_from(values, "simulation")

    def _archive_steps(self) -> Iterator[Files]:
        feed = Changefeed(seed=self.plan.seed + 1, partitions=1, watermark_every=self.chance.choice([1, 2, 4]))
        return Storage(list(feed.messages(self.upstream)), rows=self.chance.choice([3, 100])).steps()

    def archive(self, steps: int) -> None:
        """Let the archive go on by so many writings of `metadata`."""
        for _ in range(steps):
            files = next(self.files, None)
            if files is None:
                return
            write_dated(files, self.root)

    def expire(self) -> None:
        """Let retention delete the beginning of some partitions."""
        for partition, held in self.log.held.items():
            if self.chance.random() < 0.5:
                first = self.log.first.get(partition, 0)
                self.log.delete_before(partition, self.chance.randrange(first, len(held) + 1))

    def run_story(self) -> None:
        """Apply a third; another third comes and expires unread; then the rest comes, and all is in the archive."""
        third = len(self.log.coming) // 3
        self.log.arrive(third)
        self.archive(1)
        self._until_done(None)
        self.log.arrive(third)
        for partition, held in self.log.held.items():
            self.log.delete_before(partition, len(held))
        self.log.arrive(len(self.log.coming))
        self._until_done(None)
        self.checker.committed(self.disk)
        self._check_end()

    def _some_rounds(self) -> None:
        self.archive(self.chance.randrange(4))
        if CHANGEFEED in self.disk.progress and self.chance.random() < 0.5:
            self.expire()
        super()._some_rounds()

    def _until_done(self, caps: dict[Partition, int] | None) -> None:
        if caps is None and not self.log.coming:
            self.archive(1_000_000)
        super()._until_done(None)

    def _round(
        self,
        caps: dict[Partition, int] | None,  # noqa: ARG002
        *,
        to_end: bool,
        unhurried: bool = False,  # noqa: ARG002
    ) -> bool:
        self.rounds += 1
        try:
            return self._one(to_end=to_end)
        except TRANSIENT as error:
            self.session = None
            return "not yet" not in str(error)  # the archive lags: it is asked again later
        except Crash:
            self.session = self.source = self.sides = None
            return True

    def _one(self, *, to_end: bool) -> bool:
        session = self._connected()
        assert self.sides is not None
        if self.sides.goes_back(session):
            self.went["back"] += 1
            self.turned_at.append(self.steps)
            self.session = None
            return True
        try:
            return Round(session).run(None, to_end=to_end)
        except BeginningLostError as lost:
            self.session = None
            self._go_to_archive(lost)
            return True

    def _go_to_archive(self, lost: BeginningLostError) -> None:
        session = self._connected()
        assert self.sides is not None
        try:
            self.sides.go_to_archive(session, lost)
            self.went["to the archive"] += 1
            self.turned_at.append(self.steps)
        except InputError as refused:
            if "the files may begin after it" not in refused.fact:
                raise
            self.config = self._with_archive(unproven_beginning="accept")
            self.sides = None
        self.session = None

    def _connected(self) -> Session:
        if self.sides is None:
            own = Source(self.config, self.log, tuning=SMALL, marks=self.log.get())  # type: ignore[arg-type]
            other = archive_of(self.config)
            self.sides = Sides(self.config, own, FileSource(other, storage_of(other)), every_s=0)
        if self.session is None:
            known = self.disk.restored(CHANGEFEED) if CHANGEFEED in self.disk.progress else None
            config, source = self.sides.read_at(known) if known else (self.config, self.sides.own)
            jobs = self.jobs
            if config is not self.config:
                jobs = LocalJobs(
                    FileLog(self, readers_of(config).get), self.plan.buckets, self.plan.tasks, self.plan.buckets
                )
                jobs.zombies = self.jobs.zombies
            target = memory_target(self.disk, self.faults, self.checker.committed)
            self.session = Session(config, source, target, jobs, self._step, tuning=SMALL)
            if self.plan.redis != "none":
                self.session.ledger._redis = self.redis  # type: ignore[assignment]
        return self.session

    def _step(self, step: Step) -> None:
        self.steps += 1
        if self.steps == self.crash_at:
            raise Crash
        super()._step(step)

    def _check_end(self) -> None:
        progress, resolved = self._progress(), self._resolved() or 0
        assert progress.checkpoint_ts >= resolved or self._must_be_retired(), (progress.checkpoint_ts, resolved)
        if self.plan.consistency == "transaction":
            self.checker.passed_through(progress.checkpoint_ts)

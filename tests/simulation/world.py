"""Lets a plan run: messages arrive in portions, rounds are done, processes die and come again, until all is applied."""

import json
import random
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

from consumer.config.model import Config, config_from
from consumer.demo.fake_ticdc.changefeed import Message
from consumer.demo.fake_ticdc.database import Commit, DatabaseState, Executed
from consumer.demo.fake_ticdc.ddl import CreateTable, DropDatabase
from consumer.demo.fake_ticdc.oracle import Oracle
from consumer.native import Wanted
from consumer.pipeline.round import Round
from consumer.pipeline.session import Session
from consumer.redis.ledger_sizes import LedgerSizes
from consumer.source.probe import Source
from consumer.tuning import Tuning
from ordering.errors import TRANSIENT
from ordering.events import Partition, TableName
from sinks.ddl.parse.statement import read_statement
from sinks.steps import Step
from tests.simple_protocol import as_simple
from tests.simulation.backend import FakeRedis
from tests.simulation.checker import Checker, Wrong
from tests.simulation.faults import Crash, Faults
from tests.simulation.jobs import LocalJobs
from tests.simulation.log import FakeLog
from tests.simulation.memory import Disk, execute
from tests.simulation.memory_target import memory_target
from tests.simulation.outside import CheckpointOfTheLog, without_watermarks
from tests.simulation.plan import Plan, planned

CHANGEFEED = "sim"
SMALL = Tuning(
    small_window=10, bucket_rows=12, looked_through=30, most_segments=4, flush_rows=7, chunk_rows=3,
    large_transaction=4, first_chunk=2, chunk_growth=2, few_messages=25, first_look=12, small_topic=500,
    ledger=LedgerSizes(part=4, merged=12, kept_windows=100_000),
)  # fmt: skip
"""Pieces so small that small histories have several, and limits that they reach."""
BY_TASKS = replace(SMALL, small_window=0)
"""So that tasks write each window in `row`."""


_ENDED = 4
"""In one of so many histories DDLs end as TiCDC's new architecture ends them."""


def ended(message: Message) -> Message:
    """The message with a `;` behind its DDL, if it is one."""
    value = json.loads(message.value)
    return (
        message._replace(value=json.dumps({**value, "sql": f"{value['sql']};"}).encode()) if value["isDdl"] else message
    )


def config_of(
    consistency: str = "snapshot",
    window_rows: int = 1_000_000,
    start_ts: int = 0,
    *,
    native: Wanted = "auto",
    protocol: str = "canal-json",
) -> Config:
    """A config of the simulated changefeed."""
    values: dict[str, Any] = {
        "changefeed": CHANGEFEED,
        "source": {"bootstrap-servers": "nowhere:9092", "topics": ["~.*"], "start-ts": start_ts, "protocol": protocol},
        "target": {"uri": "sqlite:////nowhere", "consistency": consistency},
        "redis": {"uri": ""},
        "spark": {"native": native},
        "limits": {"window-rows": window_rows},
    }
    return config_from(values, "simulation")


@dataclass(slots=True)
class Result:
    """What a history came to, for the statistics."""

    plan: Plan
    checkpoint_ts: int
    commits: int
    rounds: int
    faults: Counter[str]


class World:
    """One history; its messages come as Canal-JSON, or in the Simple protocol.

    `outside`: they hold no watermarks; TiCDC's API gives the checkpoint.
    """

    def __init__(self, plan: Plan, *, simple: bool = False, outside: bool = False) -> None:
        self.plan = plan
        self.chance = random.Random(f"world {plan.seed}")
        self.upstream = plan.log()
        sent = plan.changefeed().messages(self.upstream)
        self.messages: list[Message] = list(map(ended, sent) if plan.seed % _ENDED == 1 else sent)
        self.faults = Faults(self.chance, dict(plan.faults), plan.fault_limit)
        told = without_watermarks(self.messages) if outside else self.messages
        if simple and not outside:
            told = as_simple(self.messages, partitions=plan.feed["partitions"], late=plan.seed % 3 == 0)
        # TiCDC begins no transactions: where its checkpoint counts, those of others may lie between its messages
        self.log = FakeLog(told, plan.feed["partitions"], self.faults, plan.in_doubt, foreign=outside)
        self.api = CheckpointOfTheLog(self.log, self.messages, plan.seed) if outside else None
        self.log.creeping = plan.creeping
        self.start_ts = self._start_ts()
        self.config = config_of(
            plan.consistency,
            plan.window_rows,
            self.start_ts,
            native="auto" if plan.seed % 2 else False,
            protocol="simple" if simple else "canal-json",
        )
        self.turns = random.Random(f"turns {plan.seed}")
        self.backup: Disk | None = None
        self.redis = FakeRedis()
        self.checker = Checker(self.upstream, self.messages, CHANGEFEED, self.start_ts)
        self.disk = self._dump()
        self.jobs = LocalJobs(self.log, plan.buckets, plan.tasks, cores=plan.buckets)
        self.source: Source | None = None
        self.session: Session | None = None
        self.rounds = 0

    def _start_ts(self) -> int:
        if self.plan.start_at is None:
            return 0
        return self.upstream[int(self.plan.start_at * len(self.upstream))].commit_ts

    def _dump(self) -> Disk:
        """The target as a dump at start-ts left it."""
        disk, state, oracle = Disk(), DatabaseState(), Oracle()
        for entry in self.upstream:
            if entry.commit_ts > self.start_ts:
                break
            oracle.apply(entry)
            if isinstance(entry, Executed):
                entry.ddl.apply(state)
        for name, rows in oracle.snapshot().items():
            table = state.tables[name]
            execute(disk, read_statement(CreateTable(table).sql), table.database)
            made = disk.tables[TableName(table.database, table.name)]
            made.rows = {table.key(row): row for row in rows.values()}  # type: ignore[assignment]
        return disk

    def run(self) -> Result:
        """Run to the end and check it."""
        while self.log.coming:
            self.log.arrive(self.chance.randrange(1, self.plan.portion + 1))
            self._shake_redis()
            if self.log.held:
                self._some_rounds()
                self._back_up_or_restore()
        self.log.creeping = False
        self.log.settle()
        self._until_done(None)
        self.jobs.haunt(1.0)
        self.checker.committed(self.disk)
        self._check_end()
        return Result(self.plan, self._progress().checkpoint_ts, len(self.checker.seen), self.rounds, self._happened())

    def _back_up_or_restore(self) -> None:
        """Copy the target as it stands, or put back the last copy: it is older than Redis and Kafka know."""
        if self.turns.random() >= self.plan.restores or CHANGEFEED not in self.disk.progress:
            return
        if self.backup is None or self.turns.random() < 0.5:
            self.backup = self.disk.copied()
            return
        self.jobs.haunt(1.0)
        self.disk, self.session, self.source = self.backup.copied(), None, None
        self.checker.restored()
        self.faults.happened.append("the target was restored")

    def _happened(self) -> Counter[str]:
        ahead = {f"window read ahead: {what}": count for what, count in self.jobs.ahead.items()}
        return Counter(self.faults.happened) + Counter(ahead)

    def _some_rounds(self) -> None:
        if self.chance.random() < self.plan.once:
            self._until_done(self.log.ends(list(self.log.held)))
            return
        for _ in range(self.chance.randrange(1, 4)):
            self._round(None, to_end=self.chance.random() < 0.3, unhurried=self.chance.random() < 0.5)

    def _until_done(self, caps: dict[Partition, int] | None) -> None:
        limit = self.rounds + 3 * len(self.messages) + 100
        while self._round(caps, to_end=True):
            if self.rounds > limit:
                raise Wrong(f"no end after {self.rounds} rounds")

    def _round(self, caps: dict[Partition, int] | None, *, to_end: bool, unhurried: bool = False) -> bool:
        """One round; True if there was something to do, or a fault."""
        self.rounds += 1
        try:
            return Round(self._connected()).run(caps, to_end=to_end, unhurried=unhurried)
        except TRANSIENT:
            self.session = None
        except Crash:
            self.session = self.source = None
        return True

    def _connected(self) -> Session:
        """The pipeline; after a fault a new one. A transient error leaves the source alive, as in the runner."""
        if self.source is None:
            self.source = Source(self.config, self.log, tuning=SMALL, marks=self.log.get())  # type: ignore[arg-type]
            self.source.outside.api = self.api  # type: ignore[assignment]
        if self.session is None:
            if self.plan.switches:
                self.config = self._switched()
            target = memory_target(self.disk, self.faults, self.checker.committed)
            self.session = Session(self.config, self.source, target, self.jobs, self._step, tuning=SMALL)
            if self.plan.redis != "none":
                self.session.ledger._redis = self.redis  # type: ignore[assignment]
        return self.session

    def _switched(self) -> Config:
        consistency = self.turns.choice(["snapshot", "transaction", "row"])
        rows = self.turns.choice([1, 3, 10, 40, 1_000_000])
        native, protocol = self.config.spark.native, self.config.source.protocol
        return config_of(consistency, rows, self.start_ts, native=native, protocol=protocol)

    def _step(self, step: Step) -> None:
        self.faults.crash("crash at a step", step.value)

    def _shake_redis(self) -> None:
        if self.plan.redis != "wild":
            return
        dice = self.chance.random()
        self.redis.down = dice < 0.3
        if dice > 0.9:
            self.redis.flush()
        elif dice > 0.7:
            self.redis.evict(self.chance)

    # The end

    def _progress(self) -> Any:
        return self.disk.restored(CHANGEFEED)

    def _check_end(self) -> None:
        progress = self._progress()
        resolved = self._resolved()
        if resolved is not None and progress.checkpoint_ts < resolved and not self._must_be_retired():
            held = self.session.probe.resolved.held_back_by if self.session and self.session.probe else ()
            raise Wrong(f"stalled: checkpoint {progress.checkpoint_ts}, resolved {resolved}, held back by {held}")
        if self.plan.consistency == "transaction" and not self.plan.switches:
            self.checker.passed_through(progress.checkpoint_ts)
        if resolved is not None and progress.checkpoint_ts >= resolved:
            self.checker.totals(self.messages, progress)

    def _must_be_retired(self) -> bool:
        """Whether a topic went with its database before any watermark or window: only an operator can know."""
        dropped = any(isinstance(e, Executed) and isinstance(e.ddl, DropDatabase) for e in self.upstream)
        return dropped and self._progress().checkpoint_ts == self.start_ts

    def _resolved(self) -> int | None:
        """The lowest of the partitions' highest watermarks, over the topics that are alive at the end."""
        state, router = DatabaseState(), self.plan.router()
        for entry in self.upstream:
            if not isinstance(entry, Commit):
                entry.ddl.apply(state)
        alive = {router.default_topic, *(router.topic_of(t.database, t.name) for t in state.tables.values())}
        marks: dict[Partition, int] = {p: 0 for p in self.log.held if p.topic in alive}
        for topic, partition, value, _ in self.messages:
            if Partition(topic, partition) in marks and b'"TIDB_WATERMARK"' in value:
                ts = int(value.rpartition(b":")[2].rstrip(b"}"))
                marks[Partition(topic, partition)] = max(ts, marks[Partition(topic, partition)])
        return min(marks.values()) or None


def run_seed(seed: int, *, simple: bool = False, outside: bool = False) -> Result:
    """Run a seed. Raises Wrong, or what the pipeline raised, with the plan in its notes."""
    plan = planned(seed)
    world = World(plan, simple=simple, outside=outside)
    try:
        return world.run()
    except Exception as error:
        faults = ", ".join(world.faults.happened) or "none"
        error.add_note(f"seed {seed}: python -m tests.simulation {seed}\n{plan}\nfaults: {faults}")
        raise

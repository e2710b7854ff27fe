"""Worlds by hand, for rules that want a message in a certain place: DDLs, rows and watermarks, one by one."""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import orjson

from consumer.config.model import Config
from consumer.demo.fake_ticdc.encoder import watermark
from consumer.pipeline.round import Round
from consumer.pipeline.session import Session
from consumer.source.probe import Source
from consumer.tuning import Tuning
from ordering.events import Partition, TableName
from ordering.progress import Progress
from sinks.steps import Observer
from tests.simulation.backend import FakeRedis
from tests.simulation.faults import Faults
from tests.simulation.jobs import LocalJobs
from tests.simulation.log import FakeLog
from tests.simulation.memory import Disk
from tests.simulation.memory_target import memory_target
from tests.simulation.world import CHANGEFEED, SMALL, config_of

CREATE = "CREATE TABLE `t` (`id` INT NOT NULL,`v` VARCHAR(9),PRIMARY KEY(`id`) /*T![clustered_index] CLUSTERED */)"


@dataclass
class Script:
    """A log that is written by hand and a changefeed that reads it; timestamps are small numbers."""

    config: Config = field(default_factory=config_of)
    partitions: int = 1
    disk: Disk = field(default_factory=Disk)
    redis: FakeRedis = field(default_factory=FakeRedis)
    tuning: Tuning = SMALL

    def __post_init__(self) -> None:
        self.faults = Faults(random.Random(1))
        self.log = FakeLog((), self.partitions, self.faults)
        self.jobs = LocalJobs(self.log)
        self.source = Source(self.config, self.log, tuning=self.tuning, marks=self.log.get())  # type: ignore[arg-type]
        self.session = self.restarted()

    def restarted(self, observe: Observer = lambda _: None) -> Session:
        """A new pipeline, as after a transient error: the source stays."""
        target = memory_target(self.disk, self.faults)
        self.jobs.attempts = count(1)  # Spark's start again with a new context
        self.session = Session(self.config, self.source, target, self.jobs, observe, tuning=self.tuning)
        self.session.ledger._redis = self.redis  # type: ignore[assignment]
        return self.session

    def ddl(self, ts: int, sql: str, *, topic: str = "t", table: str = "t", database: str = "d") -> None:
        """Append a DDL to partition 0."""
        self._add(topic, 0, ts, database=database, table=table, type="QUERY", sql=sql, isDdl=True)

    def row(self, ts: int, key: int, value: str | None = "x", *, p: int = 0, topic: str = "t", **more: Any) -> None:
        """Append an INSERT of a row into d.t, or what `more` says."""
        fields = {"database": "d", "table": "t", "pkNames": ["id"], "type": "INSERT", "isDdl": False, "old": None}
        self._add(topic, p, ts, **{**fields, "data": [{"id": str(key), "v": value}], **more})

    def delete(self, ts: int, key: int, **more: Any) -> None:
        """Append a DELETE of a row of d.t."""
        self.row(ts, key, type="DELETE", **more)

    def mark(self, ts: int, *, topic: str = "t", only: int | None = None) -> None:
        """Append a watermark to every partition of a topic, or to one."""
        for p in range(self.partitions) if only is None else [only]:
            self.log.add(topic, p, watermark(ts, ts))

    def _add(self, topic: str, partition: int, ts: int, **fields: Any) -> None:
        message: Mapping[str, Any] = {"id": 0, "es": ts, "ts": ts, **fields, "_tidb": {"commitTs": ts}}
        self.log.add(topic, partition, orjson.dumps(message))

    def run(self, *, once: bool = True) -> Progress:
        """Rounds until there is none to do."""
        rounds = 0
        while Round(self.session).run(to_end=once):
            rounds += 1
            assert rounds < 100, "no end"
        return self.stored

    @property
    def stored(self) -> Progress:
        """The progress in the target."""
        return self.disk.restored(CHANGEFEED)

    def at(self, partition: int = 0, topic: str = "t") -> int:
        """Where reading goes on in a partition."""
        return self.stored.partitions[Partition(topic, partition)].start

    def rows(self, table: str = "t") -> dict[str, str | None]:
        """A table of d: id -> v."""
        return {r["id"] or "": r["v"] for r in self.disk.tables[TableName("d", table)].rows.values()}

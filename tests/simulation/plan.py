"""A seed as a world: which history, which changefeed, which mishaps."""

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from consumer.demo.fake_ticdc.bank import Bank
from consumer.demo.fake_ticdc.changefeed import Changefeed
from consumer.demo.fake_ticdc.database import Entry
from consumer.demo.fake_ticdc.dispatcher import Router
from tests.simulation.churn import Churn

DISPATCHERS = ("default", "table", "index-value", "columns", "ts")
PER_TABLE = "cdc_{schema}_{table}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """All that a seed decides beforehand; the rest is drawn on the way."""

    seed: int
    workload: str
    transactions: int
    ddl: float
    feed: Mapping[str, Any]
    consistency: str
    window_rows: int
    start_at: float | None
    buckets: int
    tasks: int
    redis: str
    faults: Mapping[str, float]
    fault_limit: int
    portion: int
    creeping: bool
    once: float
    in_doubt: float
    switches: bool
    """Whether each new process has another consistency and other limits."""
    restores: float
    """How likely the target is restored from a backup, after a portion of the messages."""

    def log(self) -> list[Entry]:
        """The upstream's history."""
        if self.workload == "bank":
            tables = 2 + self.seed % 4
            return Bank(self.seed, accounts=4, tables=tables, ddl=self.ddl).run(self.transactions).database.log
        return Churn(self.seed, ddl=self.ddl).run(self.transactions).database.log

    def changefeed(self) -> Changefeed:
        """The changefeed that sends it."""
        return Changefeed(seed=self.seed, **self.feed)

    def router(self) -> Router:
        """Where the changefeed sends tables."""
        feed = self.changefeed()
        return Router(
            dispatcher=feed.dispatcher, partitions=feed.partitions, topic=feed.topic, default_topic=feed.default_topic
        )


def planned(seed: int) -> Plan:
    """The plan of a seed."""
    chance = random.Random(seed)
    coin = chance.random
    start_at = coin() if coin() < 0.12 else None
    faulty = coin() < 0.6
    faults = {kind: rate for kind, rate in _FAULTS.items() if faulty and coin() < 0.6}
    return Plan(
        seed=seed,
        workload=chance.choice(["bank", "churn", "churn"]),
        transactions=chance.choice([6, 12, 20, 30]),
        ddl=chance.choice([0.0, 0.1, 0.3]),
        feed=_feed(chance, one_topic=start_at is not None),
        consistency=chance.choice(["snapshot", "transaction", "row"]),
        window_rows=chance.choice([1, 3, 10, 40, 1_000_000]),
        start_at=start_at,
        buckets=chance.choice([1, 2, 5]),
        tasks=chance.choice([2, 7, 30]),
        redis=chance.choice(["stable", "stable", "none", "wild"]),
        faults=faults,
        fault_limit=chance.choice([2, 6, 15]),
        portion=chance.choice([3, 20, 100, 10_000]),
        creeping=coin() < 0.5,
        once=chance.choice([0.0, 0.3, 1.0]),
        in_doubt=chance.choice([0.0, 0.0, 0.05, 0.3]),
        switches=coin() < 0.3,
        restores=chance.choice([0.0, 0.0, 0.0, 0.2]),
    )


_FAULTS = {
    "crash at a step": 0.03,
    "crash at a row": 0.02,
    "answer of a commit lost": 0.05,
    "kafka hiccup": 0.02,
    "worker lost": 0.05,
    "attempt lost": 0.2,
    "stage done again": 0.1,
}


def _feed(chance: random.Random, *, one_topic: bool) -> dict[str, Any]:
    topic = "ticdc" if one_topic else chance.choice(["ticdc", "ticdc", PER_TABLE, PER_TABLE, "of_{schema}"])
    partitions = chance.randrange(1, 5)
    feed: dict[str, Any] = {
        "dispatcher": chance.choice(DISPATCHERS),
        "partitions": partitions,
        "topic": topic,
        "columns": chance.choice([("bal",), ("v",), ("u",)]),
        "raw": chance.random() < 0.5,
        "only_updated_columns": chance.random() < 0.2,
        "delete_only_handle_key": chance.random() < 0.2,
        "shuffle": chance.random() < 0.8,
        "watermark_every": chance.choice([0, 1, 2, 5]),
        "watermark_before_ddl": chance.random() < 0.7,
        "restart_every": chance.choice([0, 0, 2, 4]),
        "restart_back": chance.randrange(1, 4),
        "full_replays": chance.choice([0, 0, 0, 1]),
        "duplicates": chance.choice([0.0, 0.2]),
    }
    where = ("ticdc", chance.randrange(partitions))
    mishap = chance.random()
    if mishap < 0.1:
        feed["lags"] = {where: chance.randrange(1, 4)}
    elif mishap < 0.2:
        feed["stuck"] = {where: chance.randrange(1, 6)}
    return feed

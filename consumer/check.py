"""`reconciler check`: tries config, Kafka, Redis and the target one after the other, and changes nothing."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import redis

from consumer.bodies.configured import bodies_of
from consumer.config import Config
from consumer.filters.changefeed import read_filter, told
from consumer.ledger import Ledger
from consumer.redis_client import UNUSABLE
from consumer.source import Source
from consumer.targets import target_of
from ordering.errors import ConfigError, ReconcilerError, TargetError
from ordering.progress import Progress
from sinks.schema import Catalog


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the check: what was tried, and what came of it."""

    subject: str
    text: str
    error: ReconcilerError | None = None

    def line(self) -> str:
        """For people."""
        return f"{'ok  ' if self.error is None else 'FAIL'} {self.subject}: {self.text}"

    def as_json(self) -> dict[str, Any]:
        """For programs: `exit_code` is what `check` would end with if this were the first failure."""
        fact, where, hint = (self.error.fact, self.error.where, self.error.hint) if self.error else (self.text, "", "")
        code = self.error.exit_code if self.error else 0
        return {
            "subject": self.subject, "ok": not code, "fact": fact, "where": where, "hint": hint, "exit_code": code
        }  # fmt: skip


def findings(config: Config) -> Iterator[Finding]:
    """Try everything; a failure does not keep the rest from being tried."""
    yield Finding("config", f"changefeed {config.changefeed}, consistency {config.target.consistency}")
    yield from _tried("target", lambda: _target(config))
    yield from _tried("filter", lambda: _filter(config))
    yield from _tried("tables", lambda: _tables(config))
    yield from _tried("kafka", lambda: _kafka(config))
    upstream = bodies_of(config).upstream
    if upstream is not None:
        yield from _tried("upstream", lambda: [upstream.check()])
    yield _redis(config)


def _tried(subject: str, look: Callable[[], list[str]]) -> Iterator[Finding]:
    try:
        for text in look():
            yield Finding(subject, text)
    except ReconcilerError as error:
        yield Finding(subject, str(error), error)


def _target(config: Config) -> list[str]:
    if config.target.uri.startswith("sqlite:") and not config.spark.master.startswith("local"):
        _refuse_far_tasks(config)
    target = target_of(config)
    try:
        return target.check()
    finally:
        target.close()


def _refuse_far_tasks(config: Config) -> None:
    """SQLite's files are on this machine; in `row` consistency tasks write them."""
    if config.target.consistency == "row":
        raise ConfigError(
            f"consistency 'row' lets Spark's tasks write, and spark.master = {config.spark.master} runs them elsewhere",
            where=config.target.uri,
            hint='set consistency = "snapshot", or spark.master = "local[*]"',
        )


def _filter(config: Config) -> list[str]:
    try:
        catalog = _catalog(config)
    except TargetError:
        catalog = None  # what is wrong with the target is told in its own line
    return told(read_filter(config.filter), catalog)


def _tables(config: Config) -> list[str]:
    """Whether the tables that are there can be written; TargetError for the first that can't."""
    try:
        catalog = _catalog(config)
    except TargetError:
        return []  # what is wrong with the target is told in its own line
    accepts = read_filter(config.filter).tables
    wanted = [schema for name, schema in sorted(catalog.tables.items()) if accepts(*name)] if catalog else []
    for schema in wanted:
        schema.check_fit()
    return [f"{len(wanted)} of the target's tables are replicated"]


def _catalog(config: Config) -> Catalog | None:
    """The target's tables; None before the first run into SQLite, for to open its files is to make them."""
    target = target_of(config)
    try:
        there = not config.target.uri.startswith("sqlite:") or target.stored(config.changefeed) is not None
        return target.catalog() if there else None
    finally:
        target.close()


def _kafka(config: Config) -> list[str]:
    target = target_of(config)
    source = Source.of(config)
    try:
        stored = target.stored(config.changefeed)
        probe = source.probe(stored.progress if stored else Progress())
    finally:
        source.close()
        target.close()
    held = "" if probe.resolved.ts else "; no watermark yet in " + ", ".join(map(str, probe.resolved.held_back_by))
    return [f"{len(probe.topics)} topics, {len(probe.partitions)} partitions{held}"]


def _redis(config: Config) -> Finding:
    if not config.redis.uri:
        return Finding("redis", "absent by configuration: duplicates are dropped unproven")
    ledger = Ledger(config.redis.uri, config.changefeed, "check")
    try:
        ledger.ping()
    except UNUSABLE as error:
        refused = isinstance(error, redis.AuthenticationError | redis.ResponseError)
        what = "refuses us" if refused else "out of reach"
        hint = 'not needed for a right target: duplicates are dropped unproven meanwhile; redis.uri = "" silences this'
        return Finding("redis", f"{what}: {error}\n  hint: {hint}")
    finally:
        ledger.close()
    return Finding("redis", "connected")

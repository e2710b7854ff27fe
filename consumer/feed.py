"""The library: a changefeed's windows as Spark DataFrames, for those who have no relational target.

    for item in consumer.windows(config):
        if isinstance(item, Window):
            item.changes.write.parquet(f"/lake/orders/{item.high}")
        else:
            print(item.sql)
        item.commit()

The config is that of `run`, but for its target: a SQLite directory, which keeps the progress and the tables' schemas,
and no rows. Once `commit()` has returned, its item is never given again; after a crash before that comes the same item,
with the same bounds: who names what he writes by `high`, and overwrites it, has every change exactly once.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from threading import Event

import structlog
from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType, MapType, StringType, StructField, StructType

from consumer.bodies.configured import bodies_of
from consumer.config import Config, load_config
from consumer.ddl import why_ignored
from consumer.feed_tasks import ChangesTask
from consumer.job import Ready, SparkJob, SparkJobs, Waiting
from consumer.kafka_settings import reader_settings
from consumer.pipeline import Pipeline
from consumer.source import Source
from consumer.spark import start_spark, stop_spark, warm_up
from consumer.targets import target_of
from ordering.errors import ConfigError
from ordering.events import DdlEvent

_TEXTS = MapType(StringType(), StringType())
SCHEMA = StructType([
    StructField("database", StringType(), nullable=False),
    StructField("table", StringType(), nullable=False),
    StructField("kind", StringType(), nullable=False),
    StructField("commit_ts", LongType(), nullable=False),
    StructField("key", _TEXTS, nullable=False),
    StructField("row", _TEXTS),
])  # fmt: skip
"""Of the DataFrames: `kind` is `upsert` or `delete`; `key` the handle key's columns; `row` all columns, NULL for a
`delete`. Values are texts as TiCDC spells them (its documentation, "TiCDC Canal-JSON Protocol")."""
_LOOK_S = 0.2
"""How often new watermarks are looked for."""


class _Committing:
    """How an item is committed: once, by the feed that gave it, while that feed goes on."""

    _settle: Callable[[], None] | None = None

    def _given_by(self, settle: Callable[[], None]) -> None:
        self._settle = settle

    def _settled(self) -> None:
        settle, self._settle = self._settle, None
        if settle is None:
            raise RuntimeError("this item can't be committed: its commit() has failed before, or no feed gave it")
        settle()


@dataclass
class Item(_Committing):
    """Something to handle, then to commit."""

    committed: bool = field(default=False, init=False)

    def commit(self) -> None:
        """Save that it is handled: once this has returned, it is not given again. Once more does nothing.

        Raises LeadershipLostError if another instance has taken over, and what else keeps the progress from being
        saved: then only a new call of `windows` knows whether it was saved. Raises RuntimeError where the iteration has
        ended before: the item comes again.
        """
        if not self.committed:
            self._settled()
            self.committed = True


@dataclass
class Window(Item):
    """All row changes with low < commitTs <= high, each once."""

    low: int
    high: int
    changes: DataFrame


@dataclass
class Ddl(Item):
    """A DDL: all rows below its commitTs were given before it, all above come after it."""

    commit_ts: int
    database: str
    table: str
    sql: str


class _FeedPipeline(Pipeline):
    """A pipeline whose rows go to somebody else."""

    def _begun_by_tasks(self) -> bool:
        return True  # rows stay where they are, apart from the reports

    def _nets(self) -> bool:
        return self.config.target.consistency != "transaction"

    def ignores(self, ddl: DdlEvent) -> bool:
        """Whether the DDL will not be executed, so that it is none of the reader's. Raises InputError."""
        return bool(why_ignored(ddl, self._pending(), self.filter, self.target.catalog()))


def windows(
    config: Config | Path,
    *,
    net: bool = True,
    once: bool = False,
    spark: SparkContext | None = None,
    stopping: Event | None = None,
) -> Iterator[Window | Ddl]:
    """Yield windows and DDLs in order; each has to be committed before the next is asked for.

    `net`: of each row only what is left of its changes in the window; else all changes, in commitTs order within each
    partition of the DataFrame, and from one partition to the next. `once`: end where the topics end now; `stopping`:
    once it is set. Raises ReconcilerError: those that may pass may be tried again with a new call.
    """
    if not structlog.is_configured():  # the caller's standard output is his
        structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    told = config if isinstance(config, Config) else load_config(config)
    consistency = "snapshot" if net else "transaction"
    told = told.model_copy(update={"target": told.target.model_copy(update={"consistency": consistency})})
    _check(told)
    with ExitStack() as stack:
        context = spark
        if context is None:
            context = start_spark(told.changefeed, told.spark)
            stack.callback(stop_spark, context)
            warm_up(context)
        source = stack.enter_context(closing(Source.of(told)))
        target = stack.enter_context(closing(target_of(told)))
        source.listed()
        target.connect()
        jobs = SparkJobs(context, reader_settings(told.source.bootstrap_servers, told.source.kafka))
        pipeline = _FeedPipeline(told, source, target, jobs, lambda _: None)
        stack.callback(pipeline.ledger.close)
        feed = _Feed(told, pipeline, SparkSession(context), net, stopping or Event())
        stack.callback(feed.ended.set)
        yield from feed.items(once=once)


def _check(config: Config) -> None:
    where, hint = "target.uri", 'name a directory of its own for progress and schemas: uri = "sqlite:////var/lib/feed"'
    if not config.target.uri.startswith("sqlite:"):
        raise ConfigError("the library keeps its progress in SQLite only", where=where, hint=hint)
    if config.quarantine.enabled:
        raise ConfigError("the library has no quarantine", where="quarantine.enabled", hint="switch it off")
    if config.filter.force_replicate:
        hint = "only rows with a key can be given exactly once"
        raise ConfigError("the library gives no rows without a key", where="filter.force-replicate", hint=hint)


@dataclass(frozen=True)
class _Feed:
    config: Config
    pipeline: _FeedPipeline
    session: SparkSession
    net: bool
    stopping: Event
    ended: Event = field(default_factory=Event)
    """Set when the iteration is over: nothing can be committed any more."""

    def items(self, *, once: bool) -> Iterator[Window | Ddl]:
        """See `windows`."""
        source = self.pipeline.source
        ends = [p for topic in source.listed() for p in topic.partitions]
        caps = source.control.ends(ends) if once else None
        while not self.stopping.is_set():
            ready = self.pipeline.prepared(caps, to_end=True)
            if isinstance(ready, Ready):
                yield from self._of(ready)
            elif not ready and once:
                return
            elif not ready:
                self.stopping.wait(_LOOK_S)

    def _of(self, ready: Ready) -> Iterator[Window | Ddl]:
        pipeline = self.pipeline
        if any(report.released for report in ready.reports):
            # recorded: after a crash comes this window, whatever has arrived since
            pipeline.target.save(replace(pipeline.progress, window=ready.window), pipeline.lease)
            window = Window(ready.window.low, ready.window.high, self._changes(ready))
            yield from self._given(window, partial(self._save, ready))
        else:
            self._save(ready)
        for event in pipeline.ddls(ready):
            if pipeline.ignores(event):
                pipeline.settle(event)
            else:
                item = Ddl(event.commit_ts, event.database, event.table, event.sql)
                yield from self._given(item, partial(pipeline.settle, event))
        pipeline.publish(ready)

    def _save(self, ready: Ready) -> None:
        self.pipeline.target.save(ready.progress, self.pipeline.lease)
        self.pipeline.progress = ready.progress

    def _given(self, item: Window | Ddl, settle: Callable[[], None]) -> Iterator[Window | Ddl]:
        def settled() -> None:
            if self.ended.is_set():
                raise RuntimeError("commit() came after the iteration had ended: a new one gives this item again")
            settle()

        item._given_by(settled)  # noqa: SLF001 of this module, and none of the caller's
        yield item
        if not item.committed:
            raise RuntimeError("the next item was asked for before commit() of the last")

    def _changes(self, ready: Ready) -> DataFrame:
        waiting: Waiting = ready.rows  # type: ignore[assignment]  # `_begun_by_tasks`: they stay where they are
        job: SparkJob = waiting.job  # type: ignore[assignment]  # made by the SparkJobs that the pipeline has
        rows = job.records.mapPartitionsWithIndex(ChangesTask(bodies_of(self.config), self.net, waiting.accounts))
        return self.session.createDataFrame(rows, SCHEMA, verifySchema=False)

"""The library: a changefeed's windows as Spark DataFrames, for those who have no relational target.

    for item in consumer.windows(config):
        if isinstance(item, ChangeWindow):
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
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Event

import structlog
from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType, MapType, StringType, StructField, StructType

from consumer.config.model import Config, load_config
from consumer.ddl.policy import why_ignored
from consumer.library.changes import ChangesTask
from consumer.pipeline.apply import record
from consumer.pipeline.apply_mode import library_mode
from consumer.pipeline.read import WindowRead
from consumer.pipeline.round import Round
from consumer.pipeline.session import Session
from consumer.pipeline.settle_ddls import DueDdls
from consumer.source.port import source_of
from consumer.spark.context import start_spark, stop_spark, warm_up
from consumer.spark.jobs import SparkJob, SparkJobs
from consumer.tasks.jobs import Waiting
from consumer.wiring import readers_of, target_of
from ordering.errors import ConfigError
from ordering.progress import Progress

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
class ChangeWindow(Item):
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


def windows(
    config: Config | Path | str,
    *,
    net: bool = True,
    once: bool = False,
    spark: SparkContext | None = None,
    stopping: Event | None = None,
) -> Iterator[ChangeWindow | Ddl]:
    """Yield windows and DDLs in order; each has to be committed before the next is asked for.

    `net`: of each row only what is left of its changes in the window; else all changes, in commitTs order within each
    partition of the DataFrame, and from one partition to the next. `once`: end where the topics end now; `stopping`:
    once it is set. Raises ReconcilerError: those that may pass may be tried again with a new call.
    """
    if not structlog.is_configured():  # the caller's standard output is his
        structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    told = config if isinstance(config, Config) else load_config(Path(config))
    consistency = "snapshot" if net else "transaction"
    told = told.model_copy(update={"target": told.target.model_copy(update={"consistency": consistency})})
    _check(told)
    with ExitStack() as stack:
        context = spark
        if context is None:
            context = start_spark(told.changefeed, told.spark)
            stack.callback(stop_spark, context)
            warm_up(context)
        source = stack.enter_context(closing(source_of(told)))
        target = stack.enter_context(closing(target_of(told)))
        source.reach()
        target.connect()
        jobs = SparkJobs(context, readers_of(told))
        led = Session(told, source, target, jobs, mode=library_mode)
        stack.callback(led.ledger.close)
        feed = _Feed(told, led, SparkSession(context), net, stopping or Event())
        stack.callback(feed.ended.set)
        yield from feed.items(once=once)


def _check(config: Config) -> None:
    where, hint = "target.uri", 'name a directory of its own for progress and schemas: uri = "sqlite:////var/lib/feed"'
    if not config.target.uri.startswith("sqlite:"):
        raise ConfigError("the library can store its progress in SQLite only", where=where, hint=hint)
    if config.quarantine.enabled:
        raise ConfigError(
            "the library does not support the quarantine", where="quarantine.enabled", hint="switch it off"
        )
    if config.sink.dispatchers:
        hint = "leave them out: name tables as you write them"
        raise ConfigError("the library does not support routes", where="sink.dispatchers", hint=hint)
    if config.filter.force_replicate:
        hint = "only rows with a key can be given exactly once"
        raise ConfigError(
            "the library does not support tables without a key", where="filter.force-replicate", hint=hint
        )


@dataclass(frozen=True)
class _Feed:
    config: Config
    led: Session
    spark: SparkSession
    net: bool
    stopping: Event
    ended: Event = field(default_factory=Event)
    """Set when the iteration is over: nothing can be committed any more."""

    def items(self, *, once: bool) -> Iterator[ChangeWindow | Ddl]:
        """See `windows`."""
        source, round_ = self.led.source, Round(self.led)
        caps = source.ends() if once else None
        while not self.stopping.is_set():
            window = round_.plan(caps, to_end=True)
            read = None if window is None else round_.read(window)
            if read is not None:
                yield from self._of(read, round_.judge(read))
                round_.publish(read)
            elif window is None and once:
                return
            elif window is None:
                self.stopping.wait(_LOOK_S)

    def _of(self, read: WindowRead, progress: Progress) -> Iterator[ChangeWindow | Ddl]:
        led = self.led
        if any(report.released for report in read.reports):
            # recorded: after a crash comes this window, whatever has arrived since
            record(led, read.window)
            window = ChangeWindow(read.window.low, read.window.high, self._changes(read))
            yield from self._given(window, partial(self._save, progress))
        else:
            self._save(progress)
        ddls = DueDdls(led, read)
        for event in ddls:
            # what will not be executed is none of the reader's
            if why_ignored(event, led.planner.pending(led.progress), led.filter, led.target.catalog()):
                ddls.settle(event)
            else:
                item = Ddl(event.commit_ts, event.database, event.table, event.sql)
                yield from self._given(item, partial(ddls.settle, event))

    def _save(self, progress: Progress) -> None:
        with self.led.setting_aside(progress) as (after, aside):
            self.led.target.save(after, self.led.lease, aside=aside)
        self.led.progress = after

    def _given(self, item: ChangeWindow | Ddl, settle: Callable[[], None]) -> Iterator[ChangeWindow | Ddl]:
        def settled() -> None:
            if self.ended.is_set():
                raise RuntimeError("commit() came after the iteration had ended: a new one gives this item again")
            settle()

        item._given_by(settled)  # noqa: SLF001 of this module, and none of the caller's
        yield item
        if not item.committed:
            raise RuntimeError("the next item was asked for before commit() of the last")

    def _changes(self, read: WindowRead) -> DataFrame:
        waiting: Waiting = read.rows  # type: ignore[assignment]  # `library_mode`: they stay where they are
        job: SparkJob = waiting.job  # type: ignore[assignment]  # made by the SparkJobs that the session has
        rows = job.records.mapPartitionsWithIndex(ChangesTask(self.led.bodies, self.net, waiting.accounts))
        return self.spark.createDataFrame(rows, SCHEMA, verifySchema=False)

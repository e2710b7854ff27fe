"""One Spark context for all changefeeds of a process: a fair pool each; a JVM that died is restarted for all."""

import threading
from pathlib import Path

import structlog
from pyspark import SparkContext

from consumer.config.model import SparkSection
from consumer.spark.context import is_alive, start_spark, stop_spark

_FAIR = {"spark.scheduler.mode": "FAIR"}
log = structlog.get_logger()


class SharedSpark:
    """The context, made when it is first needed. Its files lie in `scratch`, which must outlive it."""

    def __init__(self, config: SparkSection, scratch: Path) -> None:
        self._config = SparkSection(master=config.master, native=config.native, **{**_FAIR, **config.settings})
        self._scratch = scratch
        self._lock = threading.Lock()
        self._context: SparkContext | None = None

    def context(self) -> SparkContext:
        """A context whose JVM lives. Raises ConfigError if Spark can't start."""
        with self._lock:
            if self._context is not None and not is_alive(self._context):
                log.warning("spark's JVM is gone; starting it again for all changefeeds")
                stop_spark(self._context)
                self._context = None
            if self._context is None:
                self._context = start_spark("serve", self._config, self._scratch)
            return self._context

    def of(self, changefeed: str) -> "Share":
        """The share of one changefeed."""
        return Share(self, changefeed)

    def cancel(self, group: str) -> None:
        """Break off a changefeed's jobs."""
        context = self._context
        if context is not None and is_alive(context):
            context.cancelJobGroup(group)

    def stop(self) -> None:
        """Stop it."""
        with self._lock:
            stop_spark(self._context)
            self._context = None


class Share:
    """A changefeed's share: its jobs go to a pool of its name and can be broken off together."""

    def __init__(self, shared: SharedSpark, changefeed: str) -> None:
        self._shared, self._changefeed = shared, changefeed

    def context(self, _scratch: Path | None) -> SparkContext:
        """The common context; jobs of the asking thread are the changefeed's from now on."""
        context = self._shared.context()
        context.setLocalProperty("spark.scheduler.pool", self._changefeed)
        context.setJobGroup(self._changefeed, self._changefeed)
        return context

    def cancel(self) -> None:
        """Break off the changefeed's jobs."""
        self._shared.cancel(self._changefeed)

    def close(self) -> None:
        """Nothing: the others go on."""

"""Where a runner gets its Spark context from: one of its own, one that somebody shares with it."""

from pathlib import Path
from typing import Protocol

import structlog
from pyspark import SparkContext

from consumer.config.model import SparkSection
from consumer.spark.context import Jvm, is_alive, start_spark, stop_spark

log = structlog.get_logger()


class SparkProvider(Protocol):
    """Gives one changefeed its Spark."""

    def context(self, scratch: Path | None) -> SparkContext:
        """A context whose JVM lives, for the thread that asks. Raises ConfigError if Spark can't start."""
        ...

    def cancel(self) -> None:
        """Break off what the changefeed has running on it."""
        ...

    def close(self) -> None:
        """Say that the changefeed needs it no more."""
        ...


class OwnSpark:
    """A context for one changefeed alone; restarted if its JVM has died."""

    def __init__(self, name: str, config: SparkSection) -> None:
        self._name, self._config = name, config
        self._context: SparkContext | None = None
        self._jvm: Jvm | None = None

    def begin(self) -> None:
        """Have the JVM start while this process does other things. What goes wrong is raised by `context`."""
        self._jvm = Jvm(self._name, self._config)

    def context(self, scratch: Path | None) -> SparkContext:
        """The context; its local files lie in `scratch`. Raises ConfigError if Spark can't start."""
        if self._context is not None and not is_alive(self._context):
            log.warning("spark's JVM is gone; starting it again")
            self.close()
        if self._context is None:
            self._context = start_spark(self._name, self._config, scratch, self._jvm)
            self._jvm = None
        return self._context

    def cancel(self) -> None:
        """Break off every job."""
        if self._context is not None and is_alive(self._context):
            self._context.cancelAllJobs()

    def close(self) -> None:
        """Stop it, also one that is still on its way."""
        if self._jvm is not None:
            self._jvm.end()
            self._jvm = None
        stop_spark(self._context)
        self._context = None


class GivenSpark:
    """A context that somebody else starts and stops."""

    def __init__(self, context: SparkContext) -> None:
        self._context = context

    def context(self, _scratch: Path | None) -> SparkContext:
        """The context as it was given."""
        return self._context

    def cancel(self) -> None:
        """Leave it alone: other jobs may be on it."""

    def close(self) -> None:
        """Leave it open."""

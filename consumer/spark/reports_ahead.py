"""Runs a job beside those of the asking thread: in a thread of its own, under a tag by which it can be broken off."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any
from uuid import uuid4

import structlog
from pyspark import SparkContext

from consumer.spark.context import FAILURES
from consumer.tasks.report import Report

_AGAIN_S = 0.1
"""A job that was just about to begin is broken off a little later."""
log = structlog.get_logger()


class Beside:
    """The thread, of one changefeed; it is there once it is needed."""

    def __init__(self, spark: SparkContext) -> None:
        self._spark = spark
        self._pool = ThreadPoolExecutor(1, "read-ahead")

    def begun(self, reports: Callable[[], list[Report]]) -> "ReportsAhead":
        """Begin a job, in the asking thread's pool and group. Raises what Spark's JVM does."""
        scala, tag = self._spark._jsc.sc(), f"ahead-{uuid4().hex}"  # noqa: SLF001 there is no public way to copy them
        properties = scala.getLocalProperties().clone()

        def run() -> list[Report]:
            scala.setLocalProperties(properties)
            self._spark.addJobTag(tag)
            return reports()

        return ReportsAhead(self._spark, tag, self._pool.submit(run))


class ReportsAhead:
    """See `consumer.tasks.jobs.Coming`."""

    def __init__(self, spark: SparkContext, tag: str, reports: "Future[list[Report]]") -> None:
        self._spark: Any = spark
        self._tag, self._reports = tag, reports

    def result(self) -> list[Report]:
        """See `Coming.result`."""
        return self._reports.result()

    def end(self) -> None:
        """See `Coming.end`."""
        while not (self._reports.cancel() or self._reports.done()):
            try:
                self._spark.cancelJobsWithTag(self._tag)
            except FAILURES:
                log.debug("spark's JVM is gone, and its jobs with it")
            wait([self._reports], _AGAIN_S)

"""Starts Spark lean: no UI, no SQL, loopback only, quiet; and warms it up while the rest connects."""

import os
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from importlib import import_module, resources
from threading import Thread
from typing import Any

import structlog
from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway

from consumer.config import Spark
from ordering.errors import ConfigError, ReconcilerError

_DEFAULTS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "1g",
    "spark.speculation": "false",
    "spark.python.worker.reuse": "true",
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
    "spark.shuffle.compress": "true",
    "spark.io.compression.codec": "lz4",
    "spark.task.maxFailures": "4",
    "spark.cleaner.periodicGC.interval": "5min",
}
log = structlog.get_logger()
_JVM = "-XX:+UseParallelGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData"


def start_spark(changefeed: str, config: Spark) -> SparkContext:
    """A Spark context with forked, warmed-up Python workers. Raises ConfigError if Spark or Java can't start."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    if config.master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    conf = SparkConf(loadDefaults=False).setAppName(f"ticdc-reconciler {changefeed}").setMaster(config.master)
    logging = resources.files("consumer").joinpath("log4j2.properties")
    for key, value in {**_DEFAULTS, **config.settings}.items():
        conf.set(key, value)
    options = f"{_JVM} -Dlog4j2.configurationFile={logging} {config.settings.get('spark.driver.extraJavaOptions', '')}"
    conf.set("spark.driver.extraJavaOptions", options)
    said: deque[str] = deque(maxlen=20)
    try:
        context = SparkContext(conf=conf, gateway=_gateway(conf, said))
    except (PySparkException, Py4JError, OSError, RuntimeError) as error:
        hint = "Java 17 or newer is needed (JAVA_HOME or PATH; or pip install 'ticdc-reconciler[embedded]')"
        raise ConfigError(
            f"Spark can't start: {error}{_quoted(said)}", where=f"spark.master = {config.master}", hint=hint
        ) from error
    context.setLogLevel("OFF")
    return context


def _gateway(conf: SparkConf, said: deque[str]) -> Any:
    """Spark's JVM. What it says on stderr goes to our log at debug, and is kept for the error if it can't start."""
    reading, writing = os.pipe()
    try:
        gateway = launch_gateway(conf, popen_kwargs={"stderr": writing})
    finally:
        os.close(writing)
        Thread(target=_follow, args=(reading, said), daemon=True).start()
    return gateway


def _follow(reading: int, said: deque[str]) -> None:
    with os.fdopen(reading, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            said.append(line.strip())
            log.debug("spark", line=line.rstrip())


def _quoted(said: deque[str]) -> str:
    return "".join(f"\n  java: {line}" for line in said)


def warm_up(context: SparkContext) -> None:
    """Fork the workers and let them import what tasks need, so that the first window doesn't wait for it."""
    count = context.defaultParallelism
    context.parallelize(range(count), count).mapPartitions(_import).partitionBy(count).count()


def _import(numbers: Iterable[int]) -> Iterator[tuple[int, int]]:
    import_module("consumer.tasks")
    for number in numbers:
        yield number, number


def stop_spark(context: SparkContext | None) -> None:
    """Stop it; a JVM that is gone already is stopped."""
    if context is None:
        return
    try:
        context.stop()
    except (Py4JError, OSError, ReconcilerError):
        SparkContext._active_spark_context = None  # noqa: SLF001 else no new context could be made

"""Starts Spark lean: no UI, no SQL, loopback only, quiet; and warms it up while the rest connects."""

import os
import sys
from collections.abc import Iterable, Iterator
from importlib import import_module, resources

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException

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
    try:
        context = SparkContext(conf=conf)
    except (PySparkException, Py4JError, OSError, RuntimeError) as error:
        hint = "Java 17 or newer is needed (JAVA_HOME or PATH; or pip install 'ticdc-reconciler[embedded]')"
        raise ConfigError(f"Spark can't start: {error}", where=f"spark.master = {config.master}", hint=hint) from error
    context.setLogLevel("OFF")
    return context


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

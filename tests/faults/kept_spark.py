"""A JVM with Spark that outlives the drivers that use it: `python -m tests.faults.kept_spark` serves until stdin ends.

Crash tests kill drivers by the dozen. What they test is the driver, so each one attaches to this JVM in half a second
instead of starting its own in five; the workers stay warm, and jobs that a killed driver left behind are cancelled.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway

from consumer.config.model import SparkSection
from consumer.spark.context import start_spark, stop_spark, warm_up

_PORT, _SECRET = "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"


@contextmanager
def kept_spark() -> Iterator[dict[str, str]]:
    """Start one; yields the environment of the processes that shall use it."""
    process = subprocess.Popen(
        [sys.executable, "-m", __name__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    if process.stdin is None or process.stdout is None:
        raise RuntimeError("no pipes")
    try:
        lines = (line for line in process.stdout if line.startswith("{"))
        yield {**os.environ, **json.loads(next(lines))}
    finally:
        process.stdin.close()
        process.wait(60)


def attached(environment: Mapping[str, str]) -> SparkContext | None:
    """A context in the kept JVM that the environment names, or None if it names none."""
    if _PORT not in environment:
        return None
    os.environ["PYSPARK_PYTHON"] = sys.executable
    gateway = launch_gateway()
    java = gateway.jvm.org.apache.spark
    context = java.api.java.JavaSparkContext.fromSparkContext(java.SparkContext.getOrCreate())
    conf = SparkConf(loadDefaults=False, _jconf=context.getConf())
    spark = SparkContext(gateway=gateway, jsc=context, conf=conf)
    spark.cancelAllJobs()
    return spark


def main() -> None:
    """Serve until stdin ends."""
    spark = start_spark("kept", SparkSection())
    warm_up(spark)
    parameters = spark._gateway.gateway_parameters
    print(json.dumps({_PORT: str(parameters.port), _SECRET: parameters.auth_token}), flush=True)
    sys.stdin.read()
    stop_spark(spark)


if __name__ == "__main__":
    main()

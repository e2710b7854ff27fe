"""Spark's JVM stands still for longer than Spark waits for an executor, as where a laptop sleeps: it goes on."""

import os
import signal
import subprocess
import sys

import psutil
import pytest

PAUSES, PAUSED_S, BEATS = 3, 3.0, 3
"""Whether Spark looks for executors or hears of them first after a pause is chance."""
SPARK = f"""
import subprocess
from contextlib import suppress
from pyspark import SparkContext
from consumer.config import Spark
from consumer.spark import start_spark
beats = {{"spark.executor.heartbeatInterval": "1s", "spark.executor.heartbeat.maxFailures": "{BEATS}"}}
waits = {{"spark.network.timeout": "2s", "spark.network.timeoutInterval": "50ms"}}
context = start_spark("test", Spark(master="local[1]", **beats, **waits))
print("JVM", SparkContext._gateway.proc.pid, flush=True)
input()
with suppress(subprocess.TimeoutExpired):
    SparkContext._gateway.proc.wait({2 * BEATS})
print("SUM", context.parallelize([1, 2], 2).sum(), flush=True)
"""


@pytest.mark.spark
def test_a_pause_ends_no_local_executor() -> None:
    words = [sys.executable, "-c", SPARK]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as spark:
        assert spark.stdout is not None
        java = psutil.Process(next(int(line.split()[1]) for line in spark.stdout if line.startswith("JVM")))
        for _ in range(PAUSES):
            os.kill(java.pid, signal.SIGSTOP)
            with pytest.raises(psutil.TimeoutExpired):
                java.wait(PAUSED_S)
            os.kill(java.pid, signal.SIGCONT)
            with pytest.raises(psutil.TimeoutExpired):
                java.wait(1)
        said, _ = spark.communicate("\n", timeout=60)
    assert "SUM 3" in said

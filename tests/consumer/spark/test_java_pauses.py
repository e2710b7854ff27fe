"""What makes Spark take its local executor for lost ends nothing: a pause as where a laptop sleeps, lost files."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

PAUSES, PAUSED_S, BEATS = 3, 3.0, 3
"""Whether Spark looks for executors or hears of them first after a pause is chance."""
SPARK = f"""
import subprocess
from contextlib import suppress
from pyspark import SparkContext
from consumer.config.model import SparkSection
from consumer.spark.context import start_spark
beats = {{"spark.executor.heartbeatInterval": "1s", "spark.executor.heartbeat.maxFailures": "{BEATS}"}}
waits = {{"spark.network.timeout": "2s", "spark.network.timeoutInterval": "50ms"}}
context = start_spark("test", SparkSection(master="local[1]", **beats, **waits))
print("JVM", SparkContext._gateway.proc.pid, flush=True)
input()
with suppress(subprocess.TimeoutExpired):
    SparkContext._gateway.proc.wait({2 * BEATS})
print("SUM", context.parallelize([1, 2], 2).sum(), flush=True)
"""


@pytest.mark.by_turns(9)
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


LOST = """
import subprocess, sys
from contextlib import suppress
from pathlib import Path
from pyspark import SparkContext
from consumer.config.model import SparkSection
from consumer.spark.context import start_spark
beats = {"spark.executor.heartbeatInterval": "50ms"}
context = start_spark("test", SparkSection(master="local[2]", **beats), Path(sys.argv[1]))
rows = context.parallelize(range(100), 4).map(lambda number: (number % 3, number)).partitionBy(3)
counted = [rows.count()]
files = list(Path(sys.argv[1]).rglob("shuffle_*"))
assert files
for file in files:
    file.unlink()
counted.append(rows.count())
with suppress(subprocess.TimeoutExpired):
    SparkContext._gateway.proc.wait(15)
counted.append(context.parallelize(range(100), 2).count())
print("COUNTED", counted, flush=True)
"""


@pytest.mark.by_turns(9)
@pytest.mark.spark
def test_lost_files_of_a_shuffle_end_no_local_executor(tmp_path: Path) -> None:
    """Sixty heartbeats fit into the time that it waits."""
    done = subprocess.run([sys.executable, "-c", LOST, tmp_path], capture_output=True, text=True, check=False)
    assert "COUNTED [100, 100, 100]" in done.stdout, done.stderr

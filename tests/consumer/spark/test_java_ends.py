"""The error of a job that lost its JVM says how Java ended."""

import subprocess
import sys
from types import SimpleNamespace

import pytest
from pyspark import SparkContext

from consumer.spark.jobs import _failures
from ordering.errors import WorkerLostError


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("raise SystemExit(52)", "exit code 52: out of memory; raise spark.driver.memory"),
        ("raise SystemExit(3)", "Java ended with exit code 3)"),
        ("import os; os.kill(os.getpid(), 9)", "Java was ended by signal 9"),
    ],
)
def test_a_job_that_lost_its_jvm_says_how_it_ended(code: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    process = subprocess.Popen([sys.executable, "-I", "-S", "-c", code])
    process.wait()
    monkeypatch.setattr(SparkContext, "_gateway", SimpleNamespace(proc=process))
    with pytest.raises(WorkerLostError) as raised, _failures():
        raise ConnectionRefusedError("refused")
    assert said in str(raised.value)


def test_a_job_that_failed_with_its_jvm_alive_says_nothing_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SparkContext, "_gateway", None)
    with pytest.raises(WorkerLostError) as raised, _failures():
        raise ConnectionRefusedError("refused")
    assert "Java" not in str(raised.value)

"""The error of a job that lost its JVM says how Java ended."""

import os
import signal
import subprocess
import sys
from threading import Event
from types import SimpleNamespace

import pytest
from pyspark import SparkContext

from consumer.runtime.signals import Stopped, handled
from consumer.spark.context import is_alive
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


def test_a_job_that_a_signal_cuts_through_leaves_a_jvm_that_answers(spark: SparkContext) -> None:
    """Its answer was taken for that of the next call, in the midst of a stop: exit code 1, `KeyError: 'c'`."""

    def interrupt(_: int, driver: int = os.getpid()) -> None:
        os.kill(driver, signal.SIGUSR1)
        Event().wait(600)  # until it is cancelled

    def stop(_number: int, _frame: object) -> None:
        raise Stopped

    def answers() -> int:
        assert is_alive(spark)
        spark.cancelAllJobs()
        return spark.parallelize(range(5), 1).count()

    with handled(stop, [signal.SIGUSR1]):
        try:
            spark.parallelize([0], 1).foreach(interrupt)
        except Stopped:
            assert answers() == len(range(5))  # while the call that was cut through is still referred to
        else:
            pytest.fail("no signal came")

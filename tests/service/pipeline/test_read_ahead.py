"""With a real Spark: a window is read while the one before it is written, and nothing of that is left behind."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from pyspark import SparkContext

from consumer.codec.canal_json import Plain
from consumer.runtime.signals import Stopped
from consumer.spark.jobs import SparkJob, SparkJobs
from ordering.errors import SourceUnreachableError
from ordering.events import Partition
from ordering.window import Range
from sinks.steps import Step
from tests.bench.limits import whole
from tests.service.lab import PARTITIONS as SENT_TO
from tests.service.lab import Feed, eventually
from tests.service.messages import begun, insert, watermarks
from tests.service.pipeline.test_stages import PARTITIONS, ROWS, Messages

pytestmark = pytest.mark.spark


@dataclass(frozen=True)
class Slow(Messages):
    """As `Messages`, which come once `held` is gone; `begun` is there once somebody reads."""

    held: Path
    begun: Path

    def get(self) -> "Slow":
        return self

    def read(self, spans: Sequence[tuple[Partition, int, int]]) -> Iterator[tuple[Partition, list[Plain]]]:
        self.begun.touch()
        while self.held.exists():
            time.sleep(0.01)
        yield from super().read(spans)


@pytest.fixture
def messages(tmp_path: Path) -> Slow:
    return Slow(tmp_path / "refusing", tmp_path / "gone", tmp_path / "held", tmp_path / "begun")


@pytest.fixture
def job(spark: SparkContext, messages: Slow) -> SparkJob:
    ranges = tuple(Range(Partition("t", p), 0, ROWS // PARTITIONS, 0) for p in range(PARTITIONS))
    return SparkJobs(spark, messages).job(ranges, replace(whole(ranges), buckets=3))


def active(spark: SparkContext) -> Sequence[int]:
    return spark.statusTracker().getActiveJobsIds()


@pytest.mark.by_turns
def test_its_reports_come_while_other_jobs_run(spark: SparkContext, job: SparkJob, messages: Slow) -> None:
    messages.held.touch()
    coming = job.begun()
    eventually("tasks read", messages.begun.exists)
    messages.held.unlink()
    assert spark.parallelize([1, 2], 2).count() == 2
    assert sum(report.released for report in coming.result()) == ROWS


@pytest.mark.by_turns
def test_what_is_broken_off_runs_no_more(spark: SparkContext, job: SparkJob, messages: Slow) -> None:
    messages.held.touch()
    coming = job.begun()
    eventually("tasks read", messages.begun.exists)
    coming.end()
    eventually("no job is listed", lambda: not active(spark))
    messages.held.unlink()
    assert sum(report.released for report in job.begun().result()) == ROWS


def test_it_is_broken_off_before_it_has_begun(spark: SparkContext, job: SparkJob, messages: Slow) -> None:
    messages.held.touch()
    for _ in range(5):
        job.begun().end()
        eventually("no job is listed", lambda: not active(spark))


def test_what_tasks_meet_is_raised_where_it_is_asked_for(job: SparkJob, messages: Slow) -> None:
    messages.refusing.touch()
    coming = job.begun()
    with pytest.raises(SourceUnreachableError, match="Kafka does not answer"):
        coming.result()


ROWS_SENT = 400


@pytest.fixture
def backlog(sqlite_feed: Feed) -> Feed:
    """So many rows wait, 60 of which a window holds."""
    feed = sqlite_feed.by_tasks().with_(limits={"window-rows": 60})
    messages = begun()
    for number in range(ROWS_SENT):
        messages.append(insert("d.t", 10 + number, number % SENT_TO, id=number, v=number, s="x"))
        if number % 10 == 9:
            messages += watermarks(10 + number)
    feed.send(messages)
    return feed


def rows(feed: Feed) -> list[int]:
    return sorted(int(str(row["id"])) for row in feed.cells.tables(["d"])["d.t"][1])


@pytest.mark.by_turns
def test_a_backlog_comes_out_right(backlog: Feed) -> None:
    windows = backlog.once().counts.windows
    assert windows >= ROWS_SENT // 60
    assert rows(backlog) == list(range(ROWS_SENT))


@pytest.mark.by_turns(9)
@pytest.mark.parametrize("step", [Step.APPLY_BEGUN, Step.PROGRESS_WRITTEN, Step.COMMITTED])
def test_a_run_that_is_stopped_leaves_no_job(step: Step, backlog: Feed, spark: SparkContext) -> None:
    seen = []

    def stop(at: Step) -> None:
        seen.append(at)
        if seen.count(step) == 4:
            raise Stopped

    backlog.once(stop)
    eventually("no job is listed", lambda: not active(spark))
    assert seen.count(step) == 4
    backlog.once()
    assert rows(backlog) == list(range(ROWS_SENT))

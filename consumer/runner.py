"""Runs a changefeed: starts what it needs, stands by until it may lead, does round after round, stops cleanly."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import structlog
from pyspark import SparkContext

from consumer.config import Config
from consumer.display import Display
from consumer.job import SparkJobs
from consumer.kafka_settings import reader_settings
from consumer.ledger import Ledger
from consumer.logs import about
from consumer.pipeline import Pipeline
from consumer.presence import Presence, RedisLease
from consumer.retrying import Patience, retried
from consumer.scratch import scratch_directory
from consumer.signals import Stopped, StopRequest, stopped_by_signals
from consumer.source import Source
from consumer.spark import warm_up
from consumer.spark_home import GivenSpark, OwnSpark, SparkHome
from consumer.stalling import Stalls
from consumer.standing_by import StandBy
from consumer.status import live_status
from consumer.targets import target_of
from ordering.errors import LeaderLivesError, LeadershipLostError, TargetBusyError, TargetError
from ordering.events import Partition
from ordering.progress import Counts
from sinks.target import Lease, Observer, Step, Target

POLL_S = 0.2
"""How often new watermarks are looked for."""

REST_S = 2.0
"""So long without a window, and what lies behind the watermarks is looked through."""

log = structlog.get_logger()
Done = TypeVar("Done")


@dataclass(slots=True)
class Outcome:
    """What a run did, for `--json`."""

    before: Counts = field(default_factory=Counts)
    counts: Counts = field(default_factory=Counts)
    checkpoint_ts: int = 0
    start_s: float = 0.0
    processing_s: float = 0.0

    def as_json(self) -> dict[str, int | float]:
        """The object of the contract; totals are of this run."""
        return {
            "events": self.counts.events - self.before.events,
            "duplicates": self.counts.duplicates - self.before.duplicates,
            "late": 0,
            "windows": self.counts.windows - self.before.windows,
            "rows_written": self.counts.rows_written - self.before.rows_written,
            "start_s": round(self.start_s, 3),
            "processing_s": round(self.processing_s, 3),
            "checkpoint_ts": self.checkpoint_ts,
        }


class Runner:
    """One changefeed in this process. A Spark context that is given is shared and not stopped.

    `trouble` is what is being tried again just now; `stalls` is what was seen of the watermarks. Other threads may read
    them, and `pipeline`.
    """

    def __init__(
        self,
        config: Config,
        display: Display,
        observe: Observer = lambda _: None,
        spark: SparkHome | SparkContext | None = None,
        stopping: StopRequest | None = None,
    ) -> None:
        self.config, self.display, self._observe = config, display, observe
        self.stopping = StopRequest() if stopping is None else stopping
        self.outcome = Outcome()
        self._patience = Patience(config.limits.retry_seconds)
        own = OwnSpark(config.changefeed, config.spark) if spark is None else spark
        self._spark: SparkHome = GivenSpark(own) if isinstance(own, SparkContext) else own
        self._source = Source.of(config)
        self._target: Target = target_of(config)
        lease_s = config.limits.lease_seconds
        self._redis_lease = RedisLease(config.redis.uri, config.changefeed, lease_s)
        self.presence = Presence(self._target.instances(config.changefeed), self._redis_lease, lease_s)
        self._once = False
        self.stalls = Stalls(config.limits.stalled_seconds)
        self.trouble: BaseException | None = None
        self._pipeline: Pipeline | None = None
        self._caps: Mapping[Partition, int] | None = None
        self._first = True
        self._scratch: Path | None = None
        self._lease: Lease | None = None

    def run(self, *, once: bool, started: float) -> Outcome:
        """Run until stopped, or (`once`) until all that the topics hold now is applied. `started`: monotonic seconds.

        Raises ReconcilerError.
        """
        self._once = once
        with about(changefeed=self.config.changefeed):
            try:
                with self._signals(), scratch_directory() as self._scratch, self._closing():
                    self._run(started)
            except Stopped:
                log.info("stopped; what was not committed is rolled back", checkpoint_ts=self.outcome.checkpoint_ts)
        return self.outcome

    def _run(self, started: float) -> None:
        self._retrying(self._warm)
        self._stepping_down(self._connected)
        self.outcome.start_s = time.monotonic() - started
        begun = time.monotonic()
        self._stepping_down(self._until_done if self._once else self._until_stopped)
        self.outcome.processing_s = time.monotonic() - begun

    @contextmanager
    def _closing(self) -> Iterator[None]:
        try:
            yield
        finally:
            self._close()
            self.presence.stop()
            self._spark.close()

    def _warm(self) -> None:
        """Fork Spark's workers and connect to everything at the same time; a stand-by is ready to lead."""
        with ThreadPoolExecutor(1) as pool:
            warming = pool.submit(warm_up, self._spark.context(self._scratch))
            self._source.listed()
            self._target.connect()
            warming.result()

    def _stepping_down(self, work: Callable[[], object]) -> None:
        """Do the work as the leader; an instance that has led and finds another one leading ends (exit code 5).

        Where it only seems so, since the answer to our own COMMIT was lost, or where another one was quicker to take
        over, it stands by again. Raises LeadershipLostError, and what the work raises.
        """
        while True:
            try:
                self._retrying(work)
            except LeaderLivesError:
                raise
            except LeadershipLostError as error:
                self._close()
                if self._lease is not None and self._retrying(self._is_replaced):
                    raise
                self._lease = None
                log.warning("this instance leads no more", why=error.fact)
            else:
                return

    def _is_replaced(self) -> bool:
        """Whether another instance leads now, for certain; looks until that or the contrary is known."""
        self._target.connect()
        instances, until = self._target.instances(self.config.changefeed), time.monotonic() + 2 * REST_S
        try:
            while time.monotonic() < until and not self._target.try_lead(self.config.changefeed):
                leader, ours = instances.leader(), self._lease
                if leader and ours and leader.epoch > ours.epoch and leader.name != self.presence.name:
                    return True
                if self.stopping.wait(POLL_S):
                    raise Stopped
        finally:
            instances.close()
        return False

    @property
    def pipeline(self) -> Pipeline | None:
        """The rounds that are being done, while this instance leads and nothing is broken."""
        return self._pipeline

    def stop(self) -> None:
        """Ask from another thread to end soon: what was not committed is rolled back."""
        self.stopping.set()
        self._spark.cancel()

    @contextmanager
    def _signals(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        with stopped_by_signals(self.stopping):
            yield

    def _retrying(self, work: Callable[[], Done]) -> Done:
        """Do the work; after a transient error connect anew and try again, for `retry-seconds`."""
        return retried(work, self._patience, self.stopping, self._give_up)

    def _give_up(self, error: BaseException) -> None:
        """Close what an error may have broken. Who lets go of the target lets a stand-by lead: only if it has to."""
        self.trouble = error
        if self._pipeline is not None:
            self._pipeline.ledger.close()
            self._pipeline = None
        self._source.close()
        if isinstance(error, TargetError) and not isinstance(error, TargetBusyError):
            self._target.close()

    def _close(self) -> None:
        self._give_up(Stopped())
        self.trouble = None
        self._target.close()

    def _connected(self) -> Pipeline:
        if self._pipeline is None:
            self._target.connect()
            held = self._lease or self._turn()
            settings = reader_settings(self.config.source.bootstrap_servers, self.config.source.kafka)
            jobs = SparkJobs(self._spark.context(self._scratch), settings)
            self._pipeline = Pipeline(self.config, self._source, self._target, jobs, self._step, held)
            self._lease = self._pipeline.lease
            self.presence.lead(self._lease.epoch)
            if self._first:
                self.outcome.before, self._first = self._pipeline.progress.counts, False
            self._note(self._pipeline)
        return self._pipeline

    def _turn(self) -> Lease | None:
        """Wait until this instance may lead; the leadership that it takes over from, if there is one."""
        self.presence.stand_by()
        limits = self.config.limits
        wait = StandBy(self._target, self.config.changefeed, self._redis_lease, limits.lease_seconds, self.stopping)
        return wait.wait(self._patience.succeeded, limits.retry_seconds if self._once else None)

    def _step(self, step: Step) -> None:
        self._observe(step)
        if self.stopping.is_set():
            raise Stopped

    def _until_done(self) -> None:
        pipeline = self._connected()
        if self._caps is None:
            partitions = [p for topic in self._source.listed() for p in topic.partitions]
            self._caps = self._source.control.ends(partitions)
        while self._one(pipeline, to_end=True):
            pass

    def _until_stopped(self) -> None:
        pipeline = self._connected()
        idle_since = time.monotonic()
        while not self.stopping.is_set():
            rested = time.monotonic() - idle_since > REST_S
            if self._one(pipeline, to_end=rested):
                idle_since = time.monotonic()
            else:
                self.stopping.wait(POLL_S)

    def _one(self, pipeline: Pipeline, *, to_end: bool) -> bool:
        begun = time.monotonic()
        before = pipeline.progress
        if self.presence.is_superseded:  # where nothing is to be written, nothing else would tell
            raise LeadershipLostError("another instance leads", where=self._target.name)
        with about(window=before.counts.windows + 1):
            more = pipeline.round(self._caps, to_end=to_end)
            self._patience.succeeded()
            self.trouble = None
            self._note(pipeline)
            if more:
                self.display.window(before, pipeline.progress, pipeline.probe, time.monotonic() - begun)
        if not more:
            self.display.idle(pipeline.progress, pipeline.probe)
        if pipeline.probe is not None:
            self.stalls.look(pipeline.probe)
        self._publish_status(pipeline.ledger, pipeline)
        return more

    def _note(self, pipeline: Pipeline) -> None:
        self.outcome.counts = pipeline.progress.counts
        self.outcome.checkpoint_ts = pipeline.progress.checkpoint_ts

    def _publish_status(self, ledger: Ledger, pipeline: Pipeline) -> None:
        if pipeline.probe is not None:
            ledger.publish(live_status(pipeline.progress, pipeline.probe))
            offsets = {p: at.start for p, at in pipeline.progress.partitions.items()}
            self._source.commit_lazily(offsets)

"""Runs a changefeed: starts what it needs, stands by until it may lead, does round after round, stops cleanly."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeVar

import structlog
from pyspark import SparkContext

from consumer.config.lossy import warn_of_losses
from consumer.config.model import Config
from consumer.config.zone import warn_of_repeats
from consumer.native.log_choice import tell_choice
from consumer.pipeline.round import Round
from consumer.pipeline.session import Session
from consumer.run.heartbeat import Heartbeat, RedisLease
from consumer.run.live_status import live_status
from consumer.run.long_steps import LongSteps
from consumer.run.progress_log import Display
from consumer.run.sides import Sides
from consumer.run.stalled_watermarks import Stalls
from consumer.run.standby import StandBy
from consumer.runtime.logs import about
from consumer.runtime.retry import Patience, retried
from consumer.runtime.scratch import scratch_directory
from consumer.runtime.signals import Stopped, StopRequest, stopped_by_signals
from consumer.spark.context import warm_up
from consumer.spark.jobs import SparkJobs
from consumer.spark.provider import GivenSpark, OwnSpark, SparkProvider
from consumer.tasks.jobs import Jobs
from consumer.tuning import MEASURED, Tuning
from consumer.wiring import readers_of, target_of
from ordering.errors import (
    BeginningLostError,
    LeaderLivesError,
    LeadershipLostError,
    ReconcilerError,
    TargetBusyError,
    TargetError,
    TargetUnreachableError,
)
from ordering.events import Partition
from ordering.progress import Counts, Progress
from sinks.bookkeeping.progress_rows import Lease
from sinks.steps import Observer, Step
from sinks.target import Target

POLL_S = 0.2
"""How often new watermarks are looked for at rest."""
BUSY_POLL_S, BUSY_S = 0.04, 2.0
"""The same while rows come in, and for how long after the last ones; files are not listed more often."""

REST_S = 2.0
"""So long without a window, and what lies behind the watermarks is looked through."""

log = structlog.get_logger()
Done = TypeVar("Done")


class Companion(Protocol):
    """What goes on beside a run, in a thread of its own."""

    def start(self, leads: Callable[[], bool]) -> None:
        """Begin, once; it rests while `leads` says no."""

    def check(self) -> None:
        """Raise what is to end the run."""

    def stop(self) -> None:
        """End."""


@dataclass(slots=True)
class RunOutcome:
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
    them, and `session`.
    """

    def __init__(
        self,
        config: Config,
        display: Display,
        observe: Observer = lambda _: None,
        spark: SparkProvider | SparkContext | None = None,
        stopping: StopRequest | None = None,
        beside: Companion | None = None,
        tuning: Tuning = MEASURED,
    ) -> None:
        self.config, self.display, self._observe = config, display, observe
        self.stopping = StopRequest() if stopping is None else stopping
        self.outcome = RunOutcome()
        self._patience = Patience(config.limits.retry_seconds)
        own = OwnSpark(config.changefeed, config.spark) if spark is None else spark
        self._spark: SparkProvider = GivenSpark(own) if isinstance(own, SparkContext) else own
        self._sides = Sides.of(config, tuning)
        self._target: Target = target_of(config)
        lease_s = config.limits.lease_seconds
        self._redis_lease = RedisLease(config.redis.uri, config.changefeed, lease_s)
        self.presence = Heartbeat(self._target.instances(config.changefeed), self._redis_lease, lease_s)
        self._once, self._beside, self._tuning = False, beside, tuning
        self.stalls, self._steps = Stalls(config.limits.stalled_seconds), LongSteps()
        self.trouble: BaseException | None = None
        self._session: Session | None = None
        self._caps: Mapping[Partition, int] | None = None
        self._first = True
        self._scratch: Path | None = None
        self._lease: Lease | None = None

    def run(self, *, once: bool, started: float) -> RunOutcome:
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
            except LeadershipLostError:
                raise
            except ReconcilerError as error:
                self._note_stop(error)
                raise
        return self.outcome

    def _note_stop(self, error: ReconcilerError) -> None:
        """Keep in the target with which error this run ended, for `status`.

        Not where the target is out of reach, nor if another instance leads: the changefeed goes on.
        """
        if isinstance(error, TargetUnreachableError):
            return
        try:
            self._target.connect()
            self._target.note_stop(self.config.changefeed, error.exit_code, str(error), self._lease)
        except ReconcilerError as failed:
            log.warning("why this run ends is not kept in the target, so `status` can't tell it", why=failed.fact)
        finally:
            self._target.close()

    def _run(self, started: float) -> None:
        tell_choice(self.config.spark.native)
        warn_of_repeats(self.config.source.time_zone)
        warn_of_losses(self.config.source)
        self._retrying(self._warm)
        self._stepping_down(self._connected)
        self.outcome.start_s = time.monotonic() - started
        log.info("ready", start_s=round(self.outcome.start_s, 1), target=self._target.name)
        begun = time.monotonic()
        self._steps.start()
        self._stepping_down(self._until_done if self._once else self._until_stopped)
        self.outcome.processing_s = time.monotonic() - begun

    @contextmanager
    def _closing(self) -> Iterator[None]:
        try:
            yield
        finally:
            self._steps.stop()
            if self._beside is not None:
                self._beside.stop()
            self._close()
            self.display.end()
            self.presence.stop()
            self._spark.close()

    def _warm(self) -> None:
        """Fork Spark's workers and connect to everything at the same time; a stand-by is ready to lead."""
        with ThreadPoolExecutor(1) as pool:
            warming = pool.submit(warm_up, self._spark.context(self._scratch))
            self._sides.reach()
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
                log.warning("this instance is no longer the leader", why=error.fact)
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
    def leads(self) -> bool:
        """Whether this instance leads now, as far as it knows."""
        return self._session is not None and not self.presence.is_superseded

    @property
    def session(self) -> Session | None:
        """The changefeed as this instance leads it, while nothing is broken."""
        return self._session

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
        """Do the work; after a transient error connect again and try again, for `retry-seconds`."""
        return retried(work, self._patience, self.stopping, self._give_up)

    def _give_up(self, error: BaseException) -> None:
        """Close what an error may have broken. Who lets go of the target lets a stand-by lead: only if it has to."""
        self._steps.rest()
        self.trouble = None if isinstance(error, Stopped) else error
        if self._session is not None:
            self.display.left(self._session)
            self._session.end()
            self._session = None
        self._sides.close()
        if isinstance(error, TargetError) and not isinstance(error, TargetBusyError):
            self._target.close()

    def _close(self) -> None:
        self._give_up(Stopped())
        self._target.close()

    def _connected(self) -> Session:
        if self._session is None:
            self._target.connect()
            held = self._lease or self._turn()
            stored = self._target.stored(self.config.changefeed)
            self._session = self._led(Progress() if stored is None else stored.progress, held)
            self._lease = self._session.lease
            self.presence.lead(self._lease.epoch)
            self._target.stops.forget(self.config.changefeed)
            if self._first:
                self.outcome.before, self._first = self._session.progress.counts, False
            self._note(self._session)
        return self._session

    def _led(self, known: Progress, held: Lease | None) -> Session:
        """The changefeed, which this instance leads from now on. `known`: its progress as it was read before."""
        while True:
            config, source = self._sides.read_at(known)
            jobs, written, tuning = self._jobs(config), self.display.written, self._tuning
            session = Session(config, source, self._target, jobs, self._step, held, tuning=tuning, written=written)
            if bool(session.progress.archived) == bool(known.archived):
                return session
            session.end()  # another instance went over to the other side meanwhile
            known, held = session.progress, session.lease

    def _jobs(self, config: Config) -> Jobs:
        """What runs the tasks of windows."""
        return SparkJobs(self._spark.context(self._scratch), readers_of(config))

    def _turn(self) -> Lease | None:
        """Wait until this instance may lead; the leadership that it takes over from, if there is one."""
        self.presence.stand_by()
        limits = self.config.limits
        wait = StandBy(self._target, self.config.changefeed, self._redis_lease, limits.lease_seconds, self.stopping)
        return wait.wait(self._patience.succeeded, limits.retry_seconds if self._once else None)

    def _step(self, step: Step) -> None:
        self._steps.done(step)
        self._observe(step)
        if self.stopping.is_set():
            raise Stopped

    def _until_done(self) -> None:
        self._connected()
        if self._caps is None:
            self._caps = self._sides.ends()
        while self._one(to_end=True):
            pass

    def _until_stopped(self) -> None:
        self._connected()
        if self._beside is not None:
            self._beside.start(lambda: self.leads)
        idle_since, busy_until = time.monotonic(), 0.0
        while not self.stopping.is_set():
            if self._beside is not None:
                self._beside.check()
            rested, events = time.monotonic() - idle_since > REST_S, self.outcome.counts.events
            if self._one(to_end=rested):
                idle_since = time.monotonic()
                busy_until = idle_since + BUSY_S if self.outcome.counts.events > events else busy_until
            else:
                is_busy = time.monotonic() < busy_until and not self.config.source.storage
                self.stopping.wait(BUSY_POLL_S if is_busy else POLL_S)

    def _one(self, *, to_end: bool) -> bool:
        session, begun = self._connected(), time.monotonic()
        before = session.progress
        if self.presence.is_superseded:  # where nothing is to be written, nothing else would tell
            raise LeadershipLostError("another instance leads", where=self._target.name)
        with about(window=before.counts.windows + 1):
            if self._sides.goes_back(session):
                self._give_up(Stopped())
                return True
            try:
                more = Round(session).run(self._caps, to_end=to_end, unhurried=not self._once)
            except BeginningLostError as lost:
                self._give_up(Stopped())
                self._sides.go_to_archive(self._connected(), lost)
                self._give_up(Stopped())
                return True
            self._patience.succeeded()
            self.trouble = None
            self._note(session)
            if more:
                self.display.window(before, session.progress, session.probe, time.monotonic() - begun)
        if not more:
            self.display.idle(session.progress, session.probe)
        if session.probe is not None:
            self.stalls.look(session.probe)
        self._publish_status(session)
        return more

    def _note(self, session: Session) -> None:
        self.outcome.counts = session.progress.counts
        self.outcome.checkpoint_ts = session.progress.checkpoint_ts

    def _publish_status(self, session: Session) -> None:
        if session.probe is not None:
            session.ledger.publish(live_status(session.progress, session.probe))
            offsets = {p: at.start for p, at in session.progress.partitions.items()}
            session.source.commit_lazily(offsets)

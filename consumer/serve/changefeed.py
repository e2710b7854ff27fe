"""One changefeed of the process: its file, its runner in a thread, what became of it.

A run that ends with an error that may pass by itself is begun again, after a pause that grows; one that lost its
leadership stands by again; every other error is for an operator, and only `resume` begins again. No error leaves this
module: the other changefeeds go on.
"""

import threading
import time
from pathlib import Path

import structlog

from consumer.config.model import Config, load_config
from consumer.proof.background import Scrubber
from consumer.run.runner import Runner
from consumer.runtime.advice import with_config
from consumer.runtime.logs import about
from consumer.serve.api.asking import ORDER_S, ServerRequests
from consumer.serve.api.errors import ConflictError, NotFoundError, fault_of
from consumer.serve.api.models import Fault, State
from consumer.serve.observed.history import Ring, now
from consumer.serve.observed.run_recorder import RecordedRound, RunRecorder
from consumer.serve.observed.target_poller import TargetPoller
from consumer.serve.waiting import Waiters
from consumer.spark.shared import SharedSpark
from ordering.errors import TRANSIENT, LateEventError, LeaderLivesError, LeadershipLostError, ReconcilerError

_PAUSES_S = (2.0, 5.0, 15.0, 60.0, 300.0)
"""Before a run is begun again; the first after one that had applied something."""
log = structlog.get_logger()


class Feed:
    """A changefeed. Methods may be called from any thread; `name` is its id, or its file's name while that is wrong."""

    def __init__(self, path: Path, spark: SharedSpark) -> None:
        self.path, self._spark = path, spark
        self.name = path.stem
        self.config: Config | None = None
        self.watching, self.ring = RunRecorder(), Ring(path.parent / ".history" / path.stem)
        self.knowing: TargetPoller | None = None
        self.waiters: Waiters | None = None
        self.runner: Runner | None = None
        self.late = 0
        self.operating = threading.Lock()
        """Held by the operation that is done at it."""
        self.set_aside = False
        """Whether an operation has asked it to stop, and no operator: what ends that operation starts it again."""
        self.questions, self.orders = ServerRequests(), ServerRequests(ORDER_S)
        """What the API asks its servers; and what it is told to do, for which there is room whatever is asked."""
        self._error: tuple[BaseException, float] | None = None
        self._next_try: float | None = None
        self._paused = True
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def load(self) -> None:
        """Read the file. Raises ConfigError."""
        self.config = config = load_config(self.path)
        self.name = config.changefeed
        if self.knowing is not None:
            self.knowing.stop()
        self._end_waiting(ConflictError("its config was changed meanwhile", where=self.name, hint="ask again"))
        self.knowing, self.waiters = TargetPoller(config), Waiters(config)
        self.watching.applied = self.waiters.told
        self.knowing.start()

    def _end_waiting(self, error: ReconcilerError) -> None:
        if self.waiters is not None:
            self.waiters.end(error)

    def disown(self) -> None:
        """Look after nothing: the progress of its file's id is another file's."""
        self._end_waiting(ConflictError("its file has another one's id", where=str(self.path), hint="see its status"))
        if self.knowing is not None:
            self.knowing.stop()
        self.knowing = self.waiters = None

    def fail(self, error: BaseException) -> None:
        """Say why it can't run."""
        self._error, self._next_try = (error, now()), None

    def start(self) -> None:
        """Begin to run. Raises ConflictError while a run that was asked to stop has not ended."""
        if self.is_running:
            hint = "wait until its window is finished or rolled back, then try again"
            raise ConflictError("its last run has not ended yet", where=f"changefeed {self.name}", hint=hint)
        self._paused, self._error, self._next_try, self.set_aside = False, None, None, False
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(self._stopping,), name=f"feed-{self.name}", daemon=True)
        self._thread.start()

    def ask_to_stop(self) -> None:
        """Ask the run to end soon; `join` waits for that."""
        self._paused = True
        if self._next_try is not None:
            self._error = self._next_try = None
        self._stopping.set()
        runner = self.runner
        if runner is not None:
            runner.stop()

    def join(self, until: float) -> bool:
        """Wait for the run's end, until a monotonic moment; whether it has ended."""
        if self._thread is not None:
            self._thread.join(max(0.0, until - time.monotonic()))
        return self._thread is None or not self._thread.is_alive()

    def forget(self) -> None:
        """End what looks after it; it must have stopped."""
        self._end_waiting(NotFoundError(f"changefeed {self.name!r} is not here any more", where="changefeed_id"))
        if self.knowing is not None:
            self.knowing.stop()

    @property
    def has_own_id(self) -> bool:
        """Whether its file can be read, and the id in it is no other file's."""
        return self.config is not None and self.config.changefeed == self.name

    @property
    def is_running(self) -> bool:
        """Whether its thread goes on, at work or waiting for the next try."""
        return self._thread is not None and self._thread.is_alive()

    @property
    def goes_on(self) -> bool:
        """Whether it runs, and nobody has asked it to stop: its last window may take long to end."""
        return self.is_running and not self._stopping.is_set()

    @property
    def is_to_run(self) -> bool:
        """Whether it goes on, or an operation alone keeps it from that: not an operator, nor an error."""
        return self.goes_on or (self.set_aside and self._error is None)

    @property
    def error(self) -> BaseException | None:
        """What ended its last run."""
        return None if self._error is None else self._error[0]

    @property
    def leads(self) -> bool:
        """Whether this process leads it now."""
        runner = self.runner
        return runner is not None and runner.leads

    @property
    def last(self) -> RecordedRound | None:
        """What is known of progress and source; inside a window, how far that is."""
        runner = self.runner
        session = None if runner is None else runner.session
        return self.watching.last if session is None else self.watching.known(session)

    @property
    def state(self) -> State:
        """In TiCDC's words."""
        if self._error is not None:
            return "warning" if self._next_try is not None else "failed"
        if self._paused:
            return "stopped"
        if self.runner is not None and self.runner.trouble is not None:
            return "warning"
        return "normal" if self.leads else "pending"

    @property
    def fault(self) -> Fault | None:
        """Why it does not go on, or not now."""
        runner, error, next_try = self.runner, self._error, self._next_try
        if error is not None:
            left = None if next_try is None else max(0.0, round(next_try - time.monotonic(), 1))
            return fault_of(error[0], self.path, error[1], left)
        trouble = None if runner is None else runner.trouble
        return None if trouble is None else fault_of(trouble, self.path, retry_in_s=0.0)

    def _run(self, stopping: threading.Event) -> None:
        with about(changefeed=self.name):
            try:
                self._runs(stopping)
            except Exception as error:
                log.exception("the changefeed has stopped: a bug")
                self.fail(error)

    def _runs(self, stopping: threading.Event) -> None:
        failures = 0
        while not stopping.is_set():
            before = self.watching.rounds
            error = self._one_run(stopping)
            if error is None:
                return
            failures = 1 if self.watching.rounds > before else failures + 1
            pause_s = _pause(error, failures)
            if isinstance(error, ReconcilerError):
                _tell(error, self.path, pause_s)
            self._error = (error, now())
            if pause_s is None:
                return
            self._next_try = time.monotonic() + pause_s
            stopping.wait(pause_s)
            self._error = self._next_try = None

    def _one_run(self, stopping: threading.Event) -> BaseException | None:
        """A run to its end; the error that ended it."""
        if self.config is None:
            raise AssertionError(self.path)
        try:
            spark, beside = self._spark.of(self.name), Scrubber(self.config)
            self.runner = runner = Runner(self.config, self.watching, spark=spark, beside=beside)
            if stopping.is_set():
                return None
            runner.run(once=False, started=time.monotonic())
        except ReconcilerError as error:
            self.late += isinstance(error, LateEventError)
            return error
        except Exception as error:
            log.exception("the changefeed has stopped: a bug")
            return error
        finally:
            self.runner = None
            if self.knowing is not None:
                self.knowing.hurry()
        return None


def _tell(error: ReconcilerError, config: Path, pause_s: float | None) -> None:
    """Log what ended a run: an error where it needs an operator, a warning where it starts again by itself."""
    told = {"error": error.fact, "where": error.where, "hint": with_config(error.hint, config)}
    told = {name: text for name, text in told.items() if text}
    if pause_s is None:
        log.error("the changefeed has stopped", **told)
    else:
        log.warning("the changefeed has stopped, and starts again by itself", **told, in_s=pause_s)


def _pause(error: BaseException, failures: int) -> float | None:
    """Seconds until the next try; None where an operator has to do something first."""
    again = isinstance(error, (*TRANSIENT, LeadershipLostError)) and not isinstance(error, LeaderLivesError)
    return _PAUSES_S[min(failures, len(_PAUSES_S)) - 1] if again else None

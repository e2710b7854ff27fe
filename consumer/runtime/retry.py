"""Tries again what may pass by itself, with backoff and jitter, and says what and why.

What is worth it is what `ordering.errors.TRANSIENT` names: connections and tasks that broke, servers that ask for it,
by their drivers' codes (`sinks.mysql.connection`, `sinks.postgres.connection`, `sinks.sqlite.session`,
`consumer.kafka.admin`). Everything else stops the run at once, with its exit code.
"""

import threading
import time
from collections.abc import Callable
from typing import TypeVar

import structlog
from tenacity import RetryCallState, Retrying, retry_if_exception_type, stop_when_event_set, wait_exponential_jitter
from tenacity.nap import sleep_using_event
from tenacity.stop import stop_base

from consumer.runtime.signals import Stopped
from ordering.errors import TRANSIENT, ConfigError, ReconcilerError

_FIRST_S, _JITTER_S, _LONGEST_S = 0.2, 0.5, 5.0
log = structlog.get_logger()
Done = TypeVar("Done")


class Patience(stop_base):
    """Stops retrying so many seconds after the last success."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.since: float | None = None

    def __call__(self, _state: RetryCallState) -> bool:
        """Whether it is over."""
        now = time.monotonic()
        self.since = now if self.since is None else self.since
        return now - self.since >= self.seconds

    def succeeded(self) -> None:
        """Begin again."""
        self.since = None


def retried(
    work: Callable[[], Done], patience: Patience, stopping: threading.Event, give_up: Callable[[BaseException], None]
) -> Done:
    """Do the work; after a transient error `give_up` what broke, and try again while the patience lasts.

    Raises Stopped if a stop was asked for before, or for an error that came with it, and what the work raises.
    """

    def before_sleep(state: RetryCallState) -> None:
        error = state.outcome.exception() if state.outcome else None
        if error is not None:
            _tell(error, state, patience)
            give_up(error)

    if stopping.is_set():  # what a signal raised may have been swallowed where it arrived: in a finaliser, say
        raise Stopped
    attempts = Retrying(
        retry=retry_if_exception_type(TRANSIENT),
        stop=patience | stop_when_event_set(stopping),
        wait=wait_exponential_jitter(multiplier=_FIRST_S, max=_LONGEST_S, jitter=_JITTER_S),
        sleep=sleep_using_event(stopping),
        before_sleep=before_sleep,
        reraise=True,
    )
    try:
        return attempts(work)
    except (*TRANSIENT, ConfigError) as error:  # the latter: Spark, whose start was cut through
        if stopping.is_set():  # a signal cuts through what libraries were doing, and they call that a failure
            raise Stopped from error
        raise


def _tell(error: BaseException, state: RetryCallState, patience: Patience) -> None:
    fact, where = (error.fact, error.where) if isinstance(error, ReconcilerError) else (str(error), "")
    left = patience.seconds - (time.monotonic() - (patience.since or time.monotonic()))
    log.warning(
        "trying again",
        error=fact,
        where=where,
        kind=type(error).__name__,
        attempt=state.attempt_number,
        in_s=round(state.upcoming_sleep, 1),
        gives_up_in_s=round(max(0.0, left), 1),
    )

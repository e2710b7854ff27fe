"""Whether a changefeed's target holds what an application has written upstream: asked of the target, until it does.

The target alone knows what is applied, and keeps it with the rows. So the answer is right whoever leads, through
crashes and takeovers, and also where the reconciler runs on another machine or not at all.
"""

import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from consumer.config.model import Config, load_config
from consumer.wiring import target_of
from ordering.errors import TRANSIENT, ConfigError, NotAppliedError, ReconcilerError
from ordering.timestamps import LEAST_TSO, MAX_TSO, physical_ms, utc_text

LONGEST_S = 3600.0
_SHORTEST_PAUSE_S, _LONGEST_PAUSE_S, _GROWTH = 0.05, 1.0, 1.5
_FIRST_ANSWER_S = 10.0
"""So long the first answer of the target is waited for, however short the timeout is."""


@dataclass(frozen=True, slots=True)
class Waited:
    """What became of a wait. `checkpoint_ts`: what is applied, 0 where nothing is known of the changefeed."""

    changefeed: str
    tso: int
    checkpoint_ts: int

    @property
    def covered(self) -> bool:
        """Whether every transaction with a commitTs up to `tso` is in the target."""
        return self.checkpoint_ts >= self.tso


@dataclass(frozen=True, slots=True)
class Look:
    """What the target answered: `number` counts looks as they begin, so a look answers whoever asked before it."""

    number: int
    checkpoint_ts: int | None
    error: ReconcilerError | None = None


class TargetLooks:
    """Asks the target again and again, in a thread of its own: nothing else waits for a server that hangs."""

    def __init__(self, config: Config, told: Callable[[Look], None]) -> None:
        self._config, self._told = config, told
        self.begun = 0
        """How many looks have begun."""
        self._wanted, self._stopping = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"waiting-{config.changefeed}", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End soon; a look that hangs is not waited for."""
        self._stopping.set()
        self._wanted.set()

    def hurry(self) -> None:
        """Look soon, and often for a while: somebody has asked, or something was applied."""
        self._wanted.set()

    def _run(self) -> None:
        target, pause_s = target_of(self._config), _SHORTEST_PAUSE_S
        while not self._stopping.is_set():
            hurried = self._wanted.is_set()
            self._wanted.clear()
            self.begun += 1
            try:
                look = Look(self.begun, target.applied(self._config.changefeed))
            except ReconcilerError as error:
                target.close()
                look = Look(self.begun, None, error)
            self._told(look)
            pause_s = _SHORTEST_PAUSE_S if hurried else min(pause_s * _GROWTH, _LONGEST_PAUSE_S)
            if not self._stopping.wait(_SHORTEST_PAUSE_S):
                self._wanted.wait(pause_s - _SHORTEST_PAUSE_S)
        target.close()


def check_tso(tso: int) -> None:
    """Raise ConfigError for what is no commit TSO: a time in ms, say, would always be "covered"."""
    if not LEAST_TSO <= tso <= MAX_TSO:
        hint = "commit_ts of JSON @@tidb_last_txn_info, an integer such as 461234567890123456"
        raise ConfigError(f"{tso} is no TSO", where="tso", hint=hint)


def wait_for(config: Config | Path | str, tso: int, timeout: float = 30.0) -> Waited:
    """Wait until the target holds all that was committed upstream up to `tso`, at most `timeout` seconds.

    `tso`: the commitTs of the application's own transaction. Returns what is known at the end: see `Waited.covered`.
    Raises ConfigError for what is no TSO, and if the changefeed's progress is reset meanwhile; TargetError where
    the target refuses, and TargetUnreachableError if it did not answer at the end.
    """
    known = config if isinstance(config, Config) else load_config(Path(config))
    check_tso(tso)
    if not 0 <= timeout <= LONGEST_S:
        raise ConfigError(f"{timeout} s is no timeout", where="timeout", hint=f"0 to {LONGEST_S:g} seconds")
    found: queue.SimpleQueue[Look] = queue.SimpleQueue()
    looks = TargetLooks(known, found.put)
    looks.start()
    try:
        return _awaited(found, known.changefeed, tso, timeout)
    finally:
        looks.stop()


def check_covered(waited: Waited) -> None:
    """Raise NotAppliedError for what is not covered."""
    if waited.covered:
        return
    if waited.checkpoint_ts:
        behind_s = (physical_ms(waited.tso) - physical_ms(waited.checkpoint_ts)) / 1000
        fact = f"the checkpoint is {waited.checkpoint_ts} ({utc_text(waited.checkpoint_ts)}), {behind_s:.3f} s before"
    else:
        fact = "the target knows nothing of the changefeed yet"
    raise NotAppliedError(fact, where=f"changefeed {waited.changefeed}", hint="`reconciler status` says why it lags")


def _awaited(found: "queue.SimpleQueue[Look]", changefeed: str, tso: int, timeout: float) -> Waited:
    until = time.monotonic() + timeout
    last = _next(found, max(timeout, _FIRST_ANSWER_S))
    checkpoint_ts: int | None = None
    while last is not None:
        if last.error is not None and not isinstance(last.error, TRANSIENT):
            raise last.error
        if last.error is None:
            check_there(changefeed, checkpoint_ts, last.checkpoint_ts)
            checkpoint_ts = last.checkpoint_ts
        waited = Waited(changefeed, tso, checkpoint_ts or 0)
        if waited.covered:
            return waited
        following = _next(found, until - time.monotonic())
        if following is None:
            if last.error is not None:
                raise last.error
            return waited
        last = following
    raise NotAppliedError("the target has not answered in time", where=f"changefeed {changefeed}")


def check_there(changefeed: str, before: int | None, now: int | None) -> None:
    """Raise ConfigError if the progress is gone or has fallen: an operator reset, rewound or deleted it."""
    if before is not None and (now is None or now < before):
        hint = "ask again once the operator says that the copy is right"
        raise ConfigError(f"the progress of changefeed {changefeed!r} was reset", where="target", hint=hint)


def _next(found: "queue.SimpleQueue[Look]", seconds: float) -> Look | None:
    try:
        return found.get(timeout=max(seconds, 0.001))
    except queue.Empty:
        return None

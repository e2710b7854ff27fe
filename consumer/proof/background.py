"""Proving beside a run: a thread of its own, over connections of its own, while this instance leads.

It never ends a run for an error of its own: it says so and tries again. Only a difference may end it, where
`target.on-drift` says so.
"""

import threading
from collections.abc import Callable
from contextvars import copy_context

import structlog

from consumer.config.model import Config
from consumer.kafka.reader import Readers
from consumer.proof.report import Proof, ProofVerdict, repair_hint
from consumer.proof.scrub import Scrub
from consumer.source.continuity import LogControl
from ordering.errors import DriftError, ReconcilerError
from sinks.wording import plural

_LOOK_S = 1.0
_AGAIN_S = 10.0
_JOIN_S = 5.0
log = structlog.get_logger()


class Scrubber:
    """Proves a changefeed's tables while it runs. `control`, `readers`: as in `EventsLog`."""

    def __init__(self, config: Config, control: LogControl | None = None, readers: Readers | None = None) -> None:
        self._config, self._control, self._readers = config, control, readers
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._fault: DriftError | None = None
        self._told = False

    def start(self, leads: Callable[[], bool]) -> None:
        """Begin, if the config says so and it has not begun; it rests while `leads` says no."""
        if self._config.proof.enabled and self._thread is None:
            ours = copy_context()  # its lines name the changefeed as the run's do
            self._thread = threading.Thread(target=ours.run, args=(self._run, leads), name="proof", daemon=True)
            self._thread.start()

    def check(self) -> None:
        """Raise DriftError where a difference is to end the run."""
        if self._fault is not None:
            raise self._fault

    def stop(self) -> None:
        """End; what is being read now is not waited for long."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(_JOIN_S)

    def _run(self, leads: Callable[[], bool]) -> None:
        scrub = Scrub(self._config, self._stopping, self._control, self._readers)
        while not self._stopping.is_set():
            rest_s = _LOOK_S
            if leads():
                try:
                    self._tell(scrub.round())
                    rest_s, self._told = scrub.rest_s, False
                except ReconcilerError as error:
                    self._complain(error)
                    rest_s = _AGAIN_S
                except Exception:
                    log.exception("the tables are proven no more in the background: a bug")
                    return
            self._stopping.wait(rest_s)

    def _complain(self, error: ReconcilerError) -> None:
        if not self._told and not self._stopping.is_set():
            log.warning("the tables can't be proven now", error=error.fact, where=error.where, hint=error.hint)
        self._told = True

    def _tell(self, proof: Proof) -> None:
        wrong = proof.having(ProofVerdict.DIFFERENT)
        for name in wrong:
            found = proof.tables[name][1]
            log.error(
                "the target differs from what the events say",
                table=str(name),
                reason=found.reason or "its sums are others",
                buckets=found.buckets,
                rows=found.rows_found,
                rows_expected=found.rows_expected,
                checkpoint_ts=proof.checkpoint_ts,
                hint=repair_hint(name),
            )
        if wrong and self._config.target.on_drift == "stop":
            fact = f"what the events say is not in {plural(len(wrong), 'table')}: {', '.join(map(str, wrong[:3]))}"
            self._fault = DriftError(fact, where=f"changefeed {self._config.changefeed}", hint=repair_hint(wrong[0]))
        elif equal := proof.having(ProofVerdict.EQUAL):
            log.info("proven equal", tables=len(equal), checkpoint_ts=proof.checkpoint_ts, messages=proof.messages)

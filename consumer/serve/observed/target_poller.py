"""What the target tells about a changefeed besides its rows, read every few seconds, each time over a new connection.

So a request never waits for the target, however slow that is; and a target out of reach leaves the last answer, with
its age.
"""

import threading
import time

import structlog

from consumer.config.model import Config
from consumer.operate.status import TargetState, known_of
from consumer.runtime.logs import about
from consumer.wiring import target_of
from ordering.errors import ReconcilerError

_EVERY_S = 3.0
_SHORTEST_S = 0.5
log = structlog.get_logger()


class TargetPoller:
    """Reads until it is stopped."""

    def __init__(self, config: Config) -> None:
        self._config, self._target = config, target_of(config)
        self.known = TargetState(None, [], {}, [])
        self.read_at: float | None = None
        """Monotonic seconds; None until the target has answered."""
        self._wanted, self._stopping = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"knowing-{config.changefeed}", daemon=True)
        self._told = False

    @property
    def target_name(self) -> str:
        """What errors and status call the target."""
        return self._target.name

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End soon; a look that hangs is not waited for."""
        self._stopping.set()
        self._wanted.set()

    def hurry(self) -> None:
        """Look again soon: something was changed."""
        self._wanted.set()

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._wanted.clear()
            with about(changefeed=self._config.changefeed):
                self._look()
            if not self._stopping.wait(_SHORTEST_S):
                self._wanted.wait(_EVERY_S - _SHORTEST_S)

    def _look(self) -> None:
        try:
            self.known = known_of(self._target, self._config.changefeed)
        except ReconcilerError as error:
            if not self._told:
                log.warning("the state of the target can't be read", error=error.fact, where=error.where)
            self._told = True
        except Exception:
            if not self._told:
                log.exception("the target's state can't be read: a bug")
            self._told = True
        else:
            self.read_at, self._told = time.monotonic(), False
        finally:
            self._target.close()  # a connection that is kept may keep to an old snapshot

"""One server process: started, awaited, stopped, and broken on purpose for fault tests.

Rules: `start` returns only once the server answers in its own protocol, or fails with the log's last lines; `stop`
returns only once the process is gone; no process outlives its starter.
"""

import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

from consumer.embedded import die_with_parent
from consumer.embedded.errors import EmbeddedError

_log = logging.getLogger(__name__)

_POLL_SECONDS = 0.03
_LOG_LINES = 15


@cache
def _spawner(_pid: int) -> ThreadPoolExecutor:
    """The one thread that starts servers in this process.

    The kernel's parent-death signal follows the *thread* that forked: a server restarted by a fault test's short-lived
    thread would die with that thread. Keyed by pid because a forked child inherits the object but not the thread.
    """
    return ThreadPoolExecutor(max_workers=1, thread_name_prefix="embedded-servers")


class ServerProcess:
    """A server in a process group of its own, with a log file, that can be started again and again."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        log: Path,
        ready: Callable[[], bool],
        *,
        start_seconds: float = 180.0,
        stop_seconds: float = 30.0,
        launcher: Sequence[str] = (),
        stop_signal: str = "SIGTERM",
    ) -> None:
        """`ready` tells whether the server answers in its own protocol; it is asked again until it says yes.

        `launcher`: a command that starts the rest of its line, as another user say.
        """
        self.name = name
        self.command = list(command)
        self.log = log
        self._ready = ready
        self._start_seconds = start_seconds
        self._stop_seconds = stop_seconds
        self._launcher = list(launcher)
        self._stop_signal = signal.Signals[stop_signal]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def running(self) -> bool:
        """Whether the process exists (a paused one does)."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """The process id; also the id of its group."""
        return self._started().pid

    def start(self) -> None:
        """Start and wait until the server is ready; nothing happens if it runs already."""
        if not self.running:
            self.log.parent.mkdir(parents=True, exist_ok=True)
            self._process = _spawner(os.getpid()).submit(self._spawn).result()
            self._await_ready(self._process)

    def stop(self) -> None:
        """Ask it to end and wait; force it after the limit. Nothing happens if it does not run."""
        if not self.running:
            return
        self._signal(self._stop_signal)
        self.resume()  # a stopped process takes no signal
        try:
            self._started().wait(self._stop_seconds)
        except subprocess.TimeoutExpired:
            _log.warning("%s did not end within %.0f s and is killed", self.name, self._stop_seconds)
            self.kill()

    def kill(self) -> None:
        """End it as a crash would (SIGKILL)."""
        if self.running:
            self._signal(signal.SIGKILL)
            self._started().wait()

    def restart(self) -> None:
        """Stop and start with the same command: same data, same port."""
        self.stop()
        self.start()

    def pause(self) -> None:
        """Freeze it (SIGSTOP): connections stay open and nothing answers."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let a frozen server go on (SIGCONT)."""
        self._signal(signal.SIGCONT)

    def _spawn(self) -> subprocess.Popen[bytes]:
        # the guard comes behind the launcher: the kernel forgets its setting where the user changes
        guarded = [
            *self._launcher,
            sys.executable,
            "-I",
            "-S",
            die_with_parent.__file__,
            str(os.getpid()),
            *self.command,
        ]
        with self.log.open("ab") as log:
            return subprocess.Popen(  # noqa: S603 - the command is ours
                guarded, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )

    def _await_ready(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + self._start_seconds
        while not self._ready():
            if process.poll() is not None:
                raise self._failure(f"{self.name} ended with code {process.returncode} while starting")
            if time.monotonic() > deadline:
                self.kill()
                raise self._failure(f"{self.name} was not ready within {self._start_seconds:.0f} s")
            time.sleep(_POLL_SECONDS)

    def _failure(self, fact: str) -> EmbeddedError:
        return EmbeddedError(fact, detail=last_lines(self.log), hint=f"the whole log is {self.log}")

    def _signal(self, number: signal.Signals) -> None:
        os.killpg(self.pid, number)

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise EmbeddedError(f"{self.name} was never started")
        return self._process


def last_lines(log: Path, count: int = _LOG_LINES) -> str:
    """The end of a log file without its blank lines, for an error message."""
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    return "\n".join([line for line in lines if line.strip()][-count:])

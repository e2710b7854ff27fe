"""`python -m tests.faults.traced_run`: serves `reconciler run`s that leave a trace of their steps.

The file TRACE holds two bytes, shared memory that outlives the process: the step that was done last, and whether the
checkpoint has moved since the start. With a STEP it sends itself SIGKILL at the n-th such step behind that movement;
`none`: somebody else kills it. Uses a kept JVM if the environment names one.
"""

import mmap
import os
import signal
import sys
import time
import traceback
from pathlib import Path

from consumer.config.model import load_config
from consumer.embedded import die_with_parent
from consumer.run.progress_log import Display
from consumer.run.runner import Runner
from consumer.runtime import logs
from consumer.tuning import Tuning
from ordering.errors import ReconcilerError
from sinks.steps import Step
from tests.faults.kept_spark import attached

STEPS = list(Step)
_MOVING = {Step.COMMITTED, Step.DDL_DONE}


class Trace:
    """The two bytes; the same for who writes and who reads."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            path.write_bytes(bytes(2))
        self._file = path.open("r+b")
        self._bytes = mmap.mmap(self._file.fileno(), 2)

    def reset(self) -> None:
        """Nothing was done."""
        self._bytes[0:2] = bytes(2)

    def close(self) -> None:
        """Give the memory back."""
        self._bytes.close()
        self._file.close()

    @property
    def last(self) -> Step | None:
        """The step that was done last."""
        return STEPS[self._bytes[0] - 1] if self._bytes[0] else None

    @property
    def moved(self) -> bool:
        """Whether the checkpoint has moved since the start."""
        return bool(self._bytes[1])

    def note(self, step: Step) -> None:
        """A step was done."""
        self._bytes[0] = STEPS.index(step) + 1
        if step in _MOVING:
            self._bytes[1] = 1


class Traced:
    """An observer that leaves a trace, and kills its own process."""

    def __init__(self, trace: Trace, step: str, nth: int) -> None:
        self._trace, self._step, self._left = trace, step, nth

    def __call__(self, step: Step) -> None:
        """Note, and crash."""
        moved = self._trace.moved
        self._trace.note(step)
        if moved and step.value == self._step:
            self._left -= 1
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)


def serve() -> None:
    """Fork a driver for each line of stdin, `CONFIG TRACE STEP NTH`; tell its process id and then how it ended.

    What a driver loads it loads once, here: that is two of the three seconds that a start takes.
    """
    for line in sys.stdin:
        if (child := os.fork()) == 0:
            die_with_parent.die_with_parent(os.getppid())
            os._exit(_driver(*line.rstrip("\n").split("\t")))
        print(child, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


def _driver(config: str, trace: str, step: str, nth: str) -> int:
    """Run; the exit code of the command line."""
    logs.set_up(json=False, verbose=False)
    told = load_config(Path(config))
    # in `row` tasks write the small windows of tests too
    tuning = Tuning(small_window=0) if told.target.consistency == "row" else Tuning()
    observer = Traced(Trace(Path(trace)), step, int(nth))
    try:
        runner = Runner(told, Display(), observer, attached(os.environ), tuning=tuning)
        runner.run(once=False, started=time.monotonic())
    except ReconcilerError as error:
        print(f"error: {error}", file=sys.stderr, flush=True)
        return error.exit_code
    except BaseException:  # noqa: BLE001 a forked process must not go on as its parent
        traceback.print_exc()
        return 1
    return 0


if __name__ == "__main__":
    serve()

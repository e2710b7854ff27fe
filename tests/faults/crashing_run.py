"""`python -m tests.faults.crashing_run CONFIG STEP NTH`: `reconciler run --once` that kills itself at a step.

SIGKILL at the n-th time that the step has been done: no clean-up code runs, as in a crash of the machine. STEP `none`:
undisturbed; its last line tells the changefeed's totals. Uses a kept JVM if the environment names one.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

from consumer.config.model import load_config
from consumer.run.progress_log import Display
from consumer.run.runner import Runner
from consumer.runtime import logs
from consumer.tuning import Tuning
from ordering.errors import ReconcilerError
from sinks.steps import Step
from tests.faults.kept_spark import attached


class Crash:
    """An observer that kills its own process."""

    def __init__(self, step: str, nth: int) -> None:
        self._step, self._left = step, nth

    def __call__(self, step: Step) -> None:
        """Count, and crash."""
        if step.value == self._step:
            self._left -= 1
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)


def main() -> int:
    """Run; the exit code of the command line."""
    started = time.monotonic()
    config, step, nth = sys.argv[1:]
    logs.set_up(json=False, verbose=False)
    told = load_config(Path(config))
    # in `row` tasks write the small windows of tests too
    tuning = Tuning(small_window=0) if told.target.consistency == "row" else Tuning()
    runner = Runner(told, Display(), Crash(step, int(nth)), attached(os.environ), tuning=tuning)
    try:
        runner.run(once=True, started=started)
    except ReconcilerError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    counts = runner.outcome.counts
    print(json.dumps({"events": counts.events, "ddls": counts.ddls, "duplicates": counts.duplicates}))
    return 0


if __name__ == "__main__":
    sys.exit(main())

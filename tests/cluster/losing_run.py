"""`python -m tests.cluster.losing_run CONFIG STEP DIRECTORY`: `run --once` that waits at a step, for others to do harm.

Once the step is reached for rows, the file `reached` appears in the directory; it goes on when there is a file `go`.
"""

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
from tests.service.lab import eventually

_PATIENCE_S = 240.0


class Pause:
    """An observer that waits, the first time after the first DDLs were executed."""

    def __init__(self, step: str, directory: Path) -> None:
        self._step, self._directory, self._ready = step, directory, False

    def __call__(self, step: Step) -> None:
        """Note, and wait."""
        self._ready = self._ready or step is Step.DDL_DONE
        if self._ready and step.value == self._step and not (self._directory / "reached").exists():
            (self._directory / "reached").touch()
            eventually("told to go on", (self._directory / "go").exists, _PATIENCE_S)


def main() -> int:
    """Run; the exit code of the command line."""
    started = time.monotonic()
    config, step, directory = sys.argv[1:]
    logs.set_up(json=False, verbose=False)
    tuning = Tuning(small_window=0)  # so that small windows go through the shuffle too
    try:
        runner = Runner(load_config(Path(config)), Display(), Pause(step, Path(directory)), tuning=tuning)
        runner.run(once=True, started=started)
    except ReconcilerError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""`python -m tests.faults.bulk_kills --kills 300 --target mysql`: many kills, counted by where they hit.

As `random_kills`, but the drivers share one JVM, so that a kill costs seconds less. Some kills come from outside at a
random moment behind the first movement of the checkpoint; the others (`--aimed`: their share) are sent where the fewest
have hit so far, right behind a step. The report tells how many hit between each step and the next.
"""

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack, closing
from dataclasses import asdict
from pathlib import Path

from consumer.embedded import KafkaBroker
from sinks.steps import Step
from tests.faults.drivers import Drivers
from tests.faults.kept_spark import kept_spark
from tests.faults.random_kills import TARGETS, Place, Report, started, under_load
from tests.faults.targets import View, wait_until
from tests.faults.traced_run import Trace

_HITS_WITHIN_S = 120.0
_TOLD_EVERY = 50
_AIMED = 0.7
_IN_TASKS = {Step.WINDOW_RECORDED, Step.DELETES_DONE, Step.WRITES_DONE}
_IN_ONE_TRANSACTION = {Step.REDUCED, Step.APPLY_BEGUN, Step.ROWS_WRITTEN, Step.PROGRESS_WRITTEN}


def steps_of(consistency: str) -> list[Step]:
    """The steps that rounds of a consistency have."""
    unused = _IN_ONE_TRANSACTION if consistency == "row" else _IN_TASKS
    return [step for step in Step if step not in unused]


class BulkKills:
    """Kills drivers by the hundred; `hits` counts them by the step that was done last."""

    def __init__(
        self, count: int, seed: int, consistency: str, environment: Mapping[str, str], aimed: float = _AIMED
    ) -> None:
        self._aimed = aimed
        self._count, self._chance, self._environment = count, random.Random(seed), environment
        self.hits: Counter[Step] = Counter(dict.fromkeys(steps_of(consistency), 0))

    def __call__(self, config: Path, view: View, report: Report) -> None:
        """Kill; see `Disturb`."""
        del view
        path = config.with_suffix(".trace")
        with closing(Trace(path)) as trace, Drivers(config.with_suffix(".log"), self._environment) as drivers:
            for _ in range(self._count):
                trace.reset()
                fewest = min(self.hits, key=lambda step: self.hits[step])
                aimed = fewest if self._chance.random() < self._aimed else None
                nth = self._chance.randrange(1, 3)
                pid = drivers.start(config, path, aimed.value if aimed else "none", nth)
                wait_until(lambda: trace.moved, "the checkpoint moves", _HITS_WITHIN_S)
                if aimed is None:
                    time.sleep(self._chance.uniform(0, 1.5))  # the random moment
                    os.kill(pid, signal.SIGKILL)
                if (code := drivers.ended()) != -signal.SIGKILL:
                    raise RuntimeError(f"the driver ended by itself, with {code}")
                self.hits[trace.last or Step.PROBED] += 1
                report.kills += 1
                if report.kills % _TOLD_EVERY == 0:
                    told = {step.value: count for step, count in self.hits.items()}
                    print(f"{report.kills} kills, {report.reads} looks, {told}", file=sys.stderr, flush=True)


def main() -> int:
    """Start servers, kill, and print a JSON line."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.bulk_kills", description=__doc__)
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--target", choices=TARGETS, default="mysql")
    parser.add_argument("--consistency", choices=["snapshot", "transaction", "row"], default="snapshot")
    parser.add_argument("--aimed", type=float, default=_AIMED, help="share of kills sent right behind a step")
    parser.add_argument("--seed", type=int, default=1)
    told = parser.parse_args()
    with ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ticdc-kills-")))
        broker = stack.enter_context(KafkaBroker(place / "kafka"))
        uri = started(told.target, place, stack, flush_at_commit=2)
        killing = BulkKills(told.kills, told.seed, told.consistency, stack.enter_context(kept_spark()), told.aimed)
        where = Place(place, broker.bootstrap, uri, f'consistency = "{told.consistency}"\n')
        report = under_load(where, killing, seed=told.seed, audited=told.consistency != "row")
    hits = {step.value: count for step, count in killing.hits.items()}
    print(json.dumps(asdict(report) | {"consistency": told.consistency, "killed_behind": hits, "right": report.right}))
    return 0 if report.right else 1


if __name__ == "__main__":
    sys.exit(main())

"""`python -m tests.simulation SEED [--histories N]`: run a seed again, or many from it on."""

import argparse
import logging
import sys
import time
import traceback
from collections import Counter

import structlog

from tests.simulation.world import run_seed


def main() -> int:
    """Run and print; 1 if a history went wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation")
    parser.add_argument("seed", type=int)
    parser.add_argument("--histories", type=int, default=1)
    parser.add_argument("--keep-going", action="store_true", help="report every failing seed in one line")
    arguments = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    begun, totals, wrong = time.monotonic(), Counter[str](), 0
    for seed in range(arguments.seed, arguments.seed + arguments.histories):
        try:
            result = run_seed(seed)
        except Exception as error:  # noqa: BLE001 the report is the point
            wrong += 1
            if not arguments.keep_going:
                traceback.print_exc()
                return 1
            print(f"{seed}: {type(error).__name__}: {str(error)[:200]}", flush=True)
            continue
        totals.update(commits=result.commits, rounds=result.rounds, faults=result.faults.total())
    took = time.monotonic() - begun
    print(
        f"{arguments.histories} histories, {wrong} wrong, {dict(totals)};"
        f" {arguments.histories * 60 / took:.0f} histories per minute"
    )
    return min(1, wrong)


if __name__ == "__main__":
    sys.exit(main())

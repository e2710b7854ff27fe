"""The command line of each module that compares random cases with Python."""

import argparse
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

from consumer import native
from consumer.native import LIBRARY, Core, load


def compared(doc: str | None, check_of: Callable[[Core], Callable[[int], int]]) -> int:
    """Compare many cases; `check_of`: what raises for a seed whose case differs, else tells how much the core took."""
    parser = argparse.ArgumentParser(description=doc)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--library", type=Path, default=LIBRARY)
    told = parser.parse_args()
    core, why = load(told.library)
    if core is None:
        print(why)
        return 2
    with patch.object(native, "LIBRARY", told.library):
        taken = sum(map(check_of(core), range(told.first, told.first + told.cases)))
    print(f"{told.cases} cases with {taken} rows: the same")
    return 0

"""Which cells of a product of parameters a run of the tests takes. See docs/development/testing.md.

A test marked `cells("recording", ("target", "consistency"))` has more combinations of its parameters than a run needs.
Each run takes a few of them, so that each recording occurs, and each target in each consistency. Which ones follows
from a seed; the long tests (`--soak`) take all. `cells` without names: one of them is enough for a run. Of what
`by_turns=("recording",)` names a third occurs in each run: for values that differ in little. A test without `cells`
that has TiDB among its targets runs there in a third of the runs, and in each of them on the others; of the cells on
TiDB of one with `cells` a third is enough.

A test of Kafka or Spark without `cells` that has several targets runs on one of them.

A test marked `by_turns` takes seconds, and what it is about is not told by its parameters: of three such tests that are
neighbours one runs; of nine that are marked `by_turns(9)`, for they take half a minute. The long tests (`--soak`) are
all that a run leaves out.

`--sparse` takes a third of the parameters of every test: for a run that is about something else, as `./dev lowest`.
"""

import os
import random
import subprocess
from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import UTC, datetime
from math import ceil
from pathlib import Path
from typing import Any

import pytest

SEED = "TEST_CELLS"
"""The environment variable: a seed, or `all`."""
_ALL = "all"
_SPLITS = ("tidb", "spark")
"""Cells with these marks are chosen apart from the others: they run elsewhere, or show something else."""
_FEEDS = {"feed", "every_feed"}
"""The parameters that are kinds of target."""
_TURNS = 3
"""In how many runs what occurs by turns occurs once, on average."""


def seed() -> str:
    """The seed of this run, also for its other processes: the commit, so that each commit sees other cells."""
    if SEED not in os.environ:
        command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short=10", "HEAD"]
        try:
            told = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
        except (OSError, subprocess.CalledProcessError):  # not a repository
            told = datetime.now(UTC).date().isoformat()
        os.environ[SEED] = told
    return os.environ[SEED]


def half(numbers: range) -> list[int]:
    """Of the seeds of a random test those that are this run's."""
    return sorted(random.Random(f"{seed()} {numbers}").sample(numbers, (len(numbers) + 1) // 2))


def spare(config: pytest.Config, items: Sequence[pytest.Item]) -> Iterator[pytest.Item]:
    """The cells that this run can leave out. None of tests that were named, `file.py::test`."""
    products = defaultdict(list)
    for item in items:
        if item.get_closest_marker("cells") and not item.get_closest_marker("soak"):
            marks = tuple(mark for mark in _SPLITS if item.get_closest_marker(mark))
            products[item.nodeid.partition("[")[0], marks].append(item)
    if seed() == _ALL or any("::" in argument for argument in config.args):
        return
    yield from (item for item in _also_on_tidb(items) if not is_due(f"{seed()} {item.nodeid}"))
    yield from _on_other_targets(items)
    yield from _not_their_turn(items)
    if config.getoption("--sparse"):
        yield from _more_than_a_third(items)
    for (name, marks), cells in products.items():
        told = f"{seed()} {name} {marks}"
        due = turn(set().union(*(facts(item, by_turns=True) for item in cells)), told)
        taken = chosen({item.nodeid: facts(item) | facts(item, by_turns=True) & due for item in cells}, told)
        if "tidb" in marks and any(other == name and "tidb" not in its for other, its in products):
            taken = {str(cell) for cell in turn(taken, told)} if len(taken) >= _TURNS or is_due(told) else set()
        yield from (item for item in cells if item.nodeid not in taken)


def _also_on_tidb(items: Sequence[pytest.Item]) -> Iterator[pytest.Item]:
    """The tests without `cells` of one target after the other, TiDB among them: they cost five times as much there."""
    tests = defaultdict(list)
    for item in items:
        if not item.get_closest_marker("cells") and not item.get_closest_marker("soak"):
            tests[item.nodeid.partition("[")[0]].append(item)
    for same in tests.values():
        on_tidb = [item for item in same if item.get_closest_marker("tidb")]
        if len(on_tidb) < len(same):
            yield from on_tidb


def _on_other_targets(items: Sequence[pytest.Item]) -> Iterator[pytest.Item]:
    """Of the tests of Kafka and Spark: what they are about is the same whatever the target, so each runs on one."""
    tests = defaultdict(list)
    for item in items:
        parameters = getattr(item, "callspec", None)
        names = _FEEDS & set(parameters.params) if parameters else set()
        with_kafka = any(item.get_closest_marker(mark) for mark in ("spark", "kafka"))
        if with_kafka and names and not any(item.get_closest_marker(mark) for mark in ("cells", "soak", "tidb")):
            tests[item.nodeid.partition("[")[0]].append((str(item.callspec.params[names.pop()]), item))
    for name, same in tests.items():
        target = random.Random(f"{seed()} {name}").choice(sorted({target for target, _ in same}))
        yield from (item for other, item in same if other != target)


def _not_their_turn(items: Sequence[pytest.Item]) -> Iterator[pytest.Item]:
    tests = defaultdict(list)
    for item in items:
        mark = item.get_closest_marker("by_turns")
        if mark and not item.get_closest_marker("soak"):
            tests[(*mark.args, _TURNS)[0], item.nodeid.partition("[")[0]].append(item)
    for turns in {turns for turns, _ in tests}:
        names = sorted(name for among, name in tests if among == turns)
        for name in set(names) - of_neighbours(names, turns, seed()):
            yield from tests[turns, name]


def of_neighbours(names: Sequence[str], turns: int, seed: str) -> set[str]:
    """Of each so many neighbours one: neighbours, so that each run sees some of every folder."""
    parts = [names[at : at + turns] for at in range(0, len(names), turns)]
    return {random.Random(f"{seed} {part[0]}").choice(part) for part in parts}


def _more_than_a_third(items: Sequence[pytest.Item]) -> Iterator[pytest.Item]:
    tests = defaultdict(dict)
    for item in items:
        tests[item.nodeid.partition("[")[0]][item.nodeid] = item
    for name, same in tests.items():
        taken = turn(set(same), f"{seed()} {name}")
        yield from (item for nodeid, item in same.items() if nodeid not in taken)


def is_due(name: str) -> bool:
    """Whether it is the turn of what occurs by turns by itself."""
    return random.Random(name).randrange(_TURNS) == 0


def facts(item: Any, *, by_turns: bool = False) -> set[Hashable]:
    """What has to occur somewhere, or does so by turns, of what this cell has."""
    parameters = item.callspec.params
    marks = item.iter_markers("cells")
    told = [name for mark in marks for name in (mark.kwargs.get("by_turns", ()) if by_turns else mark.args)]
    groups = [(name,) if isinstance(name, str) else tuple(name) for name in told]
    return {(group, tuple(repr(parameters[name]) for name in group)) for group in groups}


def turn(found: AbstractSet[Hashable], seed: str) -> set[Hashable]:
    """Of what occurs by turns what is this run's."""
    return set(random.Random(seed).sample(sorted(found, key=repr), ceil(len(found) / _TURNS)))


def chosen(cells: Mapping[str, AbstractSet[Hashable]], seed: str) -> set[str]:
    """Some of the cells, few, in which every fact occurs that occurs in any of them; one, if there are no facts."""
    names = sorted(cells)
    random.Random(seed).shuffle(names)
    missing = set().union(*cells.values())
    taken = set() if missing else set(names[:1])
    while missing:
        best = max(names, key=lambda name: len(cells[name] & missing))  # of equal ones the first in the random order
        taken.add(best)
        missing -= cells[best]
    return taken

"""CPU seconds of tests, with all processes that they start: `--cpu-seconds FILE`. See docs/development/testing.md.

On a machine that others use too, and while tests wait for servers, only CPU time says what a test costs. A worker and
its servers are one tree of processes. Each test is given what the tree used since the test before it ended, so the
start of a server counts for the first test that asks for it, and what it does at its end for nobody.
"""

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

import pytest

_TICKS = os.sysconf("SC_CLK_TCK")
_COLLECTION = "(collection)"
_MOST = 30


def tree_seconds(pid: int) -> float:
    """What a process, its children and theirs have used, those included that have ended and been waited for."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        threads = list(Path(f"/proc/{pid}/task").iterdir())
    except OSError:  # it has ended meanwhile
        return 0.0
    children = chain.from_iterable(map(_children, threads))
    return sum(map(int, fields[11:15])) / _TICKS + sum(map(tree_seconds, children))


def _children(thread: Path) -> list[int]:
    """The processes that a thread has started and that still run."""
    try:
        return [int(child) for child in (thread / "children").read_text().split()]
    except OSError:  # the thread has ended meanwhile, and its process has not
        return []


class CpuSeconds:
    """Adds a line for each test to a file, also from several processes, and sums the file up at the end."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._before = 0.0

    def _take(self, name: str) -> None:
        now = tree_seconds(os.getpid())
        with self._file.open("a") as lines:
            lines.write(f"{max(0, now - self._before):.2f} {name}\n")
        self._before = now

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self) -> None:
        self._take(_COLLECTION)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        found = yield
        self._take(item.nodeid)
        return found

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        terminalreporter.section("CPU seconds")
        for line in summary(self._file.read_text().splitlines()):
            terminalreporter.write_line(line)


def summary(lines: Iterable[str]) -> Iterator[str]:
    """Seconds and number of tests: of all, of each folder, and those that took most."""
    used: Counter[str] = Counter()
    for line in lines:
        seconds, _, name = line.partition(" ")
        used[name] += float(seconds)
    folders, counts = Counter[str](), Counter(map(folder_of, used))
    for name, seconds in used.items():
        folders[folder_of(name)] += seconds
    yield f"{sum(used.values()):8.1f} {len(used):6} tests  in all"
    yield from (f"{seconds:8.1f} {counts[folder]:6} tests  {folder}" for folder, seconds in folders.most_common())
    yield from (f"{seconds:8.1f} {name}" for name, seconds in used.most_common(_MOST))


def folder_of(nodeid: str) -> str:
    """`tests/service/rows` of `tests/service/rows/test_rows.py::test_one`."""
    return nodeid.partition("::")[0].rpartition("/")[0] or nodeid

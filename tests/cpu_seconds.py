"""CPU seconds of tests, with all processes that they start: `--cpu-seconds`. See docs/development/testing.md.

On a machine that others use too, and while tests wait for servers, only CPU time says what a test costs. A worker and
its servers are one tree of processes. Each test is given what the tree used since the test before it ended, so the
start of a server counts for the first test that asks for it, and what it does at its end for nobody.
"""

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

_TICKS = os.sysconf("SC_CLK_TCK")
_COLLECTION = "(collection)"
_SLOWEST = 30


def tree_seconds(pid: int) -> float:
    """What a process, its children and theirs have used, those included that have ended and been waited for."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        children = [
            int(child)
            for task in Path(f"/proc/{pid}/task").iterdir()
            for child in (task / "children").read_text().split()
        ]
    except OSError:  # it has ended meanwhile
        return 0.0
    return sum(map(int, fields[11:15])) / _TICKS + sum(map(tree_seconds, children))


class CpuSeconds:
    """Measures the tests of one process, and adds up what the processes of a run have measured."""

    def __init__(self) -> None:
        self.used: Counter[str] = Counter()
        self.tests: Counter[str] = Counter()
        self._before = 0.0

    def _take(self, name: str) -> None:
        now = tree_seconds(os.getpid())
        self.used[name] += max(0, now - self._before)
        self._before = now

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self) -> None:
        self._take(_COLLECTION)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        found = yield
        self._take(item.nodeid)
        return found

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output["cpu_seconds"] = dict(self.used)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        self.used.update(getattr(node, "workeroutput", {}).get("cpu_seconds", {}))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        folders, counts = Counter[str](), Counter[str]()
        for name, seconds in self.used.items():
            folder = folder_of(name)
            folders[folder] += seconds
            counts[folder] += 1
        terminalreporter.section(f"CPU seconds: {sum(folders.values()):.0f}")
        for folder, seconds in folders.most_common():
            terminalreporter.write_line(f"{seconds:8.1f} {counts[folder]:6} tests  {folder}")
        terminalreporter.section(f"CPU seconds: the {_SLOWEST} largest")
        for name, seconds in self.used.most_common(_SLOWEST):
            terminalreporter.write_line(f"{seconds:8.1f} {name}")
        if path := os.environ.get("CPU_SECONDS_FILE"):
            Path(path).write_text("".join(f"{seconds:.2f} {name}\n" for name, seconds in self.used.most_common()))


def folder_of(nodeid: str) -> str:
    """`tests/service/rows` of `tests/service/rows/test_rows.py::test_one`."""
    return nodeid.partition("::")[0].rpartition("/")[0] or nodeid

"""CPU seconds count the processes that a test starts, and are summed up by folder."""

import subprocess
import sys
from pathlib import Path

from tests.cpu_seconds import summary, tree_seconds

ROOT = Path(__file__).parents[1]
BUSY = "import time\nwhile time.process_time() < 0.3: pass\nprint('done', flush=True)\ninput()"
PARENT = f"""
import os, subprocess, sys
from tests.cpu_seconds import tree_seconds
before = tree_seconds(os.getpid())
child = subprocess.Popen([sys.executable, "-c", {BUSY!r}], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
child.stdout.readline()
while_it_runs = tree_seconds(os.getpid())
child.communicate(b"\\n")
print(while_it_runs - before, tree_seconds(os.getpid()) - before)
"""
"""In a process of its own: servers of other tests may end in this one's tree meanwhile."""


def test_a_child_counts_while_it_runs_and_afterwards() -> None:
    done = subprocess.run([sys.executable, "-c", PARENT], capture_output=True, text=True, check=True, cwd=ROOT)
    while_it_runs, afterwards = map(float, done.stdout.split())
    assert while_it_runs > 0.28  # the clock of processes ticks every hundredth
    assert afterwards > 0.28


def test_a_process_that_is_gone_counts_nothing() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    assert tree_seconds(child.pid) == 0


def test_folders_are_summed_up() -> None:
    lines = [
        "1.00 (collection)",
        "2.50 (collection)",
        "4.00 tests/a/test_x.py::test_1",
        "0.25 tests/a/test_y.py::test_2[b]",
    ]
    assert list(summary(lines))[:3] == [
        "     7.8      3 tests  in all", "     4.2      2 tests  tests/a", "     3.5      1 tests  (collection)",
    ]  # fmt: skip

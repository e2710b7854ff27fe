"""CPU seconds count the processes that a test starts, and are summed up by folder."""

import os
import subprocess
import sys

from tests.cpu_seconds import summary, tree_seconds

BUSY = "import time\nwhile time.process_time() < 0.3: pass\nprint('done', flush=True)\ninput()"


def test_a_child_counts_while_it_runs_and_afterwards() -> None:
    before = tree_seconds(os.getpid())
    child = subprocess.Popen([sys.executable, "-c", BUSY], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdout
    assert child.stdout.readline() == b"done\n"
    while_it_runs = tree_seconds(os.getpid())
    child.communicate(b"\n")
    assert while_it_runs - before >= 0.29
    assert tree_seconds(os.getpid()) - before >= 0.29


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

"""`reconciler demo` as its users start it: a process of its own."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.service.lab import DEADLINE_S

pytestmark = [pytest.mark.service, pytest.mark.spark]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Temporary files go where the test can see that none is left."""
    (tmp_path / "tmp").mkdir()
    return {**os.environ, "TMPDIR": str(tmp_path / "tmp")}


def command(*options: str) -> list[str]:
    return [sys.executable, "-m", "consumer.cli", "demo", *options]


def demo(environment: dict[str, str], *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(*options), env=environment, capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.by_turns(9)
@pytest.mark.cells
@pytest.mark.parametrize(
    "options",
    [("--seed", "7"), ("--consistency", "transaction", "--raw", "--dispatcher", "table", "--keep")],
    ids=["as it comes", "transactions, kept"],
)
def test_target_equals_upstream_after_a_kill(
    environment: dict[str, str], tmp_path: Path, options: tuple[str, ...]
) -> None:
    kept = tmp_path / "kept"
    keeping = [str(kept)] if "--keep" in options else []
    done = demo(environment, "--seconds", "4", *options, *keeping)
    assert done.returncode == 0, done.stdout + done.stderr
    assert any(line.endswith("target = upstream") for line in done.stdout.splitlines()[-2:])  # then what was kept
    assert len(re.findall(r"│ bank\.\S+ .* equal │", done.stdout)) >= 4
    assert "DIFFERENT" not in done.stdout
    assert "kills 1," in done.stdout
    looks, wrong = re.search(r"looks ([\d,]+), wrong totals (\d+)", done.stdout).groups()  # type: ignore[union-attr]
    assert int(looks.replace(",", "")) > 0
    assert int(wrong) == 0
    assert list((tmp_path / "tmp").iterdir()) == []
    assert kept.exists() == bool(keeping)
    if keeping:
        assert (kept / "target" / "bank.sqlite").stat().st_size > 0


def test_a_directory_that_is_not_empty_is_not_taken(environment: dict[str, str], tmp_path: Path) -> None:
    again = demo(environment, "--keep", str(tmp_path))
    assert again.returncode == 2
    assert "is not an empty directory" in again.stderr


@pytest.fixture
def running(environment: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    # Long enough that the demo's own kill, at half of the time, never falls into what a test looks at.
    with subprocess.Popen(command("--seconds", "600"), env=environment, stdout=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


@pytest.mark.by_turns
@pytest.mark.cells
@pytest.mark.parametrize(
    ("number", "moment"),
    [(signal.SIGINT, "a reader adds up all balances"), (signal.SIGTERM, "the reconciler starts")],
    ids=["ctrl-c-at-work", "sigterm-at-the-start"],
)
def test_an_interrupted_demo_leaves_nothing(
    running: subprocess.Popen[str], tmp_path: Path, number: signal.Signals, moment: str
) -> None:
    assert running.stdout is not None
    assert any(moment in line for line in running.stdout)
    children = psutil.Process(running.pid).children(recursive=True)
    assert len(children) >= 3  # Kafka, Redis, the reconciler
    running.send_signal(number)
    running.communicate(timeout=DEADLINE_S)
    assert running.returncode == 130
    _, alive = psutil.wait_procs(children, timeout=DEADLINE_S)
    assert alive == []
    assert list((tmp_path / "tmp").iterdir()) == []

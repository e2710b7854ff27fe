"""Temporary files end with their process, at the latest when the next one starts."""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from consumer.scratch import scratch_directory

KILLED = """
import os, signal, tempfile
from consumer.scratch import scratch_directory
with scratch_directory() as path:
    tempfile.mkstemp()
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


def test_it_holds_what_tempfile_makes_and_is_removed(root: Path) -> None:
    with scratch_directory() as path:
        _, name = tempfile.mkstemp()
        assert Path(name).parent == path
    assert list(root.iterdir()) == []
    assert tempfile.gettempdir() == str(root)


def test_what_a_killed_process_left_is_removed_by_the_next(root: Path) -> None:
    killed = subprocess.run([sys.executable, "-c", KILLED], check=False, env={**os.environ, "TMPDIR": str(root)})
    assert killed.returncode == -signal.SIGKILL
    assert len(list(root.iterdir())) == 1
    with scratch_directory() as path:
        assert list(root.iterdir()) == [path]


@pytest.mark.usefixtures("root")
def test_the_living_keep_theirs() -> None:
    with scratch_directory() as first, scratch_directory() as second:
        assert first.exists()
        assert second.exists()

"""Temporary files end with their process, at the latest when the next one starts."""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from consumer.runtime import scratch
from consumer.runtime.scratch import scratch_directory
from ordering.errors import LocalDiskError

KILLED = """
import os, signal, tempfile
from consumer.runtime.scratch import scratch_directory
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


def test_no_place_for_it_is_a_foreseen_failure(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(root / "missing"))
    with pytest.raises(LocalDiskError, match="missing") as caught, scratch_directory():
        pass
    assert "TMPDIR" in caught.value.hint
    monkeypatch.setattr(tempfile, "tempdir", str(root))
    with scratch_directory() as path:
        assert path.exists()


def test_what_a_killed_process_left_is_removed_by_the_next(root: Path) -> None:
    killed = subprocess.run([sys.executable, "-c", KILLED], check=False, env={**os.environ, "TMPDIR": str(root)})
    assert killed.returncode == -signal.SIGKILL
    assert len(list(root.iterdir())) == 1
    with scratch_directory() as path:
        assert list(root.iterdir()) == [path]


LIVING = """
import sys
from consumer.runtime.scratch import scratch_directory
with scratch_directory() as path:
    print(path, flush=True)
    sys.stdin.read()
"""


def test_the_living_keep_theirs(root: Path) -> None:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    command = [sys.executable, "-c", LIVING]
    with subprocess.Popen(command, text=True, env={**os.environ, "TMPDIR": str(root)}, **pipes) as other:  # type: ignore[call-overload]
        first = Path(other.stdout.readline().strip())
        with scratch_directory() as second:
            assert first.exists()
            assert second.exists()
        assert first.exists()
        other.stdin.close()


def test_several_changefeeds_of_a_process_share_one_until_the_last_ends(root: Path) -> None:
    first, second = scratch_directory(), scratch_directory()
    path = first.__enter__()
    assert second.__enter__() == path
    first.__exit__(None, None, None)
    _, name = tempfile.mkstemp()
    assert Path(name).parent == path
    second.__exit__(None, None, None)
    assert list(root.iterdir()) == []
    assert tempfile.gettempdir() == str(root)


MAKES_MANY = """
import os, signal
from consumer.runtime.scratch import scratch_directory
for _ in range(300):
    if os.fork() == 0:
        with scratch_directory():
            os.kill(os.getpid(), signal.SIGKILL)
    with scratch_directory() as path:
        assert path.exists()
    os.wait()
"""


def test_many_that_start_at_once_leave_each_other_in_peace(root: Path) -> None:
    command = [sys.executable, "-c", MAKES_MANY]
    others = [subprocess.Popen(command, env={**os.environ, "TMPDIR": str(root)}) for _ in range(4)]
    assert [other.wait() for other in others] == [0] * 4


def test_a_leftover_that_is_not_ours_to_look_into_is_left_alone(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = root / "ticdc-reconciler-scratch-theirs"
    theirs.mkdir()

    def refused(*_: object) -> None:  # root may look into everything, so the kernel can't be asked
        raise PermissionError(13, "Permission denied", str(theirs))

    monkeypatch.setattr(scratch, "try_lock_existing", refused)
    with scratch_directory() as path:
        assert path.exists()
    assert theirs.exists()

"""Where test runs keep their files: in memory, if the machine has room there and `TMPDIR` names no other place.

The files of servers and tests are thrown away, and no test is about this machine's disk. With a disk, tests wait for it
more than half of their time.
"""

import os
import shutil
import tempfile
from pathlib import Path

import psutil

_MEMORY = Path("/dev/shm")
_NAME = "ticdc-tests."
_FREE_BYTES = 6 << 30
"""What has to be free, there and in the whole machine; a run takes less than half of it."""


def take_place() -> Path | None:
    """A directory in memory for this run and all that it starts, or None. What ended runs have left is removed."""
    if "TMPDIR" in os.environ or not os.access(_MEMORY, os.W_OK):
        return None
    for left in _MEMORY.glob(f"{_NAME}*"):
        if not psutil.pid_exists(int(left.suffix[1:])):
            shutil.rmtree(left, ignore_errors=True)
    if min(shutil.disk_usage(_MEMORY).free, psutil.virtual_memory().available) < _FREE_BYTES:
        return None
    place = _MEMORY / f"{_NAME}{os.getpid()}"
    place.mkdir(mode=0o711)  # PostgreSQL runs as another user
    os.environ["TMPDIR"] = tempfile.tempdir = str(place)
    return place


def leave_place(place: Path, *, keep: bool) -> None:
    """Use it no longer; `keep` what is in it, until the next run."""
    del os.environ["TMPDIR"]
    tempfile.tempdir = None
    if not keep:
        shutil.rmtree(place, ignore_errors=True)

"""Builds the core for tests, from these sources and with the flags that a test wants."""

import os
import shlex
import shutil
import subprocess
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
STRICT = ("-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror")
_CC = shlex.split(os.environ.get("CC", "cc"))


def can_build() -> bool:
    """Whether there is a compiler."""
    return bool(shutil.which(_CC[0]) or find_spec("ziglang"))


@cache
def sanitizer() -> Path | None:
    """The runtime of the compiler's AddressSanitizer."""
    if not shutil.which(_CC[0]):
        return None
    done = subprocess.run([*_CC, "-print-file-name=libasan.so"], capture_output=True, text=True, check=False)
    found = Path(done.stdout.strip())
    return found if found.is_absolute() else None


@cache
def built(place: Path, *flags: str) -> Path:
    """The library, made with these flags."""
    made = place / "core.so"
    command = [sys.executable, str(ROOT / "native" / "build.py"), str(made), *flags]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{shlex.join(command)}: {done.stderr}"
    return made

"""Drivers by the dozen: forked from a process that has loaded everything. See `traced_run`."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from consumer.embedded import die_with_parent


class Drivers:
    """Starts drivers, one at a time."""

    def __init__(self, log: Path, environment: Mapping[str, str]) -> None:
        guarded = [sys.executable, "-I", "-S", die_with_parent.__file__, str(os.getpid())]
        command = [*guarded, sys.executable, "-m", "tests.faults.traced_run"]
        self._path, self._log = log, log.open("ab")
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, env=environment, text=True
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        self._log.close()

    def start(self, config: Path, trace: Path, step: str = "none", nth: int = 1) -> int:
        """Start one; its process id."""
        if self._process.stdin is None:
            raise RuntimeError("no pipe")
        self._process.stdin.write(f"{config}\t{trace}\t{step}\t{nth}\n")
        self._process.stdin.flush()
        return self._told()

    def ended(self) -> int:
        """Wait for its end; how it ended, negative for a signal."""
        return self._told()

    def said(self) -> str:
        """The end of what they printed."""
        return self._path.read_text(errors="replace")[-3000:]

    def _told(self) -> int:
        if self._process.stdout is None:
            raise RuntimeError("no pipe")
        # Spark's own words go to stdout too
        return next(int(line) for line in self._process.stdout if line.strip().lstrip("-").isdigit())

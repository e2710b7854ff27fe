"""Processes of ours that are started by the hundred: forked from one that has loaded what they import.

Importing is most of what a command of a second or two does. `python -m tests.forked` serves until its stdin ends: for
each line, a JSON object, it forks a process that runs a module's `main`, tells its process id, and then how it ended.
What is about starting itself, or about the process (its environment, its arguments), starts a process as users do.
"""

import atexit
import contextlib
import gc
import importlib
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from consumer.embedded import die_with_parent

_LOADED = (
    *(f"consumer.cli.{name}" for name in ("main", "ddl", "init", "load", "progress", "quarantine", "tail", "verify")),
    "consumer.operate.check", "consumer.operate.status", "consumer.proof.run", "consumer.run.runner",
    "consumer.spark.context", "consumer.wiring", "tests.faults.crashing_run",
)  # fmt: skip


class Forks:
    """Runs processes to their end, one at a time. To be made by a thread that does not end before."""

    def __init__(self) -> None:
        guarded = [sys.executable, "-I", "-S", die_with_parent.__file__, str(os.getpid())]
        self._process = subprocess.Popen(
            [*guarded, sys.executable, "-m", __name__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()

    def run(
        self, module: str, name: str, arguments: Sequence[str], environment: Mapping[str, str], seconds: float
    ) -> "subprocess.CompletedProcess[str]":
        """Run the `main` of a module to its end, as a program of that name. Raises subprocess.TimeoutExpired."""
        with tempfile.TemporaryDirectory() as place:
            told = {"module": module, "name": name, "arguments": list(arguments), "environment": dict(environment)}
            self._tell({**told, "directory": str(Path.cwd()), "place": place})
            child = int(self._answer())
            guard = threading.Timer(seconds, os.kill, (child, 9))
            guard.start()
            code = int(self._answer())
            late = not guard.is_alive()
            guard.cancel()
            out, err = ((Path(place) / name).read_text(encoding="utf-8") for name in ("out", "err"))
        if late:
            raise subprocess.TimeoutExpired([name, *arguments], seconds, out, err)
        return subprocess.CompletedProcess([name, *arguments], code, out, err)

    def _tell(self, order: Mapping[str, Any]) -> None:
        if self._process.stdin is None:
            raise RuntimeError("no pipe")
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()

    def _answer(self) -> str:
        if self._process.stdout is None:
            raise RuntimeError("no pipe")
        return self._process.stdout.readline()


_kept: list[Forks] = []


def forked(
    module: str, name: str, arguments: Sequence[str], environment: Mapping[str, str], seconds: float
) -> "subprocess.CompletedProcess[str]":
    """As `Forks.run`, by one that this process keeps until its end. Not from other threads than its first."""
    if threading.current_thread() is not threading.main_thread():
        raise RuntimeError("processes are forked for the main thread")
    if not _kept:
        _kept.append(Forks())
        atexit.register(_kept[0].__exit__)
    return _kept[0].run(module, name, arguments, environment, seconds)


def serve() -> None:
    """Fork a process for each line of stdin. Returns in the forked ones, after their work: they end as any process."""
    for name in _LOADED:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()  # else each process looks through all of it, and copies it
    for line in sys.stdin:
        if (child := os.fork()) == 0:
            die_with_parent.die_with_parent(os.getppid())
            _become(json.loads(line))
            return
        print(child, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


def _become(order: Mapping[str, Any]) -> None:
    os.environ.clear()
    os.environ.update(order["environment"])
    os.chdir(order["directory"])
    tempfile.tempdir = None
    for number, name, flags in ((0, os.devnull, os.O_RDONLY), (1, "out", os.O_WRONLY), (2, "err", os.O_WRONLY)):
        opened = os.open(Path(order["place"]) / name, flags | (os.O_CREAT if number else 0))
        os.dup2(opened, number)
        os.close(opened)
    sys.argv = [order["name"], *order["arguments"]]
    sys.modules["__main__"].__package__ = None  # else usage texts would name `python -m`
    code = importlib.import_module(order["module"]).main()
    if code:
        sys.exit(code)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        serve()

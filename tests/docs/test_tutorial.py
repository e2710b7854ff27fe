"""The tutorial, command by command in its order: what it shows is what comes out, but for numbers."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from consumer.embedded.ports import lease_port
from tests.docs.test_readme import page
from tests.service.lab import DEADLINE_S, eventually

pytestmark = [pytest.mark.service, pytest.mark.spark]

PAGE = page("tutorial")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
SAVED = re.findall(r"Save this as `(\w+\.py)`:\n\n```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
PROGRAMS = {"reconciler": [sys.executable, "-m", "consumer.cli"], "python3": [sys.executable]}


def words_of(line: str) -> list[str]:
    """A command of the page, with the programs of this environment."""
    program, *words = shlex.split(line)
    return [*PROGRAMS[program], *words]


def pattern(line: str) -> str:
    """A line of output with any numbers in place of its own, and anything in the place of …."""
    return re.sub(r"\d[\d,]*", r"\\d[\\d,]*", re.escape(line.strip()).replace(r"\,", ",").replace("…", ".*"))


class Walk:
    """A terminal in which the tutorial's commands are typed, and one for the sandbox."""

    def __init__(self, place: Path, port: int) -> None:
        self.place, self.port = place, port
        self.env = dict(os.environ)
        self.background: list[subprocess.Popen[str]] = []

    def typed(self, line: str) -> str:
        if line.startswith("reconciler sandbox"):
            return self._sandbox(line)
        if line.endswith(" &"):
            return self._serve(line.removesuffix(" &").replace("8300", str(self.port)))
        if line.startswith("export "):
            name, _, value = line.removeprefix("export ").partition("=")
            self.env[name] = value
            return ""
        if line == "kill -9 %1":  # the only job of that terminal
            service = self.background.pop()
            service.kill()
            service.wait()
            return ""
        done = subprocess.run(words_of(line), cwd=self.place, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == (6 if "--fix-sql" in line else 0), done.stdout + done.stderr
        return done.stdout

    def _started(self, line: str) -> subprocess.Popen[str]:
        log = (self.place / f"{len(self.background)}.log").open("w")
        process = subprocess.Popen(
            words_of(line), cwd=self.place, stdout=subprocess.PIPE, stderr=log, text=True, env=self.env
        )
        self.background.append(process)
        return process

    def _sandbox(self, line: str) -> str:
        process = self._started(line)
        assert process.stdout
        out = ""
        while "config:" not in out:
            told = process.stdout.readline()
            assert told, "the sandbox ended"
            out += told
        return out

    def _serve(self, line: str) -> str:
        """Start it, and wait until it leads and the target says so: who is killed before that was never heard of."""
        process = self._started(line)
        url = f"http://127.0.0.1:{self.port}/api/v2/changefeeds/bank"
        asked = urllib.request.Request(url, headers={"Authorization": f"Bearer {self.env['RECONCILER_TOKEN']}"})

        def leads() -> bool:
            assert process.poll() is None
            try:
                with urllib.request.urlopen(asked, timeout=5) as answer:  # noqa: S310 our own server
                    told = json.load(answer)
            except OSError:  # it does not listen yet, or a busy machine keeps it from answering
                return False
            assert told["state"] != "failed", told["error"]
            return bool(told["state"] == "normal" and told["leads"] and told["leader"])

        eventually("it leads", leads, pause_s=0.2)
        return ""


@pytest.fixture
def walk(tmp_path: Path) -> Iterator[Walk]:
    lease = lease_port()
    walk = Walk(tmp_path, lease.port)
    yield walk
    for process in reversed(walk.background):
        process.send_signal(signal.SIGINT)
    assert [process.wait(DEADLINE_S) for process in reversed(walk.background)] == [0] * len(walk.background)
    lease.release()


def lacking(wanted: list[str], out: str) -> list[str]:
    """Lines of the page that did not come out."""
    return [line for line in wanted if not re.search(pattern(line), out)]


@pytest.mark.by_turns(9)
def test_every_command_does_what_is_shown(walk: Walk) -> None:
    for name, text in SAVED:
        (walk.place / name).write_text(text)
    typed, out = [""], ""
    for language, text in BLOCKS:
        if language == "bash":
            typed = text.splitlines()
            out = "".join(map(walk.typed, typed))
        elif language == "text":
            wanted = text.splitlines()
            # the page says to wait: a killed leader counts until its lease is over
            deadline = time.monotonic() + DEADLINE_S
            while lacking(wanted, out) and typed[-1].startswith("reconciler status") and time.monotonic() < deadline:
                time.sleep(2)  # each look is a start of the program
                out = walk.typed(typed[-1])
            assert lacking(wanted, out) == [], f"not in:\n{out}"
    assert len(SAVED) == 2
    assert len(walk.background) == 1, "the service was killed, the sandbox runs"

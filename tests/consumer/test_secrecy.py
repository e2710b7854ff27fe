"""Other processes see no variable that a config took; our own environment stays as it is meanwhile."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from consumer.config_text import values_of
from consumer.secrecy import ProcessArguments, visible


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> str:
    name = "A_SECRET_OF_TESTS"
    monkeypatch.setenv(name, "hidden")
    values_of('target = { uri = "mysql://u:${A_SECRET_OF_TESTS}@h" }', Path("x.toml"))
    return name


def test_a_variable_that_a_config_took_is_not_visible(taken: str) -> None:
    assert taken not in visible(os.environ)
    assert visible(os.environ)["PATH"] == os.environ["PATH"]


def test_a_library_that_passes_our_environment_on_passes_the_visible_part(taken: str) -> None:
    """PySpark sets `env` itself, last, as here; taking the variables away meanwhile would hide them from others."""
    arguments = ProcessArguments(stdout=subprocess.PIPE)
    arguments["env"] = dict(os.environ)
    seen = subprocess.run(
        [sys.executable, "-c", "import os; print(*os.environ)"], check=True, **arguments
    ).stdout.split()
    assert taken.encode() not in seen
    assert b"PATH" in seen
    assert os.environ[taken] == "hidden"

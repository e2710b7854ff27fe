"""`docs/serve.md` tells the truth: its routes, keys, metrics and states are all of them; its commands run."""

import re
import shlex
import subprocess
from pathlib import Path
from typing import Any, get_args

import pytest

from consumer.serve import server
from consumer.serve.api.models import State
from consumer.serve.app import application
from consumer.serve.config.changes import REFUSED
from consumer.serve.fleet import Fleet
from consumer.serve.metrics import FleetCollector
from consumer.serve.settings import load_settings
from tests.docs.test_readme import README, ROOT, check_command_line, words_of
from tests.service.lab import eventually
from tests.serving.conftest import Client
from tests.serving.lab import TOKEN, Serving

TEXT = (ROOT / "docs" / "serve.md").read_text()
CONFIG = """\
changefeed = "orders"
source = { bootstrap-servers = "127.0.0.1:1", topics = ["t"] }
target = { uri = "sqlite:///PLACE" }
redis = { uri = "" }
"""


def block(language: str, number: int = 0) -> str:
    found: list[str] = re.findall(rf"^```{language}\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
    return found[number]


def section(heading: str) -> str:
    return re.split(rf"^## {re.escape(heading)}\n", TEXT, flags=re.MULTILINE)[1].split("\n## ")[0]


@pytest.mark.parametrize("text", sorted(set(re.findall(r"`(reconciler\s[^`]+)`", TEXT))))
def test_its_commands_exist(text: str) -> None:
    arguments = {
        "ddl skip": ["CONFIG", "1"],
        "status --json": ["CONFIG"],
        "quarantine replay": ["CONFIG"],
        "serve DIR": [],
        "run": ["CONFIG"],
    }
    words = words_of(text)
    check_command_line(words + arguments.get(" ".join(words), []))


def test_it_is_found() -> None:
    assert "docs/serve.md" in README


def test_its_routes_are_all(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path, tmp_path)
    app = application(fleet, server.Access("", loopback=True))
    paths: dict[str, Any] = Client(app, {}).get("/openapi.json").json()["paths"]
    real = {
        f"{verb.upper()} {path.replace('changefeed_id', 'id')}"
        for path, verbs in paths.items()
        for verb in verbs
        if path.startswith("/api/v2/changefeeds")
    }
    told = set()
    for line in re.findall(r"^\| `((?:GET|POST|PUT|DELETE) [^|]*) \|", section("API"), re.MULTILINE):
        first, *others = re.findall(r"[^`]+", line.replace("`, `", "`"))
        path = first.partition("?")[0]
        told |= {path, *(path.rpartition("/")[0] + other.removeprefix("...") for other in others if "..." in other)}
    assert told == real


def test_its_metrics_are_all(tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text("broken")
    fleet = Fleet(tmp_path, tmp_path)
    fleet.add(tmp_path / "x.toml")
    suffix = {"counter": "_total", "info": "_info"}
    real = {
        f"{family.name.removeprefix('ticdc_reconciler_')}{suffix.get(family.type, '')}"
        for family in FleetCollector(fleet).collect()
    }
    cells = [line.split("|")[1] for line in section("Metrics").splitlines() if line.startswith("| `")]
    assert {name for cell in cells for name in re.findall(r"`(\w+)`", cell)} == real


def test_its_states_and_keys_are_all() -> None:
    states = re.findall(r"^\| `(\w+)` \| ", section("What one process shares"), re.MULTILINE)
    assert set(states) == set(get_args(State))
    assert all(f"`{key}`" in section("API") for key in REFUSED)


def test_its_settings_are_read(tmp_path: Path) -> None:
    (tmp_path / "_serve.toml").write_text(block("toml"))
    settings = load_settings(tmp_path)
    assert (settings.paused, settings.spark.settings) == (["orders"], {"spark.driver.memory": "2g"})
    assert (settings.api.variables, settings.api.files) == (["ORDERS_*"], ["/run/secrets/orders-*"])
    assert settings.api.claim_check_locations == ["s3://bucket/orders"]


def test_its_requests_are_answered(tmp_path: Path) -> None:
    """Each line is run as it stands, one after the other."""
    folder = tmp_path / "changefeeds"
    folder.mkdir()
    (folder / "_serve.toml").write_text('[spark]\nmaster = "local[1]"\n')
    (tmp_path / "orders.toml").write_text(CONFIG.replace("PLACE", str(tmp_path / "target")))
    start, run = block("bash").splitlines()
    assert start == "export RECONCILER_TOKEN=$(openssl rand -hex 32)"
    check_command_line(shlex.split(run)[1:])
    with Serving(folder) as serving:
        for line in block("bash", 1).splitlines():
            here = line.replace("http://127.0.0.1:8300/", serving.url).replace("curl -sS", "curl -sS --fail-with-body")
            done = subprocess.run(
                ["bash", "-c", here], cwd=tmp_path, env={"PATH": "/usr/bin:/bin", "RECONCILER_TOKEN": TOKEN},
                capture_output=True, text=True, timeout=60, check=False,
            )  # fmt: skip
            assert done.returncode == 0, f"{here}\n{done.stdout}{done.stderr}"
            # Spark has started then: nobody waits for that at a pause
            eventually(
                "it has begun", lambda: "pending" not in {one["state"] for one in serving.ask("GET", "")["items"]}
            )
        assert not (folder / "orders.toml").exists()

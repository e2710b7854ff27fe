"""`--json` everywhere: every command that tells something has it, and prints nothing but JSON then."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import pytest
from click.testing import CliRunner

from consumer.cli import shared
from consumer.cli.main import main
from consumer.operate import check, decisions, progress
from ordering.errors import SourceUnreachableError
from ordering.progress import Progress
from ordering.timestamps import CheckpointTs
from tests.consumer.cli.test_manners import ALL, reconciler

TELLS_NOTHING = {
    "demo": "a show for people; its exit code tells how it ended",
    "sandbox": "servers for people to try commands on, until stopped",
    "serve": "runs until stopped; --log-format json",
    "completion": "a shell's script",
    "help": "pages for people",
    "progress export": "JSON in any case",
}
CONFIG = """\
changefeed = "orders"
source = { bootstrap-servers = "127.0.0.1:1", topics = ["t"] }
target = { uri = "sqlite:////nowhere" }
redis = { uri = "" }
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "orders.toml").write_text(CONFIG)
    return tmp_path / "orders.toml"


def told(*arguments: object, code: int = 0) -> Any:
    done = reconciler(*arguments, "--json")
    assert done.exit_code == code, done.output
    return json.loads(done.stdout)


def has_json(command: click.Command) -> bool:
    return any("--json" in option.opts for option in command.params)


def test_every_command_that_tells_something_has_it() -> None:
    assert {" ".join(path) for path, command in ALL if not has_json(command)} == set(TELLS_NOTHING)


def test_check_tells_each_finding(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = SourceUnreachableError("Kafka is out of reach", where="127.0.0.1:1", hint="start it")
    found = [check.Finding("config", "fine"), check.Finding("kafka", str(gone), gone)]
    monkeypatch.setattr(check, "findings", lambda _: iter(found))
    fine, kafka = told("check", config, code=3)
    assert fine == {"subject": "config", "ok": True, "fact": "fine", "where": "", "hint": "", "exit_code": 0}
    assert kafka == {
        "subject": "kafka", "ok": False, "fact": "Kafka is out of reach", "where": "127.0.0.1:1", "hint": "start it",
        "exit_code": 3,
    }  # fmt: skip
    lines = reconciler("check", config).stdout.splitlines()
    assert lines[:2] == ["ok   config: fine", "FAIL kafka: Kafka is out of reach (127.0.0.1:1)"]


def test_init_tells_the_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    assert told("init", file) == {"file": str(file), "changefeed": "mine"}


def test_what_is_decided_is_told(config: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(decisions, "decide_ddl", lambda *_: SimpleNamespace(sql="DROP VIEW v"))
    monkeypatch.setattr(decisions, "retire_topic", lambda *_: None)
    monkeypatch.setattr(decisions, "return_topic", lambda *_: None)
    monkeypatch.setattr(progress, "reset_progress", lambda _: None)
    monkeypatch.setattr(progress, "import_progress", lambda *_: None)
    export = SimpleNamespace(progress=Progress(CheckpointTs(7 << 18)))
    monkeypatch.setattr(progress, "read_export", lambda *_: export)
    (tmp_path / "export.json").write_text("{}")
    for word, becomes in (("skip", "skipped"), ("done", "done")):
        expected = {"commit_ts": 5, "statement": "DROP VIEW v", "becomes": becomes}
        assert told("ddl", word, config, 5) == expected
    assert told("topic", "retire", config, "t") == {"topic": "t", "retired": True}
    assert told("topic", "return", config, "t") == {"topic": "t", "retired": False}
    assert told("progress", "reset", config, "--yes")["checkpoint_ts"] == 0
    imported = told("progress", "import", config, tmp_path / "export.json", "--yes")
    assert imported == {"checkpoint_ts": 7 << 18, "checkpoint_time": "1970-01-01 00:00:00.007"}


def test_an_error_is_a_text_on_stderr_and_stdout_stays_empty(config: Path) -> None:
    done = reconciler("progress", "reset", config, "--json")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith("error: ")


@pytest.mark.parametrize(("answer", "options", "retired"), [("y", [], True), ("n", [], False), ("", ["--yes"], True)])
def test_retiring_asks_on_a_terminal(
    config: Path, monkeypatch: pytest.MonkeyPatch, answer: str, options: list[str], retired: bool
) -> None:
    done_to: list[str] = []
    monkeypatch.setattr(decisions, "retire_topic", lambda _, name: done_to.append(name))
    monkeypatch.setattr(shared, "is_asked", lambda: True)
    done = CliRunner().invoke(main, ["topic", "retire", str(config), "old", *options], input=answer)
    assert done_to == (["old"] if retired else [])
    assert done.exit_code == (0 if retired else 2)
    assert ("Retire it? [y/N]" in done.output) == (not options)
    assert ("topic return" in done.output) == retired

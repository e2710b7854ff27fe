"""What others wrote never commands a terminal: every command, errors, log lines, tracebacks."""

import json
import logging
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import structlog
from click.testing import Result

from consumer.cli import progress
from consumer.operate import check, decisions, quarantine, status, tail
from consumer.runtime import logs, terminal
from consumer.verify import run
from ordering.errors import ConfigError, InputError
from ordering.events import Position, TableName
from ordering.quarantine import Quarantined
from tests.consumer.cli.test_json import CONFIG
from tests.consumer.cli.test_manners import reconciler
from tests.test_architecture import ROOT, name_of

HOSTILE = (
    "a\x1b[2J\x1b]0;title\x07\x1b]52;c;ZXZpbA==\x07\x9b31m\x90\x85\x7f\x00\r\x08"
    "\u202eedoc\u2066x\u2069\u200f\u2028\u2029z"
)
FORGED = f"{HOSTILE}\nok   forged: line"
COMMANDING = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\u2028\u2029]")
DDL = {
    "commit_ts": 1, "time": "t", "state": "ignored", "duration_ms": 1, "reason": FORGED, "executed": FORGED,
    "statement": FORGED, "database": FORGED,
}  # fmt: skip
STATUS: dict[str, Any] = {
    "changefeed": FORGED, "state": "known", "target": FORGED, "retired_topics": [FORGED], "archived": FORGED,
    "last_stop": {"at": FORGED, "exit_code": 3, "error": FORGED},
    "checkpoint_ts": 1, "checkpoint_time": "t", "updated_at": "t",
    **dict.fromkeys(("events", "duplicates", "duplicates_proven", "filtered", "quarantined"), 0),
    "rows_written": 0, "ddls": 0, "windows": 0, "leader_epoch": 1, "ledger": {"state": FORGED},
    "core": {"used": False, "why": FORGED},
    "leader": {"name": FORGED, "silent_seconds": 1}, "stand_bys": [{"name": FORGED}], "ddl_history": [DDL],
    "drift": [{"table": FORGED, "missing": 1, "unexpected": 1}],
    "proof": [
        {"table": FORGED, "verdict": verdict, "reason": FORGED, "checkpoint_time": "t", "rows": 1, "rows_expected": 2,
         "buckets": [1], "columns_left_out": [FORGED]}
        for verdict in ("equal", "different", "unproven")
    ],
    "source": {"state": FORGED, "held_back_by": [FORGED], "partitions": [{
        "topic": FORGED, "partition": 0, "offset": 0, "end_offset": 0, "resolved_time": "t",
        "watermark_age_seconds": 0,
    }]},
}  # fmt: skip
MESSAGE = Quarantined(Position("t", 0, 1), FORGED, 1, FORGED.encode(), FORGED.encode() + b"\xff\xc2\x9b", about=FORGED)
TAILED = [
    tail.Told(Position("t", 0, 1), 1, FORGED, 1, TableName(FORGED, FORGED), {FORGED: FORGED, "b": [FORGED]}),
    tail.Told(Position("t", 0, 2), 1, "?", raw=FORGED.encode(), error=FORGED),
]
COMMANDS = {
    "ddl list": ["ddl", "list", "CONFIG"],
    "ddl skip": ["ddl", "skip", "CONFIG", "1"],
    "quarantine list": ["quarantine", "list", "CONFIG"],
    "quarantine show": ["quarantine", "show", "CONFIG", "t/0/1"],
    "quarantine replay": ["quarantine", "replay", "CONFIG"],
    "tail": ["tail", "t", "--bootstrap-servers", "127.0.0.1:1"],
    "check": ["check", "CONFIG"],
    "status": ["status", "CONFIG"],
    "verify": ["verify", "CONFIG", "--replay"],
    "an error": ["progress", "export", "CONFIG"],
}
PRINTS_NOTHING_OF_OTHERS = {"consumer/runtime/terminal.py", "consumer/cli/completion.py", "consumer/demo/shop_load.py"}


class Verification:
    """One that found what it was given."""

    def __init__(self, *_: object) -> None:
        pass

    def run(self) -> SimpleNamespace:
        return SimpleNamespace(lines=lambda: [FORGED], as_json=lambda: {"x": FORGED}, differs=True, fact=FORGED)


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A config whose world says hostile things only."""
    refusal = InputError(FORGED, where=FORGED, hint=FORGED)

    def refuse(*_: object) -> None:
        raise refusal

    monkeypatch.setattr(decisions, "ddl_log", lambda *_: [DDL])
    monkeypatch.setattr(status, "told_of", lambda record: record)
    monkeypatch.setattr(status, "status_of", lambda *_: STATUS)
    monkeypatch.setattr(decisions, "decide_ddl", lambda *_: SimpleNamespace(sql=FORGED))
    monkeypatch.setattr(quarantine, "listed", lambda *_: [MESSAGE])
    monkeypatch.setattr(quarantine, "message_of", lambda *_: MESSAGE)
    verdict = SimpleNamespace(position=MESSAGE.position, state=MESSAGE.state, why=FORGED)
    monkeypatch.setattr(quarantine, "replay", lambda *_: [verdict])
    monkeypatch.setattr(tail.Tail, "messages", lambda *_, **__: iter(TAILED))
    found = [check.Finding(FORGED, HOSTILE), check.Finding("kafka", str(ConfigError(HOSTILE)), ConfigError(FORGED))]
    monkeypatch.setattr(check, "findings", lambda _: iter(found))
    monkeypatch.setattr(run, "Verification", Verification)
    monkeypatch.setattr(progress, "load_config", refuse)
    (tmp_path / "orders.toml").write_text(CONFIG)
    return tmp_path / "orders.toml"


def ran(name: str, config: Path, *more: str) -> Result:
    done = reconciler(*(str(config) if word == "CONFIG" else word for word in COMMANDS[name]), *more)
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    assert done.output
    return done


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_prints_nothing_that_commands(name: str, config: Path) -> None:
    done = ran(name, config)
    assert COMMANDING.search(done.output) is None, ascii(done.output)
    assert "\\x1b[2J" in done.output


@pytest.mark.parametrize("name", set(COMMANDS) - {"check", "verify", "an error"})
def test_no_line_can_be_forged(name: str, config: Path) -> None:
    assert re.search("^ok   forged", ran(name, config).stdout, re.MULTILINE) is None


@pytest.mark.parametrize("name", set(COMMANDS) - {"an error"})
def test_json_is_json_and_harmless(name: str, config: Path) -> None:
    text = ran(name, config, "--json").stdout
    assert COMMANDING.search(text) is None, ascii(text)
    told = [json.loads(line) for line in text.splitlines()] if name == "tail" else json.loads(text)
    assert told


def test_json_means_the_same() -> None:
    for indent in (False, True):
        assert json.loads(terminal.safe_json({FORGED: [FORGED, "ä😀\\"]}, indent=indent)) == {FORGED: [FORGED, "ä😀\\"]}


@pytest.mark.parametrize("lines", [False, True])
def test_every_character_that_commands_is_escaped(lines: bool) -> None:
    everything = "".join(map(chr, [*range(0x3000), *range(0xD7F0, 0xE010), 0x1F600]))
    text = terminal.safe(everything, lines=lines)
    assert COMMANDING.search(text) is None
    assert ("\n" in text) is lines
    text.encode()
    assert terminal.safe("äöß€😀") == "äöß€😀"


def raise_it(text: str) -> None:
    raise ValueError(text)


def test_logs_on_a_console(capsys: pytest.CaptureFixture[str]) -> None:
    root = logging.getLogger()
    before, hook = (root.level, list(root.handlers)), sys.excepthook
    try:
        logs.set_up(json=False, verbose=True)
        structlog.get_logger().warning(FORGED, table=FORGED, many=[FORGED])
        logging.getLogger("x").warning("%s", FORGED)
        try:
            raise_it(FORGED)
        except ValueError as error:
            structlog.get_logger().exception("failed")
            sys.excepthook(ValueError, error, error.__traceback__)
    finally:
        root.level, root.handlers[:] = before
        sys.excepthook = hook
    text = capsys.readouterr().err
    assert COMMANDING.search(text) is None, ascii(text)
    assert text.count("\\x1b[2J") >= 6


def test_nothing_else_prints() -> None:
    """The net: whatever prints goes through `consumer.runtime.terminal`; the demo shows its own rows only."""
    printing = re.compile(r"click\.s?echo|click\.secho|(?<![\w.])print\(|std(?:out|err)\.write")
    found = {
        name_of(path)
        for path in (ROOT / "consumer").rglob("*.py")
        if printing.search(re.sub(r'""".*?"""', "", path.read_text(), flags=re.DOTALL))
    }
    ours = {"consumer/reference/__main__.py", "tests/embedded/tidb_build.py", "consumer/spark/executor_pod.py"}
    assert found - ours == PRINTS_NOTHING_OF_OTHERS


@pytest.mark.parametrize("indent", [True, False])
def test_json_holds_names_that_are_no_utf_8(indent: bool) -> None:
    told = {"file": "a\udcff.sql", "rows": 3, "more": ["\x1b", None]}
    assert json.loads(terminal.safe_json(told, indent=indent)) == told

"""The texts in docs/ tell the truth: their commands run, in their order, against a real topic and target."""

import re
import shlex
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner

from consumer.cli.main import main
from ordering.errors import NotAppliedError
from tests.service.lab import Feed
from tests.service.messages import at, begun, insert, watermarks

pytestmark = [pytest.mark.service, pytest.mark.kafka]
DOCS = Path(__file__).parents[3] / "docs"


def blocks(name: str, language: str) -> str:
    """What stands in all blocks of a language, one after the other."""
    return "".join(re.findall(rf"^```{language}\n(.*?)^```", (DOCS / name).read_text(), re.MULTILINE | re.DOTALL))


def run(line: str, place: Path, code: int = 0) -> str:
    """A line of the text, with its `> FILE`."""
    command, _, file = line.partition(" > ")
    done = CliRunner().invoke(main, shlex.split(command)[1:])
    assert done.exit_code == code, f"{line}: {done.output}"
    if file:
        (place / file).write_text(done.stdout)
    return str(done.stdout)


def test_the_commands_of_recovery_run(sqlite_feed: Feed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    feed = sqlite_feed
    feed.send(begun())
    feed.once()
    feed.send([insert("d.t", 4, 1, id=2, v=2), *watermarks(5)])
    feed.once()
    feed.file().rename(tmp_path / "orders.toml")
    monkeypatch.chdir(tmp_path)
    lines = blocks("recovery.md", "bash").splitlines()
    told = [run(line.replace("463139414630400001", str(at(3))), tmp_path) for line in lines]
    assert [shlex.split(line)[2] for line in lines] == ["show", "export", "import", "rewind", "reset"]
    assert str(at(5)) in told[0]
    assert str(at(3)) in told[3]
    assert feed.checkpoint() == 0


def test_the_commands_of_the_quarantine_run(sqlite_feed: Feed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    feed = sqlite_feed.with_(**tomllib.loads(blocks("quarantine.md", "toml")))
    feed.send(begun())
    feed.send_raw(1, b"{")
    feed.once()
    feed.file().rename(tmp_path / "orders.toml")
    monkeypatch.chdir(tmp_path)
    place = f"{feed.topic}/1/1"
    lines = blocks("quarantine.md", "bash").splitlines()
    codes = {"replay": NotAppliedError.exit_code}  # the message stays as it is
    told = [run(line.replace("ticdc-test/0/42", place), tmp_path, codes.get(line.split()[2], 0)) for line in lines]
    assert [shlex.split(line)[2] for line in lines] == ["list", "show", "replay", "discard"]
    assert all(place in text for text in told)
    assert feed.status()["quarantine"]["discarded"] == 1

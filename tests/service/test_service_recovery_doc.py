"""docs/recovery.md tells the truth: its commands run, in its order, against a real topic and target."""

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from consumer.cli import main
from tests.service.lab import Feed
from tests.service.messages import at, begun, insert, watermarks

pytestmark = [pytest.mark.service, pytest.mark.spark]
TEXT = (Path(__file__).parent.parent.parent / "docs" / "recovery.md").read_text()
LINES = [
    line for block in re.findall(r"^```bash\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL) for line in block.splitlines()
]


def run(line: str, place: Path) -> str:
    """A line of the text, with its `> FILE`."""
    command, _, file = line.partition(" > ")
    done = CliRunner().invoke(main, shlex.split(command)[1:])
    assert done.exit_code == 0, f"{line}: {done.output}"
    if file:
        (place / file).write_text(done.stdout)
    return str(done.stdout)


def test_the_commands_run(sqlite_feed: Feed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    feed = sqlite_feed
    feed.send(begun())
    feed.once()
    feed.send([insert("d.t", 4, 1, id=2, v=2), *watermarks(5)])
    feed.once()
    feed.file().rename(tmp_path / "orders.toml")
    monkeypatch.chdir(tmp_path)
    told = [run(line.replace("463139414630400001", str(at(3))), tmp_path) for line in LINES]
    assert [shlex.split(line)[2] for line in LINES] == ["show", "export", "import", "rewind", "reset"]
    assert str(at(5)) in told[0]
    assert str(at(3)) in told[3]
    assert feed.checkpoint() == 0

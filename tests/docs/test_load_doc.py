"""Commands in `docs/load.md` exist; the fields of its JSON object and its advice are the program's."""

import re
import shlex
from pathlib import Path

from consumer.load.run import LoadOutcome
from tests.docs.test_readme import check_command_line

DOC = (Path(__file__).parent.parent.parent / "docs" / "load.md").read_text()


def test_commands_exist() -> None:
    lines = [
        line
        for block in re.findall(r"^```bash\n(.*?)^```", DOC, re.MULTILINE | re.DOTALL)
        for line in block.splitlines()
    ]
    assert lines
    for line in lines:
        program, *words = shlex.split(line)
        assert program == "reconciler"
        check_command_line(words)
    check_command_line(["progress", "reset", "CONFIG", "--yes"])
    assert "`reconciler progress reset CONFIG --yes`" in DOC


def test_every_field_is_documented() -> None:
    assert f"`{', '.join(LoadOutcome(0).as_json())}`" in DOC

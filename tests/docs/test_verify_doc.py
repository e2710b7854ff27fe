"""`docs/verify.md` tells the truth: its commands and options exist, its numbers are the code's."""

import re

import click
import pytest

from consumer.cli.verify import verify
from consumer.verify import narrow, plan, sides
from ordering.errors import DifferencesError
from sinks.compare import digests
from tests.docs.test_readme import README, ROOT, check_command_line, words_of

TEXT = (ROOT / "docs" / "verify.md").read_text()
COMMANDS = [line for block in re.findall(r"```bash\n(.*?)```", TEXT, re.DOTALL) for line in block.splitlines()]


@pytest.mark.parametrize("line", COMMANDS)
def test_its_commands_exist(line: str) -> None:
    check_command_line(words_of(line))


def test_every_option_is_told() -> None:
    options = [opt for p in verify.params if isinstance(p, click.Option) for opt in p.opts]
    assert [option for option in options if f"`{option}" not in TEXT] == []
    assert set(re.findall(r"`(--[a-z-]+)", TEXT)) <= set(options)


def test_it_is_found_and_its_numbers_are_the_code_s() -> None:
    assert "docs/verify.md" in README
    assert f"{4 * digests.DIGITS} bits" in TEXT
    assert f"({plan.CHUNK_ROWS:,})" in TEXT
    assert f"({sides._WAIT_S:.0f} s)" in TEXT
    assert f"{narrow.MOST_ROWS // 1_000_000} million rows" in TEXT
    assert f"{DifferencesError.exit_code}: something differs" in TEXT

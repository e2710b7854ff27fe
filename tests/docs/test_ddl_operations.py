"""`docs/ddl-operations.md` tells the truth: its commands exist, its states are all states."""

import re

import pytest

from sinks.bookkeeping.ddl_log import KEPT, DdlState
from tests.docs.test_readme import README, ROOT, check_command_line, words_of

TEXT = (ROOT / "docs" / "ddl-operations.md").read_text()


@pytest.mark.parametrize("text", re.findall(r"`(reconciler\s[^`]+)`", TEXT))
def test_its_commands_exist(text: str) -> None:
    check_command_line(words_of(text))


def test_it_is_found_and_names_every_state() -> None:
    assert "docs/ddl-operations.md" in README
    told = {name for row in re.findall(r"^\| (`.*?) \|", TEXT, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)}
    assert told == {state.value for state in DdlState}
    assert f"{KEPT:,}" in TEXT

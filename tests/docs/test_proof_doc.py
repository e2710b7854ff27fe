"""`docs/proof.md` and `docs/wait.md`: their commands and options exist, their words and numbers are the code's."""

import inspect
import re

import click
import pytest

import consumer
from consumer.cli.main import main
from consumer.cli.verify import prove
from consumer.library import wait as waiting
from consumer.proof.report import ProofVerdict
from consumer.serve import access
from ordering.rows.content_sums import BUCKETS
from sinks.bookkeeping import proofs
from tests.docs.test_readme import README, ROOT, check_command_line, words_of

PROOF, WAIT = ((ROOT / "docs" / f"{name}.md").read_text() for name in ("proof", "wait"))
COMMANDS = [line for block in re.findall(r"```bash\n(.*?)```", PROOF, re.DOTALL) for line in block.splitlines()]


@pytest.mark.parametrize("line", [*COMMANDS, *re.findall(r"`(reconciler [^`]+)`", PROOF + WAIT)])
def test_their_commands_exist(line: str) -> None:
    words = words_of(line)
    check_command_line(words if len(words) > 1 else [*words, "CONFIG", *(["1"] if words[0] == "wait" else [])])


def test_every_option_and_verdict_is_told() -> None:
    options = [opt for p in prove.params if isinstance(p, click.Option) for opt in p.opts]
    assert [option for option in options if f"{option}" not in PROOF] == []
    assert all(f"| `{verdict.value}` |" in PROOF for verdict in ProofVerdict)
    assert "wait" in main.commands


def test_numbers_are_the_code_s() -> None:
    assert f"in {BUCKETS} buckets" in PROOF
    assert f"for {proofs.KEPT.days} days" in PROOF
    assert f"up to {access.MOST_WAITING:,} may wait" in WAIT
    assert list(inspect.signature(consumer.wait_for).parameters) == ["config", "tso", "timeout"]
    assert waiting.LONGEST_S == 3600


def test_they_are_found() -> None:
    assert "docs/proof.md" in README
    assert "docs/wait.md" in README

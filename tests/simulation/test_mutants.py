"""The mutants are where they are looked for; whether each is caught, `python -m tests.simulation.mutants` finds out."""

import ast
import sys

import pytest

from tests.simulation.mutants import MUTANTS, ROOT, main, sampled


def test_each_mutant_finds_its_text() -> None:
    assert [mutant for mutant in MUTANTS if mutant.old not in (ROOT / mutant.file).read_text()] == []


def test_each_mutant_is_still_python() -> None:
    """Every test would catch one that is not, and prove nothing."""
    for mutant in MUTANTS:
        ast.parse((ROOT / mutant.file).read_text().replace(mutant.old, mutant.new), mutant.file)


def test_a_sample_is_the_same_for_the_same_seed() -> None:
    first = sampled("", 10, "a")
    assert first == sampled("", 10, "a")
    assert first != sampled("", 10, "b")
    assert len(set(first)) == 10
    assert {mutant.file for mutant in sampled("ordering/rewind.py", 10, "a")} == {"ordering/rewind.py"}


@pytest.mark.soak
@pytest.mark.timeout(4 * 3600)
def test_each_mutant_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["mutants"])
    assert main() == 0

"""The mutants are where they are looked for; whether each is caught, `python -m tests.simulation.mutants` finds out."""

import pytest

from tests.simulation.mutants import MUTANTS, ROOT, Mutant


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: f"{mutant.file} {mutant.old.strip()[:40]}")
def test_a_mutant_finds_its_text(mutant: Mutant) -> None:
    assert mutant.old in (ROOT / mutant.file).read_text()

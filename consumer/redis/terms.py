"""Whose windows of the ledger are of this target's past: a term lasts from where a process began to where the next did.

Terms are saved with the progress, so a restore of the target takes them back to what they were. What a process recorded
behind the checkpoint at which another one began was not applied to this target, or was undone in it; that stays so, for
the names of terms are random.
"""

from collections.abc import Sequence
from typing import NamedTuple

from ordering.timestamps import MAX_TSO, CheckpointTs

MOST_TERMS = 128
"""Of those before, windows count no more; each takes some forty bytes of the progress."""


class LedgerTerm(NamedTuple):
    """From the checkpoint with which a process began; `name` is the process's, and of no other one."""

    began: int
    name: str


Terms = tuple[LedgerTerm, ...]


def begun(terms: Sequence[tuple[int, str]], checkpoint: CheckpointTs, name: str) -> Terms:
    """These terms, and one of this name that begins now.

    Those that began here, or later, have left nothing that still holds.
    """
    earlier = [LedgerTerm(*term) for term in terms if term[0] < checkpoint]
    return (*earlier, LedgerTerm(checkpoint, name))[-MOST_TERMS:]


def is_within(terms: Sequence[LedgerTerm], name: str, high: int) -> bool:
    """Whether a window that ends at `high` was recorded by the process whose term that was."""
    ends = [*(term.began for term in terms), MAX_TSO][1:]
    return any(term.name == name and term.began < high <= end for term, end in zip(terms, ends, strict=True))

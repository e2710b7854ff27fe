"""Small parts of sentences that many messages need."""

from collections.abc import Iterable
from difflib import get_close_matches


def plural(number: int, noun: str, nouns: str = "") -> str:
    """`1 row`, `2 rows`, `10,000 rows`; `nouns` where it is not the noun with an s."""
    return f"{number:,} {noun if number == 1 else nouns or noun + 's'}"


def nearest(name: str, known: Iterable[str]) -> str:
    """Which of these somebody may have meant; empty if none is near."""
    return next(iter(get_close_matches(name, list(known), 1, 0.8)), "")


def meant(name: str, known: Iterable[str]) -> str:
    """`did you mean X?`, or all that there is."""
    names = list(known)
    near = nearest(name, names)
    return f"did you mean {near!r}?" if near else f"known are {', '.join(names)}"

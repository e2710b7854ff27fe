"""Makes a script that fails as small as it gets while it still fails."""

from collections.abc import Callable, Sequence


def smallest(statements: Sequence[str], fails: Callable[[Sequence[str]], bool]) -> list[str]:
    """Leave out halves, quarters and at last single statements. `fails` says whether a script still does."""
    left = list(statements)
    size = max(len(left) // 2, 1)
    while True:
        shorter = _without_one(left, size, fails)
        if shorter is not None:
            left = shorter
        elif size == 1:
            return left
        size = max(min(size // (1 if shorter is not None else 2), len(left) // 2), 1)


def _without_one(left: list[str], size: int, fails: Callable[[Sequence[str]], bool]) -> list[str] | None:
    """The script without the last piece of this size that it does not need; None if it needs all of them."""
    for start in range(len(left) - size, -size, -size):
        shorter = left[: max(start, 0)] + left[start + size :]
        if len(shorter) < len(left) and shorter and fails(shorter):
            return shorter
    return None

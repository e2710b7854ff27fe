"""The order of the tests: nothing is lost, and each process begins with long ones."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.dealing import dealt, is_long


def item(number: int) -> Any:
    """Every fifth file is long."""
    file = number // 7
    return SimpleNamespace(path=Path(f"{file}.py"), number=number, get_closest_marker=lambda _: None if file % 5 else 1)


def test_every_part_begins_with_long_ones() -> None:
    items = [item(number) for number in range(201)]
    found = dealt(items, 2)
    assert sorted(one.number for one in found) == list(range(201))
    for part in (found[:100], found[100:]):
        kinds = [is_long(one) for one in part]
        assert kinds == sorted(kinds, reverse=True)
        assert any(kinds)


def test_all_may_be_long_or_short() -> None:
    for items in ([item(0)] * 3, [item(8)] * 3, []):
        assert dealt(items, 2) == items

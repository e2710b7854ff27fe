"""Which tests need a TiDB server: those that ask for a fixture that is one, and those that are parametrized for it."""

import typing
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from tests.embedded import TidbServer


def needs_tidb(item: pytest.Item) -> bool:
    """Whether the test can't run without one. What starts one by itself bears the marker `tidb` in its module."""
    return _has_fixture(item) or (item.get_closest_marker("service") is not None and _is_for_tidb(item))


def _has_fixture(item: pytest.Item) -> bool:
    found = getattr(item, "_fixtureinfo", None)
    definitions = [one for several in found.name2fixturedefs.values() for one in several] if found else []
    return any(_gives_server(one.func) for one in definitions)


def _gives_server(function: Any) -> bool:
    """A fixture says so by its annotation: `Iterator[TidbServer]`, or the server itself."""
    given = getattr(function, "__annotations__", {}).get("return")
    return given is TidbServer or (typing.get_origin(given) is not None and typing.get_args(given) == (TidbServer,))


def _is_for_tidb(item: pytest.Item) -> bool:
    parameters = getattr(item, "callspec", None)
    return parameters is not None and "tidb" in _leaves(parameters.params.values())


def _leaves(values: Iterable[Any]) -> Iterator[Any]:
    for value in values:
        if isinstance(value, list | tuple):
            yield from _leaves(value)
        elif isinstance(value, str):
            yield value

"""Servers that not every machine can have, TiDB and MySQL: which tests need them, and what is said without them.

A test needs one if it asks for a fixture that is one, or bears its marker. For TiDB also if it is parametrized for it.
"""

import typing
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.embedded import MySqlServer, TidbServer
from tests.embedded.mysql import find_mysql, mysql_program
from tests.embedded.tidb import find_tidb, tidb_program


@dataclass(frozen=True, slots=True)
class Needed:
    """A kind of server. `marker` is also the name of its command, `./dev tidb`."""

    marker: str
    server: type[Any]
    find: Callable[[], Path | None]
    demand: Callable[[], object]
    """Raises EmbeddedError where there is none."""
    said: str
    by_parameter: bool = False

    @property
    def option(self) -> str:
        """The option of pytest that makes it an error to lack one."""
        return f"--demand-{self.marker}"

    def is_needed(self, item: pytest.Item) -> bool:
        """Whether the test can't run without one. What starts one by itself bears the marker in its module."""
        if _has_fixture(item, self.server):
            return True
        return self.by_parameter and item.get_closest_marker("service") is not None and self.marker in _named(item)

    def lacking(self, left_out: int) -> str:
        """The loud line."""
        return (
            f"WITHOUT A {self.said} {left_out} TESTS WERE LEFT OUT: ./dev {self.marker} gets one, then run them again"
        )


TIDB = Needed("tidb", TidbServer, find_tidb, tidb_program, "TIDB SERVER", by_parameter=True)
MYSQL = Needed("mysql", MySqlServer, find_mysql, mysql_program, "MYSQL SERVER")
"""Tests of the fault campaigns call MariaDB so too, after the scheme of its URI."""
NEEDED = (TIDB, MYSQL)


def _has_fixture(item: pytest.Item, server: type[Any]) -> bool:
    found = getattr(item, "_fixtureinfo", None)
    definitions = [one for several in found.name2fixturedefs.values() for one in several] if found else []
    return any(_gives_server(one.func, server) for one in definitions)


def _gives_server(function: Any, server: type[Any]) -> bool:
    """A fixture says so by its annotation: `Iterator[TidbServer]`, or the server itself."""
    given = getattr(function, "__annotations__", {}).get("return")
    return given is server or (typing.get_origin(given) is not None and typing.get_args(given) == (server,))


def _named(item: pytest.Item) -> list[Any]:
    parameters = getattr(item, "callspec", None)
    return [] if parameters is None else list(_leaves(parameters.params.values()))


def _leaves(values: Iterable[Any]) -> Iterator[Any]:
    for value in values:
        if isinstance(value, list | tuple):
            yield from _leaves(value)
        elif isinstance(value, str):
            yield value

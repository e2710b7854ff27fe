"""EXCHANGE PARTITION over rows that are longer than what the server makes of them may be (max_allowed_packet)."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from sinks.steps import Step
from tests.embedded import MariaDbServer
from tests.service.cells import MariaDbCells, emptied
from tests.service.ddl.test_open_intents import EXCHANGE, RANGES, ids, killed_at
from tests.service.local import LocalFeed
from tests.service.messages import ddl, watermarks

pytestmark = pytest.mark.service
LENGTH = 700_000
"""Two texts of so many bytes are longer than a packet of 1 MiB."""


@pytest.fixture(scope="module")
def narrow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MariaDbServer]:
    extra = {"max-allowed-packet": "1M"}
    with MariaDbServer(tmp_path_factory.mktemp("narrow"), flush_at_commit=2, extra=extra) as server:
        yield server


@pytest.fixture
def feed(narrow: MariaDbServer, tmp_path: Path) -> Iterator[LocalFeed]:
    with emptied(MariaDbCells(narrow.uri)) as cells:
        yield LocalFeed.into(narrow.uri, cells, tmp_path)


def test_long_rows_tell_the_sides_of_an_exchange_apart(feed: LocalFeed) -> None:
    """Their sums were NULL on both sides, so the exchange was done again, and undone by that."""
    columns = "(`id` INT PRIMARY KEY,`a` LONGTEXT,`b` LONGTEXT,`c` INT)"
    tables = [ddl("d.t", 2, f"CREATE TABLE `t` {columns}"), ddl("d.p", 3, f"CREATE TABLE `p` {columns} {RANGES}")]
    feed.send([ddl("d", 1, "CREATE DATABASE `d`"), *tables, *watermarks(5)])
    feed.apply()
    assert isinstance(feed.cells, MariaDbCells)
    for number, table in enumerate(("t", "p"), 1):
        texts = f"REPEAT('a', {LENGTH}), REPEAT('b', {LENGTH}), NULL"
        feed.cells.query(f"INSERT INTO d.{table} VALUES ({number}, {texts})")
    feed.send([EXCHANGE, *watermarks(20)])
    assert not feed.lives(killed_at(Step.DDL_EXECUTED))
    assert ids(feed) == ([2], [1])
    feed.apply()
    assert ids(feed) == ([2], [1])

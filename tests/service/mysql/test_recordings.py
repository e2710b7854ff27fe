"""TiCDC's recorded messages on MySQL: every recording, each consistency, cell by cell; with and without LOAD DATA."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.embedded import MySqlServer
from tests.service.cells import MariaDbCells, emptied
from tests.service.local import LocalFeed
from tests.service.rows.test_vectors import CONSISTENCIES, SMALL, applied

pytestmark = [pytest.mark.service, pytest.mark.mysql]
CHOSEN = (
    "types.table", "types.delete-only-handle-key", "keys.index-value.raw", "names.table", "odd-keys.index-value.raw",
    "unique-swaps.index-value.raw", "unique-moves-250.index-value.split", "split.index-value.raw", "ddl-basic.table",
    "ddl-columns.index-value", "ddl-changes.index-value", "ddl-loose.index-value",
    "ddl-members.index-value", "ddl-default-forms.index-value", "unique-ages.delete-only-handle-key.split",
)  # fmt: skip
"""The others differ in how they were sent."""
REST = [pytest.param(one, marks=pytest.mark.soak) for one in SMALL if one not in CHOSEN]


@pytest.fixture(scope="module")
def loading_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MySqlServer]:
    """One that takes LOAD DATA LOCAL; by itself MySQL does not."""
    with MySqlServer(tmp_path_factory.mktemp("mysql"), extra={"local-infile": "1"}) as made:
        yield made


@pytest.fixture(params=["statements", "load data"])
def feed(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LocalFeed]:
    loads = request.param == "load data"
    server: MySqlServer = request.getfixturevalue("loading_server" if loads else "mysql_server")
    with emptied(MariaDbCells(server.uri)) as cells:
        yield LocalFeed.into(server.uri, cells, tmp_path)


@pytest.mark.cells(("feed", "consistency"), by_turns=("recording",))
@pytest.mark.parametrize("recording", [*CHOSEN, *REST])
@pytest.mark.parametrize("consistency", CONSISTENCIES)
def test_recordings(feed: LocalFeed, recording: str, consistency: str) -> None:
    if consistency == "row":
        feed.by_tasks()
    applied(feed.with_(target={"consistency": consistency}), recording)

"""Moments of a zone other than UTC, in columns that others made: converted as TIMESTAMP is, unchanged, or refused."""

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from ordering.errors import TableMismatchError
from tests.service.cells import MariaDbCells, SqliteCells
from tests.service.local import LocalFeed
from tests.service.messages import insert, typed, watermarks
from tests.service.postgres_cells import PostgresCells

pytestmark = pytest.mark.service
HERE, UTC = "2026-01-01 08:00:00.123", "2026-01-01 00:00:00.123"
MOMENTS = {
    "sqlite": {"TIMESTAMP(3)": "timestamp", "TIMESTAMP": "timestamp", "DATETIME(3)": "datetime", "TEXT": "datetime"},
    "mariadb": {"TIMESTAMP(3) NULL": "timestamp", "DATETIME(3)": "datetime", "VARCHAR(30)": "datetime"},
    "postgres": {"TIMESTAMPTZ(3)": "timestamp", "TIMESTAMP(3)": "datetime", "TEXT": "datetime"},
}
CASES = [(target, declared, fits) for target, columns in MOMENTS.items() for declared, fits in columns.items()]


@pytest.fixture
def feed(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LocalFeed]:
    """A changefeed into a kind of target."""
    cells: SqliteCells | MariaDbCells | PostgresCells = SqliteCells(tmp_path / "target")
    uri, before = f"sqlite:///{tmp_path}/target", set[str]()
    if request.param != "sqlite":
        uri = request.getfixturevalue(f"{request.param}_server").uri
        cells = MariaDbCells(uri) if request.param == "mariadb" else PostgresCells(uri)
        before = cells.databases()
    found = LocalFeed(None, "nowhere:1", f"local-{uuid4().hex[:12]}", uri, cells, tmp_path)  # type: ignore[arg-type]
    yield found.with_(source={"time-zone": "+08:00"})
    if not isinstance(cells, SqliteCells):
        cells.drop(cells.databases() - before)
        cells.close()


@pytest.mark.parametrize("sent", ["timestamp", "datetime"])
@pytest.mark.parametrize(("feed", "declared", "fits"), CASES, indirect=["feed"])
def test_a_moment_is_what_it_is_upstream_or_refused(feed: LocalFeed, declared: str, fits: str, sent: str) -> None:
    table = "hand.t" if isinstance(feed.cells, PostgresCells) else "t"
    feed.make_database("hand", f"CREATE TABLE {table} (id INT PRIMARY KEY, c {declared})")
    feed.send([typed(insert("hand.t", 1, id=1, c=HERE), c=f"{sent}(3)"), *watermarks(2)])
    if sent != fits:
        with pytest.raises(TableMismatchError, match=r"source\.time-zone"):
            feed.apply()
        return
    feed.apply()
    (row,) = feed.cells.tables(["hand"])["hand.t"][1]
    assert str(row["c"]).startswith(UTC if sent == "timestamp" else HERE)

"""Moments of a zone other than UTC, in columns that others made: converted as TIMESTAMP is, unchanged, or refused."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ordering.errors import TableMismatchError
from tests.service.cells import MariaDbCells, SqliteCells, emptied
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
    zoned = {"time-zone": "+08:00"}
    if request.param == "sqlite":
        place = tmp_path / "target"
        yield LocalFeed.into(f"sqlite:///{place}", SqliteCells(place), tmp_path).with_(source=zoned)
        return
    uri = request.getfixturevalue(f"{request.param}_server").uri
    with emptied(MariaDbCells(uri) if request.param == "mariadb" else PostgresCells(uri)) as cells:
        yield LocalFeed.into(uri, cells, tmp_path).with_(source=zoned)


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

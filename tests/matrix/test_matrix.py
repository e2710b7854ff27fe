"""Cases that the matrix once found."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.matrix.forms import Form
from tests.matrix.playing import CONSISTENCIES, Case, Readable, play
from tests.service.cells import MariaDbCells, SqliteCells, emptied
from tests.service.postgres_cells import PostgresCells

pytestmark = [pytest.mark.service, pytest.mark.timeout(3600)]
Opened = tuple[str, str, Readable]


@pytest.fixture
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opened]:
    """Name, URI and reader of a target; what is left behind is dropped."""
    target: str = request.param
    if target == "sqlite":
        yield target, f"sqlite:///{tmp_path / 'target'}", SqliteCells(tmp_path / "target")
        return
    uri: str = request.getfixturevalue(f"{target}_server").uri
    cells = PostgresCells(uri) if target == "postgres" else MariaDbCells(uri)
    if isinstance(cells, PostgresCells):
        cells.query("CREATE EXTENSION IF NOT EXISTS citext")
    with emptied(cells):
        yield target, uri, cells


def wrong(opened: Opened, cases: list[Case], place: Path) -> list[str]:
    """What is wrong in these cases, a text each. Each SQLite case has a directory of its own: it attaches ten."""
    target, uri, cells = opened
    found = []
    for case in cases:
        if target == "sqlite":
            directory = place / f"sqlite-{len(list(place.iterdir()))}"
            uri, cells = f"sqlite:///{directory}", SqliteCells(directory)
        result = play(case, uri, cells, place)
        found += [f"{case}: {result.wrong}"] if result.wrong else []
    return found


def found_once(target: str, kind: str, column: str, size: str) -> list[Case]:
    """The same table in each consistency, made by our DDL where no column is named."""
    form = Form(not column, column, "primary", second=False)
    return [Case(target, kind, size, consistency, form, seed) for consistency in CONSISTENCIES for seed in (1, 2)]


OURS = [("mariadb", "nopad", "many"), ("mariadb", "nopad", "bulk"), ("tidb", "nopad", "many")]
"""MariaDB knows utf8mb4_0900_bin since 11.4.5, as a collation that pads: of 'a' and 'a ' one was lost."""


@pytest.mark.parametrize(("opened", "kind", "size"), OURS, indirect=["opened"])
def test_keys_with_blanks_at_their_end(opened: Opened, kind: str, size: str, tmp_path: Path) -> None:
    assert wrong(opened, found_once(opened[0], kind, "", size), tmp_path) == []


MEANT_OTHERWISE = [
    ("mariadb", "enum", "VARCHAR(20) COLLATE utf8mb4_bin", "row"),
    ("mariadb", "datetime", "DATE", "transaction"),
    ("mariadb", "varchar", "VARBINARY(240)", "snapshot"),
    ("tidb", "set", "VARCHAR(40) COLLATE utf8mb4_bin", "row"),
    ("sqlite", "char", "BLOB", "snapshot"),
    ("sqlite", "enum", "TEXT", "transaction"),
    ("postgres", "varbinary", "text", "row"),
]


@pytest.mark.parametrize(("opened", "kind", "column", "consistency"), MEANT_OTHERWISE, indirect=["opened"])
def test_columns_in_which_values_would_mean_something_else(
    opened: Opened, kind: str, column: str, consistency: str, tmp_path: Path
) -> None:
    target, uri, cells = opened
    before = cells.databases()
    case = Case(target, kind, "few", consistency, Form(ours=False, column=column, key="primary", second=False), 1)
    result = play(case, uri, cells, tmp_path)
    assert (result.wrong, "'k' is" in result.refused) == ("", True)
    assert [rows for _, rows in cells.tables(cells.databases() - before).values()] == [[]]

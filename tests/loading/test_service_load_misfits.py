"""Columns that were made by hand and in which upstream's values would mean something else: nothing is loaded."""

from pathlib import Path
from typing import Any

import pytest

from ordering.errors import TableMismatchError
from tests.loading.test_service_load_kills import WHOLE, held, load, place, write_dump
from tests.service.cells import Cells, MariaDbCells, SqliteCells

__all__ = ["place"]
pytestmark = pytest.mark.service
BYTES = {SqliteCells: "BLOB", MariaDbCells: "VARBINARY(20)"}
TEXT = {SqliteCells: "TEXT", MariaDbCells: "VARCHAR(20)"}


def make(cells: Any, database: str, kind: str) -> None:
    """The table `b`, whose `v` is a text upstream."""
    if isinstance(cells, MariaDbCells):
        cells.query(f"CREATE DATABASE IF NOT EXISTS `{database}`")
    table = "b" if isinstance(cells, SqliteCells | MariaDbCells) else f'"{database}".b'
    if table != "b":
        cells.query(f'CREATE SCHEMA IF NOT EXISTS "{database}"')
    cells.run(database, f"DROP TABLE IF EXISTS {table}; CREATE TABLE {table} (id INT NOT NULL UNIQUE, v {kind})")


def rows(cells: Cells, database: str) -> dict[str, int]:
    return {name: len(found) for name, (_, found) in cells.tables([database]).items()}


@pytest.mark.parametrize(("table", "by"), [("b", "v"), ("c", "id")])
def test_a_key_that_the_dump_does_not_have_is_refused(place: Any, tmp_path: Path, table: str, by: str) -> None:
    """Rows that are equal in it would replace each other in a run; upstream, `c` has no key at all."""
    uri, cells, database = place
    dump, changefeed = write_dump(tmp_path / "dump", database), f"misfit-{database}"
    if isinstance(cells, MariaDbCells):
        cells.query(f"CREATE DATABASE IF NOT EXISTS `{database}`")
    name = table if isinstance(cells, SqliteCells | MariaDbCells) else f'"{database}".{table}'
    if name != table:
        cells.query(f'CREATE SCHEMA IF NOT EXISTS "{database}"')
    cells.run(database, f"CREATE TABLE {name} (id INT NOT NULL, v VARCHAR(20) NOT NULL, UNIQUE ({by}))")
    with pytest.raises(TableMismatchError, match=f"apart by {by}, which is no key upstream"):
        load(uri, dump, changefeed=changefeed).run()
    assert set(rows(cells, database).values()) == {0}


def test_a_column_of_another_kind_is_refused_before_any_row_is_written(place: Any, tmp_path: Path) -> None:
    uri, cells, database = place
    dump, changefeed = write_dump(tmp_path / "dump", database), f"misfit-{database}"
    make(cells, database, BYTES.get(type(cells), "bytea"))
    for _ in range(2):
        with pytest.raises(TableMismatchError, match="column 'v' is varchar upstream") as caught:
            load(uri, dump, changefeed=changefeed).run()
        assert f"file={database}.b.0000000" in caught.value.where
        assert set(rows(cells, database).values()) == {0}
    make(cells, database, TEXT.get(type(cells), "text"))
    assert load(uri, dump, changefeed=changefeed).run().finished
    assert held(cells, database) == WHOLE

"""Names with quotes, percent signs and backslashes, and empty tables, are compared and repaired like others."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.embedded import MariaDbServer, PostgresServer
from tests.service.cells import MariaDbCells
from tests.service.postgres_cells import PostgresCells
from tests.verifying.upstreams import Readable, Verified, feed_of

pytestmark = pytest.mark.service
ODD = 'a "b" %s %% `c` $1 {d} \\ \'; --'
TEXT = 'it\'s a \\ "text" with %s\n-- and lines'


def quoted(cells: Readable, name: str) -> str:
    quote = "`" if isinstance(cells, MariaDbCells) else '"'
    return quote + name.replace(quote, quote * 2) + quote


def run(cells: MariaDbCells | PostgresCells, statement: str, *values: str) -> None:
    """Execute; ODD stands for the name."""
    odd = quoted(cells, ODD)
    cells.query(statement.replace("ODD", odd.replace("%", "%%") if values else odd), values)


@pytest.fixture
def sides(
    mariadb_server: MariaDbServer, postgres_server: PostgresServer
) -> Iterator[tuple[MariaDbCells, PostgresCells]]:
    mine, theirs = MariaDbCells(mariadb_server.uri), PostgresCells(postgres_server.uri)
    for cells in (mine, theirs):
        run(cells, "CREATE SCHEMA ODD")
        run(cells, "CREATE TABLE ODD.ODD (ODD VARCHAR(60) PRIMARY KEY, v VARCHAR(99))")
        run(cells, "CREATE TABLE ODD.empty (id INT PRIMARY KEY)")
        run(cells, "CREATE TABLE ODD.keyless (v INT, ODD INT)")
        run(cells, "INSERT INTO ODD.ODD VALUES (%s, 'x'), ('plain', %s)", TEXT, TEXT)
        run(cells, "INSERT INTO ODD.keyless VALUES (1, NULL), (1, NULL), (1, NULL), (2, 2)")
    yield mine, theirs
    for cells in (mine, theirs):
        run(cells, "DROP DATABASE ODD" if cells is mine else "DROP SCHEMA ODD CASCADE")
        cells.close()


@pytest.mark.parametrize("changed", [0, 1], ids=["mariadb", "postgres"])
def test_odd_names_empty_tables_and_copies(
    sides: tuple[MariaDbCells, PostgresCells], changed: int, mariadb_server: MariaDbServer,
    postgres_server: PostgresServer, tmp_path: Path,
) -> None:  # fmt: skip
    uris = (mariadb_server.uri, postgres_server.uri)
    cells, against = sides[changed], uris[1 - changed]
    rule = '"{}".*'.format(ODD.replace('"', '""'))
    feed = feed_of(uris[changed], cells, tmp_path).with_(filter={"rules": [rule]})
    verified = Verified(feed)  # type: ignore[arg-type]
    equal = verified.verify(against=against)
    assert equal.is_equal
    assert {t.comparison.name.table: t.rows for t in equal.tables} == {ODD: 2, "empty": 0, "keyless": 4}
    run(cells, "UPDATE ODD.ODD SET v = %s WHERE v = 'x'", TEXT * 2)
    run(cells, "UPDATE ODD.keyless SET ODD = 1 WHERE v = 2")
    run(cells, "INSERT INTO ODD.keyless VALUES (1, NULL)")
    run(cells, "INSERT INTO ODD.empty VALUES (7)")
    found = {t.comparison.name.table: t.counts() for t in verified.verify(against=against).tables}
    assert {name: (c["missing"], c["extra"], c["different"]) for name, c in found.items()} == {
        ODD: (0, 0, 1), "empty": (0, 1, 0), "keyless": (1, 2, 0)
    }  # fmt: skip
    verified.repaired(against=against)
    assert verified.lines(against=against) == []

"""Values of which a MySQL-family server can't make hexadecimal digits: more than half of max_allowed_packet."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.embedded import MariaDbServer, PostgresServer
from tests.service.cells import MariaDbCells
from tests.service.postgres_cells import PostgresCells
from tests.verifying.upstreams import Verified, feed_of

pytestmark = pytest.mark.service
SIZE, LIMIT = 9_000_000, 16 << 20


@pytest.fixture
def narrow(tmp_path: Path) -> Iterator[tuple[str, str]]:
    """Two servers with MariaDB's usual limit."""
    with (
        MariaDbServer(tmp_path / "one", flush_at_commit=2) as one,
        MariaDbServer(tmp_path / "two", flush_at_commit=2) as two,
    ):
        for server in (one, two):
            cells = MariaDbCells(server.uri)
            cells.query(f"SET GLOBAL max_allowed_packet = {LIMIT}")
            cells.close()
        yield one.uri, two.uri


def filled(cells: MariaDbCells | PostgresCells, value: bytes) -> None:
    kinds = ("SCHEMA", "bytea") if isinstance(cells, PostgresCells) else ("DATABASE", "LONGBLOB")
    cells.query(f"CREATE {kinds[0]} large")
    cells.query(f"CREATE TABLE large.t (id INT PRIMARY KEY, b {kinds[1]})")
    if isinstance(cells, PostgresCells):
        cells.query("INSERT INTO large.t VALUES (1, %s), (2, NULL)", (value,))
    else:  # as a statement the value would pass the limit
        repeated = f"REPEAT(X'{value[:256].hex()}', {len(value) // 256})"
        cells.query(f"INSERT INTO large.t VALUES (1, {repeated}), (2, NULL)")


@pytest.mark.by_turns
def test_values_that_pass_the_servers_limit_of_a_text(
    narrow: tuple[str, str], postgres_server: PostgresServer, tmp_path: Path
) -> None:
    """Between two MariaDBs neither side can compute anything: that is not taken for equal."""
    value = bytes(range(256)) * (SIZE // 256)
    mine, other = (MariaDbCells(uri) for uri in narrow)
    theirs = PostgresCells(postgres_server.uri)
    for cells in (mine, other, theirs):
        filled(cells, value)
    verified = Verified(feed_of(narrow[0], mine, tmp_path).with_(filter={"rules": ["large.*"]}))  # type: ignore[arg-type]
    for uri in (narrow[1], postgres_server.uri):
        assert verified.lines(against=uri) == []
    mine.query("UPDATE large.t SET b = CONCAT(SUBSTR(b, 1, LENGTH(b) - 1), 'x') WHERE id = 1")
    for uri in (narrow[1], postgres_server.uri):
        (found,) = verified.verify(against=uri).tables[0].differences
        assert (found.kind, [len(row[1] or "") for row in (found.left, found.right) if row]) == (
            "different",
            [2 * len(value)] * 2,
        )
    theirs.drop(["large"])
    for cells in (mine, other, theirs):
        cells.close()


@pytest.mark.by_turns
def test_rows_without_a_key_that_pass_the_limit(narrow: tuple[str, str], tmp_path: Path) -> None:
    """In which part of a table such a row lies is computed too: both queries have to find it in the same one."""
    mine, other = (MariaDbCells(uri) for uri in narrow)
    for cells, last in ((mine, "x"), (other, "y")):
        cells.query("CREATE DATABASE large")
        cells.query("CREATE TABLE large.t (n INT, b LONGBLOB)")
        cells.query("INSERT INTO large.t SELECT seq, 'small' FROM large.seq_1_to_12000")
        cells.query(f"INSERT INTO large.t VALUES (0, CONCAT(REPEAT('a', {SIZE}), '{last}'))")
    verified = Verified(feed_of(narrow[0], mine, tmp_path).with_(filter={"rules": ["large.*"]}))  # type: ignore[arg-type]
    for _ in range(3):
        found = verified.verify(against=narrow[1]).tables[0].differences
        assert [one.kind for one in found] == ["extra", "missing"]
    other.query("UPDATE large.t SET b = CONCAT(SUBSTR(b, 1, LENGTH(b) - 1), 'x') WHERE n = 0")
    assert verified.lines(against=narrow[1]) == []
    mine.close()
    other.close()

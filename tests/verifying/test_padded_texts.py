"""Repairs of texts that collations take for equal, by blanks at their end or case; floats shown otherwise than held."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from consumer.config.model import config_from
from consumer.verify.run import Verification, VerifyOptions
from tests.service.cells import MariaDbCells, SqliteCells

pytestmark = pytest.mark.service


@pytest.fixture(params=["mariadb", "tidb"])
def cells(request: pytest.FixtureRequest, database_prefix: str) -> Iterator[tuple[str, MariaDbCells]]:
    """A server of the MySQL family, which compares texts by collations."""
    uri = request.getfixturevalue(f"{request.param}_server").uri
    with closing(MariaDbCells(uri)) as found:
        found.query(f"CREATE DATABASE {database_prefix}")
        if request.param == "tidb":  # a cluster's collector says so, and a lone server has none
            found.query("REPLACE INTO mysql.tidb VALUES ('tikv_gc_safe_point', '20200101-00:00:00.000 +0000', '')")
        yield uri, found
        found.drop([database_prefix])


@pytest.mark.parametrize("collation", ["utf8mb4_bin", "utf8mb4_general_ci"])
def test_only_the_row_that_is_meant_is_changed(
    cells: tuple[str, MariaDbCells], database_prefix: str, tmp_path: Path, collation: str
) -> None:
    (uri, target), database = cells, database_prefix
    right = SqliteCells(tmp_path / "right")
    # without a key: of equal rows one goes; the first that the server meets is the one that has to stay
    target.run(
        database,
        f"CREATE TABLE c (s VARCHAR(9) COLLATE {collation}); INSERT INTO c VALUES ('b '), ('b'), ('B'), ('x');"
        f"CREATE TABLE k (s VARCHAR(9) COLLATE {collation} PRIMARY KEY, v INT);"
        "INSERT INTO k VALUES ('b ', 1), ('x', 1)",
    )
    right.run(
        database,
        "CREATE TABLE c (s VARCHAR(9)); INSERT INTO c VALUES ('b '), ('B'), ('x');"
        "CREATE TABLE k (s VARCHAR(9) PRIMARY KEY, v INT); INSERT INTO k VALUES ('b ', 2), ('x', 1)",
    )
    config = config_from(
        {
            "changefeed": "padded",
            "source": {"bootstrap-servers": "nowhere:1", "topics": ["t"]},
            "target": {"uri": uri},
            "filter": {"rules": [f"{database}.*"], "force-replicate": True},
        },
        "the test's config",
    )
    fix = tmp_path / "fix.sql"
    options = VerifyOptions(against=f"sqlite:///{right.directory}", fix_sql=fix)
    assert Verification(config, options).run().differs
    for line in fix.read_text().splitlines():
        if not line.startswith("--"):
            target.query(line)
    found = target.tables([database])
    assert sorted(str(row["s"]) for row in found[f"{database}.c"][1]) == ["B", "b ", "x"]
    assert [(row["s"], row["v"]) for row in found[f"{database}.k"][1]] == [("b ", 2), ("x", 1)]
    assert not Verification(config, options).run().differs


def test_a_float_with_a_scale_is_what_the_server_shows(
    cells: tuple[str, MariaDbCells], database_prefix: str, tmp_path: Path
) -> None:
    """MariaDB holds -0.05 in a DOUBLE(9,2) as -0.050000000000000044."""
    (uri, target), database = cells, database_prefix
    right = SqliteCells(tmp_path / "right")
    values = "(1, -0.05, -0.05), (2, 100, 100), (3, -1.1, -1.1), (4, 0, 0), (5, 1e12, 1000)"
    target.run(
        database, f"CREATE TABLE f (id INT PRIMARY KEY, g DOUBLE(20,2), h FLOAT(7,2)); INSERT INTO f VALUES {values}"
    )
    right.run(database, f"CREATE TABLE f (id INT PRIMARY KEY, g DOUBLE, h FLOAT); INSERT INTO f VALUES {values}")
    section = {"bootstrap-servers": "nowhere:1", "topics": ["t"]}
    values_of = {"changefeed": "f", "source": section, "target": {"uri": uri}, "filter": {"rules": [f"{database}.*"]}}
    config = config_from(values_of, "the test's config")
    options = VerifyOptions(against=f"sqlite:///{right.directory}")
    assert not Verification(config, options).run().differs
    target.run(database, "UPDATE f SET g = -0.06 WHERE id = 1")
    assert Verification(config, options).run().differs

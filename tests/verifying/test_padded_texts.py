"""SQL that repairs rows whose texts differ in blanks at their end or in case alone, which collations take for equal."""

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

"""STORED columns, whose values a dump lacks: what MariaDB would compute otherwise is not loaded."""

from pathlib import Path
from typing import Any

import pytest

from ordering.errors import TargetError
from tests.loading.dumping import KEYS, METADATA, NAMES
from tests.loading.test_service_load_kills import TSO, load, place

__all__ = ["place"]
pytestmark = pytest.mark.service


def write(directory: Path, database: str, column: str) -> Path:
    directory.mkdir()
    directory.joinpath("metadata").write_text(METADATA.format(tso=TSO))
    directory.joinpath(f"{database}-schema-create.sql").write_text(f"{NAMES}CREATE DATABASE `{database}`;\n")
    made = f"CREATE TABLE `a` (\n  `id` int NOT NULL,\n  `g` {column} STORED,\n  PRIMARY KEY (`id`)\n) ENGINE=InnoDB;\n"
    directory.joinpath(f"{database}.a-schema.sql").write_text(f"{NAMES}{made}")
    rows = "INSERT INTO `a` (`id`) VALUES\n(2),\n(4);\n"
    directory.joinpath(f"{database}.a.000000000.sql").write_text(f"{NAMES}{KEYS}{rows}")
    return directory


@pytest.mark.parametrize("place", ["mariadb"], indirect=True)
def test_a_stored_column_is_computed_only_where_that_gives_upstreams_values(place: Any, tmp_path: Path) -> None:
    uri, cells, database = place
    unlike = write(tmp_path / "unlike", database, "decimal(12,6) GENERATED ALWAYS AS (`id` / 3)")
    for _ in range(2):
        with pytest.raises(TargetError, match=r"STORED column 'g' .*\(/\), and a dump lacks its values"):
            load(uri, unlike, changefeed=f"unlike-{database}").run()
        assert f"{database}.a" not in cells.tables([database])
    alike = write(tmp_path / "alike", database, "int GENERATED ALWAYS AS (`id` * 2)")
    assert load(uri, alike, changefeed=f"alike-{database}").run().finished
    found = cells.tables([database])[f"{database}.a"][1]
    assert sorted((int(row["id"]), int(row["g"])) for row in found) == [(2, 4), (4, 8)]

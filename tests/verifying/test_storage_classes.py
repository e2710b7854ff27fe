"""In SQLite a value may be right by its bytes and wrong by its storage class: then no statement finds its row."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from consumer.config.model import config_from
from consumer.verify.run import Verification, VerifyOptions
from tests.service.cells import SqliteCells

pytestmark = pytest.mark.service
TABLES = """CREATE TABLE b (k BLOB PRIMARY KEY, v INTEGER); INSERT INTO b VALUES (x'3137', 1), (x'FF', 2);
    CREATE TABLE u (k PRIMARY KEY, v BLOB); INSERT INTO u VALUES (7, x'41'), ('18446744073709551615', NULL);
    CREATE TABLE i (k INTEGER, w TEXT, v INTEGER, PRIMARY KEY (k, w)); INSERT INTO i VALUES (5, 'x', 1), (6, 'y', 2);
    CREATE TABLE n (k INTEGER, s TEXT); INSERT INTO n VALUES (5, 'x'), (5, 'x'), (6, NULL)"""
CHANGES = [
    "UPDATE b SET k = CAST(k AS TEXT) WHERE v = 1", "UPDATE b SET k = CAST(k AS TEXT) WHERE v = 2",
    "UPDATE u SET k = '7' WHERE k = 7", "UPDATE u SET v = 'A' WHERE k = 7", "UPDATE u SET k = CAST(k AS BLOB)",
    "UPDATE i SET k = CAST('5' AS BLOB) WHERE k = 5", "UPDATE i SET w = CAST(w AS BLOB)",
    "UPDATE i SET v = CAST('1' AS BLOB)", "UPDATE n SET s = CAST(s AS BLOB)", "UPDATE n SET k = CAST('5' AS BLOB)",
]  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_a_value_of_another_storage_class_is_found_and_repaired(tmp_path: Path, change: str) -> None:
    right, target = SqliteCells(tmp_path / "right"), SqliteCells(tmp_path / "target")
    for one in (right, target):
        one.run("d", TABLES)
    target.run("d", change)
    config = config_from(
        {
            "changefeed": "classes",
            "source": {"bootstrap-servers": "nowhere:1", "topics": ["t"]},
            "target": {"uri": f"sqlite:///{target.directory}"},
            "filter": {"rules": ["d.*"], "force-replicate": True},
        },
        "the test's config",
    )
    fix = tmp_path / "fix.sql"
    options = VerifyOptions(against=f"sqlite:///{right.directory}", fix_sql=fix)
    assert Verification(config, options).run().differs
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as client:
        client.executescript(fix.read_text())
    assert not Verification(config, options).run().differs, fix.read_text()
    assert held(target) == held(right)


def held(cells: SqliteCells) -> dict[str, list[str]]:
    return {name: sorted(map(repr, rows)) for name, (_, rows) in cells.tables(["d"]).items()}

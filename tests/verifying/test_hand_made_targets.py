"""Targets that were made by hand: rows with NULL in their key, columns of their own, indexes that are no keys."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from consumer.config.model import config_from
from consumer.verify.plan import Rules, planned
from consumer.verify.report import VerifyOutcome
from consumer.verify.run import Verification, VerifyOptions
from ordering.events import TableName
from sinks.postgres import catalog as postgres_catalog
from sinks.postgres.digests import PostgresReader
from sinks.rows.schema import Catalog, TableSchema
from tests.service.cells import SqliteCells

ROWS = "INSERT INTO t (id, v) VALUES " + ", ".join(f"({n}, 'a')" for n in range(10))
UPSTREAM = f"CREATE TABLE t (id BIGINT NOT NULL, v VARCHAR(10), PRIMARY KEY (id)); {ROWS}"
NULLS = "INSERT INTO t VALUES (NULL, 'z'), (NULL, 'z')"


class Sides:
    """A target, and what it is compared with."""

    def __init__(self, place: Path, target: str) -> None:
        self.target, self.right = SqliteCells(place / "target"), SqliteCells(place / "right")
        self.right.run("d", UPSTREAM)
        self.target.run("d", target)
        self.fix = place / "fix.sql"
        self.options = VerifyOptions(against=f"sqlite:///{self.right.directory}", fix_sql=self.fix, chunk_rows=3)

    def verified(self) -> VerifyOutcome:
        values = {
            "changefeed": "by-hand",
            "source": {"bootstrap-servers": "nowhere:1", "topics": ["t"]},
            "target": {"uri": f"sqlite:///{self.target.directory}"},
        }
        return Verification(config_from(values, "a test"), self.options).run()

    def repair(self) -> None:
        with closing(sqlite3.connect(":memory:", isolation_level=None)) as client:
            client.executescript(self.fix.read_text())


@pytest.mark.parametrize("key", ["UNIQUE (id)", "PRIMARY KEY (id)"])
def test_rows_without_a_key_are_seen_in_a_table_of_several_chunks(tmp_path: Path, key: str) -> None:
    sides = Sides(tmp_path, f"CREATE TABLE t (id BIGINT, v VARCHAR(10), {key}); {ROWS}; {NULLS}")
    assert sides.verified().differs
    sides.repair()
    assert not sides.verified().differs


def test_the_row_of_the_least_integer_is_found_by_the_second_look(tmp_path: Path) -> None:
    sides = Sides(tmp_path, UPSTREAM)
    for cells, value in ((sides.right, "x"), (sides.target, "y")):
        cells.run("d", f"INSERT INTO t VALUES (-9223372036854775808, '{value}')")
    assert [one.kind for one in sides.verified().tables[0].differences] == ["different"]
    sides.repair()
    assert not sides.verified().differs


def test_columns_of_the_targets_own_are_not_lost_by_a_repair(tmp_path: Path) -> None:
    made = "CREATE TABLE t (id BIGINT NOT NULL PRIMARY KEY, v VARCHAR(10), own TEXT DEFAULT 'x'); " + ROWS
    sides = Sides(
        tmp_path, f"{made}; CREATE UNIQUE INDEX u ON t (id, v); UPDATE t SET own = 'mine'; UPDATE t SET v = 'b'"
    )
    assert sides.verified().differs
    text = sides.fix.read_text()
    assert text.count("-- not repaired here: d.t") == 10
    sides.repair()
    assert {row["own"] for row in sides.target.tables(["d"])["d.t"][1]} == {"mine"}


def test_what_the_target_computes_is_said_not_to_be_repaired(tmp_path: Path) -> None:
    made = "CREATE TABLE t (id BIGINT NOT NULL PRIMARY KEY, v VARCHAR(10) GENERATED ALWAYS AS ('x') STORED)"
    sides = Sides(tmp_path, f"{made}; {ROWS.replace('(id, v)', '(id)').replace(', ' + repr('a'), '')}")
    assert sides.verified().differs
    assert sides.fix.read_text().count("it differs only where the target computes the value") == 10


@pytest.mark.parametrize(
    ("kind", "value", "stored"),
    [
        ("DECIMAL(20,2)", "1000", "'1_000'"),
        ("", "1000", "' 1000 '"),
        ("TEXT CHECK (json_valid(v))", """'{"a": 2}'""", """'{"a": 1, "a": 2}'"""),
        ("DECIMAL(20,2)", "1", "'\u0661'"),
        ("DECIMAL(20,2)", "1", "'sNaN'"),
        ("REAL", "1000", "'1_000'"),
        ("REAL", "1000", "9e999"),
        ("REAL", "1e20", "CAST('1e20' AS BLOB)"),
        ("TEXT", "'a'", "CAST(X'61FF' AS TEXT)"),
    ],
)
@pytest.mark.parametrize("key", [" PRIMARY KEY", ""])
def test_what_only_python_takes_for_the_value_is_a_difference(
    tmp_path: Path, kind: str, value: str, stored: str, key: str
) -> None:
    sides = Sides(tmp_path, f"CREATE TABLE t (id INTEGER NOT NULL{key}, v {kind}); INSERT INTO t VALUES (1, {stored})")
    sides.right.run(
        "d", f"DROP TABLE t; CREATE TABLE t (id INTEGER PRIMARY KEY, v {kind}); INSERT INTO t VALUES (1, {value})"
    )
    assert sides.verified().differs
    sides.repair()
    assert not sides.verified().differs


def test_a_table_that_does_other_things_than_statements_say_is_not_repaired(tmp_path: Path) -> None:
    made = "CREATE TABLE t (id BIGINT NOT NULL PRIMARY KEY, v VARCHAR(10)); CREATE TRIGGER g BEFORE UPDATE ON t BEGIN"
    sides = Sides(tmp_path, f"{made} SELECT RAISE(IGNORE); END; {ROWS}; DELETE FROM t WHERE id = 1")
    assert sides.verified().differs
    assert "-- not repaired here: the target's table has the trigger 'g'" in sides.fix.read_text()
    sides.target.run("d", "DROP TRIGGER g; CREATE TRIGGER h AFTER INSERT ON t BEGIN SELECT 1; END")
    assert sides.verified().differs
    assert "-- trigger h on d.t will run for every row" in sides.fix.read_text()
    sides.repair()
    assert not sides.verified().differs


@pytest.mark.parametrize(("plain", "expected"), [(True, True), (False, False)])
def test_an_index_of_postgres_that_is_no_key_makes_no_row_unique(*, plain: bool, expected: bool) -> None:
    """One with a condition, one that could not be built, one that excludes: several rows may have one value."""
    lines = [("id", "bigint", True), ("v", "text", False)]

    def answers(sql: str) -> list[tuple[object, ...]]:
        if sql == postgres_catalog._KEYS:
            return [("d", "t", "u", False, plain, ["id"], ["id"])]
        if sql == postgres_catalog._MEMBERS:
            return []
        return [("d", "t", name, kind, not_null, "", False, False, None) for name, kind, not_null in lines]

    right: TableSchema = postgres_catalog.read_tables(answers, {}, {})[TableName("d", "t")]
    primary = postgres_catalog._Key("p", True, True, ("id",), ("id",))
    left = postgres_catalog._table(right.name, list(right.columns), [primary])
    reader = PostgresReader(None)  # type: ignore[arg-type]
    rules = Rules(lambda *_: True, lambda *_: True, True, False, False)  # type: ignore[arg-type]
    (found,) = planned((Catalog({left.name: left}), reader), (Catalog({right.name: right}), reader), rules).tables
    assert found.unique is expected

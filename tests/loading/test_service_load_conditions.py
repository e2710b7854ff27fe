"""Under which conditions a load works: stopped in between, without definitions, with few rights, with little memory."""

import json
import re
import signal
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest

from ordering.errors import InputError, TargetError
from tests.bench.measure import RECONCILER
from tests.bench.tree import TreeSampler
from tests.loading.dumping import KEYS, NAMES
from tests.loading.test_service_load_kills import TSO, WHOLE, held, load, values, write_dump
from tests.service.cells import MariaDbCells, SqliteCells
from tests.service.lab import eventually, toml_of
from tests.service.postgres_cells import PostgresCells
from tests.service.targets.test_least_rights import OUR_PLACE, OURS, POSTGRES, THEIRS, MysqlUser, place_of

pytestmark = pytest.mark.service
BIG_ROWS = 120_000
WIDE = 1_000
"""Bytes a row."""
MOST_MB = 200
"""A process takes 115; the file is as large as that once more, and its rows would take several times as much."""


def command(tmp_path: Path, dump: Path, uri: str) -> list[str]:
    config = tmp_path / "c.toml"
    config.write_text(toml_of(values(uri)))
    return [str(RECONCILER), "load", str(config), "--dump", str(dump), "--json"]


def long_file(dump: Path) -> None:
    """Make one of the dump's files long."""
    pad = "x" * (WIDE - 20)
    with dump.joinpath("d.big.000000000.sql").open("w") as file:
        file.write(f"{NAMES}{KEYS}")
        for start in range(0, BIG_ROWS, 1000):
            rows = ",\n".join(f"({number},'{pad}')" for number in range(start, start + 1000))
            file.write(f"INSERT INTO `big` VALUES\n{rows};\n")
    text = "CREATE TABLE `big` (`id` int NOT NULL, `v` varchar(2000), PRIMARY KEY (`id`));\n"
    dump.joinpath("d.big-schema.sql").write_text(NAMES + text)


@pytest.fixture
def long_dump(tmp_path: Path) -> Path:
    """A dump with a file of 120 MB."""
    dump = write_dump(tmp_path / "dump")
    long_file(dump)
    return dump


def last_line(output: bytes) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(output.splitlines()[-1])
    return told


@pytest.mark.by_turns
def test_memory_does_not_grow_with_a_file_and_sigterm_ends_it_in_order(long_dump: Path, tmp_path: Path) -> None:
    uri = f"sqlite:///{tmp_path}/target"
    begun = psutil.Popen(command(tmp_path, long_dump, uri), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    eventually("rows of it are there", lambda: big_rows(tmp_path / "target") > 0)
    begun.send_signal(signal.SIGTERM)
    told = last_line(begun.communicate(timeout=60)[0])
    assert (begun.returncode, told["finished"]) == (0, False)
    assert 0 < big_rows(tmp_path / "target") <= told["rows"] < BIG_ROWS
    again = psutil.Popen(command(tmp_path, long_dump, uri), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    with TreeSampler(again.pid) as tree:
        rest = last_line(again.communicate(timeout=240)[0])
    assert (again.returncode, rest["finished"], rest["resumed"]) == (0, True, True)
    assert told["rows"] + rest["rows"] == BIG_ROWS + sum(map(len, WHOLE))
    assert big_rows(tmp_path / "target") == BIG_ROWS
    assert held(SqliteCells(tmp_path / "target"), "d") == WHOLE
    assert max(tree.peak_mb("driver"), tree.peak_mb("worker")) < MOST_MB


def big_rows(target: Path) -> int:
    """How many rows of the long file are there; 0 before its table is."""
    if not (target / "d.sqlite").exists():
        return 0
    with closing(sqlite3.connect(target / "d.sqlite")) as connection, suppress(sqlite3.OperationalError):
        return int(connection.execute("SELECT COUNT(*) FROM big").fetchone()[0])
    return 0


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A dump with `--no-schemas`."""
    dump = write_dump(tmp_path / "dump")
    for path in dump.glob("*schema*"):
        path.unlink()
    return dump


def test_a_dump_without_definitions_goes_into_tables_that_are_there(bare: Path, tmp_path: Path) -> None:
    cells = SqliteCells(tmp_path / "target")
    with pytest.raises(TargetError, match=r"table d\.\w is missing in the target") as caught:
        load(f"sqlite:///{tmp_path}/target", bare).run()
    assert re.match(r"file=d\.\w\.00000000\d\.sql", caught.value.where)
    cells.run("d", "".join(f"CREATE TABLE {name} (id INTEGER NOT NULL, v TEXT);" for name in "abc"))
    with pytest.raises(InputError, match="names the columns of its rows") as caught_then:
        load(f"sqlite:///{tmp_path}/target", bare).run()
    assert "--complete-insert" in caught_then.value.hint
    for path in bare.glob("*.sql"):
        path.write_text(re.sub(r"INSERT INTO (`\w`)", r"INSERT INTO \1 (`id`,`v`)", path.read_text()))
    outcome = load(f"sqlite:///{tmp_path}/target", bare).run()
    assert (outcome.finished, outcome.resumed, outcome.tables) == (True, True, 0)
    assert held(cells, "d") == WHOLE


@pytest.fixture(params=["mariadb", "tidb"])
def user(request: pytest.FixtureRequest) -> Iterator[tuple[MysqlUser, str]]:
    uri: str = request.getfixturevalue(f"{request.param}_server").uri
    made = MysqlUser(uri, "root" if uri.startswith("mysql:") else "")
    yield made, uri
    made.drop()


def test_it_needs_no_more_rights_than_a_run(user: tuple[MysqlUser, str], tmp_path: Path, database_prefix: str) -> None:
    plain, uri = user
    cells = MariaDbCells(uri)
    plain.grant(OURS, OUR_PLACE)
    plain.grant(THEIRS, place_of(database_prefix))
    dump = write_dump(tmp_path / "dump", database_prefix)
    assert load(plain.uri, dump, changefeed=database_prefix).run().finished
    assert held(cells, database_prefix) == WHOLE
    assert int(cells.progress(database_prefix)["checkpoint_ts"]) == TSO
    cells.drop([database_prefix])
    cells.close()


def test_it_needs_no_more_rights_than_a_run_in_postgresql(own_database: str, tmp_path: Path) -> None:
    name = f"least_{tmp_path.name[-8:]}"
    database = own_database.rpartition("/")[2]
    with psycopg.connect(own_database, autocommit=True) as root:
        root.execute(f"CREATE ROLE {name} LOGIN PASSWORD 'l3ast-Pa55'".encode())
        root.execute(f"REVOKE ALL ON DATABASE {database} FROM PUBLIC".encode())
        root.execute(f"GRANT CONNECT, {', '.join(POSTGRES)} ON DATABASE {database} TO {name}".encode())
        cells = PostgresCells(own_database)
        uri = own_database.replace("postgres:postgres@", f"{name}:l3ast-Pa55@")
        assert load(uri, write_dump(tmp_path / "dump")).run().finished
        assert held(cells, "d") == WHOLE
        cells.close()
        root.execute(f"DROP OWNED BY {name} CASCADE".encode())
        root.execute(f"DROP ROLE {name}".encode())

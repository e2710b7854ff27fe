"""Keys, nullability, defaults and indexes of the target's tables are the upstream's, as far as the target has them.

MariaDB's are compared with those of the upstream's own SHOW CREATE TABLE, run on the same server; those of
SQLite and PostgreSQL with these.
"""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import pytest

from tests.embedded import MariaDbServer
from tests.service.cells import MariaDbCells, SqliteCells, emptied, oracle
from tests.service.lab import recorded
from tests.service.local import LocalFeed
from tests.service.postgres_cells import PostgresCells

pytestmark = pytest.mark.service

RECORDINGS = [
    "types.table", "keys.index-value.raw", "names.table", "ddl-basic.table", "odd-keys.index-value.raw",
    "ddl-columns.index-value",
]  # fmt: skip
COLUMNS = """
SELECT COLUMN_NAME, COLUMN_TYPE, IS_NULLABLE, COLUMN_DEFAULT, EXTRA, COLLATION_NAME FROM information_schema.COLUMNS
WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s ORDER BY ORDINAL_POSITION"""
INDEXES = """
SELECT INDEX_NAME, NON_UNIQUE, SEQ_IN_INDEX, COLUMN_NAME, SUB_PART FROM information_schema.STATISTICS
WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s ORDER BY INDEX_NAME, SEQ_IN_INDEX"""
Described = dict[str, Any]


@pytest.fixture
def cells(mariadb_server: MariaDbServer) -> Iterator[MariaDbCells]:
    with emptied(MariaDbCells(mariadb_server.uri)) as found:
        yield found


def described(cells: MariaDbCells, database: str, table: str) -> Described:
    """A table as MariaDB describes it."""
    columns = [tuple(row.values()) for row in cells.query(COLUMNS, (database, table))]
    return {"columns": columns, "indexes": [tuple(row.values()) for row in cells.query(INDEXES, (database, table))]}


def for_mariadb(create: str, *, knows_0900: bool) -> str:
    """The upstream's definition without what MariaDB lacks, or is not given (ZEROFILL).

    11.4.5 knows MySQL's names of collations.
    """
    if not knows_0900:
        create = create.replace("utf8mb4_0900_ai_ci", "utf8mb4_uca1400_nopad_ai_ci")
    create = create.replace("utf8mb4_0900_bin", "utf8mb4_nopad_bin")
    create = create.replace("\\'", "\\\\'")  # TiDB prints the backslash that ends a member as it is
    create = re.sub(r" zerofill\b", "", create, flags=re.IGNORECASE)
    create = re.sub(r" vector(\(\d+\))? ", " longtext ", create)
    lines = [line for line in create.split("\n") if not re.match(r" +(UNIQUE )?KEY .*(\(|,)\(", line)]
    return re.sub(r",\n\)", "\n)", "\n".join(lines))


def upstream(cells: MariaDbCells, recording: str) -> dict[str, Described]:
    """The upstream's tables as the same server would describe them."""
    scratch = f"scratch{uuid4().hex[:8]}"
    cells.query(f"CREATE DATABASE {scratch} CHARACTER SET utf8mb4 COLLATE utf8mb4_bin")
    knows = cells.query("SHOW COLLATION WHERE Collation = 'utf8mb4_0900_ai_ci'")
    found = {}
    for name, table in oracle(recording.split(".", maxsplit=1)[0]).items():
        cells.query(f"USE {scratch}")
        own = re.match(r"CREATE TABLE `((?:[^`]|``)+)`", table["create"])
        assert own, table["create"]
        cells.query(for_mariadb(table["create"], knows_0900=bool(knows)))
        bare = own[1].replace("``", "`")
        found[name] = described(cells, scratch, bare)
        cells.query(f"DROP TABLE `{own[1]}`")
    return found


def applied(recording: str, uri: str, cells: MariaDbCells | SqliteCells | PostgresCells, place: Path) -> None:
    feed = LocalFeed.into(uri, cells, place)
    feed.with_(target={"invalid-dates": "null"}).send(recorded(recording))
    feed.apply()


@pytest.mark.parametrize("recording", RECORDINGS)
def test_mariadb(recording: str, cells: MariaDbCells, mariadb_server: MariaDbServer, tmp_path: Path) -> None:
    wanted = upstream(cells, recording)
    applied(recording, mariadb_server.uri, cells, tmp_path)
    for name, table in wanted.items():
        database, _, bare = name.partition(".")
        assert described(cells, database, bare) == {**table, "columns": [*map(sent, table["columns"])]}, name


def sent(column: tuple[Any, ...]) -> tuple[Any, ...]:
    """A column as it is made: one that upstream computes and stores is a plain one, for its values are sent."""
    name, kind, null, default, extra, comment = column
    if extra != "STORED GENERATED":
        return column
    return name, kind, null, "NULL" if null == "YES" else default, "", comment


@pytest.mark.parametrize("recording", RECORDINGS)
def test_sqlite(recording: str, cells: MariaDbCells, tmp_path: Path) -> None:
    wanted = upstream(cells, recording)
    target = SqliteCells(tmp_path / "target")
    applied(recording, f"sqlite:///{urlsplit(str(target.directory)).path}", target, tmp_path)
    for name, table in wanted.items():
        database, _, bare = name.partition(".")
        with closing(sqlite3.connect(target.files()[database])) as connection:
            check_sqlite(connection, bare, table)


def check_sqlite(connection: sqlite3.Connection, table: str, wanted: Described) -> None:
    quoted = '"{}"'.format(table.replace('"', '""'))
    columns = connection.execute(f"PRAGMA table_info({quoted})").fetchall()
    sent = [column for column in wanted["columns"] if "VIRTUAL" not in column[4]]
    # a new column comes last, wherever upstream has put it
    assert {(name, bool(not_null)) for _, name, _, not_null, _, _ in columns} == {(c[0], c[2] == "NO") for c in sent}
    given = {c[0] for c in sent if c[3] not in (None, "NULL")}
    assert given <= {name for _, name, _, _, default, _ in columns if default is not None}, table
    indexes: dict[str, list[tuple[str, Any]]] = {}
    for index, not_unique, _, column, prefix in wanted["indexes"]:
        indexes.setdefault(index, [int(not_unique)]).append((column, prefix))  # type: ignore[list-item]
    key = {name: at for _, name, _, _, _, at in columns if at}
    assert [name for name, _ in sorted(key.items(), key=lambda item: item[1])] == [
        column for column, _ in indexes.pop("PRIMARY", [0])[1:]
    ]
    made = {}
    for _, index, unique, origin, _ in connection.execute(f"PRAGMA index_list({quoted})").fetchall():
        if origin == "c":
            named = '"{}"'.format(index.replace('"', '""'))
            parts = [part[2] for part in connection.execute(f"PRAGMA index_info({named})").fetchall()]
            made[index.removeprefix(f"{table}.")] = (bool(unique), parts)
    names = {name for _, name, *_ in columns}
    assert made == {
        index: (not not_unique, [None if prefix else column for column, prefix in parts])
        for index, (not_unique, *parts) in indexes.items()
        if all(column in names for column, _ in parts)
    }, table


POSTGRES_COLUMNS = """
SELECT column_name, is_nullable = 'NO' AS not_null, column_default FROM information_schema.columns
WHERE table_schema = %s AND table_name = %s"""
POSTGRES_INDEXES = """
SELECT i.indisprimary AS primary, i.indisunique AS unique, ARRAY(
  SELECT a.attname::text FROM unnest(i.indkey::int[]) WITH ORDINALITY k(number, at)
    LEFT JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number ORDER BY k.at) AS parts
FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = %s AND c.relname = %s"""


@pytest.mark.parametrize(
    "recording",
    ["types-without-nul.table", "odd-keys-without-nul.index-value.raw", "ddl-basic.table", "ddl-columns.index-value",
     "ddl-changes.index-value"],
)  # fmt: skip
def test_postgres(recording: str, cells: MariaDbCells, own_database: str, tmp_path: Path) -> None:
    wanted = upstream(cells, recording)
    with closing(PostgresCells(own_database)) as target:
        applied(recording, own_database, target, tmp_path)
        for name, table in wanted.items():
            check_postgres(target, name, table)


def check_postgres(target: PostgresCells, name: str, wanted: Described) -> None:
    place = tuple(name.split(".", maxsplit=1))
    sent = [column for column in wanted["columns"] if "VIRTUAL" not in column[4]]
    columns = target.query(POSTGRES_COLUMNS, place)
    assert {(c["column_name"], c["not_null"]) for c in columns} == {(c[0], c[2] == "NO") for c in sent}, name
    given = {c[0] for c in sent if c[3] not in (None, "NULL")}
    assert given <= {c["column_name"] for c in columns if c["column_default"] is not None}, name
    indexes: dict[str, tuple[bool, bool, list[str | None]]] = {}
    for index, not_unique, _, column, prefix in wanted["indexes"]:
        whole = None if prefix and index != "PRIMARY" and f"({prefix})" not in kind_of(sent, column) else column
        _, _, parts = indexes.setdefault(index, (index == "PRIMARY", not int(not_unique), []))
        parts.append(whole)
    names = {c[0] for c in sent}
    stored = [index for index in indexes.values() if names.issuperset(filter(None, index[2]))]
    made = [(i["primary"], i["unique"], i["parts"]) for i in target.query(POSTGRES_INDEXES, place)]
    assert sorted(made, key=repr) == sorted(stored, key=repr), name


def kind_of(columns: list[Any], name: str) -> str:
    return next(str(column[1]) for column in columns if column[0] == name)

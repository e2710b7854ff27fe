"""The simulator against TiCDC's own messages: the same statements give the same events."""

import gzip
import json
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from upstream_applier import Value, content, decoded, full_name, is_row

from consumer.codec.compression import decompressed, is_compressed
from consumer.demo.fake_ticdc.changefeed import Changefeed
from consumer.demo.fake_ticdc.database import Database, Key, Row, Table, Transaction
from consumer.demo.fake_ticdc.ddl import CreateDatabase, CreateTable
from consumer.demo.fake_ticdc.dispatcher import Dispatcher
from consumer.demo.fake_ticdc.producer import vector_messages

Statement: TypeAlias = tuple[Any, ...]

VECTORS = Path(__file__).parent.parent / "vectors"
INT = ("a", "int", True), ("b", "int", True)


def run(database: Database, *transactions: Sequence[Statement]) -> None:
    for statements in transactions:
        with database.transaction() as transaction:
            for verb, table, *arguments in statements:
                getattr(transaction, verb)(table, *arguments)


def row(**values: object) -> Row:
    return {name: None if value is None else str(value) for name, value in values.items()}


def key(*values: object) -> Key:
    return tuple(map(str, values))


def update(table: str, old: object, **values: object) -> Statement:
    return "update", table, key(*old) if isinstance(old, tuple) else key(old), row(**values)


def insert(table: str, **values: object) -> Statement:
    return "insert", table, row(**values)


def delete(table: str, *old: object) -> Statement:
    return "delete", table, key(*old)


@pytest.fixture
def iv() -> Database:
    database = Database()
    database.execute(CreateDatabase("test2"))
    for name, kind in (("t", "nonclustered"), ("tc", "clustered")):
        database.execute(CreateTable(Table("test2", name, INT, ("a",), kind)))
        t = f"test2.{name}"
        run(database, [insert(t, a=1, b=1)], [update(t, 1, a=2)], [insert(t, a=1, b=2)], [update(t, 1, a=3)])
    return database


SPLIT_TABLES = [
    Table("sp", "swap_c", INT, ("a",), "clustered"),
    Table("sp", "swap_n", INT, ("a",), "nonclustered"),
    Table("sp", "uk_t", (("id", "int", False), ("v", "varchar(20)", True)), ("id",), "unique_only", (("uk", ("id",)),)),
    Table(
        "sp",
        "pu",
        (("id", "int", False), ("u", "int", False), ("n", "int", True), ("v", "varchar(20)", True)),
        ("id",),
        "clustered",
        (("ku", ("u",)), ("kn", ("n",))),
    ),
    *(
        Table("sp", name, (("x", "varchar(10)", True), ("y", "int", True), ("z", "int", True)), ("x", "y"), kind)
        for name, kind in (("cpc", "clustered"), ("cpn", "nonclustered"))
    ),
]

C, N, UK, PU, CPC, CPN = (table.full_name for table in SPLIT_TABLES)


def swap(table: str, column: str, one: int, other: int, spare: int) -> list[Statement]:
    return [update(table, old, **{column: new}) for old, new in ((one, spare), (other, one), (spare, other))]


SPLIT_TRANSACTIONS = [
    [insert(C, a=1, b=1), insert(C, a=2, b=2)],
    [insert(N, a=1, b=1), insert(N, a=2, b=2)],
    [insert(UK, id=1, v="a"), insert(UK, id=2, v="b"), insert(UK, id=3, v="c")],
    [
        insert(PU, id=1, u=10, n=100, v="a"),
        insert(PU, id=2, u=20, n=200, v="b"),
        insert(PU, id=3, u=30, n=None, v="c"),
        insert(PU, id=4, u=40, n=None, v="d"),
    ],
    [insert(CPC, x="a", y=1, z=1), insert(CPC, x="b", y=2, z=2)],
    [insert(CPN, x="a", y=1, z=1), insert(CPN, x="b", y=2, z=2)],
    *([swap(t, "a", 1, 2, 3) for t in (C, N)]),
    *([[update(t, 1, a=5)] for t in (C, N)]),
    *([[update(t, 2, a=3), update(t, 5, a=2)] for t in (C, N)]),
    *([[update(t, 3, a=4), update(t, 2, a=3)] for t in (C, N)]),
    [update(UK, 1, id=10)],
    swap(UK, "id", 2, 3, 99),
    [update(UK, 3, id=4), update(UK, 2, id=3)],
    [update(UK, 10, v="only v")],
    [update(PU, 1, u=11)],
    [update(PU, 1, n=101)],
    [update(PU, 2, n=None)],
    [update(PU, 3, n=300)],
    [update(PU, 1, u=999), update(PU, 2, u=11), update(PU, 1, u=20)],
    [update(PU, 1, n=999), update(PU, 3, n=101), update(PU, 1, n=300)],
    [delete(PU, 4), insert(PU, id=4, u=41, n=401, v="d2")],
    [delete(PU, 3), update(PU, 2, id=3)],
    [delete(PU, 1), insert(PU, id=9, u=20, n=500, v="steals u=20")],
    [update(PU, 9, v="odku", u=22)],
    [insert(PU, id=50, u=50, n=50, v="x"), delete(PU, 50)],
    [insert(PU, id=51, u=51, n=51, v="x"), update(PU, 51, v="y", id=52)],
    [update(CPC, ("a", 1), y=9)],
    [update(CPN, ("a", 1), y=9)],
    [update(CPN, ("a", 9), x="t", y=0), update(CPN, ("b", 2), x="a", y=9), update(CPN, ("t", 0), x="b", y=2)],
    [insert(t, a=100 + i, b=i) for t in (N, C) for i in range(16)],
    [update(t, a, a=a + 1) for t in (N, C) for a in range(115, 99, -1)],
]


@pytest.fixture
def split() -> Database:
    database = Database()
    database.execute(CreateDatabase("sp"))
    for table in SPLIT_TABLES:
        database.execute(CreateTable(table))
    run(database, *SPLIT_TRANSACTIONS)
    return database


BANK_COLUMNS = ("bal", "bigint", False), ("note", "varchar(40)", True)
BANK_TABLES = [
    Table("bank", "acc0", (("id", "int", True), *BANK_COLUMNS), ("id",), "clustered"),
    Table("bank", "acc1", (("id", "int", True), *BANK_COLUMNS), ("id",), "nonclustered"),
    Table("bank", "acc2", (("no", "varchar(20)", False), *BANK_COLUMNS), ("no",), "unique_only", (("uno", ("no",)),)),
]


def bank_statement(transaction: Transaction, sql: str) -> None:
    """Run one statement of bank.sql, which knows five forms."""
    if match := re.fullmatch(r"INSERT INTO (\w+) VALUES (.*)", sql):
        name = f"bank.{match[1]}"
        columns = next(table.names for table in BANK_TABLES if table.full_name == name)
        for values in re.findall(r"\((.*?)\)", match[2]):
            transaction.insert(name, dict(zip(columns, values.replace("'", "").split(","), strict=True)))
        return
    verb, table, assignments, old = re.fullmatch(
        r"(UPDATE|DELETE FROM) (\w+)(?: SET (.*))? WHERE \w+='?(\w+)'?", sql
    ).groups()
    name, at = f"bank.{table}", (old,)
    if at not in transaction.keys(name):
        return
    if verb == "DELETE FROM":
        transaction.delete(name, at)
        return
    values = dict(part.split("=") for part in assignments.replace("'", "").split(", "))
    if "bal" in values:
        amount = int(values["bal"].removeprefix("bal"))
        values["bal"] = str(int(transaction.get(name, at)["bal"]) + amount)
    transaction.update(name, at, values)


@pytest.fixture(scope="module")
def bank() -> Database:
    database = Database()
    database.execute(CreateDatabase("bank"))
    for table in BANK_TABLES:
        database.execute(CreateTable(table))
    script = gzip.decompress((VECTORS / "bank.sql.gz").read_bytes()).decode().split(";\n")
    rest = iter(sql for sql in script[4:] if sql)
    for sql in rest:
        with database.transaction() as transaction:
            if sql != "BEGIN":
                bank_statement(transaction, sql)
                continue
            for inner in iter(rest.__next__, "COMMIT"):
                bank_statement(transaction, inner)
    return database


def sequence(values: list[Value], kind: str) -> list[tuple[object, ...]]:
    """The watermarks or DDLs of the first partition, in order."""
    found = [value for value in values if not is_row(value) and value["isDdl"] == (kind == "ddl")]
    return [(v["type"], v["database"], v["table"], v["es"], v["_tidb"]) for v in found]


CASES = [
    (name, dispatcher, mode)
    for name, dispatchers in (
        ("iv", ["index-value"]),
        ("split", ["index-value", "table"]),
        ("bank", ["index-value", "table"]),
    )
    for dispatcher in dispatchers
    for mode in ("split", "raw")
]


@pytest.mark.parametrize(("name", "dispatcher", "mode"), CASES)
def test_the_same_statements_give_ticdc_s_own_events(
    name: str, dispatcher: Dispatcher, mode: str, request: pytest.FixtureRequest
) -> None:
    suffix = ".jsonl.gz" if name == "bank" else ".jsonl"
    genuine = decoded(vector_messages(VECTORS / f"{name}.{dispatcher}.{mode}{suffix}"))
    feed = Changefeed(dispatcher=dispatcher, raw=mode == "raw", watermark_every=10 if name == "bank" else 5)
    made = decoded(feed.messages(request.getfixturevalue(name).log))

    assert Counter(map(content, filter(is_row, made))) == Counter(map(content, filter(is_row, genuine)))
    assert sequence(made, "ddl") == sequence(genuine, "ddl")
    assert sequence(made, "watermark") == sequence(genuine, "watermark")


@pytest.mark.parametrize("name", ["iv", "split"])
def test_messages_are_spelt_as_ticdc_s(name: str, request: pytest.FixtureRequest) -> None:
    genuine = decoded(vector_messages(VECTORS / f"{name}.index-value.raw.jsonl"))
    made = decoded(Changefeed(raw=True).messages(request.getfixturevalue(name).log))
    by_content = {content(value): value for value in made if is_row(value)}
    for value in filter(is_row, genuine):
        twin = by_content[content(value)]
        assert list(twin) == list(value)
        assert {**twin, "ts": 0} == {**value, "ts": 0}
        assert list(twin["data"][0]) == list(value["data"][0])


def test_ddls_are_spelt_as_ticdc_s(iv: Database, split: Database, bank: Database) -> None:
    for name, database in (("iv", iv), ("split", split), ("bank", bank)):
        path = next(VECTORS.glob(f"{name}.index-value.raw.jsonl*"))
        genuine = [{**v, "ts": 0} for v in decoded(vector_messages(path)) if v["isDdl"] and v["table"] != "pu"]
        made = [
            {**v, "ts": 0} for v in decoded(Changefeed().messages(database.log)) if v["isDdl"] and v["table"] != "pu"
        ]
        assert made == genuine
        assert list(made[0]) == list(genuine[0])


@pytest.mark.parametrize("name", ["iv", "split", "bank"])
def test_the_database_ends_as_tidb_did(name: str, request: pytest.FixtureRequest) -> None:
    oracle = json.loads((VECTORS / f"{name}.{'upstream' if name == 'bank' else 'final'}.json").read_text())
    snapshot = request.getfixturevalue(name).snapshot()
    assert {
        table: sorted(map(repr, ([*row.values()] for row in rows.values()))) for table, rows in snapshot.items()
    } == {table: sorted(map(repr, content["rows"])) for table, content in oracle.items()}


def plain(value: bytes) -> bytes:
    return decompressed(value, 1 << 20) if is_compressed(value) else value


def test_every_recording_is_readable() -> None:
    for path in sorted(VECTORS.glob("*.jsonl*")):
        values = decoded(message._replace(value=plain(message.value)) for message in vector_messages(path))
        assert any(is_row(value) and full_name(value) for value in values)

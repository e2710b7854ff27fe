"""A key means this row and no other, whatever the server thinks of its type, its collation or its plan (R11)."""

from collections.abc import Sequence

import pytest

from consumer.demo.fake_ticdc.changefeed import Message
from ordering.errors import TargetError
from tests.service.lab import Feed
from tests.service.messages import at, encoded, row_value, watermarks

pytestmark = pytest.mark.service
SIZES = (3, 50, 260)
"""Rows that go: in one statement, in one that the planner answers with a scan, by the bulk path."""
MOST = max(SIZES) * 2
BYTES = ("binary", "varbinary", "blob")


def moment(i: int) -> str:
    return f"2026-01-01 00:00:{i // 100:02}.{i % 100 + 1:06}"


KEYS: dict[str, list[str]] = {
    "DECIMAL(20,0)": [str(1234567890123456700 + i) for i in range(MOST)],
    "DECIMAL(40,20)": [f"12345678901234567.{i:020}" for i in range(MOST)],
    "DECIMAL(10,2) ZEROFILL": [f"{i}.25" for i in range(MOST)],
    "DOUBLE": [repr(1e15 + i / 4) for i in range(MOST)],
    "FLOAT": [repr(float(16777000 - i)) for i in range(MOST)],
    "BIGINT UNSIGNED": [str(2**64 - 1 - i) for i in range(MOST)],
    "BIGINT": [str(-(2**63) + i) for i in range(MOST)],
    "YEAR": ["0", *map(str, range(1950, 2050))],
    "BIT(64)": [str(2**64 - 1 - i) for i in range(MOST)],
    "BINARY(8)": [f"k{i:05}\0\0" for i in range(MOST)],
    "VARBINARY(8)": ["k" * (i % 2) + chr(i // 2 % 200) + "\0" * (i // 400) + " " * (i % 3 + 1) for i in range(MOST)],
    "CHAR(12) COLLATE utf8mb4_bin": [f"1e{i}" for i in range(MOST)],
    "VARCHAR(12) COLLATE utf8mb4_bin": [f"{i}.0" for i in range(MOST)],
    "VARCHAR(12) COLLATE utf8mb4_general_ci": [f"0x{i:x}" for i in range(MOST)],
    "VARCHAR(12) CHARACTER SET latin1": [f"{i} é" for i in range(MOST)],
    "DATETIME(6)": [moment(i) for i in range(MOST)],
    "TIMESTAMP(6)": [moment(i) for i in range(MOST)],
    "DATE": [f"{2000 + i // 336}-{i // 28 % 12 + 1:02}-{i % 28 + 1:02}" for i in range(MOST)],
    "TIME(6)": [f"{'-' if i % 2 else ''}{i // 2 + 1}:00:00.{i + 1:06}" for i in range(MOST)],
    "ENUM('1','0','3','2','a')": ["1", "2", "3", "4", "5"],
    "SET('1','0','3','2','a')": [str(i) for i in range(32)],
}
TABLES = {f"t{number}": declared for number, declared in enumerate(KEYS)}


def about(kind: str, number: int, table: str, key: str, **row: str) -> Message:
    """A row event with the key `k`, whose type is the table's."""
    old = {"k": key, "v": "old"} if kind == "UPDATE" else None
    value = row_value(kind, f"exact.{table}", at(number), {"k": key, **row}, old, ("k",))
    declared = TABLES.get(table, "VARCHAR(12)").lower().split(" collate")[0]
    value["mysqlType"]["k"] = declared.replace(" character set latin1", "")
    return Message("ticdc", number % 3, encoded(value))


def made(feed: Feed, *, second: bool) -> Feed:
    """Tables by hand that hold more rows than those that go."""
    unique = ", UNIQUE (v)" if second else ""
    tables = (f"CREATE TABLE {name} (k {kind} PRIMARY KEY, v VARCHAR(700){unique})" for name, kind in TABLES.items())
    feed.make_database("exact", ";".join(tables))
    return feed


def values(feed: Feed, table: str) -> set[str]:
    return {str(row["v"]) for row in feed.cells.tables(["exact"])[f"exact.{table}"][1]}


def gone(keys: Sequence[str], size: int) -> list[int]:
    """Which ones go: every other one, and no more than there are."""
    return list(range(0, len(keys), 2))[:size]


@pytest.mark.cells(("target", "size"), "second")
@pytest.mark.parametrize("second", [False, True], ids=["one-key", "two-keys"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("target", ["mariadb", "tidb"])
def test_neighbours_stay(target: str, size: int, second: bool, request: pytest.FixtureRequest) -> None:
    feed = made(request.getfixturevalue(f"{target}_feed"), second=second).with_(target={"consistency": "snapshot"})
    sent = {name: KEYS[kind][: size * 2] for name, kind in TABLES.items()}
    feed.send(about("INSERT", 1, name, k, v=f"{i}") for name, keys in sent.items() for i, k in enumerate(keys))
    feed.send(watermarks(1))
    feed.once()
    going = {name: gone(keys, size) for name, keys in sent.items()}
    feed.send(about("DELETE", 2, name, sent[name][i], v=f"{i}") for name, those in going.items() for i in those)
    kept = {name: sorted(set(range(len(keys))) - set(going[name])) for name, keys in sent.items()}
    feed.send(about("UPDATE", 2, name, sent[name][i], v=f"new {i}") for name, those in kept.items() for i in those[::3])
    feed.send(watermarks(2))
    feed.once()
    for name, those in kept.items():
        expected = {f"new {i}" if at % 3 == 0 else f"{i}" for at, i in enumerate(those)}
        assert values(feed, name) == expected, TABLES[name]


PADDED = {
    "few": 3,
    "many": 260,
}


@pytest.mark.cells(("target", "many"), "consistency")
@pytest.mark.parametrize("consistency", ["snapshot", "row"])
@pytest.mark.parametrize("many", PADDED)
@pytest.mark.parametrize("target", ["mariadb", "tidb"])
def test_keys_that_differ_in_blanks_at_their_end_are_not_overwritten(
    target: str, many: str, consistency: str, request: pytest.FixtureRequest
) -> None:
    feed: Feed = request.getfixturevalue(f"{target}_feed")
    feed.with_(target={"consistency": consistency})
    feed.make_database("exact", "CREATE TABLE p (k VARCHAR(12) COLLATE utf8mb4_bin PRIMARY KEY, v VARCHAR(20))")
    feed.send([*(about("INSERT", 1, "p", f"k{i}", v="old") for i in range(PADDED[many])), *watermarks(1)])
    feed.once()
    feed.send(about("INSERT", 2, "p", f"k{i}" + " " * (i == 1), v="new") for i in range(PADDED[many]))
    feed.send(watermarks(2))
    error = feed.failing(TargetError)
    assert "blanks at its end" in str(error)
    assert f"topic={feed.topic} partition=2" in str(error)
    assert ("k1", "old") in [(row["k"], row["v"]) for row in feed.cells.tables(["exact"])["exact.p"][1]]


@pytest.mark.parametrize("many", PADDED)
@pytest.mark.parametrize("target", ["mariadb", "tidb"])
def test_a_key_changes_by_the_blanks_at_its_end(target: str, many: str, request: pytest.FixtureRequest) -> None:
    feed: Feed = request.getfixturevalue(f"{target}_feed")
    feed.make_database("exact", "CREATE TABLE p (k VARCHAR(12) COLLATE utf8mb4_bin PRIMARY KEY, v VARCHAR(20))")
    feed.send([*(about("INSERT", 1, "p", f"k{i}", v="old") for i in range(PADDED[many])), *watermarks(1)])
    feed.once()
    for number, kind, tail in ((2, "DELETE", ""), (2, "INSERT", " "), (3, "DELETE", "")):
        feed.send(about(kind, number, "p", f"k{i}{tail}", v="new") for i in range(PADDED[many]))
    feed.send(watermarks(3))
    feed.once()
    feed.send([*(about("DELETE", 4, "p", f"k{i}", v="old") for i in range(PADDED[many])), *watermarks(4)])
    feed.once()
    found = sorted(row["k"] for row in feed.cells.tables(["exact"])["exact.p"][1])
    assert found == sorted(f"k{i} " for i in range(PADDED[many]))

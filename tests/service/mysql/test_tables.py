"""Tables with what MySQL alone has, made by hand: rows land exactly, or are refused with what to do."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ordering.errors import TargetError
from tests.embedded import MySqlServer
from tests.service.cells import MariaDbCells, emptied
from tests.service.lab import Feed
from tests.service.local import LocalFeed
from tests.service.messages import ddl, delete, insert, keyed, typed, update, watermarks

pytestmark = [pytest.mark.service, pytest.mark.mysql]
BULK = 250
"""More rows than statements are used for."""


def held(feed: Feed) -> list[dict[str, object]]:
    return feed.cells.tables(["hand"])["hand.t"][1]


def keys(feed: Feed, column: str) -> list[object]:
    return sorted((row[column] for row in held(feed)), key=repr)


@pytest.fixture(params=["0", "1"], ids=["statements", "load data"], scope="module")
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MySqlServer]:
    with MySqlServer(tmp_path_factory.mktemp("mysql"), extra={"local-infile": request.param}) as made:
        yield made


@pytest.fixture
def feed(server: MySqlServer, tmp_path: Path) -> Iterator[LocalFeed]:
    with emptied(MariaDbCells(server.uri)) as cells:
        yield LocalFeed.into(server.uri, cells, tmp_path)
        cells.query("SET GLOBAL sql_generate_invisible_primary_key = 0, GLOBAL sql_require_primary_key = 0")


@pytest.mark.cells(("own", "rows"), "server")
@pytest.mark.parametrize("rows", [2, BULK])
@pytest.mark.parametrize("own", ["", ", own INT DEFAULT 7", ", own INT INVISIBLE DEFAULT 7"])
def test_a_server_may_demand_primary_keys(feed: LocalFeed, own: str, rows: int) -> None:
    feed.cells.query("SET GLOBAL sql_require_primary_key = 1")
    feed.make_database("hand", f"CREATE TABLE t (id INT, v INT, s VARCHAR(9){own}, PRIMARY KEY (id, v))")
    feed.send([keyed(insert("hand.t", 1, id=i, v=i, s="a"), "id", "v") for i in range(rows)])
    feed.send(watermarks(1))
    feed.apply()
    feed.send([keyed(delete("hand.t", 2, id=i, v=i, s="a"), "id", "v") for i in range(1, rows)])
    feed.send([keyed(insert("hand.t", 2, id=rows, v=1, s="b"), "id", "v"), *watermarks(2)])
    feed.apply()
    assert [(row["id"], row["s"]) for row in held(feed)] == [(0, "a"), (rows, "b")]


@pytest.mark.cells("setting", "server")
@pytest.mark.parametrize("setting", ["sql_safe_updates = 1", "max_join_size = 1"])
def test_what_a_server_guards_people_from_does_not_stop_a_run(feed: LocalFeed, setting: str) -> None:
    feed.cells.query(f"SET GLOBAL {setting}")
    try:
        feed.send([ddl("hand.", 1, "CREATE DATABASE `hand`", kind="QUERY")])
        feed.send(
            [ddl("hand.t", 2, "CREATE TABLE `t` (id INT, v INT, s VARCHAR(9), PRIMARY KEY (id, v), UNIQUE KEY (s))")]
        )
        feed.send([keyed(insert("hand.t", 3, id=i, v=i, s=f"1{i}"), "id", "v") for i in range(9)])
        feed.send([ddl("hand.t", 4, "ALTER TABLE `t` MODIFY COLUMN `s` BIGINT", kind="ALTER")])
        gone = [keyed(delete("hand.t", 5, id=i, v=i, s=f"1{i}"), "id", "v") for i in range(1, 9)]
        feed.send([typed(one, s="bigint") for one in gone])
        feed.send(watermarks(5))
        feed.apply()
        assert [(row["id"], row["s"]) for row in held(feed)] == [(0, 10)]
    finally:
        feed.cells.query(f"SET GLOBAL {setting.partition(' ')[0]} = DEFAULT")


@pytest.mark.cells(("key", "rows"), ("server", "consistency"))
@pytest.mark.parametrize("consistency", ["snapshot", "row"])
@pytest.mark.parametrize("rows", [2, BULK])
@pytest.mark.parametrize("key", ["UNIQUE KEY (id)", "UNIQUE KEY (id), UNIQUE KEY (v)"])
def test_a_server_may_make_primary_keys_of_its_own(feed: LocalFeed, key: str, rows: int, consistency: str) -> None:
    """Upstream's key is the unique one, whatever the server adds."""
    feed.cells.query("SET GLOBAL sql_generate_invisible_primary_key = 1")
    feed.with_(target={"consistency": consistency})
    feed.send([ddl("hand.", 1, "CREATE DATABASE `hand`", kind="QUERY")])
    feed.send([ddl("hand.t", 2, f"CREATE TABLE `t` (id INT NOT NULL, v INT, s VARCHAR(9), {key})")])
    feed.send([keyed(insert("hand.t", 3, id=i, v=i, s="a")) for i in range(rows)])
    feed.send(watermarks(3))
    feed.apply()
    feed.send([keyed(update("hand.t", 4, {"id": 0, "v": 0, "s": "a"}, id=0, v=0, s="c"))])
    feed.send([keyed(delete("hand.t", 4, id=i, v=i, s="a")) for i in range(1, rows)])
    feed.send([keyed(insert("hand.t", 4, id=rows, v=1, s="b")), *watermarks(4)])
    feed.apply()
    assert [(row["id"], row["v"], row["s"]) for row in held(feed)] == [(0, 0, "c"), (rows, 1, "b")]


def test_tables_without_a_key_where_the_server_makes_one(feed: LocalFeed) -> None:
    feed.cells.query("SET GLOBAL sql_generate_invisible_primary_key = 1")
    feed.with_(filter={"rules": ["*.*"], "force-replicate": True})
    feed.send([ddl("hand.", 1, "CREATE DATABASE `hand`", kind="QUERY")])
    feed.send([ddl("hand.t", 2, "CREATE TABLE `t` (id INT, s VARCHAR(9))")])
    feed.send([keyed(insert("hand.t", 3 + i % 2, id=i // 2, s="a")) for i in range(6)])
    feed.send(watermarks(5))
    feed.apply()
    feed.send([keyed(delete("hand.t", 6, id=1, s="a")), *watermarks(7)])
    feed.apply()
    assert keys(feed, "id") == [0, 0, 1, 2, 2]


@pytest.mark.parametrize("rows", [2, BULK])
def test_functional_unique_keys_hurt_no_other_row(feed: LocalFeed, rows: int) -> None:
    """What upstream has too: rows that swap what the expression makes of them."""
    feed.make_database("hand", "CREATE TABLE t (id INT PRIMARY KEY, s VARCHAR(20), UNIQUE KEY ((LOWER(s))))")
    feed.send([insert("hand.t", 1, id=i, s=f"S{i}") for i in range(rows)])
    feed.send(watermarks(1))
    feed.apply()
    feed.send([update("hand.t", 2, {"id": i, "s": f"S{i}"}, id=i, s=f"s{rows - 1 - i}") for i in range(rows)])
    feed.send(watermarks(2))
    feed.apply()
    assert {row["id"]: row["s"] for row in held(feed)} == {i: f"s{rows - 1 - i}" for i in range(rows)}


@pytest.mark.parametrize("rows", [1, BULK])
def test_a_check_by_hand_refuses_and_nothing_is_lost(feed: LocalFeed, rows: int) -> None:
    feed.make_database("hand", "CREATE TABLE t (id INT PRIMARY KEY, v INT CHECK (v < 1000))")
    feed.send([insert("hand.t", 1, id=i, v=i) for i in range(rows)])
    feed.send([insert("hand.t", 1, id=-1, v=1000), *watermarks(1)])
    with pytest.raises(TargetError, match="3819"):
        feed.apply()
    assert held(feed) == []


def test_checks_of_upstream_are_not_enforced(feed: LocalFeed) -> None:
    feed.send([ddl("hand.", 1, "CREATE DATABASE `hand`", kind="QUERY")])
    create = "CREATE TABLE `t` (id INT PRIMARY KEY, v INT CHECK (v < 10), CONSTRAINT c CHECK (v > 1))"
    feed.send([ddl("hand.t", 2, create), insert("hand.t", 3, id=1, v=1000), *watermarks(3)])
    feed.apply()
    assert [row["v"] for row in held(feed)] == [1000]


@pytest.mark.parametrize("rows", [1, BULK])
def test_a_vector_by_hand_is_refused_or_exact(feed: LocalFeed, rows: int) -> None:
    feed.make_database("hand", "CREATE TABLE t (id INT PRIMARY KEY, v VECTOR(2))")
    feed.send([typed(insert("hand.t", 1, id=i, v="[1,2,30]"), v="vector") for i in range(rows)])
    feed.send(watermarks(1))
    with pytest.raises(TargetError, match=r"hand\.t"):
        feed.apply()
    assert held(feed) == []


COLLATIONS = ("utf8mb4_0900_ai_ci", "utf8mb4_0900_as_cs", "utf8mb4_0900_bin", "utf8mb4_bin", "utf8mb4_general_ci")
TWINS = ("a", "A", "á", "a ", "ß", "ss", "\uff41", "a\t", "Å", "å", "\u212b")
"""Texts that some of the collations take for one."""


@pytest.mark.cells("collation", ("kind", "rows"), "server")
@pytest.mark.parametrize("rows", [1, BULK])
@pytest.mark.parametrize("kind", ["VARCHAR(40)", "CHAR(40)"])
@pytest.mark.parametrize("collation", COLLATIONS)
def test_a_delete_takes_no_row_that_looks_alike(feed: LocalFeed, collation: str, kind: str, rows: int) -> None:
    """The key of a table by hand folds: a DELETE of a text that upstream tells apart from it takes nothing."""
    feed.make_database("hand", f"CREATE TABLE t (s {kind} COLLATE {collation} PRIMARY KEY, v INT)")
    twins = [text for text in TWINS if kind.startswith("VARCHAR") or not text.endswith(" ")]
    others = [f"k{i}" for i in range(rows)]
    for number, key in enumerate(twins):
        ts = 10 * number
        feed.send([keyed(insert("hand.t", ts + 1, s=text, v=1), "s") for text in (key, *others)])
        feed.send(watermarks(ts + 1))
        feed.apply()
        gone = [text for text in (*twins, *others) if text != key]
        feed.send([keyed(delete("hand.t", ts + 2, s=text, v=1), "s") for text in gone])
        feed.send(watermarks(ts + 3))
        feed.apply()
        assert keys(feed, "s") == [key]
        feed.send([keyed(delete("hand.t", ts + 4, s=key, v=1), "s"), *watermarks(ts + 5)])
        feed.apply()
        assert held(feed) == []

"""Tables of the MySQL family that others made, with keys and constraints that upstream does not have."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from ordering.errors import TargetError
from tests.embedded import MariaDbServer, TidbServer
from tests.service.cells import MariaDbCells, emptied
from tests.service.local import LocalFeed
from tests.service.messages import delete, insert, keyed, typed, update, watermarks

pytestmark = pytest.mark.service
BULK = 250
"""More rows than statements are used for."""


@pytest.fixture(params=["mariadb", "tidb"])
def feed(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LocalFeed]:
    """A changefeed into each server of the family."""
    server: MariaDbServer | TidbServer = request.getfixturevalue(f"{request.param}_server")
    with emptied(MariaDbCells(server.uri)) as cells:
        yield LocalFeed.into(server.uri, cells, tmp_path)


def held(feed: LocalFeed) -> list[dict[str, object]]:
    return feed.cells.tables(["hand"])["hand.t"][1]


NOT_NULL = {
    "TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP": ("timestamp", "2026-01-02 03:04:05"),
    "INT NOT NULL AUTO_INCREMENT, KEY (v)": ("int", "3"),
    "INT NOT NULL": ("int", "3"),
    "VARCHAR(9) NOT NULL": ("varchar", "a"),
    "ENUM('a', 'b') NOT NULL": ("enum", "1"),
    "ENUM('a', 'b') NOT NULL DEFAULT 'b'": ("enum", "0"),
}
"""Of NULL these become the present, the next number, or the type's zero, by the way in which a row is written."""


@pytest.mark.cells("declared", ("feed", "rows"), "own")
@pytest.mark.parametrize("rows", [1, BULK])
@pytest.mark.parametrize("own", ["", ", own INT DEFAULT 7"])
@pytest.mark.parametrize("declared", NOT_NULL)
def test_null_stays_null_or_is_refused(feed: LocalFeed, declared: str, own: str, rows: int) -> None:
    kind, value = NOT_NULL[declared]
    feed.make_database("hand", f"CREATE TABLE t (id INT PRIMARY KEY, v {declared}{own})")
    feed.send([typed(insert("hand.t", 1, id=i, v=value), v=kind) for i in range(rows)])
    feed.send([typed(insert("hand.t", 2, id=-1, v=None), v=kind), *watermarks(3)])
    with pytest.raises(TargetError, match=r"column 'v' .*NULL.*id='-1'"):
        feed.apply()
    assert held(feed) == []


@pytest.mark.parametrize("own", ["", ", own INT DEFAULT 7"])
@pytest.mark.parametrize(
    "declared", ["VARBINARY(9)", "BLOB", "CHAR(9) COLLATE utf8mb4_bin", "VARCHAR(9) COLLATE utf8mb4_bin"]
)
def test_a_key_over_a_prefix_overwrites_no_neighbour(feed: LocalFeed, declared: str, own: str) -> None:
    feed.make_database("hand", f"CREATE TABLE t (s {declared}, v INT{own}, PRIMARY KEY (s(2)))")
    kind = declared.partition("(")[0].lower()
    rows = [keyed(typed(insert("hand.t", number, s=s, v=number), s=kind), "s") for number, s in ((1, "ab"), (2, "abc"))]
    feed.send([*rows, *watermarks(3)])
    with pytest.raises(TargetError, match="Duplicate entry" if not own else "unique keys besides"):
        feed.apply()
    assert held(feed) == []


@pytest.mark.parametrize(("collation", "key", "twin"), [("general_ci", "a", "A"), ("bin", "b", "b ")])
@pytest.mark.parametrize("consistency", ["snapshot", "transaction"])
def test_one_key_deletes_no_twin(feed: LocalFeed, consistency: str, collation: str, key: str, twin: str) -> None:
    feed.with_(target={"consistency": consistency})
    feed.make_database("hand", f"CREATE TABLE t (s VARCHAR(9) COLLATE utf8mb4_{collation} PRIMARY KEY, v INT)")
    feed.send([keyed(insert("hand.t", 1, s=key, v=1), "s"), *watermarks(1)])
    feed.apply()
    feed.send([keyed(delete("hand.t", 2, s=twin, v=1), "s"), *watermarks(2)])
    feed.apply()
    assert held(feed) == [{"s": key, "v": 1}]
    feed.send([keyed(insert("hand.t", 3, s=twin, v=1), "s"), *watermarks(3)])
    with pytest.raises(TargetError):
        feed.apply()
    assert held(feed) == [{"s": key, "v": 1}]


@pytest.fixture
def primary_keys_demanded(mariadb_server: MariaDbServer) -> Iterator[None]:
    """A server that takes no table without a primary key, as those of some clouds do not."""
    cells = MariaDbCells(mariadb_server.uri)
    cells.query("SET GLOBAL innodb_force_primary_key = 1")
    yield
    cells.query("SET GLOBAL innodb_force_primary_key = 0")
    cells.close()


@pytest.mark.usefixtures("primary_keys_demanded")
@pytest.mark.parametrize("rows", [2, BULK])
@pytest.mark.parametrize("own", ["", ", own INT DEFAULT 7"])
@pytest.mark.parametrize("feed", ["mariadb"], indirect=True)
def test_a_server_may_demand_primary_keys(feed: LocalFeed, own: str, rows: int) -> None:
    feed.make_database("hand", f"CREATE TABLE t (id INT, v INT, s VARCHAR(9){own}, PRIMARY KEY (id, v))")
    feed.send([keyed(insert("hand.t", 1, id=i, v=i, s="a"), "id", "v") for i in range(rows)])
    feed.send(watermarks(1))
    feed.apply()
    feed.send([keyed(delete("hand.t", 2, id=i, v=i, s="a"), "id", "v") for i in range(1, rows)])
    feed.send([keyed(insert("hand.t", 2, id=rows, v=1, s="b"), "id", "v"), *watermarks(2)])
    feed.apply()
    assert [(row["id"], row["s"]) for row in held(feed)] == [(0, "a"), (rows, "b")]


@pytest.mark.parametrize("stored", ["VIRTUAL", "STORED"])
def test_a_run_warns_of_columns_that_the_target_computes(feed: LocalFeed, stored: str) -> None:
    feed.make_database("hand", f"CREATE TABLE t (id INT PRIMARY KEY, v INT, g INT AS (v + 1) {stored})")
    feed.send([typed(insert("hand.t", 1, id=1, v=1, g="77"), g="int"), *watermarks(3)])
    with capture_logs() as lines:
        feed.apply()
    said = [line["what"] for line in lines if line["event"] == "the target acts by itself on what is written"]
    native = stored == "STORED" and feed.uri.startswith("tidb")  # TiDB computes what TiDB computes
    assert [what.partition(" of ")[0] for what in said] == ([] if native else ["column g"])


@pytest.mark.cells(("feed", "rows"), "own", "table")
@pytest.mark.parametrize("table", ["k", "s"])
@pytest.mark.parametrize("rows", [3, BULK])
@pytest.mark.parametrize("own", ["", ", own INT DEFAULT 7"])
def test_tables_may_be_called_as_statements_call_our_rows(feed: LocalFeed, own: str, rows: int, table: str) -> None:
    """By the join (two columns of a key), by the stage (a column of the target's own), and by REPLACE."""
    feed.make_database("hand", f"CREATE TABLE {table} (id INT, b INT, v INT{own}, PRIMARY KEY (id, b))")
    name = f"hand.{table}"
    feed.send([keyed(insert(name, 1, id=i, b=1, v=i), "id", "b") for i in range(rows)])
    feed.send(watermarks(2))
    feed.apply()
    feed.send([keyed(update(name, 3, {"v": i}, id=i, b=1, v=i + 1), "id", "b") for i in range(1, rows)])
    feed.send([keyed(delete(name, 4, id=0, b=1, v=0), "id", "b"), *watermarks(5)])
    feed.apply()
    held = feed.cells.tables(["hand"])[name][1]
    assert sorted((row["id"], row["v"]) for row in held) == [(i, i + 1) for i in range(1, rows)]


@pytest.mark.cells(("feed", "rows"), "own", "stored")
@pytest.mark.parametrize("rows", [3, BULK])
@pytest.mark.parametrize("own", ["", ", own INT DEFAULT 7", ", KEY (g)"])
@pytest.mark.parametrize("stored", ["VIRTUAL", "STORED"])
def test_what_a_server_says_of_a_value_that_it_computes_refuses_no_row(
    feed: LocalFeed, stored: str, own: str, rows: int
) -> None:
    """Found by the differential harness: TiDB and MariaDB warn of thirds that they cut."""
    feed.make_database("hand", f"CREATE TABLE t (id INT PRIMARY KEY, v INT, g DECIMAL(12,3) AS (v/3) {stored}{own})")
    feed.send([*(insert("hand.t", 1, id=i, v=i) for i in range(rows)), *watermarks(1)])
    feed.apply()
    feed.send([update("hand.t", 2, {"v": i}, id=i, v=i + 1) for i in range(1, rows)])
    feed.send([delete("hand.t", 3, id=0, v=0), *watermarks(3)])
    feed.apply()
    assert [(row["id"], row["v"], str(row["g"])) for row in held(feed)] == [
        (i, i + 1, f"{(i + 1) / 3:.3f}") for i in range(1, rows)
    ]


@pytest.mark.parametrize("rows", [1, BULK])
def test_a_value_beyond_what_is_computed_of_it_is_upstreams_in_tidb_alone(feed: LocalFeed, rows: int) -> None:
    """A session without strict mode may have written the row."""
    feed.make_database("hand", "CREATE TABLE t (id INT PRIMARY KEY, v INT, g TINYINT AS (v * 1) STORED)")
    feed.send([*(insert("hand.t", 1, id=i, v=300) for i in range(rows)), *watermarks(1)])
    if feed.uri.startswith("tidb"):
        feed.apply()
        assert {(row["v"], row["g"]) for row in held(feed)} == {(300, 127)}
    else:
        with pytest.raises(TargetError, match="1264 Out of range value for column 'g'"):
            feed.apply()


@pytest.mark.parametrize("rows", [1, BULK])
def test_a_value_that_is_sent_is_refused_beside_a_computed_one(feed: LocalFeed, rows: int) -> None:
    columns = "id INT PRIMARY KEY, v INT, s TINYINT, g DECIMAL(12,3) AS (v/3) STORED"
    feed.make_database("hand", f"CREATE TABLE t ({columns})")
    some = [typed(insert("hand.t", 1, id=i, v=i, s=300 * (i == rows - 1)), s="int") for i in range(rows)]
    feed.send([*some, *watermarks(1)])
    with pytest.raises(TargetError):
        feed.apply()
    assert held(feed) == []

"""Tables made or changed by hand: what upstream lacks keeps its values, or is refused by name.

So is what would merge rows. And what `check` tells of rights, triggers and cascades.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from structlog.testing import capture_logs

from ordering.errors import TargetError
from sinks.mysql.connection import MysqlConnection
from sinks.uri import parse_target_uri
from tests.embedded import MariaDbServer
from tests.service.cells import MariaDbCells, SqliteCells, emptied
from tests.service.local import LocalFeed
from tests.service.messages import at, begun, ddl, delete, insert, keyed, typed, update, watermarks

pytestmark = pytest.mark.service


@pytest.fixture
def sqlite_feed(tmp_path: Path) -> LocalFeed:
    target = tmp_path / "target"
    return LocalFeed(None, "nowhere:1", "topic", f"sqlite:///{target}", SqliteCells(target), tmp_path)  # type: ignore[arg-type]


@pytest.fixture
def mariadb_feed(tmp_path: Path, mariadb_server: MariaDbServer) -> Iterator[LocalFeed]:
    with emptied(MariaDbCells(mariadb_server.uri)) as cells:
        yield LocalFeed.into(mariadb_server.uri, cells, tmp_path)


@pytest.fixture(params=["sqlite", "mariadb"])
def feed(request: pytest.FixtureRequest) -> LocalFeed:
    found: LocalFeed = request.getfixturevalue(f"{request.param}_feed")
    return found


@pytest.fixture(params=["snapshot", "transaction", "row"])
def consistent(request: pytest.FixtureRequest, feed: LocalFeed) -> LocalFeed:
    feed.with_(target={"consistency": request.param})
    return feed


def rows(feed: LocalFeed, table: str = "d.t") -> list[dict[str, object]]:
    return sorted(feed.cells.tables(["d"])[table][1], key=repr)


def test_the_order_of_columns_does_not_matter(consistent: LocalFeed) -> None:
    consistent.make_database("d", "CREATE TABLE t (s VARCHAR(10), v INT, id INT PRIMARY KEY)")
    consistent.send([insert("d.t", 1, id=1, v=2, s="x"), insert("d.t", 2, 1, id=2, v=3, s="y"), *watermarks(3)])
    consistent.apply()
    assert rows(consistent) == [{"s": "x", "v": 2, "id": 1}, {"s": "y", "v": 3, "id": 2}]


@pytest.mark.cells(("feed", "consistent"), "count")
@pytest.mark.parametrize("count", [3, 300])
def test_columns_of_the_targets_own_keep_their_values(consistent: LocalFeed, count: int) -> None:
    own = "note VARCHAR(10), flag INT NOT NULL DEFAULT 7"
    consistent.make_database("d", f"CREATE TABLE t (id INT PRIMARY KEY, {own}, v INT, s VARCHAR(10))")
    consistent.send([*(insert("d.t", 1, id=n, v=1, s="x") for n in range(count)), *watermarks(1)])
    consistent.apply()
    consistent.cells.run("d", "UPDATE t SET note = 'kept', flag = 9 WHERE id <> 1")
    changed = [update("d.t", 2, {"v": 1}, id=n, v=2, s="y") for n in range(count)]
    consistent.send(
        [*changed, insert("d.t", 3, id=-1, v=0, s="new"), delete("d.t", 3, id=0, v=2, s="y"), *watermarks(4)]
    )
    consistent.apply()
    found = {row["id"]: (row["v"], row["s"], row["note"], row["flag"]) for row in rows(consistent)}
    assert found == {
        -1: (0, "new", None, 7), 1: (2, "y", None, 7), **dict.fromkeys(range(2, count), (2, "y", "kept", 9))
    }  # fmt: skip


OWN = {
    "not-null-without-default": ("own INT NOT NULL", "NOT NULL without default"),
    "beside-another-unique-key": ("own INT, UNIQUE (v)", "would lose the values"),
}


@pytest.mark.cells("case", ("feed", "consistent"))
@pytest.mark.parametrize("case", sorted(OWN))
def test_columns_of_the_targets_own_that_are_refused(consistent: LocalFeed, case: str) -> None:
    own, fact = OWN[case]
    consistent.make_database("d", f"CREATE TABLE t (id INT PRIMARY KEY, v INT, s VARCHAR(10), {own})")
    consistent.send([insert("d.t", 1, id=1, v=1, s="x"), *watermarks(1)])
    error = consistent.failing(TargetError)
    assert fact in error.fact
    assert "'own'" in error.fact
    assert f"table d.t, key id='1', commitTs {at(1)}" in error.where
    assert "partition=0 offset=0" in error.where
    assert rows(consistent) == []


@pytest.mark.cells("columns", ("feed", "consistent"))
@pytest.mark.parametrize(
    ("columns", "fact"),
    [
        ("id INT PRIMARY KEY, v INT", "no column 's'"),
        ("id INT, v INT, s VARCHAR(9), PRIMARY KEY (id, v)", "has the key"),
    ],
)
def test_a_table_that_is_not_as_upstream(consistent: LocalFeed, columns: str, fact: str) -> None:
    consistent.make_database("d", f"CREATE TABLE t ({columns})")
    consistent.send([insert("d.t", 1, 2, id=1, v=1, s="x"), *watermarks(1)])
    error = consistent.failing(TargetError)
    assert fact in error.fact
    assert f"table d.t, key id='1', commitTs {at(1)}" in error.where
    assert "partition=2 offset=0" in error.where
    assert rows(consistent) == []


FOLDING = {"sqlite": "VARCHAR(10) COLLATE NOCASE", "mariadb": "VARCHAR(10) COLLATE utf8mb4_general_ci"}


@pytest.mark.cells(("target", "count"), "second")
@pytest.mark.parametrize("target", sorted(FOLDING))
@pytest.mark.parametrize("second", [2, 3])
@pytest.mark.parametrize("count", [2, 300])
def test_a_collation_that_would_merge_rows(
    target: str, second: int, count: int, request: pytest.FixtureRequest
) -> None:
    feed: LocalFeed = request.getfixturevalue(f"{target}_feed")
    feed.make_database("d", f"CREATE TABLE t (s {FOLDING[target]} PRIMARY KEY, v INT)")
    many = [keyed(insert("d.t", 2, s=f"n{n}", v=n), "s") for n in range(count - 2)]
    feed.send([keyed(insert("d.t", 2, s="a", v=1), "s"), *many])
    if second > 2:
        feed.send(watermarks(2))
        feed.apply()
    feed.send([keyed(insert("d.t", second, s="A", v=2), "s"), *watermarks(3)])
    error = feed.failing(TargetError)
    assert error.exit_code == 4
    assert "tells apart" in error.hint
    which = "A" if second > 2 else "[aA]"  # rows of one transaction with different keys have no order
    assert re.search(f"table d.t, key s='{which}', commitTs", error.where)
    assert "offset=" in error.where
    kept = [] if second == 2 else [{"s": "a", "v": 1}]
    assert [row for row in rows(feed) if row["v"] in (1, 2) and row["s"] in ("a", "A")] == kept


@pytest.mark.parametrize("target", sorted(FOLDING))
@pytest.mark.parametrize("count", [2, 300])
def test_a_collation_that_folds_as_upstreams_does(target: str, count: int, request: pytest.FixtureRequest) -> None:
    feed: LocalFeed = request.getfixturevalue(f"{target}_feed")
    feed.make_database("d", f"CREATE TABLE t (s {FOLDING[target]} PRIMARY KEY, v INT)")
    feed.send([*(keyed(insert("d.t", 1, s=f"a{n}", v=n), "s") for n in range(count)), *watermarks(1)])
    feed.apply()
    gone = [keyed(delete("d.t", 2, s=f"a{n}", v=n), "s") for n in range(count)]
    feed.send([*gone, *(keyed(insert("d.t", 2, s=f"A{n}", v=n), "s") for n in range(count)), *watermarks(2)])
    feed.apply()
    assert {row["s"] for row in rows(feed)} == {f"A{n}" for n in range(count)}


@pytest.mark.cells("text", ("feed", "consistent"))
@pytest.mark.parametrize("text", ["{", '{"a":}', "nul", ""])
def test_text_that_is_no_json(consistent: LocalFeed, text: str) -> None:
    consistent.send(begun(columns="id INT PRIMARY KEY, v INT, s JSON")[:2])
    consistent.send(
        [
            typed(insert("d.t", 3, 2, id=1, v=1, s='{"a": 1}'), s="json"),
            typed(insert("d.t", 4, 2, id=2, v=1, s=text), s="json"),
            *watermarks(5),
        ]
    )
    error = consistent.failing(TargetError)
    assert "JSON" in error.fact
    assert f"table d.t, key id='2', commitTs {at(4)}" in error.where
    assert "partition=2 offset=1" in error.where


def test_a_type_that_tidb_does_not_have(feed: LocalFeed) -> None:
    feed.send([*begun(columns="id INT PRIMARY KEY, v INT, s GEOMETRY")[:2], *watermarks(3)])
    if isinstance(feed.cells, MariaDbCells):  # it has the type; the text is refused
        feed.apply()
        feed.send([insert("d.t", 4, 1, id=1, v=1, s="POINT(1 1)"), *watermarks(5)])
    error = feed.failing(TargetError)
    assert "geometry" in error.fact.lower()
    assert "partition=" in error.where


def test_digits_of_a_second_that_would_be_cut(mariadb_feed: LocalFeed) -> None:
    mariadb_feed.make_database("d", "CREATE TABLE t (id INT PRIMARY KEY, v INT, s DATETIME(3))")
    mariadb_feed.send([typed(insert("d.t", 1, id=1, v=1, s="2026-01-02 03:04:05.6789"), s="datetime"), *watermarks(1)])
    assert "3 digits of a second" in mariadb_feed.failing(TargetError).fact


def test_our_own_database_is_refused(feed: LocalFeed) -> None:
    feed.send([insert("ticdc_reconciler.checkpoint", 1, id=1), *watermarks(1)])
    assert "ticdc_reconciler" in feed.failing().fact


def test_a_database_of_ours_upstream_is_refused(feed: LocalFeed) -> None:
    feed.send([ddl("ticdc_reconciler.", 1, "CREATE DATABASE `ticdc_reconciler`", kind="QUERY"), *watermarks(2)])
    assert "ticdc_reconciler" in feed.failing().fact


def test_check_tells_of_triggers_and_cascades(mariadb_feed: LocalFeed) -> None:
    tables = (
        "CREATE TABLE p (id INT PRIMARY KEY); CREATE TABLE c (id INT PRIMARY KEY, p INT, CONSTRAINT pc FOREIGN KEY (p)"
    )
    mariadb_feed.make_database("d", f"{tables} REFERENCES p (id) ON DELETE CASCADE)")
    mariadb_feed.cells.query("CREATE TRIGGER d.tr AFTER INSERT ON d.p FOR EACH ROW SET @x = 1")  # type: ignore[union-attr]
    text = "\n".join(mariadb_feed.check())
    assert "trigger tr on d.p" in text
    assert "foreign key pc of d.c will not cascade" in text


def test_check_tells_of_triggers_in_sqlite(sqlite_feed: LocalFeed) -> None:
    sqlite_feed.make_database("d", "CREATE TABLE p (id INT); CREATE TRIGGER tr AFTER INSERT ON p BEGIN SELECT 1; END")
    assert any("trigger tr on d.p" in line for line in sqlite_feed.check())


def test_a_trigger_that_may_change_what_is_written_is_refused(mariadb_feed: LocalFeed) -> None:
    """Also where it was made between two runs: whoever leads next reads the tables again."""
    feed = mariadb_feed
    feed.send(begun())
    feed.apply()
    feed.cells.query("CREATE TRIGGER d.g BEFORE UPDATE ON d.t FOR EACH ROW SET NEW.v = 7")  # type: ignore[union-attr]
    feed.send([update("d.t", 4, {"v": 1}, id=1, v=2, s="one"), *watermarks(4)])
    error = feed.failing(TargetError)
    assert "table d.t: has the trigger 'g' (BEFORE UPDATE)" in error.fact
    assert "DROP TRIGGER `d`.`g`;" in error.hint
    feed.cells.query("DROP TRIGGER d.g")  # type: ignore[union-attr]
    feed.apply()
    assert [row["v"] for row in rows(feed)] == [2]


def test_a_run_warns_of_what_acts_on_rows(sqlite_feed: LocalFeed) -> None:
    sqlite_feed.make_database(
        "d",
        "CREATE TABLE t (id INT PRIMARY KEY, v INT, s TEXT AS (v) STORED); CREATE TABLE u (id INT);"
        " CREATE TRIGGER tr AFTER INSERT ON t BEGIN INSERT INTO u VALUES (1); END",
    )
    sqlite_feed.send([insert("d.t", 1, id=1, v=1, s="2"), insert("d.t", 2, id=2, v=1, s="2"), *watermarks(3)])
    with capture_logs() as lines:
        sqlite_feed.apply()
    said = [line["what"] for line in lines if line["event"] == "the target acts by itself on what is written"]
    assert [what.partition(" of ")[0].partition(" on ")[0] for what in said] == ["trigger tr", "column s"]


RIGHTS = {
    "none-on-ours": ("GRANT ALL ON `d`.* TO", "ticdc_reconciler"),
    "few-on-theirs": ("GRANT ALL ON `ticdc\\_reconciler`.* TO", "each replicated database"),
    "none-that-create": ("GRANT SELECT, INSERT, UPDATE, DELETE ON *.* TO", "CREATE"),
}


@pytest.mark.parametrize("case", sorted(RIGHTS))
def test_check_names_rights_that_are_lacking(mariadb_feed: LocalFeed, case: str) -> None:
    grant, lacking = RIGHTS[case]
    user = f"u{uuid4().hex[:10]}"
    cells = mariadb_feed.cells
    assert isinstance(cells, MariaDbCells)
    cells.query(f"CREATE USER {user}@'%' IDENTIFIED BY 'secret-word'")
    try:
        cells.query(f"{grant} {user}@'%'")
        mariadb_feed.uri = mariadb_feed.uri.replace("root:root", f"{user}:secret-word")
        with pytest.raises(TargetError) as caught:
            mariadb_feed.check()
        assert lacking in caught.value.fact
        assert "GRANT" in caught.value.hint
        assert "secret-word" not in str(caught.value)
        mariadb_feed.send(begun())
        assert mariadb_feed.failing(TargetError).exit_code == 4
    finally:
        cells.query(f"DROP USER {user}@'%'")


def test_a_server_gets_no_file_that_was_not_offered(mariadb_feed: LocalFeed, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("1\n")
    mariadb_feed.make_database("d", "CREATE TABLE t (id INT PRIMARY KEY)")
    connection = MysqlConnection(parse_target_uri(mariadb_feed.uri))
    with pytest.raises(TargetError, match="not offered"):
        connection.run("LOAD DATA LOCAL INFILE %s INTO TABLE d.t", (str(secret),))
    assert rows(mariadb_feed) == []


@pytest.fixture
def timestamps_as_they_were(mariadb_feed: LocalFeed) -> Iterator[None]:
    """A server whose TIMESTAMP columns are NOT NULL and fill themselves, as all were once."""
    query = mariadb_feed.cells.query  # type: ignore[union-attr]
    query("SET GLOBAL explicit_defaults_for_timestamp = 0")
    yield
    query("SET GLOBAL explicit_defaults_for_timestamp = 1")


@pytest.mark.usefixtures("timestamps_as_they_were")
def test_timestamps_may_be_null(mariadb_feed: LocalFeed) -> None:
    mariadb_feed.send(begun(columns="`id` INT PRIMARY KEY, `v` TIMESTAMP, `s` TIMESTAMP")[:2])
    mariadb_feed.send(
        [typed(insert("d.t", 3, id=1, v=None, s="2026-01-02 03:04:05"), v="timestamp", s="timestamp"), *watermarks(4)]
    )
    mariadb_feed.apply()
    assert rows(mariadb_feed) == [{"id": 1, "v": None, "s": "2026-01-02 03:04:05"}]


def test_rows_that_are_there_show_the_moment_of_the_ddl(mariadb_feed: LocalFeed) -> None:
    new = "ALTER TABLE `t` ADD COLUMN `c` TIMESTAMP(3) DEFAULT CURRENT_TIMESTAMP(3), ADD COLUMN `l` TIMESTAMP"
    mariadb_feed.send([*begun(), ddl("d.t", 4, f"{new} DEFAULT _UTF8MB4'2026-05-06 07:08:09'", kind="ALTER")])
    mariadb_feed.send(watermarks(5))
    mariadb_feed.with_(source={"time-zone": "+08:00"}).apply()
    assert [(row["c"], row["l"]) for row in rows(mariadb_feed)] == [("2026-01-01 00:00:00.004", "2026-05-05 23:08:09")]

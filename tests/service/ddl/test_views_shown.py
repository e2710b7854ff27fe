"""What views show on targets that are not of the MySQL family, and what of somebody's own stays beside them."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest

from tests.embedded import PostgresServer
from tests.service.cells import SqliteCells
from tests.service.ddl.test_ddl import made
from tests.service.local import LocalFeed
from tests.service.messages import ddl, insert, watermarks
from tests.service.postgres_cells import PostgresCells

__all__ = ["made"]
pytestmark = pytest.mark.service
BOTH = pytest.mark.parametrize("made", ["sqlite", "postgres"], indirect=True)
POSTGRES = pytest.mark.parametrize("made", ["postgres"], indirect=True)
TABLES = [
    ddl("d.", 1, "CREATE DATABASE `d`", kind="QUERY"),
    ddl("d.t", 2, "CREATE TABLE `t` (`id` INT PRIMARY KEY, `v` INT, `s` VARCHAR(10))"),
    ddl("d.k", 2, "CREATE TABLE `k` (`id` INT PRIMARY KEY, `n` INT)"),
    *(insert("d.t", 3, id=at, v=at % 2, s=text) for at, text in enumerate(["a", "B", "_", "é", "Z"])),
    *(insert("d.k", 3, id=at, n=at - 3) for at in range(3, 7)),
]


def shown(feed: LocalFeed, view: str) -> list[tuple[object, ...]]:
    if isinstance(feed.cells, SqliteCells):
        with closing(sqlite3.connect(feed.cells.files()["d"])) as connection:
            return connection.execute(f"SELECT * FROM {view}").fetchall()
    return [tuple(row.values()) for row in feed.cells.query(f"SELECT * FROM d.{view}")]  # type: ignore[attr-defined]


def there(feed: LocalFeed) -> set[str]:
    if isinstance(feed.cells, SqliteCells):
        with closing(sqlite3.connect(feed.cells.files()["d"])) as connection:
            return {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'view'")}
    look = "SELECT table_name FROM information_schema.views WHERE table_schema = 'd'"
    return {row["table_name"] for row in feed.cells.query(look)}  # type: ignore[attr-defined]


def told(feed: LocalFeed, *statements: str) -> None:
    """Tables with rows, and these views: v0, v1, ..."""
    views = [ddl(f"d.v{at}", 4 + at, f"CREATE VIEW `v{at}` AS {sql}") for at, sql in enumerate(statements)]
    feed.send([*TABLES, *views, *watermarks(4 + len(views))])
    feed.apply()


@BOTH
def test_a_name_in_group_by_is_no_column_of_a_query_around(made: LocalFeed) -> None:
    """SQLite grouped by one value of the query around, and showed one row of the group."""
    told(made, "SELECT `id` FROM `t` WHERE `id` IN (SELECT `n` + 0 AS `v` FROM `k` GROUP BY `v`)")
    assert sorted(shown(made, "v0")) == [(0,), (1,), (2,), (3,)]


@BOTH
def test_a_column_of_using_is_that_of_both(made: LocalFeed) -> None:
    """It was the table's alone beside a query or a view: NULL where an outer join finds no row."""
    left = "SELECT `id`, `n` FROM (SELECT `id` FROM `t`) AS `x` LEFT JOIN `k` USING (`id`)"
    told(made, left, "SELECT `id` FROM `t` RIGHT JOIN (SELECT `id` FROM `k`) AS `x` USING (`id`) WHERE `id` > 3")
    assert sorted(shown(made, "v0"), key=repr) == [(0, None), (1, None), (2, None), (3, 0), (4, 1)]
    assert sorted(shown(made, "v1")) == [(4,), (5,), (6,)]


@pytest.fixture
def by_language(postgres_server: PostgresServer, tmp_path: Path) -> Iterator[LocalFeed]:
    """A feed into a database that has texts in the order of a language, as most have."""
    name = f"own_{uuid4().hex[:10]}"
    make = f"CREATE DATABASE {name} ENCODING 'UTF8' LOCALE_PROVIDER icu ICU_LOCALE 'en' LOCALE 'C' TEMPLATE template0"
    with psycopg.connect(postgres_server.uri, autocommit=True) as connection:
        connection.execute(make.encode())
        with closing(PostgresCells(postgres_server.uri_of(name))) as cells:
            yield LocalFeed.into(postgres_server.uri_of(name), cells, tmp_path)
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


def test_texts_are_in_the_order_of_their_bytes(by_language: LocalFeed) -> None:
    """As upstream; a database's language has '_' before 'a' before 'B' before 'é' before 'Z'."""
    queries = {
        "SELECT MAX(`s`) AS `x`, MIN(DISTINCT `s`) AS `y` FROM `t`": [("é", "B")],
        "SELECT `s` FROM `t` ORDER BY `s` LIMIT 2": [("B",), ("Z",)],
        "SELECT `s` AS `x` FROM `t` ORDER BY `x` LIMIT 2": [("B",), ("Z",)],
        "SELECT `s` AS `x` FROM `t` ORDER BY 1 DESC LIMIT 2": [("é",), ("a",)],
        "SELECT DISTINCT `s` FROM `t` ORDER BY `s` LIMIT 1": [("B",)],
        "SELECT `s` FROM `t` UNION SELECT 'A' ORDER BY `s` LIMIT 1": [("A",)],
        "SELECT `s` FROM `t` WHERE `s` > 'Z' ORDER BY `id`": [("a",), ("_",), ("é",)],
        "SELECT `s` FROM `t` WHERE 'Z' BETWEEN `s` AND `s`": [("Z",)],
        "SELECT `x`.`s` FROM (SELECT `s` FROM `t`) AS `x` ORDER BY `s` LIMIT 1": [("B",)],
        "SELECT COUNT(`id`) AS `n` FROM `t` GROUP BY `v` HAVING MIN(`s`) < 'C'": [(2,)],
        "SELECT MIN(CASE WHEN `v` > 0 THEN 'a' ELSE 'B' END) AS `x` FROM `t`": [("B",)],
        "SELECT `id` FROM `t` ORDER BY CASE WHEN `s` < 'b' THEN 1 ELSE 0 END, `s` LIMIT 1": [(3,)],
        "SELECT MAX(`x`) AS `y` FROM `v1`": [("Z",)],
    }
    told(by_language, *list(queries)[:1], "SELECT `s` AS `x` FROM `t` WHERE `s` < '_'", *list(queries)[1:])
    places = [f"v{at}" for at in range(len(queries) + 1) if at != 1]
    assert {query: shown(by_language, view) for query, view in zip(queries, places, strict=True)} == queries
    by_language.send([ddl("d.t", 40, "ALTER TABLE `t` ADD COLUMN `z` INT"), *watermarks(40)])
    by_language.apply()
    assert there(by_language) == {*places, "v1"}


@POSTGRES
def test_a_text_beside_a_timestamp_is_of_the_readers_zone(made: LocalFeed) -> None:
    """As upstream: it was of the zone in which the view was made."""
    table = ddl("d.m", 2, "CREATE TABLE `m` (`id` INT PRIMARY KEY, `ts` TIMESTAMP)")
    row = insert("d.m", 3, id=1, ts="2024-01-31 20:00:00")
    view = "CREATE VIEW `x` AS SELECT `id` FROM `m` WHERE `ts` >= '2024-02-01 00:00:00'"
    made.send([*TABLES, table, row, ddl("d.x", 4, view), *watermarks(4)])
    made.apply()
    assert shown(made, "x") == []
    made.cells.query("SET timezone = 'Asia/Shanghai'")  # type: ignore[attr-defined]
    assert shown(made, "x") == [(1,)]


@BOTH
def test_views_over_a_view_are_judged_again_when_it_is_replaced(made: LocalFeed) -> None:
    """It went on to show what comes first as texts do."""
    table = ddl("d.e", 2, "CREATE TABLE `e` (`id` INT PRIMARY KEY, `w` VARCHAR(9), `e` ENUM('b','a'))")
    made.send([*TABLES, table, ddl("d.x", 3, "CREATE VIEW `x` AS SELECT `id`, `w` FROM `e`")])
    made.send([ddl("d.y", 4, "CREATE VIEW `y` AS SELECT `id` FROM `x` ORDER BY `w` LIMIT 1")])
    made.send([ddl("d.z", 4, "CREATE VIEW `z` AS SELECT `w` FROM `x`"), *watermarks(4)])
    made.apply()
    assert there(made) == {"x", "y", "z"}
    made.send([ddl("d.x", 5, "CREATE OR REPLACE VIEW `x` AS SELECT `id`, `e` AS `w` FROM `e`"), *watermarks(5)])
    made.apply()
    assert there(made) == {"x", "z"}


@POSTGRES
def test_a_view_that_somebody_made_for_one_that_waits_stays(made: LocalFeed) -> None:
    """It was dropped at the next DDL about its table; a materialized one stopped the run."""
    told(made, "SELECT `id` FROM `t` WHERE `v` + 1", "SELECT `id` FROM `t` WHERE `v` + 2")
    assert there(made) == set()
    made.cells.query("CREATE VIEW d.v0 AS SELECT id FROM d.k; CREATE MATERIALIZED VIEW d.v1 AS SELECT id FROM d.k")  # type: ignore[attr-defined]
    made.send([ddl("d.t", 8, "ALTER TABLE `t` ADD COLUMN `z` INT"), ddl("d.v0", 9, "DROP VIEW `v0`")])
    made.send([ddl("d.v1", 10, "DROP VIEW `v1`"), *watermarks(10)])
    made.apply()
    assert there(made) == {"v0"}
    assert len(shown(made, "v1")) == 4


@pytest.mark.parametrize("made", ["sqlite"], indirect=True)
def test_triggers_of_a_view_of_somebodys_own_stay(made: LocalFeed) -> None:
    """SQLite drops them with the view, and a view is made again around a DDL."""
    told(made)
    own = (
        'CREATE VIEW own AS SELECT id FROM t; CREATE TRIGGER "to own" INSTEAD OF INSERT ON own'
        " BEGIN INSERT INTO k VALUES (new.id, 0); END"
    )
    made.cells.run("d", own)
    made.send([ddl("d.t", 8, "ALTER TABLE `t` ADD COLUMN `z` INT"), *watermarks(8)])
    made.apply()
    made.cells.run("d", "INSERT INTO own VALUES (77)")
    assert (77, 0) in shown(made, "k")


@POSTGRES
def test_no_view_is_over_what_the_server_has_under_the_same_name(made: LocalFeed) -> None:
    """It showed PostgreSQL's tables for upstream's."""
    told(made, "SELECT table_name FROM information_schema.tables", "SELECT `id` FROM `t`")
    assert there(made) == {"v1"}


@POSTGRES
def test_no_name_is_cut(made: LocalFeed) -> None:
    """PostgreSQL's names have 63 bytes: it called a column otherwise, and stopped at a view's name."""
    told(made, f"SELECT `v` AS `{'x' * 64}` FROM `t`", f"SELECT `x`.`v` FROM `t` AS `{'ж' * 32}`, `t` AS `x`")
    long = "w" * 64
    made.send([ddl(f"d.{long}", 8, f"CREATE VIEW `{long}` AS SELECT `id` FROM `t`")])
    made.send([ddl("d.y", 9, f"CREATE VIEW `y` (`{long}`) AS SELECT `id` FROM `t`")])
    made.send([ddl(f"d.{long}", 10, f"DROP VIEW `{long}`"), *watermarks(10)])
    made.apply()
    assert there(made) == set()

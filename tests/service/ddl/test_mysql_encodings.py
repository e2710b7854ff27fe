"""VIRTUAL columns over texts that a MySQL-family server encodes in another way than TiDB."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from consumer.operate.decisions import ddl_log
from ordering.errors import TargetError
from tests.embedded import MariaDbServer
from tests.service.cells import MariaDbCells, emptied
from tests.service.local import LocalFeed
from tests.service.messages import ddl, insert, typed, watermarks

pytestmark = pytest.mark.service
LENGTH = "`g` INT GENERATED ALWAYS AS(LENGTH(`v`)) VIRTUAL"
ADDED = f"ALTER TABLE `t` ADD COLUMN {LENGTH}"
DATABASE, LATIN = "CREATE DATABASE `x`", "CREATE DATABASE `x` CHARACTER SET = latin1"
SCRIPTS = {
    "a column's": [DATABASE, "CREATE TABLE `t` (`id` INT PRIMARY KEY,`v` TEXT CHARSET LATIN1)", ADDED],
    "a table's": [
        DATABASE,
        "CREATE TABLE `t` (`id` INT PRIMARY KEY) CHARSET=LATIN1",
        f"ALTER TABLE `t` ADD COLUMN `v` TEXT, ADD COLUMN {LENGTH}",
    ],
    "a database's": [LATIN, f"CREATE TABLE `t` (`id` INT PRIMARY KEY,`v` TEXT,{LENGTH})"],
    "of a table in it": [LATIN, "CREATE TABLE `t` (`id` INT PRIMARY KEY,`v` TEXT)", ADDED],
}


@pytest.fixture
def feed(mariadb_server: MariaDbServer, tmp_path: Path) -> Iterator[LocalFeed]:
    with emptied(MariaDbCells(mariadb_server.uri)) as cells:
        yield LocalFeed.into(mariadb_server.uri, cells, tmp_path)


@pytest.mark.parametrize("script", SCRIPTS)
def test_bytes_of_texts_that_upstream_keeps_in_utf8_are_not_looked_at(feed: LocalFeed, script: str) -> None:
    statements = SCRIPTS[script]
    feed.send(ddl("x." if "DATABASE" in sql else "x.t", number, sql) for number, sql in enumerate(statements, 1))
    feed.send(watermarks(len(statements)))
    with pytest.raises(TargetError, match=r"VIRTUAL column 'g' .*\(bytes of latin1\)"):
        feed.apply()


def test_texts_in_utf8_are_computed(feed: LocalFeed) -> None:
    feed.send([ddl("x.", 1, DATABASE), ddl("x.t", 2, "CREATE TABLE `t` (`id` INT PRIMARY KEY,`v` TEXT)")])
    feed.send([ddl("x.t", 3, ADDED), *watermarks(3)])
    feed.apply()
    assert feed.cells.tables({"x"})["x.t"][0] == ["id", "v", "g"]


MEMBERS = "`c` SET('é','한','b')"
KEPT = {
    "of a table": [
        "CREATE DATABASE `x`",
        f"CREATE TABLE `t` (`id` INT PRIMARY KEY,{MEMBERS}) DEFAULT CHARACTER SET = GBK",
    ],
    "of a table in a database": [
        "CREATE DATABASE `x` CHARACTER SET = latin1",
        f"CREATE TABLE `t` (`id` INT PRIMARY KEY,{MEMBERS} DEFAULT 'b')",
    ],
    "that is added": [
        "CREATE DATABASE `x`",
        "CREATE TABLE `t` (`id` INT PRIMARY KEY) CHARSET=LATIN1",
        f"ALTER TABLE `t` ADD COLUMN {MEMBERS} NOT NULL DEFAULT '한', ADD COLUMN `v` INT",
    ],
    "that changes": [
        "CREATE DATABASE `x`",
        "CREATE TABLE `t` (`id` INT PRIMARY KEY,`c` SET('é','b')) CHARSET=LATIN1",
        "ALTER TABLE `t` MODIFY COLUMN `c` SET('é','한','b')",
    ],
}


@pytest.mark.parametrize("script", KEPT)
@pytest.mark.parametrize("server", ["mariadb", pytest.param("mysql", marks=pytest.mark.mysql)])
def test_members_that_the_table_s_character_set_lacks_are_kept(
    request: pytest.FixtureRequest, tmp_path: Path, server: str, script: str
) -> None:
    """Of a column's own character set messages say nothing; servers would keep a question mark for the letter."""
    uri = request.getfixturevalue(f"{server}_server").uri
    with emptied(MariaDbCells(uri)) as cells:
        feed = LocalFeed.into(uri, cells, tmp_path)
        statements = KEPT[script]
        feed.send(ddl("x." if "DATABASE" in sql else "x.t", number, sql) for number, sql in enumerate(statements, 1))
        feed.send([typed(insert("x.t", 10, id=1, c=3), c="set('é','한','b')"), *watermarks(10)])
        feed.apply()
        assert cells.query("SELECT HEX(c) AS c FROM x.t") == [{"c": "é,한".encode().hex().upper()}]
        assert any(line.executed.endswith("lacks: utf8mb4") for line in ddl_log(feed.config, 1))

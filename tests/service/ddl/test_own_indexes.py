"""Indexes that are there when upstream makes one of their name: an operator's stay, upstream's are not made twice."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ordering.errors import TargetError
from sinks.steps import Step
from tests.service.cells import MariaDbCells, emptied
from tests.service.local import Killed, LocalFeed
from tests.service.messages import ddl, insert, watermarks

pytestmark = pytest.mark.service
PLAIN = "CREATE TABLE `t` (`id` INT NOT NULL,`note` INT,`created` INT,UNIQUE `k`(`id`))"
INDEXES = "SHOW INDEX FROM x.t"


@pytest.fixture(params=["mariadb", "tidb"])
def feed(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LocalFeed]:
    uri = request.getfixturevalue(f"{request.param}_server").uri
    with emptied(MariaDbCells(uri)) as cells:
        yield LocalFeed.into(uri, cells, tmp_path)


@pytest.mark.cells("feed", by_turns=("sql",))
@pytest.mark.parametrize(
    ("own", "sql"),
    [
        ("ADD INDEX i_note (note)", "ALTER TABLE `t` ADD INDEX `i_note`(`created`)"),
        ("ADD INDEX i_note (note)", "CREATE UNIQUE INDEX `I_Note` ON `t` (`created`)"),
        ("ADD PRIMARY KEY (id)", "ALTER TABLE `t` ADD PRIMARY KEY(`id`,`created`)"),
    ],
)
def test_an_index_that_upstream_never_had_is_not_dropped(feed: LocalFeed, own: str, sql: str) -> None:
    assert isinstance(feed.cells, MariaDbCells)
    feed.send([ddl("x.", 1, "CREATE DATABASE `x`"), ddl("x.t", 2, PLAIN), *watermarks(2)])
    feed.apply()
    feed.cells.query(f"ALTER TABLE x.t {own}")
    before = feed.cells.query(INDEXES)
    feed.send([ddl("x.t", 3, sql), *watermarks(3)])
    with pytest.raises(TargetError, match=r"the target has another one of that name, over (note|id)"):
        feed.apply()
    assert feed.cells.query(INDEXES) == before
    feed.cells.query("ALTER TABLE x.t DROP " + ("PRIMARY KEY" if "PRIMARY" in own else "INDEX i_note"))
    feed.apply()
    assert "created" in {row["Column_name"] for row in feed.cells.query(INDEXES)}


def test_one_over_the_beginning_of_a_column_is_not_the_one_over_all_of_it(feed: LocalFeed) -> None:
    """It was left as if upstream's were made: rows that are equal in the beginning were refused."""
    assert isinstance(feed.cells, MariaDbCells)
    table = "CREATE TABLE `t` (`id` INT PRIMARY KEY,`v` VARCHAR(20))"
    feed.send([ddl("x.", 1, "CREATE DATABASE `x`"), ddl("x.t", 2, table), *watermarks(2)])
    feed.apply()
    feed.cells.query("CREATE UNIQUE INDEX i ON x.t (v(3))")
    feed.send([ddl("x.t", 3, "ALTER TABLE `t` ADD UNIQUE `i`(`v`)"), *watermarks(3)])
    with pytest.raises(TargetError, match=r"the target has another one of that name, over v\(3\)"):
        feed.apply()


@pytest.mark.parametrize("at", [Step.DDL_RECORDED, Step.DDL_EXECUTED, None])
@pytest.mark.parametrize("clause", ["ADD COLUMN `b` INT", "ADD COLUMN `b` INT, DROP COLUMN /*T! IF EXISTS  */`c`"])
@pytest.mark.cells("feed", "clause", by_turns=("at",))
def test_an_index_that_upstream_had_is_not_made_twice(feed: LocalFeed, clause: str, at: Step | None) -> None:
    """Its condition comes in a comment, which MariaDB does not read: error 1061, also in TiDB beside another clause."""
    assert isinstance(feed.cells, MariaDbCells)
    table = "CREATE TABLE `t` (`id` INT PRIMARY KEY,`v` INT,INDEX `i`(`v`))"
    feed.send([ddl("x.", 1, "CREATE DATABASE `x`"), ddl("x.t", 2, table), *watermarks(2)])
    feed.apply()
    both = ", ".join(f"ADD INDEX/*T!  IF NOT EXISTS */ `{name}`(`id`)" for name in ("I", "j"))
    feed.send([ddl("x.t", 3, f"ALTER TABLE `t` {clause}, {both}", "ALTER"), insert("x.t", 4, id=1, v=2, b=3)])
    feed.send(watermarks(5))
    kills = [at] if at else []

    def kill(step: Step) -> None:
        if step in kills:
            kills.remove(step)
            raise Killed

    assert feed.lives(kill) is (at is None)
    feed.apply()
    found = {row["Key_name"]: row["Column_name"] for row in feed.cells.query(INDEXES)}
    assert found == {"PRIMARY": "id", "i": "v", "j": "id"}
    assert feed.cells.tables({"x"})["x.t"] == (["id", "v", "b"], [{"id": 1, "v": 2, "b": 3}])

"""Indexes that an operator has made in the target: none is dropped, whatever upstream makes."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ordering.errors import TargetError
from tests.service.cells import MariaDbCells
from tests.service.ddl.test_ddl import local
from tests.service.local import LocalFeed
from tests.service.messages import ddl, watermarks

pytestmark = pytest.mark.service
PLAIN = "CREATE TABLE `t` (`id` INT NOT NULL,`note` INT,`created` INT,UNIQUE `k`(`id`))"
INDEXES = "SHOW INDEX FROM x.t"


@pytest.fixture(params=["mariadb", "tidb"])
def feed(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LocalFeed]:
    uri = request.getfixturevalue(f"{request.param}_server").uri
    with closing(MariaDbCells(uri)) as cells:
        before = cells.databases()
        yield local(uri, cells, tmp_path)
        cells.drop(cells.databases() - before)


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

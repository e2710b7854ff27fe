"""The last valid index that upstream drops is kept; once another one is the key, rows are told apart by that one."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from consumer.operate.decisions import ddl_log, decide_ddl
from consumer.wiring import target_of
from ordering.errors import TargetError
from ordering.events import TableName
from sinks.bookkeeping.ddl_log import KEPT, DdlState
from sinks.steps import Step
from tests.service.cells import MariaDbCells, SqliteCells
from tests.service.ddl.test_crashes import Kills
from tests.service.ddl.test_ddl import local
from tests.service.local import LocalFeed
from tests.service.messages import at, ddl, insert, keyed, watermarks
from tests.service.postgres_cells import PostgresCells

pytestmark = pytest.mark.service

TARGETS = ("sqlite", "mariadb", "postgres", "tidb")
BY_U = "CREATE TABLE `t` (`u` INT NOT NULL,`w` INT NOT NULL,UNIQUE `U`(`u`))"
BY_ID = "CREATE TABLE `t` (`u` INT NOT NULL,`w` INT NOT NULL,PRIMARY KEY(`u`) /*T![clustered_index] NONCLUSTERED */)"
OPEN = "CREATE TABLE `t` (`u` INT NOT NULL,`w` INT,UNIQUE `u`(`u`),UNIQUE `v`(`w`))"
DROP = "ALTER TABLE `t` DROP INDEX `u`"
SCRIPTS: dict[str, list[str]] = {
    "add unique": [BY_U, DROP, "ALTER TABLE `t` ADD UNIQUE `w`(`w`)"],
    "create index": [BY_U, "DROP INDEX `u` ON `t`", "CREATE UNIQUE INDEX `w` ON `t` (`w`)"],
    "primary key": [BY_ID, "ALTER TABLE `t` DROP PRIMARY KEY", "ALTER TABLE `t` ADD UNIQUE `w`(`w`)"],
    "to primary key": [BY_U, DROP, "ALTER TABLE `t` ADD PRIMARY KEY(`w`)"],
    "one of several clauses": [BY_U, f"{DROP}, ADD COLUMN `x` INT", "ALTER TABLE `t` ADD UNIQUE `w`(`w`)"],
    "with another clause": [BY_U, DROP, "ALTER TABLE `t` ADD COLUMN `x` INT, ADD UNIQUE (`w`)"],
    "not null": [OPEN, DROP, "ALTER TABLE `t` MODIFY COLUMN `w` INT NOT NULL"],
    "renamed": [
        BY_U.replace("`t`", "`s`"),
        DROP.replace("`t`", "`s`"),
        "RENAME TABLE `s` TO `t`",
        "ALTER TABLE `t` ADD UNIQUE `w`(`w`)",
    ],
    "its name again": [BY_U, DROP, "ALTER TABLE `t` ADD UNIQUE `w`(`w`)", "ALTER TABLE `t` RENAME INDEX `w` TO `u`"],
    "its name at once": [BY_U, DROP, "ALTER TABLE `t` ADD UNIQUE `u`(`w`)"],
    "like another": [
        BY_U.replace("`t`", "`s`"),
        DROP.replace("`t`", "`s`"),
        "CREATE TABLE `t` LIKE `s`",
        "ALTER TABLE `t` ADD UNIQUE `w`(`w`)",
    ],
    "nullable meanwhile": [
        BY_U,
        DROP,
        "ALTER TABLE `t` MODIFY COLUMN `u` INT",
        "ALTER TABLE `t` ADD UNIQUE `w`(`w`)",
    ],
    "made anew": [
        BY_U,
        DROP,
        "DROP TABLE `t`",
        BY_U.replace("`U`(`u`)", "`u`(`w`)"),
        "ALTER TABLE `t` ADD UNIQUE `more`(`u`,`w`)",
    ],
}


@pytest.fixture
def made(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LocalFeed]:
    if request.param == "sqlite":
        yield local(f"sqlite:///{tmp_path / 'target'}", SqliteCells(tmp_path / "target"), tmp_path)
    elif request.param == "postgres":
        uri = request.getfixturevalue("own_database")
        with closing(PostgresCells(uri)) as cells:
            yield local(uri, cells, tmp_path)
    else:
        uri = request.getfixturevalue(f"{request.param}_server").uri
        with closing(MariaDbCells(uri)) as cells:
            before = cells.databases()
            yield local(uri, cells, tmp_path)
            cells.drop(cells.databases() - before)


def ways(feed: LocalFeed) -> set[tuple[str, ...]]:
    """The columns by which the target tells the table's rows apart."""
    target = target_of(feed.config)
    try:
        target.connect()
        schema = target.catalog().get(TableName("x", "t"))
        assert schema is not None
        return {tuple(sorted(key)) for key in schema.unique_keys}
    finally:
        target.close()


@pytest.mark.cells("script", "made")
@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("made", TARGETS, indirect=True)
def test_rows_are_told_apart_by_the_new_key_alone(made: LocalFeed, script: str) -> None:
    """One row was left of three, with a warning of drift only."""
    statements = SCRIPTS[script]
    number = len(statements) + 5
    named = ["w"] if script == "to primary key" else []  # messages name no other key
    messages = [
        ddl("x.", 1, "CREATE DATABASE `x`"),
        *(ddl("x.s" if "`s` " in sql else "x.t", n, sql) for n, sql in enumerate(statements, 2)),
        *(keyed(insert("x.t", number + w, u=1, w=w), *named) for w in (1, 2, 3)),
        *watermarks(number + 4),
    ]
    made.send(messages)
    kills = Kills()
    while not made.lives(kills):
        pass
    assert {step for _, step in kills.seen} == {Step.DDL_RECORDED, Step.DDL_EXECUTED, Step.DDL_DONE}
    expected = [("1", str(w)) for w in (1, 2, 3)]
    for _ in range(2):
        assert sorted((str(row["u"]), str(row["w"])) for row in made.cells.tables({"x"})["x.t"][1]) == expected
        assert ways(made) == ({("w",), ("u", "w")} if script == "made anew" else {("w",)})
        made.send(messages)
        made.apply()


@pytest.mark.parametrize("made", ["mariadb"], indirect=True)
def test_a_key_that_the_target_can_not_drop_stops_it_until_an_operator_decides(made: LocalFeed) -> None:
    """MariaDB demands an index of an AUTO_INCREMENT column."""
    messages = [
        ddl("x.", 1, "CREATE DATABASE `x`"),
        ddl("x.t", 2, "CREATE TABLE `t` (`u` INT NOT NULL AUTO_INCREMENT,`w` INT NOT NULL,PRIMARY KEY(`u`))"),
        ddl("x.t", 3, "ALTER TABLE `t` DROP PRIMARY KEY"),
        ddl("x.t", 4, "ALTER TABLE `t` ADD UNIQUE `w`(`w`)"),
        *(keyed(insert("x.t", 5, u=w, w=w)) for w in (1, 2, 3)),
        *watermarks(6),
    ]
    made.send(messages)
    for _ in range(2):
        with pytest.raises(TargetError, match=r"auto column.* DROP PRIMARY KEY"):
            made.apply()
    assert isinstance(made.cells, MariaDbCells)
    made.cells.query("ALTER TABLE x.t DROP PRIMARY KEY, ADD INDEX (u)")
    decide_ddl(made.config, at(4), DdlState.TAKE, "")
    made.apply()
    assert len(made.cells.tables({"x"})["x.t"][1]) == 3
    assert ways(made) == {("w",)}
    assert [line.state for line in ddl_log(made.config, KEPT)] == ["done", "done", "ignored", "done", "done"]

"""The last valid index that upstream drops is kept; once another one is the key, rows are told apart by that one."""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from consumer.demo.fake_ticdc.changefeed import Message
from consumer.operate.decisions import ddl_log, decide_ddl
from consumer.wiring import target_of
from ordering import kept_keys
from ordering.errors import TargetError
from ordering.events import TableName
from sinks.bookkeeping.ddl_log import KEPT, DdlState
from sinks.postgres.names import index_name
from sinks.steps import Step
from tests.service.cells import MariaDbCells, SqliteCells, emptied
from tests.service.ddl.test_crashes import Kills
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
    "prefix": [
        "CREATE TABLE `t` (`u` INT NOT NULL,`w` VARCHAR(20),UNIQUE `u`(`u`),UNIQUE `v`(`w`(5)))",
        DROP,
        "ALTER TABLE `t` MODIFY COLUMN `w` VARCHAR(20) NOT NULL",
    ],
    "not null under another name": [
        OPEN.replace("`w`", "`o`"),
        DROP,
        "ALTER TABLE `t` CHANGE COLUMN `o` `w` INT NOT NULL",
    ],
    "not null at once": [OPEN, f"{DROP}, MODIFY COLUMN `w` INT NOT NULL"],
    "another column's name": [
        "CREATE TABLE `t` (`o` INT NOT NULL,`w` INT NOT NULL,UNIQUE `u`(`o`))",
        DROP,
        "ALTER TABLE `t` RENAME COLUMN `o` TO `u`",
        "ALTER TABLE `t` ADD UNIQUE `w`(`w`)",
    ],
    "two at once, one again": [
        BY_ID.replace("PRIMARY KEY(`u`)", "UNIQUE `u`(`u`),PRIMARY KEY(`w`)"),
        "ALTER TABLE `t` DROP PRIMARY KEY, DROP INDEX `u`",
        "ALTER TABLE `t` ADD PRIMARY KEY(`w`)",
    ],
    "its name by a rename": [
        "CREATE TABLE `t` (`u` INT NOT NULL,`w` INT NOT NULL,UNIQUE `u`(`u`),KEY `v`(`w`))",
        DROP,
        "ALTER TABLE `t` RENAME INDEX `v` TO `u`",
        "ALTER TABLE `t` ADD UNIQUE `w`(`w`)",
    ],
    "a name that upstream chose": [
        BY_U,
        DROP,
        "ALTER TABLE `t` ADD INDEX (`u`,`w`)",
        "ALTER TABLE `t` ADD UNIQUE `w`(`w`)",
    ],
    "a dotted I": [BY_U.replace("`U`", "`İ`"), DROP.replace("`u`", "`i`"), "ALTER TABLE `t` ADD UNIQUE `w`(`w`)"],
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
        yield LocalFeed.into(f"sqlite:///{tmp_path / 'target'}", SqliteCells(tmp_path / "target"), tmp_path)
    elif request.param == "postgres":
        uri = request.getfixturevalue("own_database")
        with closing(PostgresCells(uri)) as cells:
            yield LocalFeed.into(uri, cells, tmp_path)
    else:
        uri = request.getfixturevalue(f"{request.param}_server").uri
        with emptied(MariaDbCells(uri)) as cells:
            yield LocalFeed.into(uri, cells, tmp_path)


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


def messages_of(script: str) -> list[Message]:
    statements = SCRIPTS[script]
    number = len(statements) + 5
    named = ["w"] if script in {"to primary key", "two at once, one again"} else []  # messages name no other key
    return [
        ddl("x.", 1, "CREATE DATABASE `x`"),
        *(ddl("x.s" if "`s` " in sql else "x.t", n, sql) for n, sql in enumerate(statements, 2)),
        *(keyed(insert("x.t", number + w, u=1, w=str(w) if script == "prefix" else w), *named) for w in (1, 2, 3)),
        *watermarks(number + 4),
    ]


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("made", ["sqlite"], indirect=True)
def test_what_was_kept_is_known_by_upstreams_names(made: LocalFeed, script: str) -> None:
    made.with_(sink={"dispatchers": [{"matcher": ["x.*"], "target-schema": "dw", "target-table": "{schema}_{table}"}]})
    made.send(messages_of(script))
    made.apply()
    assert sorted(str(row["w"]) for row in made.cells.tables({"dw"})["dw.x_t"][1]) == ["1", "2", "3"]


@pytest.mark.cells("made", by_turns=("script",))
@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("made", TARGETS, indirect=True)
def test_rows_are_told_apart_by_the_new_key_alone(made: LocalFeed, script: str) -> None:
    """One row was left of three, with a warning of drift only."""
    messages = messages_of(script)
    made.send(messages)
    kills = Kills()
    while not made.lives(kills):
        pass
    assert {step for _, step in kills.seen} == {Step.DDL_RECORDED, Step.DDL_EXECUTED, Step.DDL_DONE}
    expected = [("1", str(w)) for w in (1, 2, 3)]
    for _ in range(2):
        assert sorted((str(row["u"]), str(row["w"])) for row in made.cells.tables({"x"})["x.t"][1]) == expected
        assert ways(made) == ({("w",), ("u", "w")} if script == "made anew" else {("" if script == "prefix" else "w",)})
        made.send(messages)
        made.apply()


LONG = "CREATE TABLE `t` (`u` VARCHAR(20) NOT NULL,`w` INT NOT NULL,UNIQUE `u`(`u`))"
BY_NAME = LONG.replace("UNIQUE `u`(`u`)", "PRIMARY KEY(`u`) /*T![clustered_index] NONCLUSTERED */")
AGAIN: dict[str, list[str]] = {
    "whole": [LONG.replace("(`u`)", "(`u`(3))"), DROP, "ALTER TABLE `t` ADD UNIQUE `u`(`u`)"],
    "by create index": [LONG.replace("(`u`)", "(`u`(3))"), DROP, "CREATE UNIQUE INDEX `u` ON `t` (`u`)"],
    "whole, a primary key": [
        BY_NAME.replace("(`u`)", "(`u`(3))"),
        "ALTER TABLE `t` DROP PRIMARY KEY",
        "ALTER TABLE `t` ADD PRIMARY KEY(`u`)",
    ],
    "beside another clause": [LONG, DROP, "ALTER TABLE `t` ADD UNIQUE `u`(`u`), ADD COLUMN `x` INT"],
    "a primary key": [
        BY_NAME,
        "ALTER TABLE `t` DROP PRIMARY KEY",
        "ALTER TABLE `t` ADD PRIMARY KEY(`u`), ADD COLUMN `x` INT",
    ],
    "a primary key, and how": [
        BY_NAME,
        "ALTER TABLE `t` DROP PRIMARY KEY",
        "ALTER TABLE `t` ADD PRIMARY KEY(`u`), ALGORITHM = INPLACE",
    ],
    "unique, and how": [LONG, DROP, "ALTER TABLE `t` ADD UNIQUE `u`(`u`), ALGORITHM = INPLACE"],
}


@pytest.mark.cells("made", by_turns=("script",))
@pytest.mark.parametrize("killed", [True, False])
@pytest.mark.parametrize("script", AGAIN)
@pytest.mark.parametrize("made", TARGETS, indirect=True)
def test_a_key_that_upstream_makes_again_is_as_upstream_has_it(made: LocalFeed, script: str, *, killed: bool) -> None:
    """The one that was kept was over a prefix, or in the way of the statement."""
    statements = [ddl("x.t", number, sql) for number, sql in enumerate(AGAIN[script], 2)]
    rows = [keyed(insert("x.t", 6, u=f"abc{one}", w=one), "u") for one in (1, 2, 3)]
    made.send([ddl("x.", 1, "CREATE DATABASE `x`"), *statements, *rows, *watermarks(7)])
    kills = Kills()
    while killed and not made.lives(kills):
        pass
    made.apply()
    assert len(made.cells.tables({"x"})["x.t"][1]) == 3
    assert ways(made) == {("u",)}


@pytest.mark.parametrize("made", TARGETS, indirect=True)
def test_a_primary_key_over_a_prefix_that_upstream_makes_again_is_there(made: LocalFeed) -> None:
    """It was dropped as one that is not as wanted, and not made as one that is there."""
    statements = [
        BY_NAME.replace("(`u`)", "(`u`(4))"),
        "ALTER TABLE `t` DROP PRIMARY KEY",
        "ALTER TABLE `t` ADD PRIMARY KEY(`u`(4))",
    ]
    made.send([ddl("x.", 1, "CREATE DATABASE `x`"), *(ddl("x.t", n, sql) for n, sql in enumerate(statements, 2))])
    made.send([*(keyed(insert("x.t", 6, u=f"abc{one}", w=one), "u") for one in (1, 2, 3)), *watermarks(7)])
    made.apply()
    assert len(made.cells.tables({"x"})["x.t"][1]) == 3
    assert ("u",) in ways(made)


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


def by_hand(feed: LocalFeed, make: str) -> None:
    """Somebody makes an index of the target's own."""
    cells = feed.cells
    if isinstance(cells, SqliteCells):
        with closing(sqlite3.connect(cells.directory / "x.sqlite")) as connection:
            connection.execute(f'CREATE UNIQUE INDEX "t.u" ON t ({make})')
    elif isinstance(cells, PostgresCells):
        cells.query(f'CREATE UNIQUE INDEX "{index_name(TableName("x", "t"), "u")}" ON x.t ({make})')
    else:
        cells.query(f"CREATE UNIQUE INDEX u ON x.t ({make})")


def indexes(feed: LocalFeed) -> set[tuple[str, ...]]:
    """The columns of the table's unique indexes but its primary key's."""
    with closing(target_of(feed.config)) as target:
        target.connect()
        schema = target.catalog().get(TableName("x", "t"))
        assert schema is not None
        return set(schema.unique_indexes.values())


ALIVE: dict[str, list[str]] = {
    "executed whole": [
        "CREATE TABLE `t` (`id` INT PRIMARY KEY,`u` INT NOT NULL,`w` INT NOT NULL,UNIQUE `u`(`u`))",
        f"{DROP}, ADD COLUMN `x` INT",
        "by hand",
    ],
    "dropped by itself": [
        "CREATE TABLE `t` (`id` INT PRIMARY KEY,`u` INT NOT NULL,`w` INT NOT NULL,UNIQUE `u`(`u`))",
        DROP,
        "by hand",
    ],
    "made again": [BY_U, DROP, "ALTER TABLE `t` ADD UNIQUE `u`(`u`)"],
    "made again with others": [
        BY_U,
        f"{DROP}, ADD COLUMN `x` INT",
        "ALTER TABLE `t` DROP COLUMN `x`, ADD UNIQUE (`u`)",
    ],
    "its database made again": [BY_U, DROP, "DROP DATABASE `x`", "CREATE DATABASE `x`", BY_U],
    "the table made again": [BY_U, DROP, "DROP TABLE `t`", BY_U],
    "a name that upstream did not choose": [
        "CREATE TABLE `t` (`id` INT PRIMARY KEY,`v` INT NOT NULL,`u` INT NOT NULL,`w` INT NOT NULL,UNIQUE `v`(`u`))",
        "ALTER TABLE `t` ADD INDEX (`v`)",
        "ALTER TABLE `t` ADD INDEX (`v`,`w`)",
        "ALTER TABLE `t` DROP INDEX `v_2`",
    ],
    "another database's": [
        BY_U,
        "CREATE DATABASE `y`",
        BY_U.replace("`t`", "`y`.`t`"),
        DROP.replace("`t`", "`y`.`t`"),
        "RENAME TABLE `y`.`t` TO `y`.`s`",
    ],
    "of a table renamed away": [
        BY_U.replace("`t`", "`s`"),
        DROP.replace("`t`", "`s`"),
        "CREATE DATABASE `y`",
        "RENAME TABLE `s` TO `y`.`t`",
        BY_U,
    ],
    "exchanged names": [
        BY_U.replace("`t`", "`s`"),
        DROP.replace("`t`", "`s`"),
        BY_U,
        "RENAME TABLE `t` TO `tmp`",
        "RENAME TABLE `s` TO `t`",
        "RENAME TABLE `t` TO `s`",
        "RENAME TABLE `tmp` TO `t`",
    ],
}
"""What ends with a unique index `u` that is alive, upstream's or the target's own."""


@pytest.mark.cells("made", by_turns=("script",))
@pytest.mark.parametrize("script", ALIVE)
@pytest.mark.parametrize("made", TARGETS, indirect=True)
def test_an_index_that_is_alive_stays(made: LocalFeed, script: str) -> None:
    """One of the target's own went once with no more than an info line."""
    messages = [ddl("x.", 1, "CREATE DATABASE `x`")]
    for number, sql in enumerate(ALIVE[script], 2):
        if sql == "by hand":
            made.send([*messages, *watermarks(number)])
            messages.clear()
            made.apply()
            by_hand(made, "u")
        else:
            messages.append(ddl(place_in(sql), number, sql))
    number = len(ALIVE[script]) + 2
    made.send([*messages, ddl("x.t", number, "ALTER TABLE `t` ADD UNIQUE `w`(`w`)"), *watermarks(number)])
    kills = Kills()
    while not made.lives(kills):
        pass
    assert indexes(made) == {("u",), ("w",)}


def place_in(sql: str) -> str:
    """The table that a message of a statement names: the one after it."""
    if "DATABASE" in sql:
        return f"{sql.split('`')[1]}."
    names = re.findall(r"(?:`(\w+)`\.)?`(\w+)`", re.split(r" (?:ADD|DROP) |\(", sql)[0])
    database, table = names[-1]
    return f"{database or 'x'}.{table}"


@pytest.mark.parametrize("made", TARGETS, indirect=True)
def test_an_index_of_that_name_that_is_another_one_stops_it_until_an_operator_decides(made: LocalFeed) -> None:
    made.send([ddl("x.", 1, "CREATE DATABASE `x`"), ddl("x.t", 2, BY_U), ddl("x.t", 3, DROP), *watermarks(3)])
    made.apply()
    drop_by_hand(made)
    by_hand(made, "u, w")
    made.send([ddl("x.t", 4, "ALTER TABLE `t` ADD UNIQUE `w`(`w`)"), *watermarks(4)])
    for _ in range(2):
        with pytest.raises(TargetError, match=r"index 'u' of x\.t is not the one that was kept"):
            made.apply()
    decide_ddl(made.config, at(4), DdlState.SKIP, "it is ours")
    made.apply()
    assert indexes(made) == {("u", "w"), ("w",)}
    assert [line.state for line in ddl_log(made.config, KEPT)] == ["done", "skipped", "ignored", "done", "done"]


def drop_by_hand(feed: LocalFeed) -> None:
    cells = feed.cells
    if isinstance(cells, SqliteCells):
        with closing(sqlite3.connect(cells.directory / "x.sqlite")) as connection:
            connection.execute('DROP INDEX "t.U"')
    elif isinstance(cells, PostgresCells):
        cells.query(f'DROP INDEX x."{index_name(TableName("x", "t"), "u")}"')
    else:
        cells.query("DROP INDEX u ON x.t")


@pytest.mark.parametrize("made", ["sqlite"], indirect=True)
def test_a_kept_key_that_is_forgotten_is_logged(made: LocalFeed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_keys, "LIMIT", 1)
    tables = [BY_U.replace("`t`", "`s`"), DROP.replace("`t`", "`s`"), BY_U, DROP]
    made.send([ddl("x.", 1, "CREATE DATABASE `x`")])
    made.send([ddl(place_in(sql), n, sql) for n, sql in enumerate(tables, 2)])
    made.send(watermarks(9))
    with capture_logs() as logs:
        made.apply()
    (told,) = [one for one in logs if "no longer remembered" in one["event"]]
    assert (told["log_level"], told["table"], told["indexes"]) == ("warning", "x.s", ["u"])

"""Recorded DDL, and rows between, on every target: rows are upstream's, also by small windows and sent again."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from consumer.wiring import target_of
from ordering.errors import TargetError
from ordering.events import DdlEvent, Position
from ordering.timestamps import CommitTs
from sinks.bookkeeping.ddl_log import DdlState
from sinks.bookkeeping.progress_rows import Lease
from tests.service.cells import MariaDbCells, SqliteCells, differences, emptied, oracle
from tests.service.lab import databases_of, recorded
from tests.service.local import LocalFeed
from tests.service.messages import at, ddl, insert, keyed, typed, watermarks
from tests.service.postgres_cells import PostgresCells

pytestmark = pytest.mark.service

RECORDINGS = (
    "ddl-allowed.index-value", "ddl-partitions.index-value", "ddl-changes.index-value", "ddl-conversions.index-value",
)  # fmt: skip
TARGETS = ("sqlite", "mariadb", "postgres")
SLOW = pytest.param("tidb", marks=pytest.mark.soak)
"""It executes what it is sent; `ddl-allowed` shows that in every run."""


@pytest.fixture
def made(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LocalFeed]:
    """A changefeed in this process into the target that the test's parameter names."""
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


def applied(feed: LocalFeed, recording: str, *, window_rows: int) -> None:
    messages = recorded(recording)
    feed.with_(limits={"window-rows": window_rows}).send(messages)
    feed.apply()
    upstream = oracle(recording.split(".", maxsplit=1)[0])
    assert differences(upstream, feed.cells) == []
    feed.send(messages)
    feed.apply()
    assert differences(upstream, feed.cells) == []
    assert databases_of(messages)


@pytest.mark.cells("recording", "made")
@pytest.mark.parametrize("recording", RECORDINGS)
@pytest.mark.parametrize("made", [*TARGETS, SLOW], indirect=True)
def test_rows_are_as_upstream(made: LocalFeed, recording: str) -> None:
    applied(made, recording, window_rows=1_000_000)


@pytest.mark.parametrize("made", ["sqlite", "postgres"], indirect=True)
def test_defaults_in_every_form_show_what_they_show_upstream(made: LocalFeed) -> None:
    """Many of these forms PostgreSQL and SQLite once read in another way, found by `tests.differential`."""
    applied(made, "ddl-default-forms.index-value", window_rows=1_000_000)


@pytest.mark.parametrize("made", [*TARGETS, "tidb"], indirect=True)
def test_what_a_session_that_is_not_strict_converted_is_as_upstream(made: LocalFeed) -> None:
    """Numbers beyond a type's limits, texts beyond a length; defaults of bytes, of large floats, of decimals to round.

    SQLite and PostgreSQL once kept such numbers, MariaDB read 1e300 as 1e65, TiDB warned of its own rows.
    """
    applied(made, "ddl-loose.index-value", window_rows=1_000_000)


@pytest.mark.parametrize("made", [*TARGETS, "tidb"], indirect=True)
def test_members_and_times_are_read_as_upstream_reads_them(made: LocalFeed) -> None:
    """Such a text stopped the changefeed where only the table names the collation; so did numbers that become TIME."""
    applied(made, "ddl-members.index-value", window_rows=1_000_000)


@pytest.mark.cells("recording", "made")
@pytest.mark.parametrize("recording", ["ddl-allowed.index-value", "ddl-partitions.index-value"])
@pytest.mark.parametrize("made", TARGETS, indirect=True)
def test_rows_are_as_upstream_whatever_the_windows(made: LocalFeed, recording: str) -> None:
    applied(made, recording, window_rows=3)


@pytest.mark.parametrize("made", [*TARGETS, "tidb"], indirect=True)
def test_of_several_valid_indexes_the_first_that_was_made_is_the_handle_key(made: LocalFeed) -> None:
    applied(made, "unique-ages.delete-only-handle-key.split", window_rows=3)


@pytest.mark.by_turns
@pytest.mark.parametrize("made", ["tidb"], indirect=True)
def test_the_whole_list_on_tidb(made: LocalFeed) -> None:
    applied(made, "ddl-allowed.index-value", window_rows=1_000_000)


FOLDING = "CREATE DATABASE `x` CHARACTER SET = utf8mb4 COLLATE = utf8mb4_general_ci"


@pytest.mark.parametrize("begins", [FOLDING, "CREATE DATABASE `x`", ""])
@pytest.mark.parametrize("made", ["sqlite", "postgres"], indirect=True)
def test_texts_of_a_partition_are_compared_by_the_databases_collation(made: LocalFeed, begins: str) -> None:
    """Row 'A' stayed in the target where upstream truncated the partition of 'a'; unknown, it is not guessed either."""
    table = (
        "CREATE TABLE `t` (`k` VARCHAR(9) PRIMARY KEY) PARTITION BY LIST COLUMNS (`k`) (PARTITION `p` VALUES IN ('a'),"
        " PARTITION `q` VALUES IN ('b'))"
    )
    later = ["ALTER DATABASE `x` COLLATE = utf8mb4_unicode_ci", "ALTER TABLE `t` TRUNCATE PARTITION `p`"]
    if not begins:
        made.make_database("x", "SELECT 1")
    rows = [keyed(typed(insert("x.t", 4, k=key), k="varchar(9)"), "k") for key in ("a", "A")]
    statements = [ddl("x.t", number, sql) for number, sql in enumerate([begins, table], 1) if sql]
    made.send([*statements, *(ddl("x.t", 5 + n, sql) for n, sql in enumerate(later)), *rows, *watermarks(9)])
    if begins == "CREATE DATABASE `x`":
        made.apply()
        assert [row["k"] for row in made.cells.tables({"x"})["x.t"][1]] == ["A"]
        return
    with pytest.raises(TargetError, match="utf8mb4_general_ci" if begins else "not known"):
        made.apply()
    assert len(made.cells.tables({"x"})["x.t"][1]) == len("aA")


@pytest.mark.parametrize("made", TARGETS, indirect=True)
def test_texts_of_a_binary_database_are_bytes(made: LocalFeed) -> None:
    """SQLite and PostgreSQL made columns of texts, and stopped at the first row."""
    made.send([
        ddl("x.", 1, "CREATE DATABASE `x` CHARACTER SET = binary"),
        ddl("x.t", 2, "CREATE TABLE `t` (`id` INT PRIMARY KEY,`v` VARCHAR(9))"),
        ddl("x.t", 3, "ALTER TABLE `t` ADD COLUMN `w` CHAR(1)"),
        typed(insert("x.t", 4, id=1, v="\xff", w="\xfe"), v="varbinary(9)", w="binary(1)"),
        *watermarks(5),
    ])  # fmt: skip
    made.apply()
    assert [(row["v"], row["w"]) for row in made.cells.tables({"x"})["x.t"][1]] == [(b"\xff", b"\xfe")]


@pytest.mark.parametrize("made", TARGETS, indirect=True)
def test_indexes_are_found_whatever_the_case_of_their_names(made: LocalFeed) -> None:
    """SQLite kept unique indexes that upstream had dropped; MariaDB stopped at the new name of one it does not have."""
    alter = "ALTER TABLE `t` "
    made.send([
        ddl("x.", 1, "CREATE DATABASE `x`"),
        ddl("x.t", 2, "CREATE TABLE `t` (id INT PRIMARY KEY, v INT, a INT, UNIQUE KEY `Ü` (v), UNIQUE KEY `Uw` (a))"),
        ddl("x.t", 3, f"{alter}ADD UNIQUE KEY `e` ((a + id))"),
        ddl("x.t", 4, f"{alter}RENAME INDEX `UW` TO `u2`"),
        ddl("x.t", 5, f"{alter}DROP INDEX `U2`"),
        ddl("x.t", 6, f"{alter}DROP INDEX `ü`"),
        ddl("x.t", 7, f"{alter}RENAME INDEX `E` TO `f`"),
        *(insert("x.t", 8, id=number, v=1, a=2) for number in (1, 2)),
        *watermarks(9),
    ])  # fmt: skip
    made.apply()
    assert len(made.cells.tables({"x"})["x.t"][1]) == 2


@pytest.mark.parametrize("made", ["mariadb"], indirect=True)
@pytest.mark.parametrize(
    ("old", "new", "value", "found"),
    [
        ("FLOAT", "FLOAT(7,2)", "0.375", "0.38"),
        ("DOUBLE", "DOUBLE(8,2)", "2.345", "2.35"),
        ("DOUBLE(12,5)", "DOUBLE(8,2)", "2.345", "2.35"),
        ("DOUBLE(12,5)", "FLOAT(8,2)", "-2.345", "-2.35"),
    ],
)
def test_a_real_that_gets_a_scale_is_rounded_as_upstream(
    made: LocalFeed, old: str, new: str, value: str, found: str
) -> None:
    """MariaDB showed 0.38 and summed 0.375; of 2.345 it made 2.34, for its DOUBLE(12,5) holds the number below."""
    made.send([
        ddl("x.", 1, "CREATE DATABASE `x`"),
        ddl("x.t", 2, f"CREATE TABLE `t` (`id` INT PRIMARY KEY,`v` {old})"),
        typed(insert("x.t", 3, id=1, v=value), v=old.lower()),
        ddl("x.t", 4, f"ALTER TABLE `t` MODIFY COLUMN `v` {new}"),
        *watermarks(5),
    ])  # fmt: skip
    made.apply()
    assert isinstance(made.cells, MariaDbCells)
    near = f"SELECT COUNT(*) AS n FROM x.t WHERE ABS(v - ({found})) < 1e-6"
    assert made.cells.query(near) == [{"n": "1"}]


VIEWS = {
    "sqlite": {"vv", "vvv"},  # vc is made by a function, the others read two databases
    "mariadb": {"vv", "vvv", "vc"},
    "postgres": {"vv", "vvv"},
}


@pytest.mark.parametrize("made", TARGETS, indirect=True)
def test_views_show_what_they_show_upstream(made: LocalFeed) -> None:
    made.send(recorded("ddl-allowed.index-value"))
    made.apply()
    cells = made.cells
    if isinstance(cells, SqliteCells):
        with closing(sqlite3.connect(cells.files()["da"])) as connection:
            found = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'view'")}
            counted = connection.execute("SELECT n FROM vvv").fetchone()[0]
        kind = "sqlite"
    else:
        look = "SELECT table_name AS name FROM information_schema.views WHERE table_schema = 'da'"
        found = {row["name"] for row in cells.query(look)}
        counted = cells.query("SELECT n FROM da.vvv")[0]["n"]
        kind = "mariadb" if isinstance(cells, MariaDbCells) else "postgres"
    assert found == VIEWS[kind]
    assert int(counted) == len(oracle("ddl-allowed")["da.t"]["rows"])  # it reads vv, which was created again


@pytest.mark.parametrize("made", ["sqlite", "postgres"], indirect=True)
def test_what_was_made_by_hand_is_known_afterwards(made: LocalFeed) -> None:
    ranges = "(PARTITION `p0` VALUES LESS THAN (5), PARTITION `p1` VALUES LESS THAN (9))"
    made.send([
        ddl("d.", 1, "CREATE DATABASE `d`"),
        ddl("d.t", 2, f"CREATE TABLE `t` (`id` INT PRIMARY KEY) PARTITION BY RANGE (`id`) {ranges}"),
        insert("d.t", 3, id=1),
        insert("d.t", 3, id=7),
        *watermarks(3),
    ])  # fmt: skip
    made.apply()
    by_hand = "ALTER TABLE `t` DROP PARTITION `p0`"
    with closing(target_of(made.config)) as target:
        target.connect()
        changefeed = made.config.changefeed
        stored = target.stored(changefeed)
        assert stored
        lease = Lease(changefeed, target.claim(changefeed, stored.progress).epoch)
        event = DdlEvent(Position("t", 0, 9), CommitTs(at(4)), "ALTER", "d", "t", by_hand)
        target.fail_ddl(event, "no", lease)
        target.decide_ddl(target.ddl_log.latest(changefeed, 1)[0], DdlState.TAKE, "by hand", lease)
        target.settle_ddl(target.ddl_log.latest(changefeed, 1)[0], stored.progress, lease, lambda _: None)
        assert target.ddl_log.latest(changefeed, 1)[0].state == "done"
    made.send([ddl("d.t", 5, "ALTER TABLE `t` TRUNCATE PARTITION `p1`"), *watermarks(6)])
    made.apply()
    assert made.cells.tables(["d"])["d.t"][1] == []  # without p0, p1 begins at the lowest


@pytest.mark.parametrize("made", [*TARGETS, "tidb"], indirect=True)
def test_what_stands_beside_the_drop_of_the_last_valid_index_is_executed(made: LocalFeed) -> None:
    made.send([
        ddl("d.", 1, "CREATE DATABASE `d`"),
        ddl("d.t", 2, "CREATE TABLE `t` (`id` INT NOT NULL, `v` INT, `w` INT, UNIQUE KEY `u` (`id`))"),
        insert("d.t", 3, id=1, v=1, w=1),
        ddl("d.t", 4, "ALTER TABLE `t` DROP INDEX `u`, ADD COLUMN `x` INT DEFAULT 5, DROP COLUMN `w`"),
        ddl("d.t", 5, "ALTER TABLE `t` ADD PRIMARY KEY (`id`)"),
        insert("d.t", 6, id=2, v=2, x=6),
        *watermarks(7),
    ])  # fmt: skip
    made.apply()
    columns, rows = made.cells.tables(["d"])["d.t"]
    assert list(columns) == ["id", "v", "x"]
    assert sorted([int(value) for value in row.values()] for row in rows) == [[1, 1, 5], [2, 2, 6]]


@pytest.mark.parametrize("made", [*TARGETS, "tidb"], indirect=True)
def test_databases_and_tables_are_found_however_a_statement_spells_them(made: LocalFeed) -> None:
    made.send([
        ddl("d.", 1, "CREATE DATABASE `d`"),
        ddl("e.", 1, "CREATE DATABASE `e`"),
        ddl("gone.", 1, "CREATE DATABASE `gone`"),
        ddl("d.t", 2, "CREATE TABLE `D`.`T` (`id` INT PRIMARY KEY, `v` INT)"),  # the first table of a database
        insert("d.T", 3, id=1, v=1),
        ddl("gone.g", 4, "CREATE TABLE `GONE`.`G` LIKE `D`.`t`"),
        insert("gone.G", 5, id=2, v=2),
        ddl("e.moved", 6, "RENAME TABLE `d`.`t` TO `E`.`moved`"),
        ddl("d.kept", 7, "CREATE TABLE `D`.`kept` (`id` INT PRIMARY KEY)"),
        ddl("gone.", 8, "DROP DATABASE `Gone`"),
        ddl("d.", 8, "ALTER DATABASE `D` CHARACTER SET = utf8mb4 COLLATE = utf8mb4_bin"),
        *watermarks(9),
    ])  # fmt: skip
    made.apply()
    tables = made.cells.tables(["d", "D", "e", "E", "gone", "GONE", "Gone"])
    assert {name: len(rows) for name, (_, rows) in tables.items()} == {"d.kept": 0, "e.moved": 1}


@pytest.mark.parametrize("made", [*TARGETS, "tidb"], indirect=True)
def test_a_ddl_runs_in_the_time_zone_of_the_source(made: LocalFeed) -> None:
    """Bounds of partitions, TIMESTAMPs that become something else and back; columns with ON UPDATE stay as they are."""
    made.with_(source={"time-zone": "+08:00"})
    applied(made, "ddl-zones.index-value", window_rows=1_000_000)


@pytest.mark.parametrize("made", ["mariadb"], indirect=True)
def test_a_conversion_that_the_server_makes_in_another_way_is_refused_before_it_runs(made: LocalFeed) -> None:
    """Found by `tests.differential`: of a DOUBLE(9,3) TiDB makes the text '1', MariaDB '1.000'."""
    made.send([
        ddl("d.", 1, "CREATE DATABASE `d`"),
        ddl("d.t", 2, "CREATE TABLE `t` (`id` INT PRIMARY KEY, `v` DOUBLE(9,3))"),
        insert("d.t", 3, id=1, v="1"),
        ddl("d.t", 4, "ALTER TABLE `t` CHANGE COLUMN `v` `w` VARCHAR(20) FIRST"),
        *watermarks(5),
    ])  # fmt: skip
    with pytest.raises(TargetError, match=r"of '1.000' the server makes '1.000'|of '1' the server makes '1.000'"):
        made.apply()
    assert list(made.cells.tables(["d"])["d.t"][0]) == ["id", "v"]


@pytest.mark.parametrize("made", [*TARGETS, "tidb"], indirect=True)
def test_columns_are_made_in_every_spelling(made: LocalFeed) -> None:
    """What stopped MariaDB: JSON NOT NULL in brackets and FIRST, STORED NOT NULL, members and bytes as defaults."""
    made.send([
        ddl("d.", 1, "CREATE DATABASE `d`"),
        ddl("d.t", 2, "CREATE TABLE `t` (`id` INT PRIMARY KEY, `g` INT GENERATED ALWAYS AS(`id` + 1) STORED NOT NULL)"),
        insert("d.t", 3, id=1, g=2),
        ddl("d.t", 4, "ALTER TABLE `t` ADD COLUMN (`j` JSON NOT NULL,`c` CHAR(3) CHARACTER SET UTF8MB4 DEFAULT 'x')"),
        ddl("d.t", 5, "ALTER TABLE `t` ADD COLUMN `k` JSON NOT NULL FIRST"),
        ddl("d.t", 6, "ALTER TABLE `t` ADD COLUMN `e` ENUM('a','b') DEFAULT 2, ADD COLUMN `i` INT DEFAULT x'41'"),
        *watermarks(7),
    ])  # fmt: skip
    made.apply()
    ((_, rows),) = made.cells.tables(["d"]).values()
    shown = {name: str(value) for name, value in next(iter(rows)).items()}
    wanted = {"id": "1", "g": "2", "c": "x", "e": "b", "i": "65"}
    assert {name: shown[name] for name in wanted} == wanted
    assert {shown["j"], shown["k"]} <= {"null", "None"}


@pytest.mark.parametrize("made", ["sqlite", "postgres", "mariadb"], indirect=True)
def test_a_column_of_an_empty_table_becomes_anything(made: LocalFeed) -> None:
    made.send([
        ddl("d.", 1, "CREATE DATABASE `d`"),
        ddl("d.t", 2, "CREATE TABLE `t` (`id` INT PRIMARY KEY, `v` ENUM('a','15'), `w` TIME)"),
        ddl("d.t", 3, "ALTER TABLE `t` MODIFY COLUMN `v` YEAR"),
        ddl("d.t", 4, "ALTER TABLE `t` MODIFY COLUMN `w` TIMESTAMP"),
        *watermarks(5),
    ])  # fmt: skip
    made.apply()
    assert list(made.cells.tables(["d"])["d.t"][0]) == ["id", "v", "w"]


@pytest.mark.parametrize("made", ["mariadb"], indirect=True)
def test_a_default_by_hand_that_is_no_utf8_is_named_and_can_be_dropped(made: LocalFeed) -> None:
    """MariaDB shows a definition with the bytes as they are; it was told as a broken protocol."""
    assert isinstance(made.cells, MariaDbCells)
    made.make_database("d", "CREATE TABLE t (id INT PRIMARY KEY, b VARBINARY(9) DEFAULT x'FF00')")
    made.send([
        insert("d.t", 1, id=1, b="a"),
        ddl("d.t", 2, "ALTER TABLE `t` ADD COLUMN `v` INT DEFAULT 5"),
        *watermarks(3),
    ])  # fmt: skip
    with pytest.raises(TargetError, match="a column's default is no UTF-8") as told:
        made.apply()
    assert "ALTER TABLE `d`.`t` ALTER COLUMN ... DROP DEFAULT" in told.value.hint
    made.cells.query("ALTER TABLE `d`.`t` ALTER COLUMN b DROP DEFAULT")
    made.apply()
    assert made.cells.tables(["d"])["d.t"][1] == [{"id": 1, "b": b"a", "v": 5}]

"""Names and values that try to be something else: they land as they are, or nothing of them does.

Kafka and Spark are in this process, the targets are real ones.
"""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from consumer.demo.fake_ticdc.changefeed import Message
from ordering.errors import InputError, ReconcilerError, TargetError
from tests.embedded import MariaDbServer, PostgresServer, TidbServer
from tests.service.cells import MariaDbCells, SqliteCells, emptied
from tests.service.local import LocalFeed
from tests.service.messages import at, begun, ddl, delete, encoded, insert, keyed, update, value_of, watermarks
from tests.service.postgres_cells import PostgresCells

pytestmark = pytest.mark.service
NAMES = (
    "a`b", 'a"b', "a'b", "a\\", "a\nb", "a;b", "--", "/*", "%s", "{0}", "SELECT 1", "'; DROP TABLE t; --", "日本語",
    "n" * 63, "../x", "/etc/x", "..", ".", "a.b", "main", "temp", "sqlite_x", "a b", "a%00b", "a%2Fb", "~",
    "con", "-x", "$x",
)  # fmt: skip
REFUSED_UPSTREAM = ("a\0b", "n" * 65, "😀" * 64, "", "x ")
"""What no TiDB makes: it may be refused, and has to be in good order."""
VALUES = ("'; DROP TABLE t; --", "\\'", '"', "`", "a\tb\nc\r", "\\N", "NULL", "%s %(x)s", "😀", "\x1a", "\u202e", "")


@pytest.fixture
def sqlite(tmp_path: Path) -> LocalFeed:
    target = tmp_path / "deep" / "target"
    return LocalFeed(None, "nowhere:1", "topic", f"sqlite:///{target}", SqliteCells(target), tmp_path)  # type: ignore[arg-type]


@pytest.fixture
def mariadb(tmp_path: Path, mariadb_server: MariaDbServer) -> Iterator[LocalFeed]:
    yield from _into(mariadb_server.uri, MariaDbCells(mariadb_server.uri), tmp_path)


@pytest.fixture
def tidb(tmp_path: Path, tidb_server: TidbServer) -> Iterator[LocalFeed]:
    yield from _into(tidb_server.uri, MariaDbCells(tidb_server.uri), tmp_path)


@pytest.fixture
def postgres(tmp_path: Path, postgres_server: PostgresServer) -> Iterator[LocalFeed]:
    yield from _into(postgres_server.uri, PostgresCells(postgres_server.uri), tmp_path)


def _into(uri: str, cells: MariaDbCells | PostgresCells, place: Path) -> Iterator[LocalFeed]:
    with emptied(cells):
        yield LocalFeed.into(uri, cells, place)


@pytest.fixture(params=["sqlite", "mariadb", "tidb", "postgres"])
def feed(request: pytest.FixtureRequest) -> LocalFeed:
    found: LocalFeed = request.getfixturevalue(request.param)
    return found.with_(target={"consistency": "transaction"})


def in_database(name: str, number: int, sql: str) -> Message:
    """A DDL of a database with any name."""
    return ddl("", number, sql, kind="QUERY")._replace(
        value=encoded(value_of("QUERY", "", at(number), isDdl=True, sql=sql) | {"database": name})
    )


def refusal(feed: LocalFeed) -> ReconcilerError | None:
    """What ends the run, if anything foreseen does."""
    try:
        feed.apply()
    except ReconcilerError as error:
        return error
    return None


def quoted(name: str) -> str:
    return "`{}`".format(name.replace("`", "``"))


def test_names_of_tables_and_columns_are_only_names(feed: LocalFeed) -> None:
    """A table for each, with a column and a key so named; a row is written, changed, its key moved, one deleted."""
    feed.send(begun())
    number = 4
    names = [n for n in NAMES if not (isinstance(feed.cells, SqliteCells) and n == "sqlite_x")]  # SQLite's own
    for name in names:
        feed.send(_life(name, number))
        number += 10
    feed.send(watermarks(number))
    feed.apply()
    tables = feed.cells.tables(["d"])
    for name in names:
        columns, rows = tables[f"d.{name}"]
        assert sorted(columns) == sorted(["v", name])
        assert sorted(rows, key=repr) == sorted([{name: 2, "v": "b"}, {name: 4, "v": "d"}], key=repr), name
    assert len(tables) == len(names) + 1


def _life(name: str, number: int) -> list[Message]:
    table, key = f"d.{name}", quoted(name)
    steps = [
        ddl(table, number, f"CREATE TABLE {key} ({key} INT PRIMARY KEY, v VARCHAR(20))"),
        insert(table, number + 1, v="a", **{name: 1}),
        insert(table, number + 1, v="b", **{name: 2}),
        insert(table, number + 1, v="c", **{name: 3}),
        update(table, number + 2, {"v": "c", name: 3}, v="d", **{name: 4}),
        delete(table, number + 3, v="a", **{name: 1}),
    ]
    return [steps[0], *(keyed(step, name) for step in steps[1:])]


def test_values_are_only_values(feed: LocalFeed) -> None:
    """As keys and as content."""
    feed.send(begun("d.t", "id VARCHAR(40) PRIMARY KEY, v INT, s VARCHAR(40)"))
    for number, value in enumerate(VALUES, 4):
        feed.send([insert("d.t", number, id=value, v=number, s=value), *watermarks(number)])
    feed.apply()
    rows = {row["id"]: row["s"] for row in feed.cells.tables(["d"])["d.t"][1]}
    assert rows == {value: value for value in VALUES} | {"1": "one"}
    gone = 4 + len(VALUES)
    feed.send([*(delete("d.t", gone, id=v, v=n, s=v) for n, v in enumerate(VALUES, 4)), *watermarks(gone)])
    feed.apply()
    assert len(feed.cells.tables(["d"])["d.t"][1]) == 1


@pytest.mark.parametrize("name", [*NAMES, "TEMP", *REFUSED_UPSTREAM])
def test_names_of_databases_lead_nowhere_else(sqlite: LocalFeed, name: str) -> None:
    """SQLite makes files of them: all of them in the directory."""
    feed = sqlite
    feed.send([*begun(), in_database(name, 4, f"CREATE DATABASE {quoted(name)}")])
    feed.send([in_database(name, 5, f"CREATE TABLE {quoted(name)}.t (id INT PRIMARY KEY, v INT)"), *watermarks(6)])
    if name in REFUSED_UPSTREAM and (error := refusal(feed)):
        assert error.exit_code in (3, 4)
        assert feed.checkpoint() < at(6)
    else:
        feed.apply()
        assert feed.cells.databases() == {"d", name}
        assert f"{name}.t" in feed.cells.tables([name])
        feed.send([in_database(name, 7, f"DROP DATABASE {quoted(name)}"), *watermarks(8)])
        feed.apply()
        assert feed.cells.databases() == {"d"}
    target = feed.directory / "deep" / "target"
    assert [path for path in feed.directory.rglob("*") if path.is_file() and path.parent != target] == []
    assert len(feed.cells.tables(["d"])["d.t"][1]) == 1


@pytest.mark.parametrize("name", REFUSED_UPSTREAM)
def test_names_that_no_upstream_has_end_in_good_order(feed: LocalFeed, name: str) -> None:
    feed.send([*begun(), *watermarks(4)])
    feed.apply()
    before = feed.cells.tables(["d"])
    feed.send([*_life(name, 5), *watermarks(20)])
    if error := refusal(feed):
        assert error.exit_code in (3, 4)
        assert "partition=" in str(error)
    assert {table: rows for table, rows in feed.cells.tables(["d"]).items() if table in before} == before


OURS = {
    "row": [insert("ticdc_reconciler.checkpoint", 5, changefeed="x", checkpoint_ts=1)],
    "row-in-capitals": [insert("TICDC_Reconciler.CHECKPOINT", 5, changefeed="x", checkpoint_ts=1)],
    "delete": [keyed(delete("ticdc_reconciler.checkpoint", 5, changefeed="x"), "changefeed")],
    "drop-table": [ddl("d.t", 5, "DROP TABLE `ticdc_reconciler`.`checkpoint`")],
    "drop-two": [ddl("d.t", 5, "DROP TABLE d.t, TICDC_RECONCILER.checkpoint")],
    "drop-database": [ddl("d.", 5, "DROP DATABASE /* x */ ticdc_reconciler", kind="QUERY")],
    "create-database": [ddl("ticdc_reconciler.", 5, "CREATE DATABASE IF NOT EXISTS ticdc_reconciler", kind="QUERY")],
    "rename-into": [ddl("d.t", 5, "RENAME TABLE d.t TO ticdc_reconciler.t")],
    "alter-rename-into": [ddl("d.t", 5, "ALTER TABLE d.t RENAME TO `ticdc_reconciler`.t")],
    "rename-out-of": [ddl("d.t", 5, "RENAME TABLE ticdc_reconciler.checkpoint TO d.x")],
    "truncate": [ddl("d.t", 5, "TRUNCATE TABLE ticdc_reconciler.checkpoint")],
    "alter": [ddl("d.t", 5, "ALTER TABLE ticdc_reconciler.checkpoint DROP COLUMN epoch")],
    "index": [ddl("d.t", 5, "CREATE INDEX i ON ticdc_reconciler.checkpoint (epoch)")],
    "like": [ddl("d.x", 5, "CREATE TABLE d.x LIKE ticdc_reconciler.checkpoint")],
    "in-a-comment": [ddl("d.t", 5, "ALTER TABLE d.t ADD COLUMN w INT /*!50000 , RENAME TO ticdc_reconciler.t */")],
    "in-tidb's-comment": [ddl("d.t", 5, "ALTER TABLE d.t /*T![ttl] RENAME TO `ticdc_reconciler` . t */")],
    "behind-nested-comments": [ddl("d.t", 5, "TRUNCATE TABLE /* /*! */ ticdc_reconciler.checkpoint /* */")],
    "alter-database": [ddl("d.", 5, "ALTER DATABASE ticdc_reconciler CHARACTER SET latin1", kind="QUERY")],
    "alter-own-database": [ddl("ticdc_reconciler.", 5, "ALTER DATABASE ticdc_reconciler COLLATE x", kind="QUERY")],
    "drop-database-in-a-comment": [ddl("d.", 5, "DROP DATABASE /*! ticdc_reconciler */ -- x", kind="QUERY")],
    "dashes-that-are-no-comment": [
        ddl("d.t", 5, "ALTER TABLE d.t ADD COLUMN w INT DEFAULT 5--1, RENAME TO ticdc_reconciler.t")
    ],
    "under-its-database": [ddl("ticdc_reconciler.x", 5, "DROP TABLE checkpoint")],
}


@pytest.mark.cells("case", "feed")
@pytest.mark.parametrize("case", sorted(OURS))
def test_nobody_writes_to_the_progress(feed: LocalFeed, case: str) -> None:
    feed.send([*begun(), *watermarks(4)])
    feed.apply()
    before = feed.cells.tables(["d"])
    feed.send([*OURS[case], *watermarks(6)])
    with pytest.raises((InputError, TargetError)) as caught:
        feed.apply()
    assert "partition=" in str(caught.value)
    assert "ticdc_reconciler" in str(caught.value).lower()
    assert feed.cells.tables(["d"]) == before
    assert at(4) <= feed.checkpoint() <= at(5)


def test_one_statement_is_one_statement(feed: LocalFeed) -> None:
    feed.send([*begun(), *watermarks(4)])
    feed.apply()
    feed.send([ddl("d.t", 5, "ALTER TABLE d.t ADD COLUMN w INT; DROP DATABASE d"), *watermarks(6)])
    with pytest.raises(ReconcilerError) as caught:
        feed.apply()
    assert caught.value.exit_code in (3, 4)
    assert len(feed.cells.tables(["d"])["d.t"][1]) == 1


def test_a_link_out_of_the_directory_is_not_followed_by_a_drop(sqlite: LocalFeed) -> None:
    """DROP DATABASE removes the name in the directory; what it leads to is somebody else's."""
    sqlite.send([*begun(), *watermarks(4)])
    sqlite.apply()
    outside = sqlite.directory / "outside.sqlite"
    with sqlite3.connect(outside) as connection:
        connection.execute("CREATE TABLE kept (id INT)")
    connection.close()
    (sqlite.directory / "deep" / "target" / "linked.sqlite").symlink_to(outside)
    sqlite.send([ddl("linked.", 5, "DROP DATABASE linked", kind="QUERY"), *watermarks(6)])
    sqlite.apply()
    assert outside.exists()

"""No verdict about less than was asked: what ended, what matches nothing, what is wrong twice, what is not compared."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from click.testing import CliRunner

from consumer.cli.main import main
from consumer.verify import narrow, plan
from consumer.verify.report import VerifyOutcome
from consumer.verify.run import Verification
from consumer.verify.sides import Side
from ordering.errors import ConfigError
from tests.embedded import MariaDbServer, PostgresServer
from tests.service.cells import MariaDbCells, SqliteCells
from tests.service.conftest import own_database
from tests.service.lab import toml_of
from tests.service.messages import begun, ddl, insert, watermarks
from tests.service.postgres_cells import PostgresCells
from tests.verifying.upstreams import Readable, Verified, feed_of

__all__ = ["own_database"]
pytestmark = pytest.mark.service


@pytest.fixture(params=["mariadb", "postgres", "sqlite"])
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Verified, str]]:
    """A target of each kind, and one in SQLite that holds the same."""
    copy = SqliteCells(tmp_path / "copy")
    cells: Readable = SqliteCells(tmp_path / "target")
    uri = f"sqlite:///{tmp_path}/target"
    if request.param == "mariadb":
        mariadb: MariaDbServer = request.getfixturevalue("mariadb_server")
        uri, cells = mariadb.uri, MariaDbCells(mariadb.uri)
    elif request.param == "postgres":
        postgres: PostgresServer = request.getfixturevalue("postgres_server")
        uri, cells = postgres.uri, PostgresCells(postgres.uri)
    clear(cells)
    feeds = [feed_of(uri, cells, tmp_path), feed_of(f"sqlite:///{copy.directory}", copy, tmp_path)]
    for feed in feeds:
        feed.with_(filter={"rules": ["d.*"]}).send([*begun(), insert("d.t", 4, id=2, v=2, s="two"), *watermarks(5)])
        feed.apply()
    yield Verified(feeds[0]), feeds[1].uri
    clear(cells)
    if not isinstance(cells, SqliteCells):
        cells.close()


def clear(cells: Readable) -> None:
    if not isinstance(cells, SqliteCells):
        cells.drop(["d"])


def command(verified: Verified, *options: object) -> tuple[int, Any, str]:
    """Exit code, JSON and errors of the command."""
    path = verified.feed.directory / "verify.toml"
    path.write_text(toml_of(verified.feed.values()))
    done = CliRunner().invoke(main, ["verify", str(path), "--json", *map(str, options)])
    return done.exit_code, json.loads(done.stdout) if done.stdout else None, done.stderr


def test_a_state_that_has_ended_is_no_answer(pair: tuple[Verified, str]) -> None:
    verified, against = pair
    state = verified.feed.directory / "state"
    options = ("--against", against, "--state", state)
    code, told, _ = command(verified, *options)
    assert (code, told["equal"], told["notes"]) == (0, True, [])
    verified.cells.run("d", "UPDATE t SET v = 99 WHERE id = 2")
    code, told, _ = command(verified, *options)
    assert (code, told["equal"], told["tables"][0]["different"]) == (6, False, 1)
    verified.cells.run("d", "UPDATE t SET v = 2 WHERE id = 2")
    # a state of which all chunks are done, by whoever did not live to say so, or by an earlier version
    for keep in ({}, {"begun": None}):
        lines = [json.loads(line) for line in state.read_text().splitlines() if '"ended"' not in line]
        lines[0] = {key: value for key, value in lines[0].items() if key not in keep}
        state.write_text("".join(json.dumps(line) + "\n" for line in lines))
        code, told, _ = command(verified, *options)
        assert (code, told["equal"], told["notes"]) == (0, True, [])


@pytest.mark.parametrize("pattern", ["d.typo", "typo.*", "D1.t", "!d.typo", "d.t,d.u", "other.t"])
def test_a_pattern_that_matches_nothing_is_no_answer(pair: tuple[Verified, str], pattern: str) -> None:
    verified, against = pair
    for options in (("--tables", pattern), ("--tables", "d.t", "--tables", pattern)):
        code, told, errors = command(verified, "--against", against, *options)
        assert (code, told) == (2, None)
        assert repr(pattern) in errors


def test_no_table_at_all_is_no_answer(pair: tuple[Verified, str]) -> None:
    verified, against = pair
    verified.feed.with_(filter={"rules": ["nothing.*"]})
    code, told, errors = command(verified, "--against", against)
    assert (code, told, "there is no table to compare" in errors) == (2, None, True)
    verified.feed.with_(filter={"rules": ["d.*"]})
    code, told, _ = command(verified, "--against", against, "--tables", "d.*", "--tables", "!d.t")
    assert (code, told) == (2, None)


def test_a_table_that_neither_side_shows_is_no_answer(pair: tuple[Verified, str]) -> None:
    """Rights that hide a table from both users leave no trace in the catalogs; here it is gone from both."""
    verified, against = pair
    more = [ddl("d.u", 6, "CREATE TABLE `u` (`id` INT PRIMARY KEY)"), insert("d.u", 7, id=1), *watermarks(8)]
    verified.feed.send(more)
    verified.feed.apply()
    verified.cells.run("d", "DROP TABLE u")
    code, told, _ = command(verified, "--against", against)
    assert (code, told["equal"]) == (7, False)
    assert told["unjudged"] == ["d.u: rows of it came in messages, and neither side shows it: see the rights of both"]
    code, told, _ = command(verified, "--against", against, "--tables", "d.t")
    assert (code, told["equal"], told["unjudged"]) == (0, True, [])
    verified.feed.send([ddl("d.u", 9, "DROP TABLE `u`"), *watermarks(10)])
    verified.feed.apply()
    code, told, _ = command(verified, "--against", against)
    assert (code, told["equal"]) == (0, True)


def meanwhile(monkeypatch: pytest.MonkeyPatch, do: Any) -> None:
    """Do something between the two looks."""
    again = Verification._again

    def patched(self: Verification, outcome: VerifyOutcome, both: tuple[Side, Side]) -> None:
        do()
        for side in both:
            side.open(1)
        again(self, outcome, both)

    monkeypatch.setattr(Verification, "_again", patched)


@pytest.mark.parametrize(
    ("first", "then", "kind"),
    [
        ("UPDATE t SET v = 7 WHERE id = 2", "UPDATE t SET v = 8 WHERE id = 2", "different"),
        ("UPDATE t SET v = 7 WHERE id = 2", "DELETE FROM t WHERE id = 2", "missing"),
        ("DELETE FROM t WHERE id = 2", "INSERT INTO t VALUES (2, 9, 'again')", "different"),
        ("INSERT INTO t VALUES (5, 5, 'x')", "UPDATE t SET v = 6 WHERE id = 5", "extra"),
    ],
)
def test_a_row_that_is_wrong_both_times_is_told(
    pair: tuple[Verified, str], monkeypatch: pytest.MonkeyPatch, first: str, then: str, kind: str
) -> None:
    verified, against = pair
    verified.cells.run("d", first)
    meanwhile(monkeypatch, lambda: verified.cells.run("d", then))
    outcome = verified.verify(against=against)
    assert outcome.differs
    assert outcome.tables[0].counts()[kind] == 1
    assert sum(outcome.tables[0].counts().values()) == 1


def test_a_row_without_a_key_that_is_wrong_both_times_is_told(
    pair: tuple[Verified, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    verified, against = pair
    for cells in (verified.cells, SqliteCells(tmp_path / "copy")):
        cells.run("d", "CREATE TABLE k (v INTEGER)")
        cells.run("d", "INSERT INTO k VALUES (1), (2), (2)")
    verified.cells.run("d", "INSERT INTO k VALUES (7)")
    meanwhile(monkeypatch, lambda: verified.cells.run("d", "UPDATE k SET v = 8 WHERE v = 7"))
    outcome = verified.verify(against=against, tables=("d.k",))
    assert [one.right for one in outcome.tables[0].differences] == [("8",)]


def test_what_can_not_be_named_is_not_dropped_by_a_second_look(
    pair: tuple[Verified, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    verified, against = pair
    monkeypatch.setattr(narrow, "MOST_ROWS", 1)
    verified.cells.run("d", "UPDATE t SET v = 7 WHERE id = 2")
    code, told, _ = command(verified, "--against", against)
    assert (code, told["equal"], told["tables"][0]["unnamed"]) == (6, False, 1)


def test_columns_that_can_not_be_compared_are_not_equal(
    pair: tuple[Verified, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    verified, against = pair
    comparable = plan._compared

    def without(name: Any, left: Any, right: Any, rules: Any, found: Any) -> Any:
        class Blind:
            def __getattr__(self, attribute: str) -> Any:
                return getattr(left[1], attribute)

            def is_comparable(self, column: Any) -> bool:
                return bool(column.name != "s")

        return comparable(name, (left[0], Blind()), right, rules, found)

    monkeypatch.setattr(plan, "_compared", without)
    code, told, errors = command(verified, "--against", against)
    assert (code, told["equal"]) == (7, False)
    assert "column 's'" in told["unjudged"][0]
    assert "not all could be compared" in errors
    verified.cells.run("d", "UPDATE t SET v = 99 WHERE id = 2")
    assert command(verified, "--against", against)[0] == 6


HOSTILE = {
    "client_encoding": "LATIN1", "standard_conforming_strings": "off", "search_path": "evil, public",
    "timezone": "Asia/Kathmandu", "datestyle": "SQL, DMY", "intervalstyle": "sql_standard", "extra_float_digits": "-5",
    "bytea_output": "escape", "statement_timeout": "10s", "row_security": "on", "backslash_quote": "off",
}  # fmt: skip
TEXTS = ["ä€漢", "it's \\ back", "line\nend\r\ttab'\\", "\\'; DROP TABLE x; --", "😀\u200b", "%s %(a)s :v ${x}", ""]


def test_the_sql_means_the_same_whatever_postgresql_s_session_is_set_to(own_database: str, tmp_path: Path) -> None:
    copy, cells = SqliteCells(tmp_path / "copy"), PostgresCells(own_database)
    feeds = [feed_of(own_database, cells, tmp_path), feed_of(f"sqlite:///{copy.directory}", copy, tmp_path)]
    rows = [insert("d.t", 5, id=10 + n, v=n, s=text[:10]) for n, text in enumerate(TEXTS)]
    for feed in feeds:
        feed.with_(filter={"rules": ["d.*"]}).send([*begun(), *watermarks(4)])
        feed.apply()
    feeds[1].send([*rows, *watermarks(6)])
    feeds[1].apply()
    cells.run("d", "INSERT INTO t VALUES (11, 0, 'wrong'), (99, 1, 'é\n\\')")
    verified, path = Verified(feeds[0]), tmp_path / "fix.sql"
    verified.verify(against=feeds[1].uri, fix_sql=path)
    with psycopg.connect(own_database, autocommit=True) as session:
        for name, value in HOSTILE.items():
            session.execute(f"SET {name} = {value!r}" if name != "search_path" else f"SET {name} = {value}")  # type: ignore[arg-type]
        lines = path.read_bytes().splitlines()
        first = next(line for line in lines if not line.startswith(b"--"))
        assert first == b"SET statement_timeout = '0';"  # before anything can take long
        for line in lines:  # as psql does: bytes of the file, a statement at a time
            result = session.pgconn.exec_(line)
            assert not result.error_message, (line, result.error_message)
    assert verified.verify(against=feeds[1].uri).is_equal
    cells.close()


def test_a_choice_that_is_right_is_taken(pair: tuple[Verified, str]) -> None:
    verified, against = pair
    assert command(verified, "--against", against, "--tables", "d.t", "--tables", "!d.z*", "--tables", "d.*")[0] == 2
    assert command(verified, "--against", against, "--tables", "*.*", "--tables", "!d.t")[0] == 2
    assert command(verified, "--against", against, "--tables", "d.t*")[0] == 0
    with pytest.raises(ConfigError):
        verified.verify(against=against, tables=("d.nothing",))


def test_no_statement_is_written_that_would_reach_the_rows_of_a_child(
    postgres_server: PostgresServer, tmp_path: Path
) -> None:
    """Indexes of PostgreSQL know no row of a child: a DELETE by the key would take the right row, too."""
    cells, copy = PostgresCells(postgres_server.uri), SqliteCells(tmp_path / "copy")
    clear(cells)
    made = "CREATE TABLE t (id BIGINT PRIMARY KEY, v BIGINT); INSERT INTO t VALUES (1, 1)"
    copy.run("d", made)
    cells.run("d", f"{made}; CREATE TABLE child () INHERITS (t); INSERT INTO child VALUES (1, 2)")
    verified = Verified(feed_of(postgres_server.uri, cells, tmp_path))
    verified.feed.with_(filter={"rules": ["d.t"]})
    text = verified.repaired(against=f"sqlite:///{copy.directory}")
    assert "-- not repaired here: the target's table has the child d.child" in text
    assert cells.query("SELECT v FROM d.t ORDER BY v") == [{"v": 1}, {"v": 2}]
    clear(cells)
    cells.close()


def test_a_value_of_a_type_without_equality_is_repaired(postgres_server: PostgresServer, tmp_path: Path) -> None:
    cells, copy = PostgresCells(postgres_server.uri), SqliteCells(tmp_path / "copy")
    clear(cells)
    copy.run("d", "CREATE TABLE t (id BIGINT PRIMARY KEY, v TEXT); INSERT INTO t VALUES (1, '(1,2)')")
    cells.run("d", "CREATE TABLE t (id BIGINT, v POINT); INSERT INTO t VALUES (1, '(1,3)'), (1, '(1,2)')")
    verified = Verified(feed_of(postgres_server.uri, cells, tmp_path))
    verified.feed.with_(filter={"rules": ["d.t"]})
    verified.repaired(against=f"sqlite:///{copy.directory}")
    assert verified.verify(against=f"sqlite:///{copy.directory}").is_equal
    clear(cells)
    cells.close()


def test_a_text_is_found_whatever_the_collation_of_its_column(mariadb_server: MariaDbServer, tmp_path: Path) -> None:
    cells, copy = MariaDbCells(mariadb_server.uri), SqliteCells(tmp_path / "copy")
    clear(cells)
    copy.run(
        "d", "CREATE TABLE t (id VARCHAR(9) PRIMARY KEY, v TEXT); INSERT INTO t VALUES ('\u00e4', 'x'), ('\u0130', 'y')"
    )
    cells.query("CREATE DATABASE d")
    kind = "VARCHAR(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci"
    cells.run("d", f"CREATE TABLE t (id {kind} PRIMARY KEY, v {kind})")
    cells.run("d", "INSERT INTO t VALUES ('\u00e4', '\u00e9'), ('\u00f1', 'y')")
    verified = Verified(feed_of(mariadb_server.uri, cells, tmp_path))
    verified.feed.with_(filter={"rules": ["d.t"]})
    verified.repaired(against=f"sqlite:///{copy.directory}")
    assert verified.verify(against=f"sqlite:///{copy.directory}").is_equal
    clear(cells)
    cells.close()

"""The upstream as of C while it moves on; resuming, pacing, schemas that differ, the command's exit codes."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from consumer.demo.fake_ticdc.changefeed import Message
from ordering.errors import ConfigError, InputError, SourceError, SourceUnreachableError
from tests.embedded import MariaDbServer, PostgresServer, TidbServer
from tests.service.cells import MariaDbCells, SqliteCells
from tests.service.lab import eventually, reconciler
from tests.service.messages import TOPIC, encoded, value_of
from tests.service.pipeline.test_upstream import Origin
from tests.service.postgres_cells import PostgresCells
from tests.verifying.upstreams import Verified, connected, feed_of

pytestmark = pytest.mark.service
ROWS = 2_500


@pytest.fixture
def origin(tidb_server: TidbServer, database_prefix: str) -> Iterator[Origin]:
    found = Origin(tidb_server, database_prefix)
    yield found
    found.close()


@pytest.fixture
def verified(origin: Origin, tidb_server: TidbServer, tmp_path: Path) -> Verified:
    """A changefeed into SQLite whose upstream is the origin, with its checkpoint at the origin's clock."""
    cells = SqliteCells(tmp_path / "target")
    feed = feed_of(f"sqlite:///{cells.directory}", cells, tmp_path)
    feed.with_(source={"upstream": {"uri": tidb_server.uri}}, filter={"rules": [f"{origin.database}.*"]})
    return Verified(feed)


def made(origin: Origin, verified: Verified, rows: int = 3, columns: str = "id INT PRIMARY KEY, v INT") -> None:
    """The same table on both sides, all applied; then the upstream moves on, in its schema too."""
    database = origin.database
    value = value_of("QUERY", f"{database}.", origin.clock(), isDdl=True)
    created = Message(TOPIC, 0, encoded({**value, "sql": f"CREATE DATABASE {database}"}))
    table = origin.create(f"CREATE TABLE {{}}.t ({columns})", "t")
    origin.run(f"INSERT INTO {database}.t VALUES {', '.join(f'({n}, {n})' for n in range(rows))}")
    verified.feed.send([created, table, *origin.watermarks()])
    verified.feed.apply()
    run(verified, origin, f"INSERT INTO t VALUES {', '.join(f'({n}, {n})' for n in range(rows))}")


def run(verified: Verified, origin: Origin, statement: str) -> None:
    verified.cells.run(origin.database, statement)


def test_the_upstream_is_read_as_of_c_and_what_came_later_does_not_count(origin: Origin, verified: Verified) -> None:
    made(origin, verified)
    checkpoint = verified.cells.progress(verified.feed.name)["checkpoint_ts"]
    # the watermark lies a little ahead of the origin's clock
    eventually("the origin's clock has passed the checkpoint", lambda: origin.clock() > checkpoint)
    origin.run(f"UPDATE {origin.database}.t SET v = 99 WHERE id = 1")
    origin.run(f"ALTER TABLE {origin.database}.t ADD COLUMN w INT DEFAULT 5")
    outcome = verified.verify()
    assert (outcome.is_equal, outcome.tables[0].rows) == (True, 3)
    assert outcome.checkpoint_ts == verified.cells.progress(verified.feed.name)["checkpoint_ts"]
    run(verified, origin, "UPDATE t SET v = 99 WHERE id = 1")
    assert verified.lines() == [f"DIFFERENT {origin.database}.t id='1' column v: upstream '1', target '99'"]


def test_what_garbage_collection_has_taken_is_said_with_advice(origin: Origin, verified: Verified) -> None:
    made(origin, verified)
    origin.collect(2100)
    with pytest.raises(InputError, match="garbage-collected") as caught:
        verified.verify()
    assert "tidb_gc_life_time" in caught.value.hint
    assert caught.value.exit_code == 3


def test_what_there_is_to_compare_with_has_to_be_said_and_reached(
    origin: Origin, verified: Verified, mariadb_server: MariaDbServer
) -> None:
    with pytest.raises(ConfigError, match="has not run yet"):
        verified.verify()
    made(origin, verified)
    for options, kind, fact in (
        ({"upstream": mariadb_server.uri}, ConfigError, "has to be a TiDB"),
        ({"upstream": "tidb://root@127.0.0.1:1"}, SourceUnreachableError, "the upstream is out of reach"),
        ({"upstream": verified.feed.config.source.upstream.uri.replace("@", ":no@")}, SourceError, "the upstream"),
        ({"against": "tidb://root@127.0.0.1:4", "replay": True}, ConfigError, "exclude each other"),
    ):
        with pytest.raises(kind, match=fact):
            verified.verify(**options)
    verified.feed.settings["source"].pop("upstream")
    with pytest.raises(ConfigError, match="nothing to compare"):
        verified.verify()


def test_a_run_goes_on_where_another_ended_unless_something_changed(origin: Origin, verified: Verified) -> None:
    made(origin, verified, rows=ROWS)
    run(verified, origin, "UPDATE t SET v = -1 WHERE id = 700")
    state = verified.feed.directory / "state"
    first = verified.verify(state=state, chunk_rows=500)
    lines = state.read_text().splitlines(keepends=True)
    assert (len(lines), first.tables[0].chunks) == (8, 6)
    assert '"ended":' in lines[-1]
    run(verified, origin, "UPDATE t SET v = -1 WHERE id = 710 OR id = 2400")
    state.write_text("".join(lines[:4]) + lines[4][:20])  # cut off in the middle of a line
    again = verified.verify(state=state, chunk_rows=500)
    # the second chunk was done before; the last one was not
    assert [one.key(again.tables[0].comparison)["id"] for one in again.tables[0].differences] == ["700", "2400"]
    assert again.tables[0].rows == ROWS
    assert again.notes[0].startswith("3 of 6 chunks were compared by a run that began at 20")
    assert len(state.read_text().splitlines()) == 8
    again = verified.verify(state=state, chunk_rows=600)
    assert again.tables[0].counts()["different"] == 3
    run(verified, origin, "ALTER TABLE t ADD COLUMN mine INT")
    origin.run(f"CREATE TABLE {origin.database}.u (id INT PRIMARY KEY)")
    verified.feed.send([origin.create("CREATE TABLE {}.w (id INT PRIMARY KEY)", "w"), *origin.watermarks()])
    verified.feed.apply()
    later = verified.verify(state=state, chunk_rows=600)
    assert {name.table for name, *_ in later.plan.schema} == {"u"}
    assert later.plan.left_out[0][1] == "column 'mine' is the target's own"
    state.write_text("something else\n")
    with pytest.raises(ConfigError, match="no state of"):
        verified.verify(state=state)


def test_load_is_bounded(origin: Origin, verified: Verified) -> None:
    made(origin, verified, rows=ROWS)
    begun = time.monotonic()
    assert verified.verify(chunk_rows=500, max_rows_per_second=2_000).is_equal
    assert time.monotonic() - begun > ROWS / 2_000


def test_schemas_that_differ_are_told_as_such(origin: Origin, verified: Verified) -> None:
    made(origin, verified)
    database = origin.database
    origin.run(f"CREATE TABLE {database}.lost (id INT PRIMARY KEY)")
    origin.run(f"CREATE TABLE {database}.keyless (id INT)")
    verified.feed.send([*origin.watermarks()])
    verified.feed.apply()
    run(verified, origin, "CREATE TABLE extra (id INT PRIMARY KEY); ALTER TABLE t RENAME COLUMN v TO other")
    outcome = verified.verify()
    assert [(str(name), kind) for name, kind, _ in outcome.plan.schema] == [
        (f"{database}.lost", "missing table"),
        (f"{database}.t", "missing column"),
        (f"{database}.extra", "extra table"),
    ]
    left_out = {str(name): text for name, text in outcome.plan.left_out}
    assert "no valid index" in left_out[f"{database}.keyless"]
    assert "'other' is the target's own" in left_out[f"{database}.t"]
    assert not outcome.is_equal
    told = outcome.as_json()
    assert (told["equal"], len(told["schema"]), told["rows"]) == (False, 3, 3)
    assert json.dumps(told)


def test_the_command(origin: Origin, verified: Verified) -> None:
    made(origin, verified)
    uri = verified.feed.settings["source"].pop("upstream")["uri"]
    config = str(verified.feed.file())
    equal = reconciler("verify", config, "--upstream", uri)
    assert (equal.returncode, equal.stderr) == (0, "")
    assert equal.stdout.startswith("equal: compared 1 table, 3 rows at checkpoint")
    run(verified, origin, "UPDATE t SET v = 8 WHERE id = 2")
    mend = verified.feed.directory / "mend.sql"
    differing = reconciler("verify", config, "--upstream", uri, "--json", "--fix-sql", str(mend))
    assert differing.returncode == 6
    assert "differ: 1 row in 1 table," in differing.stderr
    (table,) = json.loads(differing.stdout)["tables"]
    assert table["differences"] == [
        {"kind": "different", "key": {"id": "2"}, "columns": {"v": {"upstream": "2", "target": "8"}}}
    ]
    assert "UPDATE" in mend.read_text()


def test_servers_share_a_snapshot_and_keys_of_every_order_are_found(
    origin: Origin,
    tidb_server: TidbServer,
    mariadb_server: MariaDbServer,
    postgres_server: PostgresServer,
    tmp_path: Path,
) -> None:
    """Texts under collations that order them in two ways, unsigned numbers, negative ones; several threads."""
    database, rows = origin.database, []
    for n in range(1_500):
        name = f"{'aAbBäÄ z'[n % 8]}{n}"
        rows.append((n * 12_297_829_382_473 if n % 2 else n, -n, name))
    values = ", ".join(f"({a}, {b}, '{c}')" for a, b, c in rows)
    tables = {"u": "a", "s": "b", "t": "c", "two": "b, c"}
    mine, theirs = MariaDbCells(mariadb_server.uri), PostgresCells(postgres_server.uri)
    mine.query(f"CREATE DATABASE {database}")
    theirs.query(f"CREATE SCHEMA {database}")
    for table, key in tables.items():
        text = "VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci"
        create = f"CREATE TABLE {database}.{table} (a BIGINT UNSIGNED, b BIGINT, c {text}, PRIMARY KEY ({key}))"
        for execute in (origin.run, mine.query):
            execute(create)
            execute(f"INSERT INTO {database}.{table} VALUES {values}")
        theirs.query(f"CREATE TABLE {database}.{table} (a numeric(20,0), b bigint, c varchar(20), PRIMARY KEY ({key}))")
        theirs.query(f"INSERT INTO {database}.{table} VALUES {values}")
    connected(tidb_server).close()
    for uri, cells in ((mariadb_server.uri, mine), (postgres_server.uri, theirs)):
        feed = feed_of(uri, cells, tmp_path).with_(filter={"rules": [f"{database}.*"]})
        one = Verified(feed)  # type: ignore[arg-type]
        against = tidb_server.uri
        whole = one.verify(against=against, threads=3, chunk_rows=200)
        assert whole.is_equal
        assert {t.comparison.name.table: t.chunks for t in whole.tables} == {"s": 8, "t": 1, "two": 8, "u": 8}
        for table in tables:
            cells.query(f"UPDATE {database}.{table} SET a = 5 WHERE b = -777")
            cells.query(f"UPDATE {database}.{table} SET c = 'X1001' WHERE b = -1001")
            cells.query(f"DELETE FROM {database}.{table} WHERE b = -1499")
        found = one.verify(against=against, threads=3, chunk_rows=200)
        counts = {t.comparison.name.table: t.counts() for t in found.tables}
        # a value of the key that changes is another row
        assert {name: (c["missing"], c["extra"], c["different"]) for name, c in counts.items()} == {
            "s": (1, 0, 2), "t": (2, 1, 1), "two": (2, 1, 1), "u": (2, 1, 1)
        }  # fmt: skip
        one.repaired(against=against, threads=2)
        assert one.verify(against=against, threads=2, chunk_rows=300).is_equal
    mine.drop([database])
    theirs.drop([database])
    mine.close()
    theirs.close()

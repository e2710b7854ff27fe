"""Recovery tools on real servers: backups with and without our progress, export, import, reset, rewind; refusals."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from click.testing import CliRunner, Result
from confluent_kafka import Producer

from consumer.cli.main import main
from consumer.embedded import KafkaBroker
from consumer.kafka.admin import KafkaAdmin
from ordering.events import Partition
from ordering.timestamps import physical_ms
from sinks.registry import open_target
from sinks.rows.values import ValueRules
from tests.service.cells import MariaDbCells, SqliteCells
from tests.service.lab import Feed
from tests.service.messages import at, begun, ddl, delete, insert, keyed, update, watermarks
from tests.service.postgres_cells import PostgresCells

pytestmark = [pytest.mark.service, pytest.mark.kafka]
OURS = "ticdc_reconciler"
UNIQUE = "id INT PRIMARY KEY, v INT UNIQUE, s VARCHAR(10)"


def reconciler(*arguments: object) -> Result:
    """A command in this process."""
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def done(result: Result) -> str:
    assert result.exit_code == 0, result.output
    return str(result.stdout)


def refused(result: Result, code: int, *parts: str) -> None:
    assert result.exit_code == code, result.output
    assert result.stderr.startswith("error: ")
    for part in parts:
        assert part in result.stderr


def rows(feed: Feed) -> list[tuple[int, int, str]]:
    return sorted((row["id"], row["v"], row["s"]) for row in feed.cells.tables(["d"])["d.t"][1])


def first(feed: Feed) -> None:
    """Rows 1 to 3 up to transaction 5."""
    rows = [insert("d.t", 4, n % 3, id=n, v=n, s="old") for n in (2, 3)]
    feed.send([*begun(columns=UNIQUE), *rows, *watermarks(5)])
    assert feed.once().checkpoint_ts == at(5)


def more(feed: Feed) -> list[tuple[int, int, str]]:
    """Two rows swap a unique value, one goes, one comes; up to transaction 9."""
    feed.send(
        [
            update("d.t", 6, {"v": 2}, 2, id=2, v=3, s="new"),
            update("d.t", 6, {"v": 3}, 0, id=3, v=2, s="new"),
            delete("d.t", 7, id=1, v=1, s="one"),
            insert("d.t", 8, 1, id=4, v=1, s="new"),
            *watermarks(9),
        ]
    )
    assert feed.once().checkpoint_ts == at(9)
    found = rows(feed)
    assert found == [(2, 3, "new"), (3, 2, "new"), (4, 1, "new")]
    return found


class Backup:
    """A copy of a target, with or without our own tables, and the way back."""

    def __init__(self, feed: Feed, place: Path, *, ours: bool) -> None:
        self._place, self._names = place, ["d", *([OURS] if ours else [])]
        self._cells: Any = feed.cells
        self._uri = feed.uri
        self._held: Any = None

    def take(self) -> None:
        if isinstance(self._cells, SqliteCells):
            shutil.copytree(self._cells.directory, self._place)
        elif isinstance(self._cells, MariaDbCells):
            self._held = dump(self._cells, self._names)
        else:
            self._held = [self._copied(name, f"{name}_backup") for name in self._names]

    def restore(self) -> None:
        if isinstance(self._cells, SqliteCells):
            for name in self._names:
                shutil.copy(self._place / f"{name}.sqlite", self._cells.directory)
        elif isinstance(self._cells, MariaDbCells):
            for name in self._names:
                self._cells.query(f"DROP DATABASE `{name}`")
            for statement, values in self._held:
                self._cells.query(statement, values)
        else:
            for name in self._names:
                self._copied(f"{name}_backup", name)

    def _copied(self, schema: str, to: str) -> None:
        """A schema with its tables' rows; definitions stay as they are, since no DDL comes between."""
        with psycopg.connect(self._uri) as connection:
            connection.execute(f"CREATE SCHEMA IF NOT EXISTS {to}".encode())
            tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s", (schema,)).fetchall()
            for (table,) in tables:
                connection.execute(
                    f"CREATE TABLE IF NOT EXISTS {to}.{table} (LIKE {schema}.{table} INCLUDING ALL)".encode()
                )
                connection.execute(f"DELETE FROM {to}.{table}".encode())
                connection.execute(
                    f"INSERT INTO {to}.{table} OVERRIDING SYSTEM VALUE SELECT * FROM {schema}.{table}".encode()
                )


def dump(cells: MariaDbCells, databases: list[str]) -> list[tuple[str, tuple[Any, ...]]]:
    """What `mariadb-dump --single-transaction` writes: definitions, and the rows of one moment."""
    cells.query("START TRANSACTION WITH CONSISTENT SNAPSHOT")
    statements: list[tuple[str, tuple[Any, ...]]] = []
    views: list[tuple[str, tuple[Any, ...]]] = []
    for database in databases:
        statements.append((f"CREATE DATABASE `{database}` COLLATE utf8mb4_bin", ()))
        for table, kind in [row.values() for row in cells.query(f"SHOW FULL TABLES FROM `{database}`")]:
            if kind == "VIEW":
                views.append((cells.query(f"SHOW CREATE VIEW `{database}`.`{table}`")[0]["Create View"], ()))
                continue
            made = cells.query(f"SHOW CREATE TABLE `{database}`.`{table}`")[0]["Create Table"]
            statements.append((made.replace("CREATE TABLE ", f"CREATE TABLE `{database}`."), ()))
            for row in cells.query(f"SELECT * FROM `{database}`.`{table}`"):
                marks = ", ".join(["%s"] * len(row))
                statements.append((f"INSERT INTO `{database}`.`{table}` VALUES ({marks})", tuple(row.values())))
    cells.query("COMMIT")
    return statements + views


@pytest.fixture
def own_feed(every_feed: Feed) -> Iterator[Feed]:
    """A feed whose target's progress is put away by backups; PostgreSQL's copies are dropped in the end."""
    yield every_feed
    if isinstance(every_feed.cells, PostgresCells):
        with psycopg.connect(every_feed.uri) as connection:
            for name in ("d_backup", f"{OURS}_backup"):
                connection.execute(f"DROP SCHEMA IF EXISTS {name} CASCADE".encode())


@pytest.mark.parametrize("consistency", ["snapshot", pytest.param("row", marks=pytest.mark.soak)])
def test_a_backup_that_holds_the_progress(own_feed: Feed, tmp_path: Path, consistency: str) -> None:
    feed = own_feed.with_(target={"consistency": consistency})
    first(feed)
    backup = Backup(feed, tmp_path / "backup", ours=True)
    backup.take()
    upstream = more(feed)
    backup.restore()
    assert rows(feed) != upstream
    assert feed.checkpoint() == at(5)
    assert feed.once().checkpoint_ts == at(9)
    assert rows(feed) == upstream


def test_a_backup_without_the_progress(own_feed: Feed, tmp_path: Path) -> None:
    feed = own_feed
    first(feed)
    config, export = feed.file(), tmp_path / "progress.json"
    backup = Backup(feed, tmp_path / "backup", ours=False)
    backup.take()
    export.write_text(done(reconciler("progress", "export", config)))
    upstream = more(feed)
    backup.restore()
    assert feed.checkpoint() == at(9)
    refused(reconciler("progress", "import", config, export), 2, "--yes", str(at(5)))
    assert feed.checkpoint() == at(9)
    done(reconciler("progress", "import", config, export, "--yes"))
    assert feed.once().checkpoint_ts == at(9)
    assert rows(feed) == upstream


def test_rewinding_mends_what_was_damaged(every_feed: Feed) -> None:
    feed = every_feed.with_(target={"consistency": "transaction"})
    first(feed)
    upstream = more(feed)
    # the table as it was before, but for row 4, which holds a unique value that was row 1's
    feed.cells.run("d", damage(feed))
    done(reconciler("progress", "rewind", feed.file(), at(5), "--yes"))
    shown = json.loads(done(reconciler("progress", "show", feed.file(), "--json")))
    assert (shown["checkpoint_ts"], shown["applied_again_to"], shown["leader_lives"]) == (at(5), at(9), False)
    assert "will be applied once more" in done(reconciler("progress", "show", feed.file()))
    outcome = feed.once()
    assert (outcome.checkpoint_ts, outcome.counts.events, outcome.before.events) == (at(9), 7, 7)
    assert rows(feed) == upstream


def damage(feed: Feed) -> str:
    table = "d.t" if isinstance(feed.cells, PostgresCells) else "t"
    return (
        f"DELETE FROM {table} WHERE id IN (2, 3); INSERT INTO {table} VALUES (2, 2, 'old'); "
        f"INSERT INTO {table} VALUES (3, 3, 'old')"
    )


def test_what_rewinding_refuses(sqlite_feed: Feed) -> None:
    feed = sqlite_feed
    config = feed.file()
    refused(reconciler("progress", "rewind", config, at(1), "--yes"), 2, "has no progress")
    first(feed)
    refused(reconciler("progress", "rewind", config, at(4)), 2, "--yes")
    refused(reconciler("progress", "rewind", config, at(5), "--yes"), 2, "not below the checkpoint")
    refused(reconciler("progress", "rewind", config, at(1), "--yes"), 2, "DDL", f"rewind to {at(2)}")
    feed.send([ddl("d.t", 6, "ALTER TABLE `t` ADD COLUMN `w` INT", kind="ALTER"), *watermarks(7)])
    feed.once()
    refused(reconciler("progress", "rewind", config, at(5), "--yes"), 2, "ALTER TABLE", str(at(6)))
    feed.make_database("d", "CREATE TABLE k (v INT)")
    feed.with_(filter={"force-replicate": True})
    refused(reconciler("progress", "rewind", feed.file(), at(6), "--yes"), 2, "d.k", "valid index")
    feed.with_(filter={"force-replicate": False})
    feed.delete_records(1, 1)
    refused(reconciler("progress", "rewind", feed.file(), at(6), "--yes"), 3, f"topic={feed.topic} partition=1")
    assert feed.checkpoint() == at(7)


def test_rewinding_to_a_ddl_does_not_execute_it_again(sqlite_feed: Feed) -> None:
    first(sqlite_feed)
    told = json.loads(done(reconciler("progress", "rewind", sqlite_feed.file(), at(2), "--yes", "--json")))
    assert (told["checkpoint_ts"], told["applied_again_to"]) == (at(2), at(5))
    assert sqlite_feed.once().checkpoint_ts == at(5)
    assert len(sqlite_feed.status()["ddl_history"]) == 2


@pytest.mark.by_turns
def test_nothing_is_changed_while_an_instance_runs(every_feed: Feed, tmp_path: Path) -> None:
    feed = every_feed
    first(feed)
    config, export = feed.file(), tmp_path / "progress.json"
    export.write_text(done(reconciler("progress", "export", config)))
    leader = open_target(feed.uri, ValueRules())
    leader.connect()
    epoch = leader.claim(feed.name, feed_progress(feed)).epoch
    for command in (("rewind", config, at(4)), ("reset", config), ("import", config, export)):
        refused(reconciler("progress", *command, "--yes"), 5, "is running", "stop it")
    assert "alive" in done(reconciler("progress", "show", config))
    assert feed.status()["leader_epoch"] == epoch
    leader.close()
    assert "none" in done(reconciler("progress", "show", config))
    done(reconciler("progress", "import", config, export, "--yes"))
    assert feed.status()["leader_epoch"] == epoch + 1


def feed_progress(feed: Feed) -> Any:
    target = open_target(feed.uri, ValueRules())
    stored = target.stored(feed.name)
    target.close()
    assert stored is not None
    return stored.progress


def test_tidb_tells_whether_a_leader_lives(tidb_feed: Feed) -> None:
    feed = tidb_feed
    first(feed)
    leader, other = (open_target(feed.uri, ValueRules()) for _ in range(2))
    leader.connect()
    leader.claim(feed.name, feed_progress(feed))
    assert other.is_led(feed.name)
    assert not leader.is_led(f"{feed.name}-2")
    leader.close()
    assert not other.is_led(feed.name)
    assert not other.is_led(feed.name)
    other.close()


def test_a_reset_changefeed_begins_anew(sqlite_feed: Feed) -> None:
    feed = sqlite_feed
    first(feed)
    upstream = more(feed)
    for name in ("d",):
        (feed.cells.directory / f"{name}.sqlite").unlink()  # type: ignore[union-attr]
    refused(reconciler("progress", "reset", feed.file()), 2, "--yes")
    done(reconciler("progress", "reset", feed.file(), "--yes"))
    assert feed.checkpoint() == 0
    assert feed.once().checkpoint_ts == at(9)
    assert rows(feed) == upstream


def test_what_importing_refuses(sqlite_feed: Feed, tmp_path: Path) -> None:
    feed = sqlite_feed
    first(feed)
    export = tmp_path / "progress.json"
    value = json.loads(done(reconciler("progress", "export", feed.file())))
    topic = value["state"]["topics"][feed.topic]
    wrong: list[tuple[dict[str, Any], int, str]] = [
        ({"format": 2}, 2, "format 1"),
        ({"changefeed": "other"}, 2, "'other'"),
        ({"kafka_cluster": "elsewhere"}, 2, "elsewhere"),
        ({"state": {}}, 2, "damaged"),
        ({"state": {**value["state"], "topics": {feed.topic: {**topic, "id": "older"}}}}, 3, "created again"),
    ]
    for changes, code, told in wrong:
        export.write_text(json.dumps({**value, **changes}))
        refused(reconciler("progress", "import", feed.file(), export, "--yes"), code, told)
    export.write_text("[]")
    refused(reconciler("progress", "import", feed.file(), export, "--yes"), 2, "no export")
    refused(reconciler("progress", "import", feed.file(), tmp_path / "none", "--yes"), 2, "none")
    feed.delete_records(0, 4)
    value["offsets"][feed.topic]["0"]["offset"] = 2
    export.write_text(json.dumps(value))
    refused(reconciler("progress", "import", feed.file(), export, "--yes"), 3, "retention")
    assert feed.checkpoint() == at(5)


def test_clocks_that_differ_by_more_than_the_slack(sqlite_feed: Feed) -> None:
    feed = sqlite_feed
    feed.make_topic(3)
    producer, skew_ms = Producer({"bootstrap.servers": feed.bootstrap}), 1_200_000
    for message in feed.here([*begun(), insert("d.t", 4, 1, id=2, v=2), *watermarks(5)]):
        moment = physical_ms(at(3)) - skew_ms
        producer.produce(message.topic, message.value, partition=message.partition, timestamp=moment)
    producer.flush()
    feed.once()
    feed.delete_records(0, 1)  # what retention has deleted is not looked through
    command = ("progress", "rewind", feed.file(), at(3), "--yes")
    refused(reconciler(*command), 3, "clocks", "--slack", f"topic={feed.topic} partition=0")
    assert feed.checkpoint() == at(5)
    refused(reconciler(*command, "--slack", 1800), 3, "retention", f"topic={feed.topic} partition=0")


def test_where_the_log_begins_to_hold_a_time(kafka_broker: KafkaBroker, topic_name: str, sqlite_feed: Feed) -> None:
    sqlite_feed.make_topic(2)
    producer, moment = Producer({"bootstrap.servers": kafka_broker.bootstrap}), 1_767_225_600_000
    for number in range(4):
        producer.produce(topic_name, b"x", partition=0, timestamp=moment + 1000 * number)
    producer.flush()
    control = KafkaAdmin(kafka_broker.bootstrap, {})
    partitions = [Partition(topic_name, 0), Partition(topic_name, 1)]
    assert control.offsets_since(partitions, moment + 1500) == {partitions[0]: 2, partitions[1]: None}
    assert control.offsets_since(partitions, moment + 9000) == dict.fromkeys(partitions)
    assert control.offsets_since(partitions, 0) == {partitions[0]: 0, partitions[1]: None}
    control.close()


def test_a_rewind_across_a_key_that_was_replaced_by_hand_is_refused(sqlite_feed: Feed) -> None:
    """Rows from before it may be equal in the new one: one would be taken for the other."""
    feed = sqlite_feed
    replaced = "ALTER TABLE `t` DROP INDEX `u`, ADD UNIQUE `w`(`v`)"
    feed.with_(filter={"rules": ["*.*"], "event-filters": [{"matcher": ["d.*"], "ignore-sql": ["ADD UNIQUE"]}]})
    rows = [keyed(insert("d.t", n, id=n, v=7, s="x")) for n in (1, 2)]
    gone = keyed(update("d.t", 3, {"v": 7}, id=2, v=8, s="x"))
    table = "CREATE TABLE `t` (`id` INT NOT NULL,`v` INT NOT NULL,`s` TEXT,UNIQUE `u`(`id`))"
    feed.send([ddl("d.", 0, "CREATE DATABASE `d`"), ddl("d.t", 0, table), *rows, gone])
    feed.send([ddl("d.t", 4, replaced, "ALTER"), *watermarks(5)])
    feed.once()
    feed.cells.run("d", "CREATE TABLE n (id INT NOT NULL, v INT NOT NULL UNIQUE, s TEXT)")
    feed.cells.run("d", "INSERT INTO n SELECT * FROM t; DROP TABLE t; ALTER TABLE n RENAME TO t")
    feed.send([keyed(insert("d.t", 6, id=1, v=9, s="x")), *watermarks(7)])
    feed.once()
    feed.with_(filter={"event-filters": None})
    rewind = ("--slack", "1e9", "--yes")
    told = f"upstream dropped a key of table d.t above commitTs {at(1)}, at {at(4)}"
    refused(reconciler("progress", "rewind", feed.file(), at(1), *rewind), 2, told)
    done(reconciler("progress", "rewind", feed.file(), at(4), *rewind))
    feed.once()
    assert sorted(row["v"] for row in feed.cells.tables(["d"])["d.t"][1]) == [7, 8, 9]

"""What TiDB does in another way than MySQL: bounded transactions, AUTO_RANDOM, which server a URI means."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import orjson
import pytest

from consumer.config.model import config_from
from consumer.demo.fake_ticdc.encoder import watermark
from consumer.embedded import KafkaBroker
from consumer.tuning import Tuning
from ordering.errors import TargetError
from ordering.events import DdlEvent, Position
from ordering.progress import Progress
from ordering.timestamps import CheckpointTs, CommitTs
from sinks.bookkeeping.progress_rows import Lease
from sinks.registry import open_target
from sinks.rows.values import ValueRules
from sinks.steps import Step
from tests.embedded import MariaDbServer, TidbServer
from tests.service.cells import MariaDbCells
from tests.service.kafka_here import KafkaFeed
from tests.service.lab import PARTITIONS, Feed
from tests.simulation.faults import Crash

pytestmark = [pytest.mark.service, pytest.mark.kafka, pytest.mark.tidb]

ROWS, WIDTH = 1_000, 20_000
LIMITS = f"[performance]\ntxn-total-size-limit = {ROWS * WIDTH * 6 // 10}\ntxn-entry-size-limit = 100000\n"


def message(ts: int, **fields: object) -> bytes:
    return orjson.dumps({"id": 0, "es": ts, "ts": ts, "old": None, "_tidb": {"commitTs": ts}, **fields})


def ddl(ts: int, database: str, sql: str) -> bytes:
    return message(ts, database=database, table="t", type="QUERY", isDdl=True, sql=sql, data=None, pkNames=None)


def insert(ts: int, database: str, **row: str) -> bytes:
    return message(ts, database=database, table="t", type="INSERT", isDdl=False, sql="", pkNames=["id"], data=[row])


def fill(feed: Feed, database: str, create: str, rows: Iterator[bytes]) -> None:
    """A table and its rows, up to commitTs 9."""
    feed.send_raw(0, ddl(1, database, f"CREATE DATABASE `{database}`"), ddl(2, database, create))
    feed.send_raw(1, *rows)
    for partition in range(PARTITIONS):
        feed.send_raw(partition, watermark(9, 9))


@pytest.fixture
def narrow(kafka_broker: KafkaBroker, topic_name: str, tmp_path: Path) -> Iterator[Feed]:
    """Into a TiDB that takes in a transaction more than a task's, but less than all rows to come."""
    with TidbServer(tmp_path / "narrow", config=LIMITS) as server:
        cells = MariaDbCells(server.uri)
        tuning = Tuning(small_window=ROWS // 2)
        yield KafkaFeed(None, kafka_broker.bootstrap, topic_name, server.uri, cells, tmp_path, tuning=tuning)  # type: ignore[arg-type]
        cells.close()


@pytest.mark.by_turns
@pytest.mark.parametrize(("consistency", "commits"), [("snapshot", 3), ("transaction", 1)])
def test_a_unit_beyond_the_limit_of_a_transaction_is_refused_with_advice(
    narrow: Feed, consistency: str, commits: int, database_prefix: str
) -> None:
    rows = (insert(3 + n % commits, database_prefix, id=str(n), v="x" * WIDTH) for n in range(ROWS))
    fill(narrow, database_prefix, "CREATE TABLE `t` (`id` INT PRIMARY KEY, `v` TEXT)", rows)
    error = narrow.with_(target={"consistency": consistency}).failing(TargetError)
    assert error.exit_code == 4
    assert "8004" in error.fact
    assert "limits.window-rows" in error.hint
    assert 'consistency = "row"' in error.hint
    assert narrow.cells.query(f"SELECT COUNT(*) AS n FROM `{database_prefix}`.t")[0]["n"] == "0"
    narrow.settings["target"].pop("consistency")
    narrow.once()
    assert narrow.cells.query(f"SELECT COUNT(*) AS n FROM `{database_prefix}`.t")[0]["n"] == str(ROWS)


@pytest.mark.by_turns
def test_a_row_beyond_the_limit_of_an_entry_is_refused(narrow: Feed, database_prefix: str) -> None:
    rows = iter([insert(3, database_prefix, id="1", v="x" * 200_000)])
    fill(narrow, database_prefix, "CREATE TABLE `t` (`id` INT PRIMARY KEY, `v` MEDIUMTEXT)", rows)
    error = narrow.failing(TargetError)
    assert "8025" in error.fact
    assert "txn-entry-size-limit" in error.hint


def test_auto_random_values_are_the_upstream_s(tidb_feed: Feed, database_prefix: str) -> None:
    create = (
        "CREATE TABLE `t` (`id` BIGINT /*T![auto_rand] AUTO_RANDOM(5) */ PRIMARY KEY"
        " /*T![clustered_index] CLUSTERED */,`v` INT)"
    )
    fill(tidb_feed, database_prefix, create, iter([insert(3, database_prefix, id="3458764513820540929", v="1")]))
    tidb_feed.once()
    assert tidb_feed.cells.query(f"SELECT id, v FROM `{database_prefix}`.t") == [
        {"id": "3458764513820540929", "v": "1"}
    ]


def test_row_is_the_default_into_tidb_alone(tidb_feed: Feed, mariadb_feed: Feed) -> None:
    for feed, expected in ((tidb_feed, "row"), (mariadb_feed, "snapshot")):
        assert config_from(feed.values(), "test").target.consistency == expected


def test_a_uri_that_means_another_server_is_refused(
    tidb_feed: Feed, tidb_server: TidbServer, mariadb_server: MariaDbServer
) -> None:
    tidb_feed.make_topic()
    for uri, right in (
        (tidb_server.uri.replace("tidb://", "mysql://"), "tidb://"),
        (mariadb_server.uri.replace("mysql://", "tidb://"), "mysql://"),
    ):
        error = tidb_feed.with_(target={"uri": uri}).failing(TargetError)
        assert right in error.hint


def test_a_ddl_job_that_outlived_its_leader_is_not_done_twice(tidb_server: TidbServer, database_prefix: str) -> None:
    target = open_target(tidb_server.uri, ValueRules())
    target.connect()
    cells = MariaDbCells(tidb_server.uri)
    cells.query(f"CREATE DATABASE `{database_prefix}`")
    cells.query(f"CREATE TABLE `{database_prefix}`.t (id INT PRIMARY KEY, v INT)")
    cells.query(
        f"INSERT INTO `{database_prefix}`.t WITH RECURSIVE n AS (SELECT 1 i UNION ALL SELECT i + 1 FROM n"
        " WHERE i < 900) SELECT i, i FROM n"
    )
    progress = Progress.first(CheckpointTs(0), "", "")
    lease = Lease(database_prefix, target.claim(database_prefix, progress).epoch)
    sql = "ALTER TABLE `t` ADD UNIQUE INDEX `i`(`v`)"
    event = DdlEvent(Position("t", 0, 0), CommitTs(5), "QUERY", database_prefix, "t", sql)

    def die(step: Step) -> None:
        raise Crash(step)

    with pytest.raises(Crash):
        target.execute_ddl(event, progress, lease, die)
    with ThreadPoolExecutor(1) as pool:
        job = pool.submit(cells.run, database_prefix, sql)
        target.execute_ddl(event, progress, lease, lambda _: None)
        job.exception()  # whoever comes second is told that the index is there
    assert target.ddl_log.latest(database_prefix, 1)[0].state == "done"
    keys = cells.query(f"SHOW INDEX FROM `{database_prefix}`.t WHERE Key_name = 'i'")
    assert len(keys) == 1
    target.close()
    cells.drop([database_prefix])
    cells.close()

"""`reconciler run` into Iceberg: two instances through Kafka and Spark, the leader killed; the commands beside them."""

import subprocess
from pathlib import Path

import pytest
from pyspark import SparkContext

from consumer.embedded import KafkaBroker
from tests.service.lab import COMMAND, DEADLINE_S, Feed, environment, eventually
from tests.service.messages import at, begun, insert, watermarks
from tests.sinks.iceberg_cells import CATALOGS, lake_in

pytestmark = [pytest.mark.service, pytest.mark.spark]


@pytest.mark.by_turns(9)
@pytest.mark.cells
@pytest.mark.parametrize("catalog", CATALOGS)
def test_a_stand_by_goes_on_where_a_killed_leader_ended(
    spark: SparkContext,
    kafka_broker: KafkaBroker,
    topic_name: str,
    tmp_path: Path,
    catalog: str,
    request: pytest.FixtureRequest,
) -> None:
    uri, cells = lake_in(catalog, tmp_path, request)
    feed = Feed(spark, kafka_broker.bootstrap, topic_name, uri, cells, tmp_path)
    feed.send(begun())
    checked = feed.command("check", str(feed.file()))
    assert checked.returncode == 0, checked.stdout
    command = [COMMAND, "run", str(feed.file())]
    with feed.running() as leader:
        eventually("the leader has applied the first row", lambda: feed.reached(at(3)))
        log = (feed.directory / "second.log").open("wb")
        second = subprocess.Popen(command, stdout=log, stderr=log, env=environment())
        try:
            eventually("the other one is listed", lambda: len(feed.status()["stand_bys"]) == 1)
            leader.kill()
            leader.wait()
            feed.send([insert("d.t", 4, id=2, v=2, s="two"), *watermarks(5)])
            eventually("the other one has applied the second row", lambda: feed.reached(at(5)))
        finally:
            second.terminate()
            assert second.wait(DEADLINE_S) == 0
            log.close()
    assert sorted(row["id"] for row in feed.cells.tables(["d"])["d.t"][1]) == [1, 2]
    done = feed.command("wait", str(feed.file()), str(at(5)))
    assert done.returncode == 0, done.stderr

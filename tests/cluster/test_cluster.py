"""On a cluster the same messages give the same tables, also where executors and whole workers die in mid-window."""

import json
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from consumer.embedded import KafkaBroker
from tests.bench.load import Load
from tests.bench.measure import RECONCILER, Sending, drop_database, table_digest, write_config
from tests.cluster.standalone import Standalone, environment
from tests.embedded import MariaDbServer, PostgresServer
from tests.service.cells import MariaDbCells, differences, emptied, oracle
from tests.service.lab import Feed, databases_of, eventually, recorded, toml_of
from tests.service.postgres_cells import PostgresCells

pytestmark = [pytest.mark.service, pytest.mark.spark]
EVENTS = 90_000
RECORDING = "split.index-value.raw"
_EAGER = {
    "spark.speculation": "true",
    "spark.speculation.interval": "10ms",
    "spark.speculation.quantile": "0.01",
    "spark.speculation.multiplier": "1.01",
    "spark.speculation.minTaskRuntime": "1ms",
}
"""Any task that is not among the first to end gets a second attempt beside it."""


@pytest.fixture(
    params=[
        pytest.param(("mysql", "snapshot"), marks=pytest.mark.soak),
        ("postgresql", "row"),
        pytest.param(("mysql", "transaction"), marks=pytest.mark.soak),
    ],
    ids="-".join,
)
def feed(
    request: pytest.FixtureRequest,
    cluster: Standalone,
    kafka_broker: KafkaBroker,
    mariadb_server: MariaDbServer,
    postgres_server: PostgresServer,
    topic_name: str,
    tmp_path: Path,
) -> Iterator[Feed]:
    """A changefeed that runs on the cluster."""
    kind, consistency = request.param
    cells: Any = MariaDbCells(mariadb_server.uri) if kind == "mysql" else PostgresCells(postgres_server.uri)
    uri = mariadb_server.uri if kind == "mysql" else postgres_server.uri
    no_spark: Any = None  # each run has a driver of its own
    made = Feed(no_spark, kafka_broker.bootstrap, topic_name, uri, cells, tmp_path)
    with emptied(cells):
        yield made.with_(target={"consistency": consistency}, spark=cluster.settings())


@pytest.mark.by_turns(9)
def test_a_recording_ends_as_its_upstream(feed: Feed) -> None:
    messages = recorded(RECORDING)
    assert databases_of(messages)
    feed.send(messages)
    done = feed.command("run", str(feed.file()), "--once", "--json", seconds=300)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["events"] > 0
    assert differences(oracle("split"), feed.cells) == []


@pytest.mark.by_turns(9)
@pytest.mark.parametrize(
    ("consistency", "settings"),
    [
        pytest.param("snapshot", {}, marks=pytest.mark.soak),
        ("row", {}),
        pytest.param("row", _EAGER, marks=pytest.mark.soak),
    ],
    ids=["snapshot", "row", "row-speculation"],
)
def test_executors_and_a_worker_die_in_mid_window(
    cluster: Standalone,
    kafka_broker: KafkaBroker,
    mariadb_server: MariaDbServer,
    tmp_path: Path,
    consistency: str,
    settings: Mapping[str, str],
) -> None:
    load = Load(EVENTS, database=f"cluster_{uuid4().hex[:8]}")
    name = f"cluster-{uuid4().hex[:8]}"
    Sending(kafka_broker.bootstrap, name, load.partitions).send(load.messages())
    eventually("no other run's executors are left", lambda: not cluster.executors())
    sections = {"limits": {"window-rows": EVENTS // 4}, "spark": {**cluster.settings(), **settings}}
    target = f'consistency = "{consistency}"\n{toml_of(sections)}'
    uri = mariadb_server.uri
    config = write_config(
        tmp_path / "cluster.toml", changefeed=name, bootstrap=kafka_broker.bootstrap, topic=name, uri=uri, extra=target
    )
    told = _run_while_they_die(cluster, config, tmp_path / "run.log")
    found = {table: table_digest(uri, load.database, table) for table in load.expected()}
    drop_database(uri, load.database)
    assert (told["events"], told["windows"] > 3) == (EVENTS, True)
    assert found == load.expected()


def _run_while_they_die(cluster: Standalone, config: Path, log: Path) -> Any:
    """What a run tells during which two executors and then a worker die; the worker is there again afterwards."""
    command = [RECONCILER, "--verbose", "run", config, "--once", "--json"]
    with log.open("wb") as output:
        run = subprocess.Popen(command, stdout=output, stderr=output, env=environment())
    try:
        for window in (1, 2):
            _await_window(window, log, run)
            assert cluster.showing_the_secret() == []
            cluster.executors()[-1].kill()
        _await_window(3, log, run)
        cluster.workers[0].kill()
        assert run.wait(300) == 0, log.read_text()
    finally:
        run.kill()
        run.wait()
        if not cluster.workers[0].running:
            cluster.workers[0].start()
    return json.loads(log.read_text().splitlines()[-1])


def _await_window(number: int, log: Path, run: "subprocess.Popen[bytes]") -> None:
    """Return when the next window is being read."""

    def is_applied() -> bool:
        said = log.read_text()
        assert run.poll() is None, said
        return said.count("window applied") >= number

    eventually(f"window {number} is applied", is_applied)

"""Executors die between the stages of a window, with what they have read; Kafka is away by then."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from consumer.embedded import KafkaBroker
from sinks.steps import Step
from tests.bench.load import Load
from tests.bench.measure import RECONCILER, Sending, drop_database, table_digest, write_config
from tests.cluster.standalone import Standalone, environment
from tests.embedded import MariaDbServer
from tests.service.lab import eventually, toml_of

pytestmark = [pytest.mark.service, pytest.mark.spark, pytest.mark.soak]
EVENTS = 5_000


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[KafkaBroker]:
    """A broker of the test's own, for it is stopped."""
    with KafkaBroker(tmp_path / "kafka") as broker:
        yield broker


def test_what_lost_executors_had_read(broker: KafkaBroker, mariadb_server: MariaDbServer, tmp_path: Path) -> None:
    name = f"lost-{uuid4().hex[:8]}"
    load = Load(EVENTS, database=name.replace("-", "_"))
    Sending(broker.bootstrap, name, load.partitions).send(load.messages())
    with Standalone(tmp_path / "spark") as cluster:
        extra = toml_of({"limits": {"retry-seconds": 0.1}, "spark": cluster.settings()})
        config = write_config(
            tmp_path / "lost.toml", changefeed=name, bootstrap=broker.bootstrap, topic=name, uri=mariadb_server.uri,
            extra=extra,
        )  # fmt: skip
        words = [sys.executable, "-m", "tests.cluster.losing_run", str(config), Step.READ.value, str(tmp_path)]
        run = subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env=environment())
        try:
            eventually("the step", lambda: (tmp_path / "reached").exists() or run.poll() is not None, 240)
            assert run.poll() is None, run.stderr
            broker.kill()
            before = cluster.executors()
            for executor in before:
                executor.kill()
            eventually("they are gone", lambda: not any(one.is_running() for one in before), 60)
            (tmp_path / "go").touch()
            _, said = run.communicate(timeout=300)
        finally:
            run.kill()
            run.wait()
        assert run.returncode == 3, said
        broker.restart()
        done = subprocess.run(
            [RECONCILER, "run", config, "--once"], capture_output=True, text=True, env=environment(), check=False
        )
        assert done.returncode == 0, done.stderr
    found = {table: table_digest(mariadb_server.uri, load.database, table) for table in load.expected()}
    drop_database(mariadb_server.uri, load.database)
    assert found == load.expected()

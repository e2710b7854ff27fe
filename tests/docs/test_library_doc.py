"""`docs/library.md`: its example is run, and what it tells of the API is all there is."""

import inspect
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from consumer.embedded import KafkaBroker
from consumer.library import feed
from tests.bench.load import Load
from tests.bench.measure import Sending
from tests.docs.test_readme import README, ROOT

TEXT = (ROOT / "docs" / "library.md").read_text()
CODE, CONFIG = (re.findall(rf"```{kind}\n(.*?)```", TEXT, re.DOTALL)[0] for kind in ("python", "toml"))
READ = """
from pyspark.sql import SparkSession
print(SparkSession.builder.getOrCreate().read.parquet("lake/orders/*").count())
"""


@pytest.mark.by_turns
@pytest.mark.service
@pytest.mark.spark
def test_the_example_writes_parquet(kafka_broker: KafkaBroker, tmp_path: Path) -> None:
    load = Load(500, database="orders")
    Sending(kafka_broker.bootstrap, "ticdc-test", load.partitions).send(load.messages())
    config = CONFIG.replace("127.0.0.1:9092", kafka_broker.bootstrap) + '\n[redis]\nuri = ""\n'
    (tmp_path / "lake.toml").write_text(config.replace("/var/lib/ticdc-reconciler", str(tmp_path)))
    told = subprocess.run(
        [sys.executable, "-c", CODE + READ], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
    )
    assert told.returncode == 0, told.stderr
    lines = told.stdout.splitlines()
    assert [line.split(" ", 1)[1].split(" (")[0] for line in lines[:2]] == [
        "CREATE DATABASE `orders`",
        "CREATE TABLE `sbtest1`",
    ]
    assert int(lines[-1]) == len({change.id for change in load.changes() if hasattr(change, "id")})


def test_it_is_found() -> None:
    assert "docs/library.md" in README


def test_arguments_items_and_columns_are_told() -> None:
    told = set(re.findall(r"`([A-Za-z_]+)`", TEXT))
    arguments = set(inspect.signature(feed.windows).parameters) - {"config"}
    items = {field.name for item in (feed.ChangeWindow, feed.Ddl) for field in fields(item)} - {"committed"}
    assert arguments | items | set(feed.SCHEMA.names) <= told

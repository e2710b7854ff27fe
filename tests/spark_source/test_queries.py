"""Queries through Kafka and Spark: streams that are killed, backfill between two TSOs, columns of one table."""

import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, DataFrameReader, SparkSession

from consumer.spark_source.source import TicdcDataSource
from tests.cells import seed
from tests.service.lab import ENDS_S, Feed, recorded
from tests.service.messages import at, begun, delete, insert, update, watermarks
from tests.spark_source.model import identities

pytestmark = [pytest.mark.service, pytest.mark.spark]


@pytest.fixture
def session(spark: SparkContext) -> SparkSession:
    found = SparkSession(spark)
    found.dataSource.register(TicdcDataSource)
    return found


@pytest.fixture
def reader(session: SparkSession, sqlite_feed: Feed) -> Callable[..., DataFrameReader]:
    def made(**options: str) -> DataFrameReader:
        found = session.read.format("ticdc").option("source.bootstrap-servers", sqlite_feed.bootstrap)
        told = {"source.topics": sqlite_feed.topic, **{key.replace("_", "-"): text for key, text in options.items()}}
        return found.options(**told)

    return made


def facts(frame: DataFrame) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in frame.select("kind", "commit_ts", "key").collect())


def test_backfill_between_two_commit_timestamps(reader: Callable[..., DataFrameReader], sqlite_feed: Feed) -> None:
    later = [update("d.t", 4, {"v": 1}, 1, id=1, v=2, s="one"), delete("d.t", 5, 2, id=1, v=2, s="one")]
    sqlite_feed.send([*begun(), *later, *watermarks(6)])
    assert [f[0] for f in facts(reader().load())] == ["ddl", "ddl", "delete", "insert", "update"]
    assert facts(reader(end_ts=str(at(4))).load().where("kind != 'ddl'")) == [
        ("insert", at(3), '{"id":"1"}'),
        ("update", at(4), '{"id":"1"}'),
    ]
    with pytest.raises(PySparkException, match="end-ts is"):
        reader(end_ts=str(at(9))).load().collect()


@pytest.mark.by_turns
def test_columns_of_one_table(reader: Callable[..., DataFrameReader], sqlite_feed: Feed) -> None:
    sqlite_feed.send([*begun(), insert("d.u", 4, id=9), insert("d.t", 4, id=2, v=None, s="é"), *watermarks(6)])
    frame = reader(table="d.t").schema("id BIGINT, v INT, s STRING, _kind STRING, _commit_ts BIGINT").load()
    rows = sorted(tuple(row) for row in frame.collect())
    assert rows == [(1, 1, "one", "insert", at(3)), (2, None, "é", "insert", at(4))]
    with pytest.raises(PySparkException, match="can't be read as its type"):
        reader(table="d.t").schema("s INT").load().collect()


@pytest.mark.by_turns
def test_an_unknown_option_is_refused_and_no_password_is_shown(reader: Callable[..., DataFrameReader]) -> None:
    options = {"source.kafka.sasl.password": "hunter2", "source.topic": "t"}
    with pytest.raises(PySparkException) as error:
        reader().options(**options).load().collect()
    assert "source.topic" in str(error.value)
    assert "hunter2" not in str(error.value)


@pytest.mark.by_turns(9)
@pytest.mark.parametrize("kills", [1, pytest.param(4, marks=pytest.mark.soak)])
def test_kills_of_the_driver_leave_each_change_once(
    session: SparkSession, sqlite_feed: Feed, tmp_path: Path, kills: int
) -> None:
    messages, chance = recorded("bank.index-value.restarts"), random.Random(seed())
    step = len(messages) // (kills + 1)
    for number in range(kills + 1):
        sqlite_feed.send(messages[number * step : (number + 1) * step if number < kills else None])
        driver = _started(sqlite_feed.bootstrap, sqlite_feed.topic, tmp_path)
        if number == kills:
            assert driver.wait(ENDS_S) == 0, (tmp_path / "log").read_text()[-3000:]
        else:
            _killed(driver, chance.uniform(0, 6))
    expected = identities(messages, {"bank.acc2": ("no",)})
    written = session.read.parquet(str(tmp_path / "changes")).where("kind != 'ddl'")
    found = [
        (r.database, r.table, r.commit_ts, "delete" if r.after is None else "write", r.key) for r in written.collect()
    ]
    assert sorted(found) == sorted((*key[:4], key[4].replace(" ", "")) for key in expected)


def _started(bootstrap: str, topic: str, place: Path) -> "subprocess.Popen[str]":
    """The query, once it has begun."""
    command = [sys.executable, "-m", "tests.spark_source.stream_to_parquet", bootstrap, topic, str(place)]
    with (place / "log").open("a") as log:
        driver = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True)
    assert driver.stdout is not None
    assert next(line for line in driver.stdout if "begun" in line)
    return driver


def _killed(driver: "subprocess.Popen[str]", seconds: float) -> None:
    """Let the query go on for a while, then kill it with its JVM and its workers."""
    try:
        driver.wait(seconds)
    except subprocess.TimeoutExpired:
        os.killpg(driver.pid, signal.SIGKILL)
        driver.wait()

"""Fixtures with real servers. Each starts once per session, when the first test asks for it, and ends with the session.

A server that cannot be had fails the test with the reason; nothing is skipped. Tests share the servers, so each takes
topics and databases under names of its own (`topic_name`, `database_prefix`), and a test that breaks a server on
purpose starts one of its own instead of breaking everyone's.
"""

import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast
from uuid import uuid4

import pytest
from pyspark import SparkContext

from consumer.config.model import SparkSection
from consumer.embedded import KafkaBroker, RedisServer
from consumer.run import runner
from consumer.runtime import logs
from consumer.spark.context import start_spark, stop_spark, warm_up
from tests.embedded import MariaDbServer, MySqlServer, PostgresServer, TidbServer

__all__ = [
    "database_prefix",
    "kafka_broker",
    "mariadb_server",
    "mysql_server",
    "postgres_server",
    "redis_server",
    "spark",
    "tidb_server",
    "topic_name",
]


@pytest.fixture(scope="session")
def kafka_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    """A broker; topics are never made by themselves."""
    with KafkaBroker(tmp_path_factory.mktemp("kafka")) as broker:
        yield broker


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """A Redis (or Valkey), kept in memory only."""
    with RedisServer(tmp_path_factory.mktemp("redis")) as server:
        yield server


@dataclass(frozen=True)
class GivenServer:
    """A server that runs already (docs/development/testing.md)."""

    uri: str


@pytest.fixture(scope="session")
def mariadb_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MariaDbServer]:
    """A MariaDB that flushes its log once a second: tests end it in good order or start their own.

    `TEST_MYSQL_URI` names a MySQL to be tested in its place, with a user who may do all; then with one worker (`-n 1`).
    """
    if given := os.environ.get("TEST_MYSQL_URI"):
        yield cast("MariaDbServer", GivenServer(given))
        return
    with MariaDbServer(tmp_path_factory.mktemp("mariadb"), flush_at_commit=2) as server:
        yield server


@pytest.fixture(scope="session")
def mysql_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MySqlServer]:
    """A MySQL as it comes."""
    with MySqlServer(tmp_path_factory.mktemp("mysql")) as server:
        yield server


@pytest.fixture(scope="session")
def postgres_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresServer]:
    """A PostgreSQL that leaves flushing to the machine."""
    with PostgresServer(tmp_path_factory.mktemp("postgres")) as server:
        yield server


@pytest.fixture(scope="session")
def tidb_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TidbServer]:
    """A TiDB as it comes."""
    with TidbServer(tmp_path_factory.mktemp("tidb")) as server:
        yield server


@pytest.fixture
def topic_name() -> str:
    """A topic's name that no other test has; not created."""
    return f"test-{uuid4().hex[:12]}"


@pytest.fixture
def database_prefix() -> str:
    """What this test's databases, and its changefeed, begin with."""
    return f"t{uuid4().hex[:10]}_"


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkContext]:
    """Spark as the reconciler starts it; a process has one. Its workers are warmed up once, not for every run."""
    logs.set_up(json=False, verbose=False)
    # no place of pytest's: these are too long for the names of sockets
    with tempfile.TemporaryDirectory(prefix="spark-") as scratch:
        context = start_spark("tests", SparkSection(master="local[2]"), Path(scratch))
        warm_up(context)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(runner, "warm_up", lambda _: None)
            yield context
        stop_spark(context)

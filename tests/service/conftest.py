"""Feeds for the service tests: one Spark context for the whole session, a topic and a target for each test."""

from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from pyspark import SparkContext

from consumer.embedded import KafkaBroker, MariaDbServer, PostgresServer, TidbServer
from sinks.opening import open_target
from sinks.values import ValueRules
from tests.service.cells import MariaDbCells, SqliteCells
from tests.service.lab import Feed
from tests.service.landing import Landing
from tests.service.postgres_cells import PostgresCells

MakeFeed = Callable[..., Feed]


@pytest.fixture
def sqlite_feed(spark: SparkContext, kafka_broker: KafkaBroker, topic_name: str, tmp_path: Path) -> Feed:
    """A changefeed into SQLite, without Redis."""
    target = tmp_path / "target"
    return Feed(spark, kafka_broker.bootstrap, topic_name, f"sqlite:///{target}", SqliteCells(target), tmp_path)


@pytest.fixture
def mariadb_feed(
    spark: SparkContext, kafka_broker: KafkaBroker, topic_name: str, tmp_path: Path, mariadb_server: MariaDbServer
) -> Iterator[Feed]:
    """A changefeed into MariaDB, without Redis. What tests leave behind is dropped."""
    yield from _into(mariadb_server.uri, spark, kafka_broker, topic_name, tmp_path)


@pytest.fixture
def tidb_feed(
    spark: SparkContext, kafka_broker: KafkaBroker, topic_name: str, tmp_path: Path, tidb_server: TidbServer
) -> Iterator[Feed]:
    """A changefeed into TiDB, without Redis. What tests leave behind is dropped."""
    yield from _into(tidb_server.uri, spark, kafka_broker, topic_name, tmp_path)


def _into(uri: str, spark: SparkContext, kafka: KafkaBroker, topic: str, place: Path) -> Iterator[Feed]:
    cells = MariaDbCells(uri)
    before = cells.databases()
    yield Feed(spark, kafka.bootstrap, topic, uri, cells, place)
    cells.drop(cells.databases() - before)
    cells.close()


@pytest.fixture
def postgres_feed(
    spark: SparkContext, kafka_broker: KafkaBroker, topic_name: str, tmp_path: Path, postgres_server: PostgresServer
) -> Iterator[Feed]:
    """A changefeed into PostgreSQL, without Redis. What tests leave behind is dropped."""
    cells = PostgresCells(postgres_server.uri)
    before = cells.databases()
    yield Feed(spark, kafka_broker.bootstrap, topic_name, postgres_server.uri, cells, tmp_path)
    cells.drop(cells.databases() - before)
    cells.close()


@pytest.fixture(params=["sqlite", "mariadb"])
def feed(request: pytest.FixtureRequest) -> Feed:
    """A changefeed into two kinds of target, an embedded one and a server: for what is not about targets."""
    found: Feed = request.getfixturevalue(f"{request.param}_feed")
    return found


@pytest.fixture(params=["sqlite", "mariadb", "postgres"])
def every_feed(request: pytest.FixtureRequest) -> Feed:
    """A changefeed into each kind of target."""
    found: Feed = request.getfixturevalue(f"{request.param}_feed")
    return found


@pytest.fixture
def own_database(postgres_server: PostgresServer) -> Iterator[str]:
    """The URI of a database of the test's own."""
    name = f"own_{uuid4().hex[:10]}"
    with psycopg.connect(postgres_server.uri, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} ENCODING 'UTF8' TEMPLATE template0".encode())
        yield postgres_server.uri_of(name)
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


@pytest.fixture
def fresh(own_database: str) -> Iterator[Landing]:
    cells = PostgresCells(own_database)
    target = open_target(own_database, ValueRules())
    yield Landing(target, cells, "d")
    target.close()
    cells.close()

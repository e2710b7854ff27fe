"""Feeds for the service tests: one Spark context for the whole session, a topic and a target for each test."""

from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest

from consumer.embedded import KafkaBroker
from sinks.registry import open_target
from sinks.rows.values import ValueRules
from tests.embedded import MariaDbServer, MySqlServer, PostgresServer, TidbServer
from tests.service.cells import MariaDbCells, SqliteCells, emptied
from tests.service.kafka_here import KafkaFeed
from tests.service.lab import Feed
from tests.service.landing import Landing
from tests.service.local import LocalFeed
from tests.service.postgres_cells import PostgresCells

MakeFeed = Callable[..., Feed]


def _feed(
    request: pytest.FixtureRequest, uri: str, cells: SqliteCells | MariaDbCells | PostgresCells, place: Path
) -> Feed:
    """A changefeed: through Kafka and Spark for tests marked `spark`, through Kafka alone for those marked `kafka`.

    For others through stand-ins in this process.
    """
    with_spark = request.node.get_closest_marker("spark") is not None
    if not (with_spark or request.node.get_closest_marker("kafka")):
        return LocalFeed.into(uri, cells, place)
    broker: KafkaBroker = request.getfixturevalue("kafka_broker")
    topic: str = request.getfixturevalue("topic_name")
    if with_spark:
        return Feed(request.getfixturevalue("spark"), broker.bootstrap, topic, uri, cells, place)
    return KafkaFeed(None, broker.bootstrap, topic, uri, cells, place)  # type: ignore[arg-type]


@pytest.fixture
def sqlite_feed(request: pytest.FixtureRequest, tmp_path: Path) -> Feed:
    """A changefeed into SQLite, without Redis."""
    target = tmp_path / "target"
    return _feed(request, f"sqlite:///{target}", SqliteCells(target), tmp_path)


@pytest.fixture
def mariadb_feed(request: pytest.FixtureRequest, tmp_path: Path, mariadb_server: MariaDbServer) -> Iterator[Feed]:
    """A changefeed into MariaDB, without Redis. What tests leave behind is dropped."""
    yield from _dropped(request, mariadb_server.uri, MariaDbCells(mariadb_server.uri), tmp_path)


@pytest.fixture
def mysql_feed(request: pytest.FixtureRequest, tmp_path: Path, mysql_server: MySqlServer) -> Iterator[Feed]:
    """A changefeed into MySQL, without Redis. What tests leave behind is dropped."""
    yield from _dropped(request, mysql_server.uri, MariaDbCells(mysql_server.uri), tmp_path)


@pytest.fixture
def tidb_feed(request: pytest.FixtureRequest, tmp_path: Path, tidb_server: TidbServer) -> Iterator[Feed]:
    """A changefeed into TiDB, without Redis. What tests leave behind is dropped."""
    yield from _dropped(request, tidb_server.uri, MariaDbCells(tidb_server.uri), tmp_path)


@pytest.fixture
def postgres_feed(request: pytest.FixtureRequest, tmp_path: Path, postgres_server: PostgresServer) -> Iterator[Feed]:
    """A changefeed into PostgreSQL, without Redis. What tests leave behind is dropped."""
    yield from _dropped(request, postgres_server.uri, PostgresCells(postgres_server.uri), tmp_path)


def _dropped(
    request: pytest.FixtureRequest, uri: str, cells: MariaDbCells | PostgresCells, place: Path
) -> Iterator[Feed]:
    with emptied(cells):
        yield _feed(request, uri, cells, place)


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

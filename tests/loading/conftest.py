"""Loads into every target: an upstream that runs recorded scripts, dumps of it, and changefeeds to load."""

from collections.abc import Iterator

import pytest
from pymysql.constants import CLIENT

from tests.embedded import TidbServer
from tests.loading.dumping import connected
from tests.service.conftest import fresh, mariadb_feed, own_database, postgres_feed, sqlite_feed, tidb_feed
from tests.service.lab import Feed

__all__ = ["fresh", "mariadb_feed", "own_database", "postgres_feed", "sqlite_feed", "tidb_feed"]


def run_script(uri: str, text: str) -> None:
    """Run a script of many statements in one session."""
    connection = connected(uri, client_flag=CLIENT.MULTI_STATEMENTS)
    with connection.cursor() as cursor:
        cursor.execute("SET time_zone = '+00:00'")
        cursor.execute(text)
        while cursor.nextset():
            pass
    connection.close()


def drop_made(uri: str, *, by_bank: bool) -> None:
    """Drop what the bank's script has made, or what the others have: tests need both at once, in any order."""
    connection = connected(uri)
    with connection.cursor() as cursor:
        cursor.execute("SHOW DATABASES")
        names = {name.decode() for (name,) in cursor.fetchall()}
        others = names - {"bank", "mysql", "INFORMATION_SCHEMA", "PERFORMANCE_SCHEMA", "METRICS_SCHEMA", "sys", "test"}
        for name in names & {"bank"} if by_bank else others:
            cursor.execute("DROP DATABASE `{}`".format(name.replace("`", "``")))
    connection.close()


@pytest.fixture(scope="package")
def upstream(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TidbServer]:
    """A TiDB of its own, which scripts fill."""
    with TidbServer(tmp_path_factory.mktemp("upstream")) as server:
        yield server


@pytest.fixture(params=["sqlite", "mariadb", "postgres", "tidb"])
def any_feed(request: pytest.FixtureRequest) -> Feed:
    """A changefeed into each kind of target."""
    found: Feed = request.getfixturevalue(f"{request.param}_feed")
    return found
